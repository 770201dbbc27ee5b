"""The lines of a file that a document and its fields are on, found again in its text when they are to be shown.

JSON is read as YAML for that. If YAML cannot read a document, for example because a tab begins a line, only its start
is known.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

import yaml
from msgspec import Struct
from yaml.events import AliasEvent, MappingStartEvent, ScalarEvent, SequenceStartEvent

from webhook.text.yaml_reader import LOADER

_MAX_SEARCHED: Final = 1024 * 1024
"""Characters of a text that is searched; one that is longer has the line of its document."""
_PART: Final = re.compile(r"\[([^\[\]]*)\]|([^.\[\]]+)")
"""One step of a path such as `metadata.ownerReferences[0].name`."""


class Source(Struct, frozen=True, gc=False):
    """The text that has a document, from the `line` of its file on; 0 if that is not known.

    The document is at the path `inside` the text, such as the items of a List.
    """

    text: str | bytes = ""
    line: int = 0
    inside: tuple[str, ...] = ()

    def find_line(self, path: str = "") -> int:
        """Return the line of a field, or of the nearest one around it that is there; 0 if it is not known."""
        if not self.line or (not self.inside and not path and isinstance(self.text, bytes)):
            return self.line
        newline: Any = b"\n" if isinstance(self.text, bytes) else "\n"
        if newline not in self.text or len(self.text) > _MAX_SEARCHED:
            return self.line
        try:
            text = self.text.decode() if isinstance(self.text, bytes) else self.text
            return self.line + _find_line(text, [*self.inside, *_split_path(path)])
        except (ValueError, yaml.YAMLError):
            return self.line


NOWHERE: Final = Source()


def find_sources(text: str, line: int) -> Iterator[Source]:
    """Yield the source of each of the `items` of a List in YAML: the lines from its first one to the next item's."""
    events: Iterator[Any] = yaml.parse(text, Loader=LOADER)
    root = next((event for event in events if _is_node(event)), None)
    found = _find_field(events, "items") if isinstance(root, MappingStartEvent) else None
    starts: list[int] = []
    if found and isinstance(found[0], SequenceStartEvent):
        while _is_node(event := next(events)):
            starts.append(_get_line(event))
            _skip(events, event)
    lines = text.split("\n")
    for start, end in pairwise([*starts, len(lines)]):
        yield Source("\n".join(lines[start:end]), line + start, ("0",))


def _split_path(path: str) -> list[str]:
    return [bracket or name for bracket, name in _PART.findall(path)]


def _find_line(text: str, path: Sequence[str]) -> int:
    """Return the line, counted from 0, of the deepest node on a path that is there."""
    events: Iterator[Any] = yaml.parse(text, Loader=LOADER)
    rest = [*path]
    event = next((event for event in events if _is_node(event)), None)
    if event is None:
        return 0
    line = _get_line(event)
    while rest:
        key, found = rest.pop(0), None
        if isinstance(event, MappingStartEvent):
            found = _find_field(events, key)
        elif isinstance(event, SequenceStartEvent):
            found = _find_element(events, key)
        if found is None:
            return line
        event, line = found
    return line


def _find_field(events: Iterator[Any], key: str) -> tuple[Any, int] | None:
    """Return the start of the value of a key, and the line of the key; None if the mapping does not have it."""
    while _is_node(event := next(events)):
        _skip(events, event)
        value = next(events)
        if event.__class__ is ScalarEvent and event.value == key:
            return value, _get_line(event)
        _skip(events, value)
    return None


def _find_element(events: Iterator[Any], key: str) -> tuple[Any, int] | None:
    number, event = 0, next(events)
    while _is_node(event):
        if str(number) == key:
            return event, _get_line(event)
        _skip(events, event)
        number, event = number + 1, next(events)
    return None


def _get_line(event: Any) -> int:  # noqa: ANN401 - an event
    return int(event.start_mark.line)


def _is_node(event: Any) -> bool:  # noqa: ANN401 - PyYAML's events have no types
    return isinstance(event, ScalarEvent | AliasEvent | MappingStartEvent | SequenceStartEvent)


def _skip(events: Iterator[Any], start: Any) -> None:  # noqa: ANN401 - an event
    """Read to the end of a node that has begun."""
    depth = 1 if isinstance(start, MappingStartEvent | SequenceStartEvent) else 0
    while depth:
        event = next(events)
        if isinstance(event, MappingStartEvent | SequenceStartEvent):
            depth += 1
        elif not isinstance(event, ScalarEvent | AliasEvent):
            depth -= 1
