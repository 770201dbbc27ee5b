"""Cuts a file into its documents while it is read, at `---` as kubectl does: a broken document costs only itself."""

import re
from collections.abc import Iterator
from typing import BinaryIO, Final

from msgspec import Struct

LARGEST: Final = 256 * 1024 * 1024
"""Bytes of one document, a List among them; a device or a pipe may never end."""

_CONTENT: Final = re.compile(r"^[^\S\n]*+(?!\.\.\.[^\S\n]*$)[^\s#%]", re.MULTILINE)


class Part(Struct, frozen=True):
    """The text of one document, and the number of its first line in the file, counted from 1."""

    text: str
    first_line: int

    @property
    def content_line(self) -> int:
        """The number of the first line that says something."""
        content = _CONTENT.search(self.text)
        return self.first_line + (self.text.count("\n", 0, content.start()) if content else 0)


class UnreadablePart(Struct, frozen=True):
    """A document that is not text; the rest of the file may be good."""

    error: str


def cut(file: BinaryIO, *, by_line: bool = False) -> Iterator[Part | UnreadablePart]:
    """The documents of a file that say something, each as soon as it is read; `by_line`: one in each line."""
    # Not a list of lines: the shortest ones would take twenty times their size.
    data = bytearray()
    first, number = 1, 0
    while line := file.readline(LARGEST + 1):
        number += 1
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if by_line or _separates(line):
            yield from _part(data, first)
            first = number
            line = line if by_line else line[3:]
        data += line
        if len(data) > LARGEST:
            yield UnreadablePart(f"a document of more than {LARGEST // 1024**2} MiB")
            return
    yield from _part(data, first)


def _separates(line: bytes) -> bool:
    return line.startswith(b"---") and line[3:4] in (b"", b" ", b"\t", b"\r", b"\n")


def _part(data: bytearray, first_line: int) -> Iterator[Part | UnreadablePart]:
    """What was collected, which is empty afterwards."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        yield UnreadablePart("not UTF-8")
        return
    finally:
        data.clear()
    if _CONTENT.search(text):
        yield Part(text, first_line)
