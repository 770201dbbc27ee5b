"""The bytes of an AdmissionReview become a frozen request, or a `ReviewError`.

Two ways to say no: a review that cannot be read, or whose uid cannot, is a `ReviewError` (an HTTP 4xx, so that
failurePolicy decides); a review with a uid whose request contradicts itself is a request with `contradiction` set.
The quick way decodes straight into structs; only a review that it refuses is looked at piece by piece.
"""

import re
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from webhook.api.field import FieldError, type_invalid
from webhook.api.objects import NO_METADATA, Lease, LeaseCandidate
from webhook.api.request import (
    GROUP,
    KIND_OF,
    NO_OPTIONS,
    AdmissionRequest,
    Operation,
    Options,
    Resource,
    UserInfo,
    is_served,
)

LONGEST_UID: Final = 256
REVIEW_VERSIONS: Final = frozenset({"admission.k8s.io/v1", "admission.k8s.io/v1beta1"})
_NULL: Final = Raw(b"null")


class ReviewError(Exception):
    """The body is no review that could be answered. `status` is the HTTP status, `text` one plain line."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class _Kind(Struct, frozen=True):
    group: str | None = None
    version: str | None = None
    kind: str | None = None


class _Resource(Struct, frozen=True):
    group: str | None = None
    version: str | None = None
    resource: str | None = None


class _UserInfo(Struct, frozen=True):
    username: str | None = None
    groups: tuple[str, ...] | None = None
    extra: dict[str, tuple[str, ...] | None] | None = None


class _Request(Struct, frozen=True, rename="camel"):
    uid: str
    kind: _Kind | None = None
    resource: _Resource | None = None
    sub_resource: str | None = None
    name: str | None = None
    namespace: str | None = None
    operation: str | None = None
    user_info: _UserInfo | None = None
    object: Raw = _NULL
    old_object: Raw = _NULL
    options: Raw = _NULL


class _Review(Struct, frozen=True, rename="camel"):
    request: _Request
    api_version: str | None = None
    kind: str | None = None


_review: Final = msgspec.json.Decoder(_Review)
_OPERATIONS: Final = {operation.value: operation for operation in Operation}
_options: Final = msgspec.json.Decoder(Options | None)
_objects: Final[dict[str, msgspec.json.Decoder[Lease] | msgspec.json.Decoder[LeaseCandidate]]] = {
    "leases": msgspec.json.Decoder(Lease),
    "leasecandidates": msgspec.json.Decoder(LeaseCandidate),
}


def decode(body: bytes) -> AdmissionRequest:
    """Read one AdmissionReview, v1 or v1beta1.

    Raises:
        ReviewError: no JSON, no AdmissionReview, or no usable uid.

    """
    try:
        body.decode()
    except UnicodeDecodeError:
        raise ReviewError(400, "the body is not UTF-8") from None
    try:
        review = _review.decode(body)
    except msgspec.ValidationError:
        return _decode_slowly(body)
    except msgspec.DecodeError:
        return _decode_without_lone_surrogates(body)
    except RecursionError:
        raise ReviewError(400, "the body is nested too deeply") from None
    if review.kind != "AdmissionReview" or review.api_version not in REVIEW_VERSIONS:
        raise _no_review()
    return _request(review.request, review.api_version)


def _no_review() -> ReviewError:
    return ReviewError(400, "the body is no AdmissionReview of admission.k8s.io/v1 or v1beta1")


# ---- reviews that the quick way refuses -----------------------------------------------------------------------------

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
        raise ReviewError(400, "the body is nested too deeply") from None
    if not isinstance(review, dict) or review.get("kind") != "AdmissionReview":
        raise _no_review()
    api_version, request = review.get("apiVersion"), review.get("request")
    if api_version not in REVIEW_VERSIONS:
        raise _no_review()
    if not isinstance(request, dict):
        raise ReviewError(400, "the review has no request")
    uid = request.get("uid")
    uid = _checked_uid(uid)
    wrong: list[str] = []
    read = _Request(
        uid=uid,
        kind=_piece(request, "kind", _Kind | None, wrong),
        resource=_piece(request, "resource", _Resource | None, wrong),
        sub_resource=_piece(request, "subResource", str | None, wrong),
        name=_piece(request, "name", str | None, wrong),
        namespace=_piece(request, "namespace", str | None, wrong),
        operation=_piece(request, "operation", str | None, wrong),
        # An unreadable writer is nobody: rules about the writer then find against the write, the others go on.
        user_info=_piece(request, "userInfo", _UserInfo | None, []),
        object=Raw(msgspec.json.encode(request.get("object"))),
        old_object=Raw(msgspec.json.encode(request.get("oldObject"))),
        options=Raw(msgspec.json.encode(request.get("options"))),
    )
    if wrong:
        return AdmissionRequest(
            uid=uid, api_version=api_version, contradiction=f"request.{wrong[0]} has a type that no API server sends"
        )
    return _request(read, api_version)


def _piece(request: dict[str, Any], key: str, kind: Any, wrong: list[str]) -> Any:  # noqa: ANN401 - a type form
    try:
        return msgspec.convert(request.get(key), kind)
    except msgspec.ValidationError:
        wrong.append(key)
        return None


def _checked_uid(uid: object) -> str:
    if not isinstance(uid, str) or not uid:
        raise ReviewError(400, "the request has no uid")
    if len(uid) > LONGEST_UID:
        raise ReviewError(400, f"the uid of the request is longer than {LONGEST_UID} characters")
    return uid


# ---- from the wire's request to ours --------------------------------------------------------------------------------


def _request(wire: _Request, api_version: str) -> AdmissionRequest:
    _checked_uid(wire.uid)
    resource, kind = wire.resource, wire.kind
    if wire.operation not in _OPERATIONS:
        return _contradiction(wire, api_version, "request.operation must be CREATE, UPDATE, DELETE or CONNECT")
    if resource is None or kind is None or not resource.resource or not kind.kind:
        return _contradiction(wire, api_version, "request.resource and request.kind must be set")
    operation = _OPERATIONS[wire.operation]
    problem = _resource_against_kind(resource, kind)
    new = old = None
    errors: list[FieldError] = []
    options = NO_OPTIONS
    judged = (
        not problem
        and operation is not Operation.CONNECT
        and is_served(resource.group, resource.version, resource.resource)
    )
    if judged:
        if operation is not Operation.DELETE:
            new = _object(resource.resource, wire.object, "", errors)
            if new is None and not errors:
                problem = f"{operation} needs request.object"
        if operation is not Operation.CREATE:
            old = _object(resource.resource, wire.old_object, "oldObject", errors)
            if old is None and not errors:
                problem = problem or f"{operation} needs request.oldObject"
        options = _read_options(wire.options, errors)
    subject = new if new is not None else old
    metadata = subject.metadata if subject is not None else NO_METADATA
    user = wire.user_info
    return AdmissionRequest(
        uid=wire.uid,
        operation=operation,
        resource=resource.resource,
        kind=kind.kind,
        version=resource.version or "",
        group=resource.group or "",
        sub_resource=wire.sub_resource or "",
        namespace=wire.namespace or metadata.namespace or "",
        name=wire.name or metadata.name or "",
        user=_user(user) if user is not None else None,
        new=new,
        old=old,
        options=options,
        object_errors=tuple(errors),
        contradiction=problem or _objects_against_request(wire, resource, kind, new, old),
        api_version=api_version,
    )


def _contradiction(wire: _Request, api_version: str, problem: str) -> AdmissionRequest:
    return AdmissionRequest(uid=wire.uid, api_version=api_version, contradiction=problem)


def _user(user: _UserInfo) -> UserInfo:
    extra = {key.lower(): values or () for key, values in user.extra.items()} if user.extra else {}
    return UserInfo(user.username or "", user.groups or (), extra)


def _resource_against_kind(resource: _Resource, kind: _Kind) -> str:
    """What is contradictory about naming this resource and this kind together, or ""."""
    ours = resource.group == GROUP and resource.resource in KIND_OF
    if not ours and not (kind.group == GROUP and kind.kind in KIND_OF.values()):
        return ""
    agree = (resource.group, resource.version) == (kind.group, kind.version)
    if not ours or not agree or KIND_OF[Resource(str(resource.resource))] != kind.kind:
        return "request.resource and request.kind must name the same thing"
    return ""


def _object(resource: str, raw: Raw, role: str, errors: list[FieldError]) -> Lease | LeaseCandidate | None:
    """The typed object, or None: for null without an error, for a wrong type with one (a document's first)."""
    text = bytes(raw)
    if not text.startswith(b"{"):
        return None
    try:
        return _objects[resource].decode(text)
    except msgspec.ValidationError as error:
        errors.append(_type_error(str(error), role, text))
        return None


_TOO_LONG_TO_BE_A_NUMBER: Final = re.compile(rb"[0-9]{4300}|[0-9][eE]\+?[0-9]{3}")


def _type_error(text: str, role: str, document: bytes) -> FieldError:
    """Msgspec says "Expected `int | null`, got `str` - at `$.spec.leaseDurationSeconds`"; so do we."""
    if "out of range" in text and _TOO_LONG_TO_BE_A_NUMBER.search(document):
        raise ReviewError(400, "the body has a number that no API server sends")
    what, _, where = text.partition(" - at `$")
    path = where.rstrip("`").lstrip(".")
    field = f"{role}.{path}".strip(".") or "object"
    return type_invalid(field, None, what.replace("`", "'").replace("Expected", "must be").replace("object", "map"))


def _read_options(raw: Raw, errors: list[FieldError]) -> Options:
    try:
        return _options.decode(raw) or NO_OPTIONS
    except msgspec.ValidationError as error:
        errors.append(_type_error(str(error), "options", bytes(raw)))
        return NO_OPTIONS


def _objects_against_request(
    wire: _Request,
    resource: _Resource,
    kind: _Kind,
    new: Lease | LeaseCandidate | None,
    old: Lease | LeaseCandidate | None,
) -> str:
    """How the objects contradict the request, or ""; what an object leaves out is taken from the request."""
    for role, document in (("object", new), ("oldObject", old)):
        if document is None:
            continue
        if document.kind is not None and document.kind != kind.kind:
            return f"{role}.kind must be the kind that the request names"
        if document.api_version is not None and document.api_version != f"{GROUP}/{resource.version}":
            return f"{role}.apiVersion must be the group and version that the request names"
        if role == "oldObject" and new is not None:
            continue
        metadata = document.metadata
        if wire.namespace and metadata.namespace and metadata.namespace != wire.namespace:
            return f"{role}.metadata.namespace must be the namespace that the request names"
        if wire.name and metadata.name and metadata.name != wire.name:
            return f"{role}.metadata.name must be the name that the request names"
    return ""
