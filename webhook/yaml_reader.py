"""YAML as JSON values, read strictly: shared by the readers of policy files and of Kubernetes manifests.

A value is built from the parser's events (libyaml's, if PyYAML has it), so a caller may take the items of a long list
one by one. Refused in every dialect: a key that appears twice, a second document, unknown tags, deep nesting, and
aliases that expand to more than the dialect allows.
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
    StreamEndEvent,
)

from webhook.api.text import quote

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
TAG: Final = "tag:yaml.org,2002:"
MERGE: Final = "<<"

Scalar = None | bool | int | float | str
Value = Scalar | list["Value"] | dict[str, "Value"]
Object = dict[str, Any]


class Dialect(Struct, frozen=True):
    """What a reader accepts.

    `plain` reads a scalar without quotes and tag, `tagged` one with a tag (None: tags are refused); both raise
    ValueError. `keys` is what a key must match (None: anything), and `key_form` says so. `most_expanded` is the number
    of characters that aliases and merge keys may add (0: anchors, aliases and merge keys are refused).
    """

    plain: Callable[[str], Scalar]
    deepest: int
    tagged: Callable[[str, str], Scalar] | None = None
    keys: re.Pattern[str] | None = None
    key_form: str = "must be a string"
    most_expanded: int = 0


class YamlError(ValueError):
    """The text is refused; as a text it is one line. `is_syntax`: no dialect of YAML accepts it."""

    def __init__(self, problem: str, line: int = 0, column: int = 0, *, is_syntax: bool = False) -> None:
        place = [f"line {line}"] * (line > 0) + [f"column {column}"] * (column > 0)
        super().__init__(f"{', '.join(place)}: {problem}" if place else problem)
        self.problem = problem
        self.line = line
        self.is_syntax = is_syntax


class Reader:
    """Builds the values of one document; every method may raise YamlError."""

    def __init__(self, text: str, dialect: Dialect, first_line: int = 1) -> None:
        """`first_line` is the number of the text's first line in its file, for errors."""
        self._events: Iterator[Event] = yaml.parse(text, Loader=LOADER)
        self._dialect = dialect
        self._plain = dialect.plain
        self._can_expand = dialect.most_expanded > 0
        self._first_line = first_line
        self._anchored: dict[str, tuple[Any, int]] = {}
        self._open: set[str] = set()
        self._weight = 0
        self._expanded = 0
        self._depth = 0

    def begin(self) -> Any:  # noqa: ANN401 - PyYAML's events have no types
        """The first event of the document, None if there is no document."""
        self.next()  # the stream
        return None if self.next().__class__ is StreamEndEvent else self.next()

    def end(self) -> None:
        """Check that nothing follows the document that `begin` found."""
        while (event := self.next()).__class__ is not StreamEndEvent:
            if event.__class__ is not DocumentEndEvent:
                raise self.error(event, "only one document is allowed")

    def next(self) -> Any:  # noqa: ANN401 - PyYAML's events have no types
        """The next event."""
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
        """The value that begins with this event."""
        if event.__class__ is AliasEvent:
            return self._alias(event)
        if event.anchor is None:
            return self._scalar(event) if event.__class__ is ScalarEvent else self._collection(event)
        if not self._can_expand:
            raise self.error(event, "anchors are not allowed")
        before = self._weight
        self._open.add(event.anchor)
        value = self._scalar(event) if event.__class__ is ScalarEvent else self._collection(event)
        self._open.discard(event.anchor)
        self._anchored[event.anchor] = value, self._weight - before
        return value

    def key(self, event: Any, mapping: Object) -> str:  # noqa: ANN401 - an event
        """The key that begins with this event, and that the mapping must not have yet."""
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
        if event.tag is not None and (not self._dialect.tagged or event.tag not in ("!", f"{TAG}{name}")):
            raise self.error(event, f"tag {quote(event.tag)} is not allowed")

    def error(self, event: Any, problem: str) -> YamlError:  # noqa: ANN401 - an event
        """An error at the place of an event."""
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
        if self._depth > self._dialect.deepest:
            raise self.error(event, f"nested deeper than {self._dialect.deepest} levels")
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
            if event.__class__ is ScalarEvent and event.value == MERGE and event.implicit[0] and self._can_expand:
                if merged:
                    raise self.error(event, f"key {quote(MERGE)} appears twice")
                merged = self._merged(event)
            else:
                key = self.key(event, mapping)
                mapping[key] = self.value(self.next())
        if not merged:
            return mapping
        together: Object = {}
        for other in [*reversed(merged), mapping]:
            together.update(other)
        return together

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
        if not self._can_expand:
            raise self.error(event, "aliases are not allowed; repeat the value")
        if event.anchor in self._open:
            raise self.error(event, f"alias {quote(event.anchor)} is recursive")
        if event.anchor not in self._anchored:
            raise self.error(event, f"alias {quote(event.anchor)} is not defined")
        value, weight = self._anchored[event.anchor]
        self._weight += weight
        self._expand(event, weight)
        return value

    def _expand(self, event: Any, weight: int) -> None:  # noqa: ANN401 - an event
        self._expanded += weight
        if self._expanded > self._dialect.most_expanded:
            raise self.error(event, f"aliases and merge keys add more than {self._dialect.most_expanded} characters")
