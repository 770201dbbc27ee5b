"""The bytes of an AdmissionReview become a frozen request, or a `ReviewError`.

Two ways to say no: a review that cannot be read, or whose uid cannot, is a `ReviewError` (an HTTP 4xx, so that
failurePolicy decides); a review with a uid whose request contradicts itself is a request with `contradiction` set.
Typed structs refuse what is odd, and only a review that they refuse is looked at piece by piece.
"""

import re
from typing import Any, Final

import msgspec

from webhook.api import nesting
from webhook.api.quick_review import lease_update
from webhook.api.request import AdmissionRequest
from webhook.api.wire import ReviewError, WireKind, WireResource, WireReview, checked_uid, request_of

REVIEW_VERSIONS: Final = frozenset({"admission.k8s.io/v1", "admission.k8s.io/v1beta1"})

_review: Final = msgspec.json.Decoder(WireReview)


def decode(body: bytes) -> AdmissionRequest:
    """Read one AdmissionReview, v1 or v1beta1.

    Raises:
        ReviewError: no JSON, no AdmissionReview, or no usable uid.

    """
    try:
        body.isascii() or body.decode()
    except UnicodeDecodeError:
        raise ReviewError(400, "the body is not UTF-8") from None
    return lease_update(body) or _decode_any(body)


def _decode_any(body: bytes) -> AdmissionRequest:
    try:
        review = _review.decode(body)
    except msgspec.ValidationError:
        return _decode_slowly(body)
    except msgspec.DecodeError:
        return _decode_without_lone_surrogates(body)
    except RecursionError:
        return _decode_cut(body)
    if review.kind != "AdmissionReview" or review.api_version not in REVIEW_VERSIONS:
        raise _no_review()
    return request_of(review.request, review.api_version, body)


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


def _no_review() -> ReviewError:
    return ReviewError(400, "the body is no AdmissionReview of admission.k8s.io/v1 or v1beta1")


_SURROGATE_PAIR_OR_ESCAPE: Final = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\.", re.DOTALL
)


def _decode_without_lone_surrogates(body: bytes) -> AdmissionRequest:
    """Go reads an escaped lone surrogate as U+FFFD; no API server sends one, so it is a contradiction."""
    found: list[bytes] = []

    def mend(match: re.Match[bytes]) -> bytes:
        escape = match.group()
        if len(escape) != len(b"\\ud800"):
            return escape
        found.append(escape)
        return b"\\ufffd"

    mended = _SURROGATE_PAIR_OR_ESCAPE.sub(mend, body)
    if not found:
        raise ReviewError(400, "the body is not JSON")
    request = decode(mended)
    return msgspec.structs.replace(
        request, contradiction="the review contains an escaped lone surrogate, which no API server sends"
    )


def _decode_slowly(body: bytes) -> AdmissionRequest:
    """Find out what is wrong with a review of wrong types: with a readable uid it still gets a verdict."""
    try:
        review = msgspec.json.decode(body)
    except msgspec.DecodeError:
        raise ReviewError(400, "the body has a number that no API server sends") from None
    except RecursionError:
        return _decode_cut(body)
    if not isinstance(review, dict) or review.get("kind") != "AdmissionReview":
        raise _no_review()
    api_version, request = review.get("apiVersion"), review.get("request")
    if not isinstance(api_version, str) or api_version not in REVIEW_VERSIONS:
        raise _no_review()
    if not isinstance(request, dict):
        raise ReviewError(400, "the review has no request")
    uid = request.get("uid")
    uid = checked_uid(uid)
    wrong = [key for key, form in _FORMS.items() if not _fits(request.get(key), form)]
    named = ".".join(["request", *wrong[:1]])
    return AdmissionRequest(
        uid=uid, api_version=api_version, contradiction=f"{named} has a type that no API server sends"
    )


_FORMS: Final[dict[str, Any]] = {
    "kind": WireKind | None,
    "resource": WireResource | None,
    "subResource": str | None,
    "name": str | None,
    "namespace": str | None,
    "operation": str | None,
}
"""What a typed decode of the request insists on; the rest of it stays bytes."""


def _fits(value: object, form: Any) -> bool:  # noqa: ANN401 - a type form
    try:
        msgspec.convert(value, form)
    except msgspec.ValidationError:
        return False
    return True


__all__ = ["REVIEW_VERSIONS", "ReviewError", "decode"]
