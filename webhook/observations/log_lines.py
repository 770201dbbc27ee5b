"""The lines of a log that contain a text, found before anything is decoded: most lines are about other things."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from webhook.observations.json_values import LARGEST


class Line(Struct, frozen=True, gc=False):
    """A line, without its end. `number` counts from 1; 0 for the last line of the log, which is given in any case."""

    data: bytes
    number: int


class TooLong(Struct, frozen=True, gc=False):
    """A line that is larger than any request."""

    number: int


_BREAK: Final = b"\n"


def lines_with(markers: Sequence[bytes], chunks: Iterable[bytes]) -> Iterator[Line | TooLong]:
    """Every line that contains a marker, and the last line once more; chunks may be of any size."""
    rest, number, last = b"", 1, b""
    for chunk in chunks:
        end = chunk.rfind(_BREAK) + 1
        if end == 0:
            rest += chunk
            if len(rest) > LARGEST:
                yield TooLong(number)
                rest = _BREAK  # what follows belongs to that line; an empty line is nothing
            continue
        block = rest + chunk[:end]
        rest = chunk[end:]
        yield from _found(markers, block, number)
        number += block.count(_BREAK)
        last = block[block.rfind(_BREAK, 0, -1) + 1 : -1]
    if rest.strip():
        yield from _found(markers, rest + _BREAK, number)
        last = rest
    yield Line(last, 0)


def _found(markers: Sequence[bytes], block: bytes, number: int) -> Iterator[Line]:
    """The lines of a block, which ends with a line break; `number` is that of its first line."""
    counted = 0
    places = {marker: block.find(marker) for marker in markers}
    while (place := min((place for place in places.values() if place >= 0), default=-1)) >= 0:
        start = block.rfind(_BREAK, 0, place) + 1
        end = block.find(_BREAK, place)
        number += block.count(_BREAK, counted, start)
        counted = start
        yield Line(block[start:end], number)
        for marker, before in places.items():
            if 0 <= before < end:
                places[marker] = block.find(marker, end)
