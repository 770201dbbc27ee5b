"""YAML as JSON values, read strictly: in the dialect that `kubectl` reads, and in any other that a caller defines.

A value is built from the parser's events (libyaml's, if PyYAML has it): the composer of PyYAML overflows the stack of
the process on deep nesting, and holds a List as a whole. Refused in every dialect: a key that appears twice, a second
document, unknown tags, deep nesting, and aliases that expand to more than the dialect allows.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import yaml
from msgspec import Struct
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

from webhook.api.text import quote

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MAX_CHARACTERS: Final = 20 * 1024 * 1024
"""Characters of one object: as many as an API server reads of one request. A List is read item by item."""
MAX_DIGITS: Final = 4300
"""Characters of a number: Python converts no more digits than these, and no API field holds as many."""

Scalar = None | bool | int | float | str
Value = Scalar | list["Value"] | dict[str, "Value"]
Object = dict[str, Any]

_TAG: Final = "tag:yaml.org,2002:"
_MERGE: Final = "<<"


class Dialect(Struct, frozen=True):
    """What a reader accepts.

    `plain` reads a scalar without quotes and tag, `tagged` one with a tag (None: tags are refused); both raise
    ValueError. `keys` is what a key must match (None: anything), and `key_form` says so. `max_expanded` is the number
    of characters that aliases and merge keys may add (0: anchors, aliases and merge keys are refused).
    """

    plain: Callable[[str], Scalar]
    max_depth: int
    tagged: Callable[[str, str], Scalar] | None = None
    keys: re.Pattern[str] | None = None
    key_form: str = "must be a string"
    max_expanded: int = 0


class YamlError(ValueError):
    """The text is refused; as a text it is one line. `is_syntax`: no dialect of YAML accepts it."""

    def __init__(self, problem: str, line: int = 0, column: int = 0, *, is_syntax: bool = False) -> None:
        place = [f"line {line}"] * (line > 0) + [f"column {column}"] * (column > 0)
        super().__init__(f"{', '.join(place)}: {problem}" if place else problem)
        self.problem = problem
        self.line = line
        self.is_syntax = is_syntax


def read(text: str, dialect: Dialect | None = None, first_line: int = 1) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value of the one document of a text.

    Args:
        text: the document.
        dialect: that of kubectl if None.
        first_line: the number of its first line in the file, for errors.

    Raises:
        YamlError: broken YAML, or what the dialect refuses.

    """
    reader = _Reader(text, dialect or _KUBERNETES, first_line)
    return reader.rest(reader.begin())


def objects(text: str, first_line: int = 1) -> Iterator[object]:
    """Yield the items of a List, each as soon as it is read, or the one document, in the dialect of kubectl.

    Raises:
        YamlError: as in `read`; items before the place have been given by then.

    """
    kind = _LIST.search(text)
    if not kind and len(text) > MAX_CHARACTERS:
        raise YamlError(f"a document of more than {MAX_CHARACTERS // 1024**2} MiB that is no List", first_line)
    reader = _Reader(text, _KUBERNETES, first_line)
    event = reader.begin()
    if not kind or event.__class__ is not MappingStartEvent or event.anchor:
        yield from _flattened(reader.rest(event))
        return
    # kubectl sorts keys, so `kind` follows the items: it is taken from the text, and compared at the end.
    version = _API_VERSION.search(text)
    head: Object = {"kind": kind[1], "apiVersion": version and version[1]}
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
        yield from _flattened(around)
    elif {"kind": around.get("kind"), "apiVersion": around.get("apiVersion")} != head:
        raise YamlError(f"the text of the {head['kind']} names another kind or apiVersion at its left margin")


_LIST: Final = re.compile(r"""^kind:[ \t]+["']?(\w*List)["']?[ \t\r]*$""", re.MULTILINE)
_API_VERSION: Final = re.compile(r"""^apiVersion:[ \t]+["']?([\w./-]+)["']?[ \t\r]*$""", re.MULTILINE)


def _flattened(value: object) -> Iterator[object]:
    """The items of a List, else the value itself."""
    items = value.get("items") if isinstance(value, dict) else None
    if isinstance(value, dict) and isinstance(items, list) and str(value.get("kind", "")).endswith("List"):
        yield from (_typed(item, value) for item in items)
    else:
        yield value


def _typed(item: object, around: Object) -> object:
    # The API server leaves kind and apiVersion out of the items of a typed list.
    kind = str(around["kind"]).removesuffix("List")
    if isinstance(item, dict) and kind and "kind" not in item:
        return {"apiVersion": around.get("apiVersion"), "kind": kind, **item}
    return item


class _Reader:
    """Builds the values of one document; every method may raise YamlError."""

    def __init__(self, text: str, dialect: Dialect, first_line: int) -> None:
        self._events: Iterator[Event] = yaml.parse(text, Loader=LOADER)
        self._dialect = dialect
        self._plain = dialect.plain
        self._first_line = first_line
        self._anchored: dict[str, tuple[Any, int] | None] = {}
        self._weight = 0
        self._expanded = 0
        self._depth = 0

    def begin(self) -> Any:  # noqa: ANN401 - PyYAML's events have no types
        """Return the first event of the document."""
        self.next()  # the stream
        if self.next().__class__ is StreamEndEvent:
            raise YamlError("the file is empty")
        return self.next()

    def rest(self, event: Any) -> Any:  # noqa: ANN401 - an event, and any JSON value
        """Return the one value of the document, which begins with this event."""
        value = self.value(event)
        self.end()
        return value

    def end(self) -> None:
        """Check that nothing follows the document."""
        while (event := self.next()).__class__ is not StreamEndEvent:
            if event.__class__ is not DocumentEndEvent:
                raise self.error(event, "only one document is allowed")

    def next(self) -> Any:  # noqa: ANN401 - PyYAML's events have no types
        """Return the next event."""
        try:
            return next(self._events)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            assert mark, "an error of a parser of text has a place"
            problem = str(error.problem or error.context)
            raise YamlError(problem, mark.line + self._first_line, mark.column + 1, is_syntax=True) from None
        except (yaml.YAMLError, UnicodeError):
            raise YamlError("control characters and lone surrogates are not allowed", is_syntax=True) from None

    def value(self, event: Any) -> Any:  # noqa: ANN401 - an event, and any JSON value
        """Return the value that begins with this event."""
        if event.__class__ is AliasEvent:
            return self._alias(event)
        if event.anchor is None:
            return self._scalar(event) if event.__class__ is ScalarEvent else self._collection(event)
        if not self._dialect.max_expanded:
            raise self.error(event, "anchors are not allowed")
        before = self._weight
        self._anchored[event.anchor] = None
        value = self._scalar(event) if event.__class__ is ScalarEvent else self._collection(event)
        self._anchored[event.anchor] = value, self._weight - before
        return value

    def key(self, event: Any, mapping: Object) -> str:  # noqa: ANN401 - an event
        """Return the key that begins with this event, and that the mapping must not have yet."""
        value = self.value(event)
        if isinstance(value, bool):
            value = "true" if value else "false"
        key, form = str(value), self._dialect.keys
        if not isinstance(value, str | int | float) or (form and not form.fullmatch(key)):
            raise self.error(event, f"a key {self._dialect.key_form}")
        if key in mapping:
            raise self.error(event, f"key {quote(key)} appears twice")
        return key

    def check_tag(self, event: Any, name: str) -> None:  # noqa: ANN401 - an event
        """Check that a collection has no tag but its own."""
        if event.tag is not None and (not self._dialect.tagged or event.tag not in ("!", f"{_TAG}{name}")):
            raise self.error(event, f"tag {quote(event.tag)} is not allowed")

    def error(self, event: Any, problem: str) -> YamlError:  # noqa: ANN401 - an event
        """Return an error at the place of an event."""
        return YamlError(problem, event.start_mark.line + self._first_line)

    def _scalar(self, event: Any) -> Scalar:  # noqa: ANN401 - an event
        text: str = event.value
        self._weight += len(text) + 4
        tag = event.tag
        try:
            if tag is None or tag == "!":
                return self._plain(text) if event.implicit[0] else text
            if self._dialect.tagged:
                return self._dialect.tagged(tag, text)
        except ValueError as error:
            raise self.error(event, str(error)) from None
        raise self.error(event, f"tag {quote(tag)} is not allowed")

    def _collection(self, event: Any) -> Any:  # noqa: ANN401 - an event
        self._weight += 2
        self._depth += 1
        if self._depth > self._dialect.max_depth:
            raise self.error(event, f"nested deeper than {self._dialect.max_depth} levels")
        if event.__class__ is MappingStartEvent:
            self.check_tag(event, "map")
            found: Any = self._mapping()
        else:
            self.check_tag(event, "seq")
            found = []
            while (event := self.next()).__class__ is not SequenceEndEvent:
                found.append(self.value(event))
        self._depth -= 1
        return found

    def _mapping(self) -> Object:
        mapping: Object = {}
        merged: list[Object] = []
        while (event := self.next()).__class__ is not MappingEndEvent:
            is_merge = event.__class__ is ScalarEvent and event.value == _MERGE and event.implicit[0]
            if is_merge and self._dialect.max_expanded:
                if merged:
                    raise self.error(event, f"key {quote(_MERGE)} appears twice")
                merged = self._merged(event)
            else:
                key = self.key(event, mapping)
                mapping[key] = self.value(self.next())
        together: Object = {}
        for other in reversed(merged):
            together.update(other)
        return together | mapping if merged else mapping

    def _merged(self, event: Any) -> list[Object]:  # noqa: ANN401 - an event
        """The mappings of a merge key, the most important first."""
        value = self.value(self.next())
        values = value if isinstance(value, list) else [value]
        found = [one for one in values if isinstance(one, dict)]
        if len(found) < len(values):
            raise self.error(event, "expected a mapping or list of mappings for merging")
        self._expand(event, 16 * sum(map(len, found)))
        return found

    def _alias(self, event: Any) -> Any:  # noqa: ANN401 - an event
        if not self._dialect.max_expanded:
            raise self.error(event, "aliases are not allowed; repeat the value")
        if event.anchor not in self._anchored:
            raise self.error(event, f"alias {quote(event.anchor)} is not defined")
        anchored = self._anchored[event.anchor]
        if anchored is None:
            raise self.error(event, f"alias {quote(event.anchor)} is recursive")
        value, weight = anchored
        self._weight += weight
        self._expand(event, weight)
        return value

    def _expand(self, event: Any, weight: int) -> None:  # noqa: ANN401 - an event
        self._expanded += weight
        if self._expanded > self._dialect.max_expanded:
            raise self.error(event, f"aliases and merge keys add more than {self._dialect.max_expanded} characters")


# The dialect of kubectl is YAML 1.1 as kubernetes-sigs/yaml turns it into JSON (yaml.go, goyaml.v2/resolve.go): `yes`
# and `on` are booleans, a time stays text, a whole float is an integer, base 60 does not exist.

_BOOLEANS: Final = {
    **dict.fromkeys(["y", "yes", "true", "on"], True),
    **dict.fromkeys(["n", "no", "false", "off"], False),
}
_WORDS: Final[dict[str, Scalar]] = {
    **dict.fromkeys(["", "~", "null", "Null", "NULL"]),
    **{word: value for low, value in _BOOLEANS.items() for word in (low, low.capitalize(), low.upper())},
}
_INTEGER: Final = re.compile(r"[-+]?(?:0b[01_]+|0o?[0-7_]*|0x[0-9a-fA-F_]+|[1-9][0-9_]*)")
_FLOAT: Final = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_NUMBERS_BEGIN_WITH: Final = frozenset("-+.0123456789")
_MAX_PLAIN_FLOAT: Final = 1e21
"""Go prints a float below this without an exponent, so a whole one reads back as an integer."""


def _plain(text: str) -> Scalar:
    if text[:1] in _NUMBERS_BEGIN_WITH:
        if _INTEGER.fullmatch(text):
            return _integer(text)
        return _float(text) if _FLOAT.fullmatch(text) else text
    return _WORDS.get(text, text)


def _tagged(tag: str, text: str) -> Scalar:
    read_as = _TAGGED.get(tag.removeprefix(_TAG))
    if read_as is None or not tag.startswith(_TAG):
        raise ValueError(f"tag {quote(tag)} is not allowed")
    return read_as(text)


def _boolean(text: str) -> bool:
    if text.lower() not in _BOOLEANS:
        raise ValueError(f"{quote(text)} is not a boolean")
    return _BOOLEANS[text.lower()]


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"a number of more than {MAX_DIGITS} characters")
    digits = text.replace("_", "")
    octal = re.fullmatch(r"([-+]?)0([0-7]+)", digits)
    return int(f"{octal[1]}0o{octal[2]}" if octal else digits, 0)


def _float(text: str) -> int | float:
    digits = text.replace("_", "")
    if digits.lower().strip("+-") in {".inf", ".nan"}:
        raise ValueError(f"JSON has no {digits}")
    number = float(digits)
    return int(number) if number.is_integer() and abs(number) < _MAX_PLAIN_FLOAT else number


_TAGGED: Final[dict[str, Callable[[str], Scalar]]] = {
    "null": lambda _: None,
    "bool": _boolean,
    "int": _integer,
    "float": _float,
    "str": str,
    "timestamp": str,
}
_KUBERNETES: Final = Dialect(plain=_plain, tagged=_tagged, max_depth=200, max_expanded=MAX_CHARACTERS)
