"""YAML as JSON values, read strictly: in the dialect that `kubectl` reads, and in any other that a caller defines.

A value is built from the parser's events (libyaml's, if PyYAML has it): the composer of PyYAML overflows the stack of
the process on deep nesting. Refused in every dialect: a key that appears twice, a second document, tags, deep nesting,
and aliases that expand to more than the dialect allows.
"""

import math
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import yaml
from msgspec import Struct
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    StreamEndEvent,
)

from webhook.text.quoting import quote

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MAX_EXPANDED: Final = 20 * 1024 * 1024
"""Characters that aliases may add: as many as an API server reads of one request."""
_MAX_DIGITS: Final = 4300
"""Characters of a number: Python converts no more digits than these, and no API field holds as many."""

Scalar = None | bool | int | float | str
Value = Scalar | list["Value"] | dict[str, "Value"]
Object = dict[str, Any]

_MERGE: Final = "<<"


class Dialect(Struct, frozen=True):
    """The language that a reader accepts.

    `plain` reads a scalar without quotes and raises ValueError. `keys` is what a key must match (None: anything), and
    `key_form` says so. `max_expanded` is the number of characters that aliases and merge keys may add (0: anchors,
    aliases and merge keys are refused).
    """

    plain: Callable[[str], Scalar]
    max_depth: int
    keys: re.Pattern[str] | None = None
    key_form: str = "must be a string"
    max_expanded: int = 0


EMPTY: Final = "the file is empty"


class YamlError(ValueError):
    """The text is refused; as a text it is one line. `is_syntax`: no dialect of YAML accepts it."""

    def __init__(self, problem: str, line: int = 0, column: int = 0, *, is_syntax: bool = False) -> None:
        place = ", ".join(f"{word} {number}" for word, number in (("line", line), ("column", column)) if number > 0)
        super().__init__(f"{place}: {problem}" if place else problem)
        self.problem = problem
        self.line = line
        self.is_syntax = is_syntax


def read(text: str, dialect: Dialect | None = None, first_line: int = 1) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value of the one document of a text; raises YamlError for broken YAML, and what is refused.

    The dialect is that of kubectl if None; errors count lines from `first_line`, that of the text in its file.
    """
    return _Reader(text, dialect or _KUBERNETES, first_line).document()


class _Reader:
    """Builds the value of one document; every method may raise YamlError."""

    def __init__(self, text: str, dialect: Dialect, first_line: int) -> None:
        self._events: Iterator[Any] = yaml.parse(text, Loader=LOADER)
        self._dialect = dialect
        self._first_line = first_line
        self._anchored: dict[str, tuple[Any, int] | None] = {}
        self._weight = 0
        self._expanded = 0
        self._depth = 0

    def document(self) -> Any:  # noqa: ANN401 - any JSON value
        """Return the value; nothing but the end may follow it."""
        self._next()  # the stream
        if self._next().__class__ is StreamEndEvent:
            raise YamlError(EMPTY)
        value = self._value(self._next())
        while (event := self._next()).__class__ is not StreamEndEvent:
            if event.__class__ is not DocumentEndEvent:
                raise self._error(event, "only one document is allowed")
        return value

    def _next(self) -> Any:  # noqa: ANN401 - PyYAML's events have no types
        try:
            return next(self._events)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            assert mark, "an error of a parser of text has a place"
            problem = str(error.problem or error.context)
            raise YamlError(problem, mark.line + self._first_line, mark.column + 1, is_syntax=True) from None
        except (yaml.YAMLError, UnicodeError):
            raise YamlError("control characters and lone surrogates are not allowed", is_syntax=True) from None

    def _error(self, event: Any, problem: str) -> YamlError:  # noqa: ANN401 - an event
        return YamlError(problem, event.start_mark.line + self._first_line)

    def _value(self, event: Any) -> Any:  # noqa: ANN401 - an event, and any JSON value
        if event.__class__ is AliasEvent:
            return self._alias(event)
        if event.tag is not None:
            raise self._error(event, f"tag {quote(event.tag)} is not allowed")
        read = self._scalar if event.__class__ is ScalarEvent else self._collection
        if event.anchor is None:
            return read(event)
        if not self._dialect.max_expanded:
            raise self._error(event, "anchors are not allowed")
        before = self._weight
        self._anchored[event.anchor] = None
        value = read(event)
        self._anchored[event.anchor] = value, self._weight - before
        return value

    def _scalar(self, event: Any) -> Scalar:  # noqa: ANN401 - an event
        text: str = event.value
        self._weight += len(text) + 4
        try:
            return self._dialect.plain(text) if event.implicit[0] else text
        except ValueError as error:
            raise self._error(event, str(error)) from None

    def _collection(self, event: Any) -> Any:  # noqa: ANN401 - an event
        is_mapping = event.__class__ is MappingStartEvent
        self._weight += 2
        self._depth += 1
        if self._depth > self._dialect.max_depth:
            raise self._error(event, f"nested deeper than {self._dialect.max_depth} levels")
        found: Any = self._mapping() if is_mapping else []
        while not is_mapping and (event := self._next()).__class__ is not SequenceEndEvent:
            found.append(self._value(event))
        self._depth -= 1
        return found

    def _mapping(self) -> Object:
        mapping: Object = {}
        merged: Object | None = None
        while (event := self._next()).__class__ is not MappingEndEvent:
            is_merge = event.__class__ is ScalarEvent and event.value == _MERGE and event.implicit[0]
            if is_merge and self._dialect.max_expanded:
                if merged is not None:
                    raise self._error(event, f"key {quote(_MERGE)} appears twice")
                merged = self._merge(event)
            else:
                key = self._key(event, mapping)
                mapping[key] = self._value(self._next())
        return merged | mapping if merged else mapping

    def _key(self, event: Any, mapping: Object) -> str:  # noqa: ANN401 - an event
        value = self._value(event)
        if isinstance(value, bool):
            value = "true" if value else "false"
        key, form = str(value), self._dialect.keys
        if not isinstance(value, str | int | float) or (form and not form.fullmatch(key)):
            raise self._error(event, f"a key {self._dialect.key_form}")
        if key in mapping:
            raise self._error(event, f"key {quote(key)} appears twice")
        return key

    def _merge(self, event: Any) -> Object:  # noqa: ANN401 - an event
        """Return the mappings of a merge key as one; of a list of them the first takes precedence."""
        value = self._value(self._next())
        together: Object = {}
        for part in reversed(value) if isinstance(value, list) else [value]:
            if not isinstance(part, dict):
                raise self._error(event, "expected a mapping or list of mappings for merging")
            self._expand(event, 16 * len(part))
            together.update(part)
        return together

    def _alias(self, event: Any) -> Any:  # noqa: ANN401 - an event
        if not self._dialect.max_expanded:
            raise self._error(event, "aliases are not allowed; repeat the value")
        if event.anchor not in self._anchored:
            raise self._error(event, f"alias {quote(event.anchor)} is not defined")
        anchored = self._anchored[event.anchor]
        if anchored is None:
            raise self._error(event, f"alias {quote(event.anchor)} is recursive")
        value, weight = anchored
        self._weight += weight
        self._expand(event, weight)
        return value

    def _expand(self, event: Any, weight: int) -> None:  # noqa: ANN401 - an event
        self._expanded += weight
        if self._expanded > self._dialect.max_expanded:
            raise self._error(event, f"aliases and merge keys add more than {self._dialect.max_expanded} characters")


# The dialect of kubectl is YAML 1.1 as kubernetes-sigs/yaml turns it into JSON (yaml.go, goyaml.v2/resolve.go): `yes`
# and `on` are booleans, a time stays text, a whole float is an integer, base 60 does not exist, and a number that does
# not fit into 64 bits stays text, or becomes a float if it is decimal.

_WORDS: Final[dict[str, Scalar]] = {
    **dict.fromkeys(["", "~", "null", "Null", "NULL"]),
    **{form(low): True for low in ("y", "yes", "true", "on") for form in (str.lower, str.capitalize, str.upper)},
    **{form(low): False for low in ("n", "no", "false", "off") for form in (str.lower, str.capitalize, str.upper)},
}
_INTEGER: Final = re.compile(r"[-+]?(?:0[bB][01]+|0[oO]?[0-7]+|0[xX][0-9a-fA-F]+|0|[1-9][0-9]*)")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NO_JSON: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_BETWEEN_DIGITS: Final = re.compile(r"(?<=[0-9])_(?=[0-9])")
_NUMBERS_BEGIN_WITH: Final = frozenset("-+.0123456789")
_MAX_PLAIN_FLOAT: Final = 1e21
"""Go prints a float below this without an exponent, so a whole one reads back as an integer."""


def _plain(text: str) -> Scalar:
    if text[:1] not in _NUMBERS_BEGIN_WITH:
        return _WORDS.get(text, text)
    if _NO_JSON.fullmatch(text):
        raise ValueError(f"JSON has no {text}")
    digits = _BETWEEN_DIGITS.sub("", text) if text.startswith(".") else text.replace("_", "")
    number: Scalar = None
    if _INTEGER.fullmatch(digits):
        number = _integer(digits)
    if number is None and _FLOAT.fullmatch(digits):
        number = _float(digits)
    return text if number is None else number


def _integer(digits: str) -> int | None:
    """Return an integer of 64 bits, signed or not; None for a larger one."""
    if len(digits) > _MAX_DIGITS:
        raise ValueError(f"a number of more than {_MAX_DIGITS} characters")
    octal = re.fullmatch(r"([-+]?)0([0-7]+)", digits)
    number = int(f"{octal[1]}0o{octal[2]}" if octal else digits, 0)
    return number if -(2**63) <= number < 2**64 else None


def _float(digits: str) -> int | float | None:
    """Return a float; None for one that does not fit into 64 bits."""
    number = float(digits)
    if math.isinf(number):
        return None
    return int(number) if number.is_integer() and abs(number) < _MAX_PLAIN_FLOAT else number


_KUBERNETES: Final = Dialect(plain=_plain, max_depth=200, max_expanded=_MAX_EXPANDED)
