"""YAML as `kubectl` reads it: the values that its JSON would have, a List item by item however long it is."""

import re
from collections.abc import Iterator
from typing import Any, Final

from yaml.events import MappingEndEvent, MappingStartEvent, SequenceEndEvent, SequenceStartEvent

from webhook.cli import yaml_scalar
from webhook.yaml_reader import Dialect, Object, Reader, YamlError

LARGEST: Final = 20 * 1024 * 1024
"""Characters of one object: as many as an API server reads of one request. A List is read item by item."""
DIALECT: Final = Dialect(
    plain=yaml_scalar.plain,
    tagged=yaml_scalar.tagged,
    deepest=200,
    most_expanded=LARGEST,
)

_LIST: Final = re.compile(r"""^kind:[ \t]+["']?(\w*List)["']?[ \t\r]*$""", re.MULTILINE)
_API_VERSION: Final = re.compile(r"""^apiVersion:[ \t]+["']?([\w./-]+)["']?[ \t\r]*$""", re.MULTILINE)


def parse(text: str, first_line: int = 1) -> object:
    """One document as a JSON value; `first_line` is the number of its first line in the file, for errors.

    Raises:
        YamlError: broken YAML, a key that appears twice, a value that JSON does not have.

    """
    return _whole(Reader(text, DIALECT, first_line))


def objects(text: str, first_line: int = 1) -> Iterator[object]:
    """The items of a List, each as soon as it is read, or the one document.

    Raises:
        YamlError: as in `parse`; items before the place have been given by then.

    """
    kind, api_version = _LIST.search(text), _API_VERSION.search(text)
    if not kind and len(text) > LARGEST:
        raise YamlError(f"a document of more than {LARGEST // 1024**2} MiB that is no List", first_line)
    reader = Reader(text, DIALECT, first_line)
    if kind:
        # kubectl sorts keys, so `kind` follows the items: it is taken from the text, and compared at the end.
        return _items(reader, {"kind": kind[1], "apiVersion": api_version and api_version[1]})
    return flattened(_whole(reader))


def flattened(value: object) -> Iterator[object]:
    """The items of a List, else the value itself."""
    if not isinstance(value, dict) or not is_list(value):
        yield value
        return
    value["items"].reverse()
    while value["items"]:
        # What was read is not kept.
        yield _typed(value["items"].pop(), value)


def is_list(value: Object) -> bool:
    """Whether an object is a List, or a list of one kind such as LeaseList."""
    return str(value.get("kind", "")).endswith("List") and isinstance(value.get("items"), list)


def _typed(item: object, around: Object) -> object:
    # The API server leaves kind and apiVersion out of the items of a typed list.
    kind = str(around["kind"]).removesuffix("List")
    if isinstance(item, dict) and kind and "kind" not in item:
        return {"apiVersion": around.get("apiVersion"), "kind": kind, **item}
    return item


def _whole(reader: Reader) -> Any:  # noqa: ANN401 - any JSON value
    """The one document; an empty text is null."""
    event = reader.begin()
    if event is None:
        return None
    value = reader.value(event)
    reader.end()
    return value


def _items(reader: Reader, head: Object) -> Iterator[object]:
    """The items of a List whose kind and apiVersion are known to be these."""
    event = reader.begin()
    if event.__class__ is not MappingStartEvent or event.anchor:
        value = reader.value(event)
        reader.end()
        yield from flattened(value)
        return
    around: Object = {}
    has_items = False
    while (event := reader.next()).__class__ is not MappingEndEvent:
        key = reader.key(event, around)
        event = reader.next()
        if key == "items" and event.__class__ is SequenceStartEvent and not event.anchor:
            around[key], has_items = None, True
            reader.check_tag(event, "seq")
            while (event := reader.next()).__class__ is not SequenceEndEvent:
                yield _typed(reader.value(event), head)
        else:
            around[key] = reader.value(event)
    reader.end()
    if not has_items:
        yield from flattened(around)
    elif {"kind": around.get("kind"), "apiVersion": around.get("apiVersion")} != head:
        raise YamlError(f"the text of the {head['kind']} names another kind or apiVersion at its left margin")
