"""The keys of spec on both sides of a review, unknown ones and explicit nulls too.

The typed objects fold what is absent and null, and know the fields of today. Who owns a field in managedFields depends
on both: a null is the zero time, which is set and owned, and a newer API server may send a field that we do not know.
"""

from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from webhook.api import nesting

Fields = dict[str, Any]


class _Request(Struct, frozen=True, gc=False, rename="camel"):
    object: Raw = Raw(b"null")
    old_object: Raw = Raw(b"null")


class _Review(Struct, frozen=True, gc=False):
    request: _Request


class _Object(Struct, frozen=True, gc=False):
    spec: Fields | None = None


_review: Final = msgspec.json.Decoder(_Review)
_object: Final = msgspec.json.Decoder(_Object)


def spec_fields(body: bytes) -> tuple[Fields, Fields]:
    """`spec` of object and of oldObject as JSON values; empty if there is none, or it is not an object.

    `body` is a review that was decoded before; of an object that its operation does not use, the type was not checked.
    """
    try:
        request = _review.decode(body).request
        return _spec(request.object), _spec(request.old_object)
    except RecursionError:
        return spec_fields(nesting.cut_review(body))


def _spec(document: Raw) -> Fields:
    try:
        return _object.decode(document).spec or {}
    except msgspec.ValidationError:
        return {}
