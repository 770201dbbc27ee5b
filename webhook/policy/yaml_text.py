"""YAML text as plain values, with the line of each; a small and strict part of YAML.

Refused, because a policy never needs them and each has hurt someone: aliases and anchors (a few lines that expand to
gigabytes), tags (`!!python/object`), a key twice, a second document, deep nesting. Plain scalars are read as in the
core schema of YAML 1.2, so `off` is a word and no boolean, and a date is a text; other notations of numbers are texts.
"""

import re
from collections.abc import Iterator
from typing import Final, Protocol

import yaml
from msgspec import Struct
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
    StreamStartEvent,
)

from webhook.api.text import quote
from webhook.policy.error import PolicyError

MOST_CHARACTERS: Final = 4 * 1024 * 1024
"""Four times what a ConfigMap holds."""
DEEPEST: Final = 16

Value = None | bool | int | float | str | list["Value"] | dict[str, "Value"]

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WORDS: Final[dict[str, Value]] = {
    "": None,
    **dict.fromkeys(["~", "null", "Null", "NULL"]),
    **dict.fromkeys(["true", "True", "TRUE"], True),
    **dict.fromkeys(["false", "False", "FALSE"], False),
}
_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,100}")
_FRACTION: Final = re.compile(r"[-+]?([0-9]{1,100}\.[0-9]{0,100}|\.[0-9]{1,100})")


class _Mark(Protocol):
    @property
    def line(self) -> int: ...


class Document(Struct, frozen=True):
    """The value of a document, and the line of each path in it (`overrides[0].rules`), counted from 1."""

    value: Value
    lines: dict[str, int]

    def line(self, path: str) -> int:
        """The line of a path, or of the nearest thing around it where the path is not in the document."""
        while path and path not in self.lines:
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return self.lines[path]


def read(text: str) -> Document:
    """The one document of a text; raises PolicyError for everything else."""
    if len(text) > MOST_CHARACTERS:
        raise PolicyError(f"the file is larger than {MOST_CHARACTERS} characters")
    try:
        return _Reader(text).document()
    except yaml.MarkedYAMLError as error:
        raise PolicyError(f"not YAML: {error.problem}", line=_line(error.problem_mark)) from error
    except (yaml.YAMLError, UnicodeError) as error:
        raise PolicyError("not YAML: a character that a YAML file may not hold") from error


class _Reader:
    def __init__(self, text: str) -> None:
        self._events: Iterator[Event] = yaml.parse(text, Loader=_LOADER)
        self._lines: dict[str, int] = {}

    def document(self) -> Document:
        event = self._next()
        while isinstance(event, StreamStartEvent | DocumentStartEvent):
            event = self._next()
        if isinstance(event, StreamEndEvent):
            raise PolicyError("the file is empty")
        value = self._value(event, "", 0)
        for event in self._events:
            if isinstance(event, DocumentStartEvent):
                raise PolicyError("a policy file holds one document only", line=_line(event.start_mark))
        return Document(value, self._lines)

    def _next(self) -> Event:
        return next(self._events)

    def _value(self, event: Event, path: str, depth: int) -> Value:
        self._lines[path] = _line(event.start_mark)
        self._refuse(event, path, depth)
        if isinstance(event, MappingStartEvent):
            return self._mapping(path, depth)
        if isinstance(event, SequenceStartEvent):
            return self._sequence(path, depth)
        assert isinstance(event, ScalarEvent)
        return event.value if event.style else _plain(event.value)

    def _mapping(self, path: str, depth: int) -> Value:
        mapping: dict[str, Value] = {}
        while not isinstance(event := self._next(), MappingEndEvent):
            self._refuse(event, path, depth)
            key: str = event.value if isinstance(event, ScalarEvent) else ""
            if not _KEY.fullmatch(key):
                raise PolicyError("a key must be a word of letters, digits, - and _", path, _line(event.start_mark))
            here = f"{path}.{key}" if path else key
            if key in mapping:
                raise PolicyError(f"key {quote(key)} stands twice", path, _line(event.start_mark))
            mapping[key] = self._value(self._next(), here, depth + 1)
            self._lines[here] = _line(event.start_mark)
        return mapping

    def _sequence(self, path: str, depth: int) -> Value:
        sequence: list[Value] = []
        while not isinstance(event := self._next(), SequenceEndEvent):
            sequence.append(self._value(event, f"{path}[{len(sequence)}]", depth + 1))
        return sequence

    def _refuse(self, event: Event, path: str, depth: int) -> None:
        assert isinstance(event, NodeEvent)
        if isinstance(event, AliasEvent):
            raise PolicyError("aliases are not allowed; write the value again", path, _line(event.start_mark))
        if event.anchor is not None:
            raise PolicyError("anchors are not allowed", path, _line(event.start_mark))
        if getattr(event, "tag", None) is not None:
            raise PolicyError("tags are not allowed", path, _line(event.start_mark))
        if depth > DEEPEST:
            raise PolicyError(f"nested deeper than {DEEPEST} levels", path, _line(event.start_mark))


def _line(mark: _Mark | None) -> int:
    """Counted from 1; what a parser of text says always carries a mark."""
    assert mark
    return mark.line + 1


def _plain(text: str) -> Value:
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FRACTION.fullmatch(text) else text
