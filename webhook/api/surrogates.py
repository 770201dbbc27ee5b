"""Escaped halves of a surrogate pair without their other half: Go reads U+FFFD, msgspec refuses the whole document."""

import re
from typing import Final

_HEX: Final = rb"[0-9a-fA-F]{2}"
_UP_TO_ONE: Final = re.compile(
    rb"(?:[^\\]++|\\u[dD][89abAB]" + _HEX + rb"\\u[dD][c-fC-F]" + _HEX + rb"|\\u(?![dD][89a-fA-F])|\\[^u])*+"
    rb"(?=\\u[dD][89a-fA-F]" + _HEX + rb")"
)
_REPLACEMENT: Final = b"\\ufffd"
"""As long as what it replaces, so that all offsets stay the same."""


def without_lone_surrogates(document: bytes) -> bytes | None:
    """The document with U+FFFD for each of them, as Go reads it; None if there are none."""
    replaced, end = bytearray(document), 0
    while found := _UP_TO_ONE.match(document, end):
        start = found.end()
        end = start + len(_REPLACEMENT)
        replaced[start:end] = _REPLACEMENT
    return bytes(replaced) if end else None
