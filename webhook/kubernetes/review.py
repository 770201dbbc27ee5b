"""The bytes of an AdmissionReview become a frozen request, or a `ReviewError`.

There are two ways to refuse: a review without a readable uid is a `ReviewError` (an HTTP 4xx, so that failurePolicy
decides); a review with a uid whose request contradicts itself is a request with `contradiction` set.

No body costs more than a second or 256 MiB: `review_size.py` says how much a review may hold.
"""

import re
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Raw, Struct
from msgspec.structs import asdict, replace

from webhook.kubernetes.decoding_errors import OVERSIZED_NUMBERS, explain_problem, split_path
from webhook.kubernetes.field import FieldError, type_invalid
from webhook.kubernetes.objects import (
    NO_METADATA,
    Document,
    Lease,
    LeaseCandidate,
    WrongTypesError,
    convert_document,
    decode_document,
)
from webhook.kubernetes.opened_review import (
    KIND,
    MAX_UID,
    NOT_A_REVIEW,
    REVIEW_VERSIONS,
    ReviewError,
    make_request_without_content,
    open_review,
    read_uid,
    truncate_nested,
)
from webhook.kubernetes.request import (
    GROUP,
    KIND_OF,
    MAX_REQUEST,
    NO_OPTIONS,
    NO_SPECS,
    NULL,
    VERSIONS_OF,
    AdmissionRequest,
    Operation,
    Options,
    Specs,
    decode_user,
)
from webhook.kubernetes.review_size import has_too_many_fields, is_more_than, may_be_a_review
from webhook.kubernetes.utf8 import is_utf8

VALIDATE: Final = "/validate"
REVIEW_PATH: Final = re.compile(r"/validate(-coordination-k8s-io-v[0-9]+((alpha|beta)[0-9]+)?-(lease|leasecandidate))?")
"""The HTTP paths at which reviews are answered: a short one, and controller-runtime's for each version and kind."""


def decode(body: bytes) -> AdmissionRequest:
    """Read one AdmissionReview, v1 or v1beta1; raises ReviewError for anything else, and without a usable uid."""
    if not body.isascii() and not is_utf8(body):
        raise ReviewError(400, "the body is not UTF-8")
    try:
        return _decode_whole(body) if len(body) <= MAX_REQUEST else _decode_large(body)
    except RecursionError:
        return decode(truncate_nested(body))


def _decode_large(body: bytes) -> AdmissionRequest:
    """Decode a review that is larger than most writes; raises RecursionError."""
    if not may_be_a_review(len(body), body):
        raise ReviewError(413, "a body of this size must begin as an API server begins a review")
    if is_more_than(body, 2):
        return _make_contradictory_request(body, _TOO_MUCH)
    request = _decode_parts(body)
    if any(one and has_too_many_fields(one.metadata.managed_fields) for one in (request.new, request.old)):
        return _make_contradictory_request(body, "managedFields hold more than a stored object can have")
    return request


_TOO_MUCH: Final = "the review holds more than two stored objects can have"


def _make_contradictory_request(body: bytes, contradiction: str) -> AdmissionRequest:
    return replace(read_uid(body), contradiction=contradiction)


def _decode_whole(body: bytes) -> AdmissionRequest:
    """Decode a review in one pass, and in parts what is refused as a whole; raises RecursionError."""
    try:
        review = _review.decode(body)
        if review.kind != KIND or review.api_version not in REVIEW_VERSIONS:
            raise ReviewError(*NOT_A_REVIEW)
        return _make_request(review.request, review.api_version, body, [])
    except msgspec.DecodeError:
        return _decode_parts(body)


def _decode_parts(body: bytes) -> AdmissionRequest:
    """Decode a review part by part, so that each thing that is wrong is found; raises RecursionError.

    A body with lone surrogates is read as Go reads it.
    """
    opened = open_review(body)
    try:
        wire = _parts.decode(opened.request)
    except msgspec.ValidationError as error:
        field = split_path(error)[1].partition(".")[0]
        contradiction = opened.surrogates or f"request.{field} has a type that no API server sends"
        return make_request_without_content(opened.uid, opened.api_version, contradiction)
    parts = wire.object, wire.old_object, wire.options
    if len(body) > MAX_REQUEST and any(is_more_than(bytes(part), 1) for part in parts):
        return make_request_without_content(wire.uid, opened.api_version, _TOO_MUCH)
    errors: list[FieldError] = []
    request = _decode_parts_of_request(wire, errors)
    return _make_request(request, opened.api_version, opened.body, errors, opened.surrogates)


_Uid = Annotated[str, Meta(min_length=1, max_length=MAX_UID)]


class _Kind(Struct, frozen=True, gc=False):
    group: str | None = None
    version: str | None = None
    kind: str | None = None


class _Resource(Struct, frozen=True, gc=False):
    group: str | None = None
    version: str | None = None
    resource: str | None = None


class _RequestFields(Struct, frozen=True, gc=False, rename="camel"):
    uid: _Uid
    kind: _Kind | None = None
    resource: _Resource | None = None
    sub_resource: str | None = None
    name: str | None = None
    namespace: str | None = None
    operation: str | None = None
    user_info: Raw = NULL
    options: Raw = NULL


class _Request(_RequestFields, frozen=True, gc=False, rename="camel"):
    object: Document | None = None
    old_object: Document | None = None


class _RequestInParts(_RequestFields, frozen=True, gc=False, rename="camel"):
    object: Raw = NULL
    old_object: Raw = NULL


class _Review(Struct, frozen=True, gc=False, rename="camel"):
    kind: str
    api_version: str
    request: _Request


_review: Final = msgspec.json.Decoder(_Review)
_parts: Final = msgspec.json.Decoder(_RequestInParts)
_options: Final = msgspec.json.Decoder(Options | None)

_OPERATIONS: Final = {operation.value: operation for operation in Operation}
_CREATE, _DELETE, _CONNECT = Operation.CREATE, Operation.DELETE, Operation.CONNECT
_USUAL_OPTIONS: Final = frozenset(
    b'{"kind":"%bOptions","apiVersion":"meta.k8s.io/v1"}' % verb for verb in (b"Create", b"Update", b"Delete")
)
"""Empty options, as an API server writes them."""

_EVALUATED: Final = frozenset(
    (_Resource(GROUP, version, resource), _Kind(GROUP, version, KIND_OF[resource]))
    for resource, versions in VERSIONS_OF.items()
    for version in versions
)
"""The pairs of resource and kind that are decoded and evaluated."""

_VERSION_LEFT_OUT: Final = frozenset({None, "", "/", f"{GROUP}/"})
"""An apiVersion without a version, for which the API server takes that of the request."""


def _make_request(
    wire: _Request, api_version: str, body: bytes, errors: list[FieldError], surrogates: str = ""
) -> AdmissionRequest:
    """Return the request with typed objects, or with its contradiction, which is `surrogates` if that is not "".

    An object may be missing if there are `errors`. Raises msgspec.ValidationError for a wrong type in a spec.
    """
    uid, operation, resource, kind = wire.uid, _OPERATIONS.get(wire.operation or ""), wire.resource, wire.kind
    if operation is None:
        return make_request_without_content(
            uid, api_version, surrogates or "request.operation must be CREATE, UPDATE, DELETE or CONNECT"
        )
    if resource is None or kind is None or not resource.resource or not kind.kind:
        return make_request_without_content(
            uid, api_version, surrogates or "request.resource and request.kind must be set"
        )
    new = old = None
    specs, options, contradiction = NO_SPECS, NO_OPTIONS, ""
    if (resource, kind) in _EVALUATED:
        # Neither resource has subresources or CONNECT, so the rest of such a request is not evaluated.
        if operation is not _CONNECT and not wire.sub_resource:
            new_document = None if operation is _DELETE else wire.object
            old_document = None if operation is _CREATE else wire.old_object
            new, old, specs = _convert_objects(new_document, old_document, kind.kind, resource.version or "")
            if new is None and operation is not _DELETE and not errors:
                contradiction = f"{operation} needs request.object"
            elif old is None and operation is not _CREATE and not errors:
                contradiction = f"{operation} needs request.oldObject"
            options = NO_OPTIONS if bytes(wire.options) in _USUAL_OPTIONS else _read_options(wire.options, errors)
    elif operation is not _CONNECT and not wire.sub_resource:
        contradiction = _find_contradiction_of_kind(resource, kind)
    subject = old if new is None else new
    metadata = NO_METADATA if subject is None else subject.metadata
    if not (surrogates or contradiction):
        contradiction = _find_contradiction_of_objects(wire, kind.kind, resource.version, new, old)
    return AdmissionRequest(
        uid=uid,
        operation=operation,
        resource=resource.resource,
        kind=kind.kind,
        version=resource.version or "",
        group=resource.group or "",
        sub_resource=wire.sub_resource or "",
        namespace=wire.namespace or metadata.namespace or "",
        name=wire.name or metadata.name or "",
        user=decode_user(wire.user_info),
        new=new,
        old=old,
        specs=specs,
        options=options,
        object_errors=tuple(errors),
        contradiction=surrogates or contradiction,
        api_version=api_version,
        body=body,
    )


Content = Lease | LeaseCandidate | None


def _convert_objects(
    new: Document | None, old: Document | None, kind: str, version: str
) -> tuple[Content, Content, Specs]:
    """Return both objects, and their specs as JSON."""
    return (
        None if new is None else convert_document(kind, version, new),
        None if old is None else convert_document(kind, version, old),
        ({} if new is None else new.spec or {}, {} if old is None else old.spec or {}),
    )


def _find_contradiction_of_kind(resource: _Resource, kind: _Kind) -> str:
    """Return what is contradictory about this resource and this kind in one request, or ""."""
    ours = KIND_OF.get(resource.resource or "") if resource.group == GROUP else None
    if ours is None and not (kind.group == GROUP and kind.kind in KIND_OF.values()):
        return ""
    if ours != kind.kind or resource.group != kind.group or resource.version != kind.version:
        return "request.resource and request.kind must name the same thing"
    return ""


def _find_contradiction_of_objects(
    wire: _RequestFields, kind: str, version: str | None, new: Content, old: Content
) -> str:
    """Return how the objects contradict the request, or ""; what an object leaves out is taken from the request."""
    api_version = f"{GROUP}/{version}"
    for role, document in (("object", new), ("oldObject", old)):
        if document is None:
            continue
        if document.kind and document.kind != kind:
            return f"{role}.kind must be the kind that the request names"
        if document.api_version != api_version and document.api_version not in _VERSION_LEFT_OUT:
            return f"{role}.apiVersion must be the group and version that the request names"
        if document is old and new is not None:
            continue
        metadata = document.metadata
        if wire.namespace and metadata.namespace and metadata.namespace != wire.namespace:
            return f"{role}.metadata.namespace must be the namespace that the request names"
        if wire.name and metadata.name and metadata.name != wire.name:
            return f"{role}.metadata.name must be the name that the request names"
    return ""


def _decode_parts_of_request(parts: _RequestInParts, errors: list[FieldError]) -> _Request:
    """Return the request with its objects decoded, those that its operation has; one with wrong types is left out.

    Each field of a wrong type is an error.
    """
    written = stored = None
    if (parts.resource, parts.kind) in _EVALUATED and parts.operation != _CONNECT and not parts.sub_resource:
        assert parts.resource is not None
        assert parts.kind is not None
        kind, version = parts.kind.kind or "", parts.resource.version or ""
        if parts.operation != _DELETE:
            written = _decode_document(parts.object, kind, version, "", errors)
        if parts.operation != _CREATE:
            # That object is missing comes before what is wrong with oldObject.
            is_missing = parts.operation != _DELETE and written is None and not errors
            stored = _decode_document(parts.old_object, kind, version, "oldObject", [] if is_missing else errors)
    return _Request(**{**asdict(parts), "object": written, "old_object": stored})


def _decode_document(value: Raw, kind: str, version: str, role: str, errors: list[FieldError]) -> Document | None:
    """Return an object; None without an error for null, and with an error for each field of a wrong type."""
    if bytes(memoryview(value)[:1]) != b"{":
        return None
    try:
        return decode_document(kind, version, value)
    except WrongTypesError as error:
        errors.extend(_make_type_error(problem, path, role) for problem, path in error.problems)
        return None


def _make_type_error(problem: str, path: str, role: str) -> FieldError:
    if problem in OVERSIZED_NUMBERS:
        raise ReviewError(400, "the body has a number that no API server sends")
    return type_invalid(
        f"{role}.{path}".strip(".") or "object", explain_problem(problem) or "is not of the type that the API has"
    )


def _read_options(raw: Raw, errors: list[FieldError]) -> Options:
    try:
        options = _options.decode(raw)
    except msgspec.ValidationError as error:
        errors.append(_make_type_error(*split_path(error), "options"))
        return NO_OPTIONS
    return NO_OPTIONS if options is None or options == NO_OPTIONS else options
