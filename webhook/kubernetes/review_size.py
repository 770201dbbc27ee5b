"""How much a review may hold: more than what two stored objects can have as JSON is not decoded.

An API server takes requests of 3 MiB and stores objects of 1.5 MiB. Its reviews grow beyond twice that only because Go
writes `<`, `>`, `&` and control characters as six bytes. So a review may be long, but it cannot have many values.
"""

import re
from typing import Final

from msgspec import Raw

from webhook.kubernetes.managed_fields import count_entries
from webhook.kubernetes.request import MAX_REQUEST

OPENING: Final = b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1'
"""How an API server begins a review, v1 or v1beta1: it writes the fields in this order and without white space."""

MAX_TOKENS: Final = 1_500_000
"""Strings, commas and opening brackets of one object. A stored object of 1.5 MiB has fewer: an owner reference of
one-letter texts, which has most of them for its size, takes 14 bytes in etcd and has 13."""

MAX_STORED_ENTRIES: Final = 50_000
"""Entries of managedFields of one object. A stored object of 1.5 MiB has fewer: an entry that an API server keeps takes
35 bytes in etcd, for operation, fieldsType, a manager of its own and a set of fields."""

MAX_TOKENS_OF_ENTRIES: Final = 800_000
"""Tokens of managedFields of one object, counted as for MAX_TOKENS. A stored object has fewer: a field takes 8 bytes in
etcd and has three, an entry takes 35 and has 13."""

MAX_STORED: Final = 1_572_864
"""Bytes of an object in etcd (`--max-request-bytes`), and so the most escapes that its JSON can have."""

MAX_JSON: Final = 4 * MAX_STORED
"""Bytes of an object as JSON in which each escape counts as one. A stored object has fewer: an owner reference of
one-letter texts, which grows most, takes 14 bytes in etcd and 51 here."""

_ESCAPE: Final = 6
"""Bytes of the longest escape, such as `\\u003c`."""

_TOKENS_A_STEP: Final = 1000
_TOKENS: Final = re.compile(rb'(?:[^",{\[]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"|[,{\[])){%d}' % _TOKENS_A_STEP, re.DOTALL)


def may_be_a_review(size: int, beginning: bytes | bytearray) -> bool:
    """Return true if a body of so many bytes that begins like this may be a review.

    A body of up to MAX_REQUEST may have any form. A longer one begins as an API server writes it; of a beginning
    that is shorter than OPENING only that part is compared.
    """
    return size <= MAX_REQUEST or OPENING.startswith(bytes(beginning[: len(OPENING)]))


def is_more_than(text: bytes, objects: int) -> bool:
    """Return true if a text is longer, or has more escapes or tokens, than so many stored objects can have as JSON."""
    # A run of backslashes is made of escaped ones, and one of another character if it is odd.
    escapes = text.count(b"\\") - text.count(b"\\\\")
    return (
        escapes > objects * MAX_STORED
        or len(text) - (_ESCAPE - 1) * escapes > objects * MAX_JSON
        or _has_more_tokens(text, objects * MAX_TOKENS)
    )


def has_too_many_fields(managed_fields: Raw) -> bool:
    """Return true if managedFields of one object hold more than a stored object can have."""
    if count_entries(managed_fields) > MAX_STORED_ENTRIES:
        return True
    return _has_more_tokens(bytes(managed_fields), MAX_TOKENS_OF_ENTRIES)


def _has_more_tokens(text: bytes, most: int) -> bool:
    """Nothing is allocated for a token, and the count ends at the limit; what stands in strings does not count."""
    if text.count(b",") + text.count(b"{") + text.count(b"[") + text.count(b'"') // 2 <= most:
        return False
    end, left = 0, most // _TOKENS_A_STEP
    while left and (found := _TOKENS.match(text, end)):
        end, left = found.end(), left - 1
    return not left
