"""A review of which only the uid is read; the rest is scanned but not decoded."""

import re
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from webhook.api import nesting
from webhook.api.request import AdmissionRequest
from webhook.api.review_error import ReviewError, checked_uid, not_a_review
from webhook.api.wire import REVIEW_VERSIONS, WireKind, WireResource

_ABSENT: Final = Raw(b"")


class _Request(Struct, frozen=True, gc=False, rename="camel"):
    uid: Raw = _ABSENT
    kind: Raw = _ABSENT
    resource: Raw = _ABSENT
    sub_resource: Raw = _ABSENT
    name: Raw = _ABSENT
    namespace: Raw = _ABSENT
    operation: Raw = _ABSENT


class _Review(Struct, frozen=True, gc=False, rename="camel"):
    kind: Raw = _ABSENT
    api_version: Raw = _ABSENT
    request: Raw = _ABSENT


_review: Final = msgspec.json.Decoder(_Review)
_request: Final = msgspec.json.Decoder(_Request)
_string: Final = msgspec.json.Decoder(str)
_OPENING: Final = re.compile(
    rb'\{"kind":"AdmissionReview","apiVersion":"(?P<version>admission\.k8s\.io/v1(?:beta1)?)",'
    rb'"request":\{"uid":(?P<uid>"[!#-\[\]-~]{1,256}")'
)
"""How an API server begins a review, up to a uid without escapes."""

_FORMS: Final[dict[str, Any]] = {
    "kind": WireKind | None,
    "resource": WireResource | None,
    "sub_resource": str | None,
    "name": str | None,
    "namespace": str | None,
    "operation": str | None,
}
"""The fields of the request that must have the right types; the rest of it stays bytes."""


def identified(body: bytes) -> AdmissionRequest:
    """The request with its uid and the review's apiVersion only, for a response that depends on nothing else.

    What an API server sends is read as far as its uid, so the size, depth and content of the rest do not matter.

    Raises:
        ReviewError: the body is not JSON, not an AdmissionReview, or has no usable uid.

    """
    found = _OPENING.match(body)
    if found:
        return AdmissionRequest(uid=_string.decode(found["uid"]), api_version=found["version"].decode())
    api_version, request = _undecoded(body)
    return AdmissionRequest(uid=_uid(request), api_version=api_version)


def contradicting(body: bytes, contradiction: str = "") -> AdmissionRequest:
    """The request with its uid and what it contradicts; without a text, the value of a wrong type is named.

    Raises:
        ReviewError: the body is not JSON, not an AdmissionReview, or has no usable uid.

    """
    api_version, request = _undecoded(body)
    return AdmissionRequest(
        uid=_uid(request), api_version=api_version, contradiction=contradiction or _wrong_type(request)
    )


def _undecoded(body: bytes) -> tuple[str, _Request]:
    try:
        review = _review.decode(body)
    except msgspec.ValidationError:
        raise not_a_review() from None
    except msgspec.DecodeError:
        raise ReviewError(400, "the body is not JSON") from None
    except RecursionError:
        cut = nesting.cut_review(body)
        if len(cut) == len(body):
            raise ReviewError(400, "the body is nested too deeply") from None
        return _undecoded(cut)
    api_version = _text(review.api_version)
    if _text(review.kind) != "AdmissionReview" or api_version not in REVIEW_VERSIONS:
        raise not_a_review()
    try:
        return api_version, _request.decode(review.request)
    except msgspec.DecodeError:
        raise ReviewError(400, "the review has no request") from None


def _uid(request: _Request) -> str:
    return checked_uid(_text(request.uid))


def _text(raw: Raw) -> str:
    """A string; "" for anything else."""
    try:
        return _string.decode(raw)
    except msgspec.DecodeError:
        return ""


def _wrong_type(request: _Request) -> str:
    wrong = [field for field, form in _FORMS.items() if not _fits(getattr(request, field), form)]
    named = ".".join(["request", *(field.replace("sub_resource", "subResource") for field in wrong[:1])])
    return f"{named} has a type that no API server sends"


def _fits(value: Raw, form: Any) -> bool:  # noqa: ANN401 - a type form
    if value is _ABSENT:
        return True
    try:
        msgspec.json.decode(value, type=form)
    except msgspec.DecodeError:
        return False
    return True
