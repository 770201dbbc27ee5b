"""UTF-8, and escaped halves of surrogate pairs in JSON, which are no text."""

import codecs
import re
from typing import Final

_PIECE: Final = 1024 * 1024


def is_utf8(body: bytes) -> bool:
    """Return true for UTF-8; it is decoded in pieces, because one rare character makes a text four times as large."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(body), _PIECE):
            decoder.decode(body[start : start + _PIECE])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


_HEX: Final = rb"[0-9a-fA-F]{2}"
_UP_TO_A_LONE_SURROGATE: Final = re.compile(
    rb"(?:[^\\]++|\\u[dD][89abAB]" + _HEX + rb"\\u[dD][c-fC-F]" + _HEX + rb"|\\u(?![dD][89a-fA-F])|\\[^u])*+"
    rb"(?=\\u[dD][89a-fA-F]" + _HEX + rb")"
)
_REPLACEMENT: Final = b"\\ufffd"
"""As long as what it replaces, so that all offsets stay the same."""


def replace_lone_surrogates(document: bytes) -> bytes | None:
    """Return the document with U+FFFD for each escaped half of a surrogate pair, as Go reads it; None without one."""
    replaced, end = bytearray(document), 0
    while found := _UP_TO_A_LONE_SURROGATE.match(document, end):
        start = found.end()
        end = start + len(_REPLACEMENT)
        replaced[start:end] = _REPLACEMENT
    return bytes(replaced) if end else None
