"""The wire form of a review's request, and how it becomes ours: typed objects, and whatever contradicts itself."""

import re
from typing import Final

import msgspec
from msgspec import Raw, Struct

from webhook.api.candidate_of_version import FOREIGN_FIELD, decode_without
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
    is_served,
)
from webhook.api.user import NO_USER
from webhook.api.wrong_types import wrong_types

LONGEST_UID: Final = 256
REVIEW_VERSIONS: Final = frozenset({"admission.k8s.io/v1", "admission.k8s.io/v1beta1"})
_NULL: Final = Raw(b"null")


class ReviewError(Exception):
    """The body is not a review that could be answered.

    `status` is the HTTP status, `text` one plain line; `user` is the writer of a body that no API server sends.
    """

    def __init__(self, status: int, text: str, user: str = "") -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.user = user


class WireKind(Struct, frozen=True, gc=False):
    """`request.kind`."""

    group: str | None = None
    version: str | None = None
    kind: str | None = None


class WireResource(Struct, frozen=True, gc=False):
    """`request.resource`."""

    group: str | None = None
    version: str | None = None
    resource: str | None = None


class WireRequest(Struct, frozen=True, gc=False, rename="camel"):
    """`request`; what only some reviews need decoded stays bytes."""

    uid: str
    kind: WireKind | None = None
    resource: WireResource | None = None
    sub_resource: str | None = None
    name: str | None = None
    namespace: str | None = None
    operation: str | None = None
    user_info: Raw = NO_USER
    object: Raw = _NULL
    old_object: Raw = _NULL
    options: Raw = _NULL


class WireReview(Struct, frozen=True, gc=False, rename="camel"):
    """The envelope."""

    request: WireRequest
    api_version: str | None = None
    kind: str | None = None


_OPERATIONS: Final = {operation.value: operation for operation in Operation}
_options: Final = msgspec.json.Decoder(Options | None)
_FORMS: Final[dict[str, type[Lease] | type[LeaseCandidate]]] = {"leases": Lease, "leasecandidates": LeaseCandidate}
_objects: Final[dict[str, msgspec.json.Decoder[Lease] | msgspec.json.Decoder[LeaseCandidate]]] = {
    "leases": msgspec.json.Decoder(Lease),
    "leasecandidates": msgspec.json.Decoder(LeaseCandidate),
}


def checked_uid(uid: object) -> str:
    """The uid of a request, which the answer must repeat.

    Raises:
        ReviewError: it is missing, no text, or absurdly long.

    """
    if not isinstance(uid, str) or not uid:
        raise ReviewError(400, "the request has no uid")
    if len(uid) > LONGEST_UID:
        raise ReviewError(400, f"the uid of the request is longer than {LONGEST_UID} characters")
    return uid


def request_of(wire: WireRequest, api_version: str, body: bytes) -> AdmissionRequest:
    """The request with its objects decoded, or with what contradicts itself."""
    checked_uid(wire.uid)
    resource, kind = wire.resource, wire.kind
    if wire.operation not in _OPERATIONS:
        return _contradiction(wire, api_version, "request.operation must be CREATE, UPDATE, DELETE or CONNECT")
    if resource is None or kind is None or not resource.resource or not kind.kind:
        return _contradiction(wire, api_version, "request.resource and request.kind must be set")
    operation = _OPERATIONS[wire.operation]
    # Neither resource has subresources or can be connected to, so what such a request names is not ours to judge.
    is_foreign = operation is Operation.CONNECT or bool(wire.sub_resource)
    problem = "" if is_foreign else _resource_against_kind(resource, kind)
    new = old = None
    errors: list[FieldError] = []
    options = NO_OPTIONS
    judged = not problem and not is_foreign and is_served(resource.group, resource.version, resource.resource)
    if judged:
        if operation is not Operation.DELETE:
            new = _object(resource, wire.object, "", errors)
            if new is None and not errors:
                problem = f"{operation} needs request.object"
        if operation is not Operation.CREATE:
            old = _object(resource, wire.old_object, "oldObject", errors)
            if old is None and not errors:
                problem = problem or f"{operation} needs request.oldObject"
        options = _read_options(wire.options, errors)
    subject = new if new is not None else old
    metadata = subject.metadata if subject is not None else NO_METADATA
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
        user_info=wire.user_info,
        new=new,
        old=old,
        options=options,
        object_errors=tuple(errors),
        contradiction=problem or _objects_against_request(wire, resource, kind, new, old),
        api_version=api_version,
        body=body,
    )


def _contradiction(wire: WireRequest, api_version: str, problem: str) -> AdmissionRequest:
    return AdmissionRequest(uid=wire.uid, api_version=api_version, contradiction=problem)


def _resource_against_kind(resource: WireResource, kind: WireKind) -> str:
    """What is contradictory about naming this resource and this kind together, or ""."""
    ours = resource.group == GROUP and resource.resource in KIND_OF
    if not ours and not (kind.group == GROUP and kind.kind in KIND_OF.values()):
        return ""
    agree = (resource.group, resource.version) == (kind.group, kind.version)
    if not ours or not agree or KIND_OF[Resource(str(resource.resource))] != kind.kind:
        return "request.resource and request.kind must name the same thing"
    return ""


def _object(resource: WireResource, raw: Raw, role: str, errors: list[FieldError]) -> Lease | LeaseCandidate | None:
    """The typed object, or None: for null without an error, for a wrong type with one for each field."""
    if bytes(memoryview(raw)[:1]) != b"{":
        return None
    try:
        return _objects[str(resource.resource)].decode(raw)
    except msgspec.ValidationError as error:
        problem = str(error)
    foreign = FOREIGN_FIELD.get(str(resource.version))
    if foreign and f"`$.spec.{foreign}" in problem:
        try:
            return decode_without(foreign, raw)
        except msgspec.ValidationError as error:
            problem = str(error)
    found = [
        said
        for said in wrong_types(_FORMS[str(resource.resource)], bytes(raw))
        if not foreign or f"`$.spec.{foreign}" not in said
    ]
    # Of a key that stands twice the decoder refuses the first, and only the last counts there.
    errors.extend(_type_error(said, role) for said in found or [problem])
    return None


def _type_error(text: str, role: str) -> FieldError:
    """The words of msgspec, "Expected `int | null`, got `str` - at `$.spec.leaseTransitions`", as a field error."""
    what, _, where = text.partition(" - at `$")
    if what in _ABSURD_NUMBERS:
        raise ReviewError(400, "the body has a number that no API server sends")
    path = where.rstrip("`").lstrip(".")
    said = _QUOTED.sub(_in_words, what).replace("Expected ", "must be ", 1)
    return type_invalid(f"{role}.{path}".strip(".") or "object", said)


_ABSURD_NUMBERS: Final = frozenset({"Number out of range", "Integer value out of range"})
"""How msgspec calls what does not fit into a float, and an integer of more than 4300 digits."""

_QUOTED: Final = re.compile(r"`([^`]+)`")
_WORDS: Final = {
    "int": "an integer",
    "str": "a string",
    "bool": "a boolean",
    "float": "a number with a fraction",
    "object": "an object",
    "array": "a list",
    "null": "null",
}


def _in_words(quoted: re.Match[str]) -> str:
    """`int | null` is "an integer": that null means absent goes without saying."""
    names = [name for name in quoted[1].split(" | ") if name != "null"] or ["null"]
    return " or ".join(_WORDS.get(name, name) for name in names)


def _read_options(raw: Raw, errors: list[FieldError]) -> Options:
    try:
        options = _options.decode(raw)
    except msgspec.ValidationError as error:
        errors.append(_type_error(str(error), "options"))
        return NO_OPTIONS
    return NO_OPTIONS if options is None or options == NO_OPTIONS else options


_VERSION_LEFT_OUT: Final = frozenset({None, "", "/", f"{GROUP}/"})
"""An apiVersion without a version, for which the API server takes that of the request."""


def _objects_against_request(
    wire: WireRequest,
    resource: WireResource,
    kind: WireKind,
    new: Lease | LeaseCandidate | None,
    old: Lease | LeaseCandidate | None,
) -> str:
    """How the objects contradict the request, or ""; what an object leaves out is taken from the request."""
    api_version = f"{GROUP}/{resource.version}"
    for role, document in (("object", new), ("oldObject", old)):
        if document is None:
            continue
        if document.kind and document.kind != kind.kind:
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
