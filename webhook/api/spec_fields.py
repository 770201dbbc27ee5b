"""The keys of spec on both sides of a review, unknown ones and explicit nulls too.

The typed objects fold what is absent and null, and know the fields of today. Who owns a field in managedFields depends
on both: a null is the zero time, which is set and owned, and a newer API server may send a field that we do not know.
"""

from typing import Any, Final

import msgspec
from msgspec import Struct

from webhook.api import nesting

Fields = dict[str, Any]


class _Object(Struct, frozen=True, gc=False):
    spec: Fields | None = None


class _Request(Struct, frozen=True, gc=False, rename="camel"):
    object: _Object | None = None
    old_object: _Object | None = None


class _Review(Struct, frozen=True, gc=False):
    request: _Request


_review: Final = msgspec.json.Decoder(_Review)


def spec_fields(body: bytes) -> tuple[Fields, Fields]:
    """`spec` of object and of oldObject as JSON values, empty where there is none.

    `body` is a review that was decoded before, so it cannot be malformed.
    """
    try:
        request = _review.decode(body).request
    except RecursionError:
        request = _review.decode(nesting.cut_review(body)).request
    return _spec(request.object), _spec(request.old_object)


def _spec(document: _Object | None) -> Fields:
    return (document.spec if document is not None else None) or {}
