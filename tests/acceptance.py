"""What kube-apiserver accepts as an answer of a validating webhook, and what of it reaches a person.

Its own rules: kubernetes/apiserver `pkg/admission/plugin/webhook/request/admissionreview.go` (VerifyAdmissionResponse),
`pkg/admission/plugin/webhook/errors/statuserror.go`, `pkg/admission/attributes.go` (audit annotations) and
kubernetes/apimachinery `pkg/util/net/http.go` (warnings). An answer that breaks the first goes to failurePolicy; what
breaks the others is dropped without a word.
"""

import re
import unicodedata
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

LARGEST_ANSWER: Final = 64 * 1024
LONGEST_UID: Final = 256
LONGEST_MESSAGE: Final = 16 * 1024
LONGEST_DETAIL: Final = 10 * (253 + 3)
"""A name of the longest kind and an ellipsis, of which each character may be shown as an escape of ten."""
CODES: Final = {400: "BadRequest", 403: "Forbidden", 422: "Invalid"}
_ANNOTATION_KEY: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_HIDDEN: Final = {"Cc", "Cf", "Cs", "Zl", "Zp"}


class Cause(Struct, forbid_unknown_fields=True):
    """metav1.StatusCause."""

    reason: str = ""
    message: str = ""
    field: str = ""


class Details(Struct, forbid_unknown_fields=True):
    """metav1.StatusDetails, without what only API servers fill in."""

    name: str = ""
    group: str = ""
    kind: str = ""
    causes: list[Cause] = []


class Status(Struct, forbid_unknown_fields=True):
    """metav1.Status."""

    status: str = ""
    message: str = ""
    reason: str = ""
    details: Details | None = None
    code: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0


class Response(Struct, forbid_unknown_fields=True, rename="camel"):
    """admission/v1 AdmissionResponse without patch and patchType, which a validating webhook may not send."""

    uid: str
    allowed: bool
    status: Status | None = None
    warnings: list[str] = []
    audit_annotations: dict[str, str] = {}


class Review(Struct, forbid_unknown_fields=True, rename="camel"):
    """AdmissionReview on the way back."""

    kind: str
    api_version: str
    response: Response


def accept(body: bytes, uid: str, api_version: str = "admission.k8s.io/v1") -> Response:
    """The answer, after every check.

    Raises:
        AssertionError: kube-apiserver would refuse the answer, or drop or misprint a part of it.

    """
    assert len(body) < LARGEST_ANSWER, f"{len(body)} bytes"
    try:
        review = msgspec.json.decode(body, type=Review)
    except msgspec.DecodeError as error:
        raise AssertionError(f"not an AdmissionReview: {error}: {body[:200]!r}") from None
    assert review.kind == "AdmissionReview"
    assert review.api_version == api_version
    response = review.response
    assert len(response.uid) <= LONGEST_UID
    assert response.uid == uid, f"expected response.uid={uid!r}, got {response.uid!r}"
    if response.allowed:
        assert response.status is None, "an allowed answer has no status"
    else:
        _accept_denial(response.status)
    for warning in response.warnings:
        assert warning.strip(), "an empty warning is dropped"
        assert is_plain(warning), f"a warning with hidden characters is dropped or misread: {warning!r}"
    assert len(set(response.warnings)) == len(response.warnings), "a repeated warning is dropped"
    assert sum(map(len, response.warnings)) <= 4096, "beyond 4096 characters warnings are cut and dropped"
    for key, value in response.audit_annotations.items():
        assert _ANNOTATION_KEY.fullmatch(key), f"an audit annotation called {key!r} is dropped"
        assert is_plain(value), f"an audit annotation is one plain line: {value!r}"
    return response


def _accept_denial(status: Status | None) -> None:
    assert status, 'a denial without status reads "denied the request without explanation"'
    assert status.code in CODES, f"election clients act on code {status.code}"
    assert status.reason == CODES[status.code]
    assert status.message, "kubectl prints the message of a 403"
    assert is_plain(status.message), f"kubectl prints a message raw: {status.message!r}"
    assert len(status.message) <= LONGEST_MESSAGE, "kubectl prints all of a message"
    if status.details:
        _accept_details(status.details)
    if status.code == 400:
        return
    assert status.details, "kubectl prints only the causes of a 422"
    assert status.details.causes
    for cause in status.details.causes:
        assert cause.reason
        assert cause.field
        assert cause.message


def _accept_details(details: Details) -> None:
    for text in (details.name, details.group, details.kind):
        assert is_plain(text), f"a client may print details raw: {text!r}"
        assert len(text) <= LONGEST_DETAIL, f"{len(text)} characters"
    for cause in details.causes:
        assert is_plain(cause.reason + cause.message + cause.field), f"kubectl prints a cause raw: {cause}"
        assert len(cause.field) <= LONGEST_DETAIL
        assert len(cause.message) <= LONGEST_MESSAGE


def is_plain(text: str) -> bool:
    """Return whether a terminal shows each character of a text as itself."""
    return not any(unicodedata.category(character) in _HIDDEN for character in text)
