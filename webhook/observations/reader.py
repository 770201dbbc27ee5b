"""The bytes of an input become observations, whatever it is: one pass, one value at a time in memory.

A dump, a watch stream, an audit log and reviews are recognized by their content. YAML is read elsewhere.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from webhook.observations import audit_event
from webhook.observations.fenced_write import MARKER as FENCE_MARKER
from webhook.observations.json_values import Broken, values
from webhook.observations.log_lines import TooLong, lines_with
from webhook.observations.observation import Item, LogEnd, Source, Unreadable
from webhook.observations.values_of import observe

MARKER: Final = b"coordination.k8s.io"
"""What every audit event of a lease says in its objectRef."""

_AUDIT_LINE: Final = re.compile(rb'\s*+\{"kind":"Event","apiVersion":"audit\.k8s\.io/')
"""How an API server begins every line of its log: Go writes the fields of a struct in their order."""


def is_json(start: bytes) -> bool:
    """Whether a text that begins so is JSON, rather than YAML; an empty one is."""
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n\x1e")
    return not text or text[:1] in b"{["


def read(path: str, chunks: Iterable[bytes], received: int | None = None) -> Iterator[Item]:
    """Every observation of one input of JSON, each as soon as its bytes are there.

    Args:
        path: how the input is named in what is found.
        chunks: its bytes, in pieces of any size.
        received: when a review was received, in microseconds since 1970.

    """
    pieces = iter(chunks)
    start = b""
    for piece in pieces:
        # Blanks before the first value may be many, and say nothing.
        start = (start + piece).lstrip()
        if len(start) > 64:
            break
    stream = chain((start,), pieces)
    return _log(path, stream) if _AUDIT_LINE.match(start) else _values(path, stream, received)


def _log(path: str, chunks: Iterable[bytes]) -> Iterator[Item]:
    for line in lines_with((MARKER, FENCE_MARKER), chunks):
        if isinstance(line, TooLong):
            yield Unreadable(Source(path, line.number), "a line of more than 20 MiB")
        elif line.number == 0:
            at = audit_event.last_moment(line.data)
            if at is not None:
                yield LogEnd(at)
        elif (item := observe(line.data, b"", Source(path, line.number))) is not None:
            yield item


def _values(path: str, chunks: Iterable[bytes], received: int | None) -> Iterator[Item]:
    for number, value in enumerate(values(chunks), 1):
        source = Source(path, number)
        if isinstance(value, Broken):
            yield Unreadable(source, value.error)
        elif (item := observe(value.data, value.head, source, received)) is not None:
            yield item
