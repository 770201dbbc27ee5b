"""From the wire form of a request to ours: typed objects, wrong types as field errors, contradictions."""

from typing import Final

import msgspec
from msgspec import Raw

from webhook.api.candidate_of_version import FOREIGN_FIELD, decode_without
from webhook.api.contradictions import objects_against_request, resource_against_kind
from webhook.api.decoder_messages import OVERSIZED_NUMBERS, located, reworded
from webhook.api.field import FieldError, type_invalid
from webhook.api.objects import FORMS, NO_METADATA, Lease, LeaseCandidate
from webhook.api.request import KIND_OF, NO_OPTIONS, AdmissionRequest, Operation, Options, decodes
from webhook.api.review_error import ReviewError, checked_uid
from webhook.api.wire import WireRequest, WireResource
from webhook.api.wrong_types import wrong_types

_OPERATIONS: Final = {operation.value: operation for operation in Operation}
_options: Final = msgspec.json.Decoder(Options | None)
_FORMS: Final = {resource.value: FORMS[kind] for resource, kind in KIND_OF.items()}
_objects: Final = {resource: msgspec.json.Decoder(form) for resource, form in _FORMS.items()}


def typed_request(wire: WireRequest, api_version: str, body: bytes) -> AdmissionRequest:
    """The request with its objects decoded, or with what contradicts itself."""
    checked_uid(wire.uid)
    resource, kind = wire.resource, wire.kind
    if wire.operation not in _OPERATIONS:
        return _contradicting(wire, api_version, "request.operation must be CREATE, UPDATE, DELETE or CONNECT")
    if resource is None or kind is None or not resource.resource or not kind.kind:
        return _contradicting(wire, api_version, "request.resource and request.kind must be set")
    operation = _OPERATIONS[wire.operation]
    # Neither resource has subresources or CONNECT, so the rest of such a request is not evaluated.
    is_foreign = operation is Operation.CONNECT or bool(wire.sub_resource)
    problem = "" if is_foreign else resource_against_kind(resource, kind)
    new = old = None
    errors: list[FieldError] = []
    options = NO_OPTIONS
    if not problem and not is_foreign and decodes(resource.group, resource.version, resource.resource):
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
        contradiction=problem or objects_against_request(wire, resource, kind, new, old),
        api_version=api_version,
        body=body,
    )


def _contradicting(wire: WireRequest, api_version: str, problem: str) -> AdmissionRequest:
    return AdmissionRequest(uid=wire.uid, api_version=api_version, contradiction=problem)


def _object(resource: WireResource, raw: Raw, role: str, errors: list[FieldError]) -> Lease | LeaseCandidate | None:
    """The typed object, or None: without an error for null, with an error for each field of a wrong type."""
    if bytes(memoryview(raw)[:1]) != b"{":
        return None
    try:
        return _objects[str(resource.resource)].decode(raw)
    except msgspec.ValidationError as error:
        first = located(error)
    foreign = FOREIGN_FIELD.get(str(resource.version))
    if foreign and _is_in(foreign, first[1]):
        try:
            return decode_without(foreign, raw)
        except msgspec.ValidationError as error:
            first = located(error)
    found = [
        (problem, path)
        for problem, path in wrong_types(_FORMS[str(resource.resource)], bytes(raw))
        if not (foreign and _is_in(foreign, path))
    ]
    # If a key appears twice, the decoder refuses the first one, although only the last one counts.
    errors.extend(_type_error(problem, path, role) for problem, path in found or [first])
    return None


def _is_in(field: str, path: str) -> bool:
    return path.startswith(f"spec.{field}")


def _type_error(problem: str, path: str, role: str) -> FieldError:
    if problem in OVERSIZED_NUMBERS:
        raise ReviewError(400, "the body has a number that no API server sends")
    return type_invalid(f"{role}.{path}".strip(".") or "object", reworded(problem))


def _read_options(raw: Raw, errors: list[FieldError]) -> Options:
    try:
        options = _options.decode(raw)
    except msgspec.ValidationError as error:
        errors.append(_type_error(*located(error), "options"))
        return NO_OPTIONS
    return NO_OPTIONS if options is None or options == NO_OPTIONS else options
