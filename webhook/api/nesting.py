"""Truncates what nests too deeply inside metadata.managedFields, so that the verdict does not depend on depth.

An API server takes and returns JSON of up to 10,000 levels, and only `fieldsV1` inside a Lease nests freely, so whoever
may update a lease can store an entry that no JSON decoder of Python reads. Nothing that a rule reads lies deeper than
five levels. A cut list still nests one level deeper than `DEEPEST`, so rules see that it was too deep.
"""

import re
from collections.abc import Iterator
from typing import Final

DEEPEST: Final = 32
"""Levels of lists and objects of managedFields that are read; the list itself is the first."""

_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[{}\[\]]', re.DOTALL)
"""A string, possibly without an end, or a bracket: each byte is scanned once, whatever the text is."""

_OPENING: Final = frozenset(b"{[")
_QUOTE: Final = ord('"')

_LISTS: Final = (
    [b'"request"', b'"object"', b'"metadata"', b'"managedFields"'],
    [b'"request"', b'"oldObject"', b'"metadata"', b'"managedFields"'],
)
"""The keys on the path to both lists of a review."""


def cut_review(body: bytes) -> bytes:
    """The bytes of a review in which both lists of managedFields nest at most one level deeper than `DEEPEST`.

    Each container on the first level that is too deep is replaced by `{}`. Anything that is not JSON stays as it is,
    for the decoder to refuse.
    """
    return b"".join(_pieces(body, len(_LISTS[0])))


def cut_list(managed_fields: bytes) -> bytes:
    """The same for the bytes of one list of managedFields."""
    return b"".join(_pieces(managed_fields, 0))


def _pieces(text: bytes, base: int) -> Iterator[bytes]:
    """`base` is the number of containers around a list of managedFields."""
    limit = base + DEEPEST
    depth = kept_to = 0
    keys: list[bytes] = [b""] * base
    inside = base == 0
    for token in _TOKEN.finditer(text):
        start = token.start()
        first = text[start]
        if first == _QUOTE:
            # The last string before a value is its key; strings inside lists are overwritten in the same way.
            if 0 < depth <= base:
                keys[depth - 1] = token[0]
        elif first in _OPENING:
            if depth == base and base:
                inside = keys in _LISTS
            if depth == limit and inside:
                yield text[kept_to:start]
                yield b"{}"
            depth += 1
        else:
            depth -= 1
            if depth == limit and inside:
                kept_to = token.end()
    if not (inside and depth > limit):
        yield text[kept_to:]
