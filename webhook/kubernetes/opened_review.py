"""An AdmissionReview of which the request is not decoded yet: its version, and the uid that an answer needs."""

import re
from typing import Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from webhook.kubernetes.managed_fields import truncate_review
from webhook.kubernetes.request import MAX_REQUEST, AdmissionRequest
from webhook.kubernetes.utf8 import replace_lone_surrogates

KIND: Final = "AdmissionReview"
REVIEW_VERSIONS: Final = frozenset({"admission.k8s.io/v1", "admission.k8s.io/v1beta1"})
MAX_UID: Final = 256
NOT_A_REVIEW: Final = 400, "the body is not an AdmissionReview of admission.k8s.io/v1 or v1beta1"
_ABSENT: Final = Raw(b"")


class ReviewError(Exception):
    """The body is not a review that can be answered.

    `status` is the HTTP status, `text` one plain line; `user` is the writer of a body that no API server sends.
    """

    def __init__(self, status: int, text: str, user: str = "") -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.user = user


class OpenedReview(Struct, frozen=True, gc=False):
    """A review, and its request as JSON; `surrogates` is the contradiction if it is not the body that was sent."""

    uid: str
    api_version: str
    body: bytes
    request: Raw
    surrogates: str


class _LooseRequest(Struct, frozen=True, gc=False):
    uid: Raw = _ABSENT


class _LooseReview(Struct, frozen=True, gc=False, rename="camel"):
    kind: Raw = _ABSENT
    api_version: Raw = _ABSENT
    request: Raw = _ABSENT


_loose_review: Final = msgspec.json.Decoder(_LooseReview)
_loose_request: Final = msgspec.json.Decoder(_LooseRequest)
_string: Final = msgspec.json.Decoder(str)
_BEGINNING: Final = re.compile(
    rb'\{"kind":"AdmissionReview","apiVersion":"(?P<version>admission\.k8s\.io/v1(?:beta1)?)",'
    rb'"request":\{"uid":(?P<uid>"[!#-\[\]-~]{1,256}")'
)
"""How an API server begins a review, up to a uid without escapes."""


def read_uid(body: bytes) -> AdmissionRequest:
    """Return the request with its uid and the review's apiVersion only; raises ReviewError as `decode` does.

    What an API server sends is read as far as its uid, so the size, depth and content of the rest do not matter.
    """
    found = _BEGINNING.match(body)
    if found:
        return make_request_without_content(_string.decode(found["uid"]), found["version"].decode())
    try:
        opened = open_review(body)
    except RecursionError:
        return read_uid(truncate_nested(body))
    return make_request_without_content(opened.uid, opened.api_version)


def open_review(body: bytes) -> OpenedReview:
    """Return a review of which the request is not decoded; raises ReviewError, or RecursionError."""
    try:
        review = _loose_review.decode(body)
    except msgspec.ValidationError:
        raise ReviewError(*NOT_A_REVIEW) from None
    except msgspec.DecodeError:
        # An API server never sends a lone surrogate, so it is a contradiction; the rest is read as Go reads it.
        replaced = replace_lone_surrogates(body) if len(body) <= MAX_REQUEST else None
        if replaced is None:
            raise ReviewError(400, "the body is not JSON") from None
        surrogates = "the review contains an escaped lone surrogate, which no API server sends"
        return replace(open_review(replaced), surrogates=surrogates)
    api_version = _decode_text(review.api_version)
    if _decode_text(review.kind) != KIND or api_version not in REVIEW_VERSIONS:
        raise ReviewError(*NOT_A_REVIEW)
    try:
        uid = _decode_text(_loose_request.decode(review.request).uid)
    except msgspec.DecodeError:
        raise ReviewError(400, "the review has no request") from None
    if not uid:
        raise ReviewError(400, "the request has no uid")
    if len(uid) > MAX_UID:
        raise ReviewError(400, f"the uid of the request is longer than {MAX_UID} characters")
    return OpenedReview(uid, api_version, body, review.request, "")


def _decode_text(raw: Raw) -> str:
    """Return a string; "" for anything else."""
    try:
        return _string.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""


def make_request_without_content(uid: str, api_version: str, contradiction: str = "") -> AdmissionRequest:
    """Return a request of which only the uid is known, or that is refused for its contradiction."""
    return AdmissionRequest(uid, api_version=api_version, contradiction=contradiction)


def truncate_nested(body: bytes) -> bytes:
    """Return a body without what nests too deeply. Only managedFields nest freely in a Lease."""
    truncated = truncate_review(body)
    if len(truncated) == len(body):
        # Operators want to know who sends what nests elsewhere.
        named = _USERNAME.search(body)
        raise ReviewError(400, "the body is nested too deeply", named[1].decode() if named else "")
    return truncated


_USERNAME: Final = re.compile(rb'"userInfo"\s*:\s*\{\s*"username"\s*:\s*"([^"\\]{1,256})"')
