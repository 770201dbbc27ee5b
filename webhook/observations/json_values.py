"""Cuts a stream of JSON into its values, and a List into its items, without reading more than one of them at a time.

The text comes in pieces of any size. Values follow one another, on lines of their own or not; a broken one costs
only itself. msgspec finds where a value ends (it names the place of the first byte that follows), so text is walked
through in C; only what is malformed is walked through bracket by bracket.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec import Raw, Struct

from webhook.api.decoder_messages import PLACE, TRAILING, TRUNCATED

LARGEST: Final = 20 * 1024 * 1024
"""Bytes of one value: as many as an API server reads of one request."""
MOST_WASTED: Final = 4 * LARGEST
"""Bytes that may be read again after broken values, before the rest of the stream is skipped."""

_SMALL: Final = 64 * 1024
_DEEPEST: Final = 10_000
"""Levels that an API server reads; the end of a value with more is not looked for bracket by bracket."""
_BLANKS: Final = re.compile(rb"[\s\x1e]*+")
_BETWEEN_ITEMS: Final = re.compile(rb"[\s,]*+")
_LIST: Final = re.compile(
    rb'\[|\{\s*+(?:"(?:kind|apiVersion|metadata)"\s*+:\s*+(?:"[^"\\]*+"|\{[^{}]*+\})\s*+,\s*+)*+"items"\s*+:\s*+\['
)
"""How kubectl (sorted keys) and an API server (kind first) begin a List; an array is as good."""
_LONGEST_HEAD: Final = 4096
_LONGEST_TOKEN: Final = 12
"""Bytes before the end of a piece in which a pair of escaped surrogates may begin."""
_BRACKET: Final = re.compile(rb'[^"{}\[\]]*+(?:"(?:[^"\\]++|\\.)*+"[^"{}\[\]]*+)*+([{}\[\]])', re.DOTALL)
_TO_NEXT_ITEM: Final = re.compile(rb'(?:"(?:[^"\\]++|\\.)*+"|[^,\]"])*+', re.DOTALL)

_value: Final = msgspec.json.Decoder(Raw)


class Value(Struct, frozen=True, gc=False):
    """The bytes of one value; `head` are those of the List before its items, "" for a value that stands alone."""

    data: bytes
    head: bytes = b""


class Broken(Struct, frozen=True, gc=False):
    """A value that is not JSON; `error` is one line."""

    error: str


def values(chunks: Iterable[bytes]) -> Iterator[Value | Broken]:
    """Every value of a stream of JSON, each as soon as its bytes are there; the items of a List instead of the List."""
    return _Stream(chunks).values()


class _Stream:
    """`_text[_start:]` is what was read and not given yet."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._text = b""
        self._start = 0
        self._wasted = 0
        self._is_first = True

    def values(self) -> Iterator[Value | Broken]:
        while self._skip(_BLANKS):
            if self._is_first:
                self._is_first = False
                if self._text.startswith(b"\xef\xbb\xbf", self._start):
                    self._start += 3
                    continue
            if (head := self._head()) is not None:
                yield from self._items(head)
            else:
                found = self._next()
                if found is None:
                    yield Broken("not JSON: cut off, or a bracket is missing")
                    if not self._resume():
                        return
                else:
                    yield found
            if self._wasted > MOST_WASTED:
                yield Broken("given up: too much of the input is broken")
                return

    def _head(self) -> bytes | None:
        """Consumes and gives the beginning of a List, up to its first item; None for any other value."""
        while True:
            found = _LIST.match(self._text, self._start)
            if found:
                self._start = found.end()
                return found[0]
            if len(self._text) - self._start > _LONGEST_HEAD or not self._may_be_cut(self._error()):
                return None
            if not self._more():
                return None

    def _items(self, head: bytes) -> Iterator[Value | Broken]:
        while self._skip(_BETWEEN_ITEMS):
            first = self._text[self._start : self._start + 1]
            if first == b"]":
                self._start += 1
                if head != b"[":
                    self._skip_rest()
                return
            if first not in (b"{", b"["):
                yield Broken("not JSON: an item of the list is not an object")
                if first == b"}":
                    return
                self._skip_scalar()
                continue
            found = self._next(head)
            if found is None:
                yield Broken("not JSON: the list is cut off, or a bracket is missing")
                if not self._resume():
                    self._start = len(self._text)
                return
            yield found
        yield Broken("not JSON: the list is cut off")

    def _next(self, head: bytes = b"") -> Value | Broken | None:
        """Consumes one value; None if its end is not there, and nothing is consumed."""
        while True:
            error = self._error()
            after = TRAILING.search(error)
            if after or not error:
                end = self._start + int(after[1]) - 1 if after else len(self._text)
                data = self._text[self._start : end]
                self._start = end
                return Value(data, head)
            if len(self._text) - self._start > LARGEST or not self._may_be_cut(error):
                return self._skip_malformed(error)
            if not self._more():
                return None if error == TRUNCATED else self._skip_malformed(error)

    def _may_be_cut(self, error: str) -> bool:
        """Whether an error may be no more than the end of a piece, as in the middle of a number or an escape."""
        place = PLACE.search(error)
        return error == TRUNCATED or (
            place is not None and int(place[1]) >= len(self._text) - self._start - _LONGEST_TOKEN
        )

    def _error(self) -> str:
        """The error of msgspec about the text read so far: none if it is one value."""
        try:
            _value.decode(memoryview(self._text)[self._start :])
        except RecursionError:
            return "nested too deeply"
        except msgspec.DecodeError as error:
            return str(error)
        return ""

    def _skip_malformed(self, error: str) -> Broken | None:
        """Consumes a value whose brackets are paired, although it is not JSON."""
        depth, place = 0, self._start
        while True:
            found = _BRACKET.match(self._text, place)
            if found is None:
                place -= self._start
                if len(self._text) - self._start > LARGEST or not self._more():
                    return None
                continue
            place = found.end()
            depth += 1 if found[1] in b"{[" else -1
            if depth <= 0:
                self._start = place
                return Broken(f"not JSON: {error}")
            if depth > _DEEPEST:
                return None

    def _resume(self) -> bool:
        """Go on at the next object that begins a line: inside of a value, none does as programs print them."""
        self._wasted += len(self._text) - self._start
        place = self._start
        while True:
            found = self._text.find(b"\n{", place)
            if found >= 0:
                self._start = found + 1
                return True
            # The line break may be the last byte.
            self._start = place = max(self._start, len(self._text) - 1)
            if not self._more():
                return False
            place = self._start

    def _skip(self, what: re.Pattern[bytes]) -> bool:
        """Skip what is between values; False at the end of the stream."""
        while True:
            found = what.match(self._text, self._start)
            assert found is not None
            self._start = found.end()
            if self._start < len(self._text):
                return True
            if not self._more():
                return False

    def _skip_scalar(self) -> None:
        """Skip an item up to the comma or bracket behind it; all there is if nothing ends it."""
        while True:
            found = _TO_NEXT_ITEM.match(self._text, self._start)
            assert found is not None
            if self._start < found.end() < len(self._text):
                self._start = found.end()
                return
            if len(self._text) - self._start > LARGEST or not self._more():
                self._start = len(self._text)
                return

    def _skip_rest(self) -> None:
        """What follows the items of a List: `, "kind": "List", "metadata": {...} }`."""
        depth, place = 1, self._start
        while depth > 0:
            found = _BRACKET.match(self._text, place)
            if found is None:
                place -= self._start
                if len(self._text) - self._start > LARGEST or not self._more():
                    return
                continue
            place = found.end()
            depth += 1 if found[1] in b"{[" else -1
            self._start = place

    def _more(self) -> bool:
        """Read more, as much again if much is unread; False at the end of the stream."""
        wanted = max(1, (len(self._text) - self._start) // 2) if len(self._text) - self._start > _SMALL else 1
        parts = [self._text[self._start :]]
        for chunk in self._chunks:
            parts.append(chunk)
            wanted -= len(chunk)
            if wanted <= 0:
                break
        self._text = b"".join(parts)
        self._start = 0
        return len(parts) > 1
