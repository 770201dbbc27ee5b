"""How large a review may be, and of how many values, so that no body costs more than a second or 256 MiB.

An API server takes requests of 3 MiB and stores objects of 1.5 MiB. Its reviews grow beyond twice that only because Go
writes `<`, `>`, `&` and control characters as six bytes. So a review may be long, but it cannot have many values.
"""

import codecs
import re
from typing import Final

LARGEST_REQUEST: Final = 3 * 1024 * 1024
"""Bytes of a write that an API server takes (kubernetes/apiserver `pkg/server/config.go`, MaxRequestBodyBytes)."""

OPENING: Final = b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1'
"""How an API server begins a review, v1 or v1beta1: it writes the fields in this order and without white space."""

MOST_TOKENS: Final = 3_000_000
"""Strings, commas and opening brackets of one review. Two stored objects of 1.5 MiB have fewer: an owner reference of
one-letter texts, which has most of them for its size, takes 14 bytes in etcd and has 13."""

MOST_ENTRIES: Final = 50_000
"""Entries of managedFields of one object. A stored object of 1.5 MiB has fewer: an entry that an API server keeps takes
35 bytes in etcd, for operation, fieldsType, a manager of its own and a set of fields."""

MOST_TOKENS_OF_ENTRIES: Final = 800_000
"""The same as MOST_TOKENS for managedFields of one object. A stored object has fewer: a field takes 8 bytes in etcd and
has three, an entry takes 35 and has 13."""

_PIECE: Final = 1024 * 1024
_TOKENS_A_STEP: Final = 1000
_TOKENS: Final = re.compile(rb'(?:[^",{\[]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"|[,{\[])){%d}' % _TOKENS_A_STEP, re.DOTALL)


def may_be_a_review(size: int, beginning: bytes | bytearray) -> bool:
    """Whether a body of so many bytes that begins like this may be a review.

    A body of up to LARGEST_REQUEST may have any form. A longer one begins as an API server writes it; of a beginning
    that is shorter than OPENING only that part is compared.
    """
    return size <= LARGEST_REQUEST or OPENING.startswith(bytes(beginning[: len(OPENING)]))


def has_too_many_values(body: bytes) -> bool:
    """Whether a review has more than MOST_TOKENS strings, commas and braces; those inside strings do not count."""
    return _has_more_tokens(body, MOST_TOKENS)


def has_too_many_fields(managed_fields: bytes) -> bool:
    """Whether a list of managedFields has more than MOST_TOKENS_OF_ENTRIES."""
    return _has_more_tokens(managed_fields, MOST_TOKENS_OF_ENTRIES)


def _has_more_tokens(body: bytes, most: int) -> bool:
    """Whether there are more.

    Nothing is allocated for a token, and the count ends at the limit.
    """
    if body.count(b",") + body.count(b"{") + body.count(b"[") + body.count(b'"') // 2 <= most:
        return False
    end, left = 0, most // _TOKENS_A_STEP
    while left and (found := _TOKENS.match(body, end)):
        end, left = found.end(), left - 1
    return not left


def is_utf8(body: bytes) -> bool:
    """Whether the bytes are UTF-8; decoded in pieces, because one rare character makes a text four times as large."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(body), _PIECE):
            decoder.decode(body[start : start + _PIECE])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True
