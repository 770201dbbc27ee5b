"""YAML as `kubectl` reads it: the values that its JSON would have, and nothing that only YAML knows.

A value is built from the parser's events (libyaml's, if PyYAML has it), so a List of any length is read item by item,
and aliases and merge keys cost what they expand to, which is bounded.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import yaml
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from webhook.cli import yaml_scalar
from webhook.cli.yaml_scalar import MERGE, TAG

MOST_EXPANDED: Final = 20 * 1024 * 1024
"""Characters that aliases and merge keys may add to a document: as many as an API server reads of one request."""

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_LIST: Final = re.compile(r"""^kind:[ \t]+["']?(\w*List)["']?[ \t\r]*$""", re.MULTILINE)
_API_VERSION: Final = re.compile(r"""^apiVersion:[ \t]+["']?([\w./-]+)["']?[ \t\r]*$""", re.MULTILINE)

Object = dict[str, Any]


class NotYamlError(ValueError):
    """The text is not YAML that Kubernetes reads; the message is one line."""


def parse(text: str, first_line: int = 1) -> object:
    """One document as a JSON value; `first_line` is the number of its first line in the file, for errors.

    Raises:
        NotYamlError: broken YAML, a key that stands twice, a value that JSON does not have.

    """
    return next(_guarded(_Reader(text, first_line).whole(), first_line))


def objects(text: str, first_line: int = 1) -> Iterator[object]:
    """The items of a List, each as soon as it is read, or the one document.

    Raises:
        NotYamlError: as in `parse`; items before the place have been given by then.

    """
    kind, api_version = _LIST.search(text), _API_VERSION.search(text)
    reader = _Reader(text, first_line)
    if kind:
        # kubectl sorts keys, so `kind` follows the items: it is taken from the text, and compared at the end.
        head = {"kind": kind[1], "apiVersion": api_version and api_version[1]}
        return _guarded(reader.items(head), first_line)
    return (item for value in _guarded(reader.whole(), first_line) for item in flattened(value))


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


def _guarded(values: Iterator[object], first_line: int) -> Iterator[object]:
    try:
        yield from values
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + first_line}, column {mark.column + 1}: " if mark else ""
        raise NotYamlError(f"{where}{error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise NotYamlError(" ".join(str(error).split())) from None
    except RecursionError:
        raise NotYamlError("nested too deeply") from None


class _Reader:
    """Builds the values of one document."""

    def __init__(self, text: str, first_line: int) -> None:
        self._events: Iterator[Event] = yaml.parse(text, Loader=LOADER)
        self._first_line = first_line
        self._anchored: dict[str, tuple[object, int]] = {}
        self._open: set[str] = set()
        self._weight = 0
        self._expanded = 0

    def whole(self) -> Iterator[object]:
        """The one document; nothing is null."""
        event = self._begin()
        value = None if isinstance(event, StreamEndEvent) else self._value(event)
        self._end()
        yield value

    def items(self, head: Object) -> Iterator[object]:
        """The items of a List whose kind and apiVersion are known to be these."""
        event = self._begin()
        if event.__class__ is not MappingStartEvent or event.anchor:
            yield from flattened(self._value(event))
            self._end()
            return
        around: Object = {}
        has_items = False
        while (event := self._next()).__class__ is not MappingEndEvent:
            key = self._key(event, around)
            event = self._next()
            if key == "items" and event.__class__ is SequenceStartEvent and not event.anchor:
                around[key], has_items = None, True
                self._check_tag(event, "seq")
                while (event := self._next()).__class__ is not SequenceEndEvent:
                    yield _typed(self._value(event), head)
            else:
                around[key] = self._value(event)
        self._end()
        if not has_items:
            yield from flattened(around)
        elif {"kind": around.get("kind"), "apiVersion": around.get("apiVersion")} != head:
            raise NotYamlError(f"the text of the {head['kind']} names another kind or apiVersion at its left margin")

    def _begin(self) -> Any:  # noqa: ANN401 - an event
        self._next()  # the stream
        event = self._next()
        return event if isinstance(event, StreamEndEvent) else self._next()

    def _end(self) -> None:
        for event in self._events:
            if not isinstance(event, DocumentEndEvent | StreamEndEvent):
                raise NotYamlError(self._at(event, "expected one document"))

    def _next(self) -> Any:  # noqa: ANN401 - an event
        return next(self._events)

    def _value(self, event: Any) -> object:  # noqa: ANN401 - an event
        form = event.__class__
        if form is AliasEvent:
            return self._alias(event)
        if event.anchor is None:
            return self._scalar(event) if form is ScalarEvent else self._collection(event)
        before = self._weight
        self._open.add(event.anchor)
        value = self._scalar(event) if form is ScalarEvent else self._collection(event)
        self._open.discard(event.anchor)
        self._anchored[event.anchor] = value, self._weight - before
        return value

    def _scalar(self, event: Any) -> yaml_scalar.Scalar:  # noqa: ANN401 - an event
        text: str = event.value
        self._weight += len(text) + 4
        tag = event.tag
        try:
            if tag is None or tag == "!":
                return yaml_scalar.plain(text) if event.implicit[0] else text
            return yaml_scalar.tagged(tag, text)
        except ValueError as error:
            raise NotYamlError(self._at(event, str(error))) from None

    def _collection(self, event: Any) -> object:  # noqa: ANN401 - an event
        self._weight += 2
        if event.__class__ is MappingStartEvent:
            self._check_tag(event, "map")
            return self._mapping()
        self._check_tag(event, "seq")
        found: list[object] = []
        while (event := self._next()).__class__ is not SequenceEndEvent:
            found.append(self._value(event))
        return found

    def _mapping(self) -> Object:
        mapping: Object = {}
        merged: list[Object] = []
        while (event := self._next()).__class__ is not MappingEndEvent:
            if event.__class__ is ScalarEvent and event.value == MERGE and event.implicit[0]:
                if merged:
                    raise NotYamlError(self._at(event, f"the key {MERGE!r} stands twice"))
                merged = self._merged(event)
            else:
                key = self._key(event, mapping)
                mapping[key] = self._value(self._next())
        if not merged:
            return mapping
        together: Object = {}
        for other in [*reversed(merged), mapping]:
            together.update(other)
        return together

    def _merged(self, event: Any) -> list[Object]:  # noqa: ANN401 - an event
        """What a merge key brings in, the most important first."""
        value = self._value(self._next())
        values = value if isinstance(value, list) else [value]
        found = [one for one in values if isinstance(one, dict)]
        if len(found) < len(values):
            raise NotYamlError(self._at(event, "expected a mapping or list of mappings for merging"))
        self._expand(event, 16 * sum(map(len, found)))
        return found

    def _key(self, event: Any, mapping: Object) -> str:  # noqa: ANN401 - an event
        value = self._value(event)
        if isinstance(value, bool):
            value = "true" if value else "false"
        if not isinstance(value, str | int | float):
            raise NotYamlError(self._at(event, "a key must be text"))
        key = str(value)
        if key in mapping:
            raise NotYamlError(self._at(event, f"the key {key!r} stands twice"))
        return key

    def _alias(self, event: Any) -> object:  # noqa: ANN401 - an event
        if event.anchor in self._open:
            raise NotYamlError(self._at(event, f"the alias {event.anchor!r} is recursive"))
        if event.anchor not in self._anchored:
            raise NotYamlError(self._at(event, f"found undefined alias {event.anchor!r}"))
        value, weight = self._anchored[event.anchor]
        self._weight += weight
        self._expand(event, weight)
        return value

    def _expand(self, event: Any, weight: int) -> None:  # noqa: ANN401 - an event
        self._expanded += weight
        if self._expanded > MOST_EXPANDED:
            raise NotYamlError(self._at(event, "aliases and merge keys make more than 20 MiB of it"))

    def _check_tag(self, event: Any, name: str) -> None:  # noqa: ANN401 - an event
        if event.tag not in (None, "!", f"{TAG}{name}"):
            raise NotYamlError(self._at(event, f"could not determine a constructor for the tag {event.tag!r}"))

    def _at(self, event: Any, problem: str) -> str:  # noqa: ANN401 - an event
        return f"line {event.start_mark.line + self._first_line}: {problem}"
