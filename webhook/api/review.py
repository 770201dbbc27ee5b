"""The bytes of an AdmissionReview become a frozen request, or a `ReviewError`.

There are two ways to refuse: a review without a readable uid is a `ReviewError` (an HTTP 4xx, so that failurePolicy
decides); a review with a uid whose request contradicts itself is a request with `contradiction` set.
Typed structs refuse what is odd, and only a review that they refuse is decoded piece by piece.
"""

import re
from typing import Final

import msgspec
from msgspec import Raw

from webhook.api import nesting
from webhook.api.bulk import (
    LARGEST_REQUEST,
    MOST_ENTRIES,
    has_too_many_fields,
    has_too_many_values,
    is_utf8,
    may_be_a_review,
)
from webhook.api.fast_decode import lease_update
from webhook.api.loose_review import contradicting, identified
from webhook.api.managed_fields import count_of
from webhook.api.request import AdmissionRequest
from webhook.api.review_error import ReviewError, not_a_review
from webhook.api.surrogates import without_lone_surrogates
from webhook.api.typed_request import typed_request
from webhook.api.wire import REVIEW_VERSIONS, WireReview

_review: Final = msgspec.json.Decoder(WireReview)


def decode(body: bytes) -> AdmissionRequest:
    """Read one AdmissionReview, v1 or v1beta1.

    Raises:
        ReviewError: the body is not JSON, not an AdmissionReview, or has no usable uid.

    """
    if not body.isascii() and not is_utf8(body):
        raise ReviewError(400, "the body is not UTF-8")
    if len(body) > LARGEST_REQUEST:
        return _decode_large(body)
    return lease_update(body) or _decode_any(body)


def _decode_large(body: bytes) -> AdmissionRequest:
    """Without the fast path, which copies a wrong literal into an error however long it is."""
    if not may_be_a_review(len(body), body):
        raise ReviewError(413, "a body of this size must begin as an API server begins a review")
    if has_too_many_values(body):
        return contradicting(body, "the review has more values than two stored objects can have")
    request = _decode_any(body)
    if any(one is not None and _is_too_long(one.metadata.managed_fields) for one in (request.new, request.old)):
        return contradicting(body, "managedFields hold more than a stored object can have")
    return request


def _is_too_long(managed_fields: Raw) -> bool:
    return count_of(managed_fields) > MOST_ENTRIES or has_too_many_fields(bytes(managed_fields))


def _decode_any(body: bytes) -> AdmissionRequest:
    try:
        review = _review.decode(body)
    except msgspec.ValidationError:
        return contradicting(body)
    except msgspec.DecodeError:
        return _decode_without_lone_surrogates(body)
    except RecursionError:
        return _decode_cut(body)
    if review.kind != "AdmissionReview" or review.api_version not in REVIEW_VERSIONS:
        raise not_a_review()
    return typed_request(review.request, review.api_version, body)


def _decode_cut(body: bytes) -> AdmissionRequest:
    """The request of a review whose managedFields nest too deeply; nothing else in a Lease nests freely."""
    cut = nesting.cut_review(body)
    if len(cut) == len(body):
        raise ReviewError(400, "the body is nested too deeply", user=_user_of(body))
    return decode(cut)


def _user_of(body: bytes) -> str:
    """Who sent a body that nests too deeply to be read: no API server sends one, so an operator wants to know."""
    named = _USERNAME.search(body)
    return named[1].decode() if named else ""


_USERNAME: Final = re.compile(rb'"userInfo"\s*:\s*\{\s*"username"\s*:\s*"([^"\\]{1,256})"')


def _decode_without_lone_surrogates(body: bytes) -> AdmissionRequest:
    """An API server never sends one, so it is a contradiction; the rest is read as Go reads it."""
    replaced = without_lone_surrogates(body) if len(body) <= LARGEST_REQUEST else None
    if replaced is None:
        raise ReviewError(400, "the body is not JSON")
    return msgspec.structs.replace(
        decode(replaced), contradiction="the review contains an escaped lone surrogate, which no API server sends"
    )


__all__ = ["REVIEW_VERSIONS", "ReviewError", "decode", "identified"]
