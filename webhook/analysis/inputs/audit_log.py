"""What an event of an audit log says of a lease, a candidate, a fence or a pod.

At level Metadata an event has no objects. A write of any object that a fence refused is in the message of the response;
a fence in mode warn or audit leaves an annotation (`pkg/admission/plugin/policy/validating/dispatcher.go`).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Final

import msgspec
from msgspec import Raw, Struct, ValidationError, convert
from msgspec.structs import replace

from webhook.analysis.inputs.absences import interpret_absence, may_show_absence
from webhook.analysis.inputs.audit_event import NOTHING, AuditEvent, Status, decode_event
from webhook.analysis.inputs.documents import Document, LastLine
from webhook.analysis.inputs.dry_runs import DeleteOptions, decode_delete_options, find_dry_run, is_never_dry
from webhook.analysis.inputs.items import (
    LISTINGS,
    NO_TEXTS,
    Act,
    Answer,
    CollectionDeletion,
    FenceReport,
    InputKind,
    LogEnd,
    ObjectAbsence,
    Observation,
    PodActivity,
    PodDeletion,
    PodRequest,
    RelatedWrite,
)
from webhook.analysis.inputs.our_objects import MAX_NAME, decode_our_object
from webhook.analysis.inputs.patches import (
    Mark,
    SentPatch,
    SpecChanges,
    leaves_spec,
    list_marks,
    list_owners_of_patch,
    read_asked_changes,
    read_sent_patch,
)
from webhook.analysis.inputs.pod_activity import GROUP_MARKER, PodsWithLeases, interpret_pod_activity
from webhook.analysis.inputs.pod_requests import interpret_pod_status, may_be_pod_request
from webhook.analysis.inputs.related_writes import interpret_related_write, may_be_related_write
from webhook.analysis.inputs.rewriting import (
    Rewriting,
    find_patched_spec,
    find_rewritings,
    is_mutated,
    may_be_rewritten,
)
from webhook.kubernetes import times
from webhook.kubernetes.objects import Lease, LeaseCandidate, LeaseSpec, ObjectMeta, OwnerReference
from webhook.kubernetes.request import GROUP, KIND_OF, NODE_USER, NULL
from webhook.text.quoting import truncate

FENCE_ANNOTATION: Final = "validation.policy.admission.k8s.io/validation_failure"
_FENCE_MARKER: Final = b"(fence "
"""The start of the last part of every message of a fence."""
_MARKERS: Final = (_FENCE_MARKER, b'"delete"', b'"eviction"')
"""Text in every audit event of a fence, in a message, and of a pod that is deleted."""
_PARTIAL: Final = frozenset({"labelSelector", "limit", "continue"})
"""Parameters with which a deletion of many objects may leave some."""
_BY_NAME: Final = re.compile(r"metadata\.name==?([a-z0-9.-]{1,253})")
"""A field selector of one object."""
_ACT_OF_VERB: Final[Mapping[str, Act]] = {
    "create": Act.CREATED,
    "update": Act.UPDATED,
    "patch": Act.UPDATED,
    "delete": Act.DELETED,
    "get": Act.READ,
    "list": Act.COLLECTION,
    "watch": Act.COLLECTION,
    "deletecollection": Act.COLLECTION,
}
_FENCE: Final = re.compile(r"\(fence ([a-z0-9.-]{1,253})\)")
_DENIED: Final = re.compile(
    r' (?:"(?:[^"\\]|\\.)*" )?is forbidden: ValidatingAdmissionPolicy \'fence-[a-z0-9.-]+\' with '
)
"""The text after the resource in the message of a fence that refused a write."""
_LEASE: Final = re.compile(r"\blease ([a-z0-9.-]{1,253})/([a-z0-9.-]{1,253}) (?:is held by|has no holder|may write)")


def may_say_something(line: bytes) -> bool:
    """Return whether a line of an audit log may say something of a lease; nearly all others are not decoded."""
    return GROUP_MARKER in line or _may_say_more(line)


def _may_say_more(line: bytes) -> bool:
    is_marked = any(marker in line for marker in _MARKERS)
    return is_marked or may_be_related_write(line) or may_be_pod_request(line) or may_show_absence(line)


class LineFilter:
    """Which lines of audit logs are to be read for a history: also what a pod did that asked for a lease before."""

    def __init__(self) -> None:
        self._pods = PodsWithLeases()

    def may_say_something(self, line: bytes) -> bool:
        """Return whether a line may say something of a lease, or of a pod that asked for one in an earlier line."""
        if GROUP_MARKER in line:
            self._pods.note_line(line)
            return True
        return _may_say_more(line) or self._pods.may_tell_of(line)


_failures: Final = msgspec.json.Decoder(list[Status])


def interpret_event(
    document: Document,
) -> Observation | FenceReport | PodDeletion | PodRequest | PodActivity | RelatedWrite | ObjectAbsence | None:
    """Return what one event says of leases, candidates, a fence or a pod; None if it is about something else."""
    event = decode_event(document.text)
    if not _is_answered(event):
        return None
    kind, act = _find_kind(event), _find_act(event)
    if kind is None or act is None:
        return _interpret_other_request(event, document)
    if event.verb == "patch" and event.response_status.code == HTTPStatus.CREATED:
        act = Act.CREATED  # an apply creates what does not exist
    return _interpret_request(event, document, kind, act)


def _is_answered(event: AuditEvent) -> bool:
    """Return whether an event is the last one of its request, or of one that need not have another."""
    if event.stage != "ResponseStarted":
        return event.stage == "ResponseComplete"
    # A client that is not authenticated is answered, and logged, before the request is handled
    # (`filters/authn_audit.go`). A watch may outlast the log.
    return event.response_status.code == 401 or event.verb == "watch"


def _find_kind(event: AuditEvent) -> str | None:
    """Return the kind of our object that a request is about; None if there is none."""
    reference = event.object_ref
    # No subresource of a lease stores anything.
    is_ours = reference.api_group == GROUP and not reference.subresource
    return KIND_OF.get(reference.resource) if is_ours else None


def _interpret_other_request(
    event: AuditEvent, document: Document
) -> FenceReport | PodDeletion | PodRequest | PodActivity | RelatedWrite | ObjectAbsence | None:
    """Return what a request says that is about no lease and no candidate."""
    if _FENCE_MARKER in document.text:
        return _interpret_fence(event, document)
    return (
        _interpret_pod_request(event)
        or interpret_related_write(event)
        or interpret_pod_status(event)
        or interpret_pod_activity(event)
        or interpret_absence(event)
    )


class _Shown(Struct, frozen=True):
    """The object that an event shows: as it was stored, or as it was sent."""

    object: Lease | LeaseCandidate | None = None
    metadata: ObjectMeta = ObjectMeta()
    problem: str = ""
    resource_version: str = ""
    rewritings: tuple[Rewriting, ...] = ()
    asked: Lease | None = None
    """The lease that the request had, if webhooks changed its spec and the log has no answer."""


class _Requested(Struct, frozen=True):
    """What a write asked for of which an event shows no object."""

    asked: Lease | None = None
    patched_renew_time: str = ""
    asked_changes: SpecChanges | None = None
    is_beside_spec: bool = False
    marks: tuple[Mark, ...] = ()
    patched_owners: tuple[OwnerReference, ...] = ()


_MAX_MESSAGE: Final = 4096
"""Characters of an answer's message that are kept: what an API server itself says stands at the beginning."""
_NOTHING_SHOWN: Final = _Shown()
_NOTHING_REQUESTED: Final = _Requested()


def _interpret_request(event: AuditEvent, document: Document, kind: str, act: Act) -> Observation:
    """Return what a request for a lease or a candidate did."""
    reference = event.object_ref
    answered, asked = event.answered_at, times.get_instant(times.normalize(event.request_received_timestamp))
    raw = _choose_object(event, act)
    shown = _read_patched_object(event, kind, act) if raw is None else _read_object(event, kind, raw)
    is_hidden = shown.object is None and raw is None
    requested = _read_request(event, kind, act) if is_hidden else _Requested(shown.asked)
    is_deletion, is_dry_run = act is Act.DELETED, find_dry_run(event)
    refused = _find_refused_lease(event, kind)
    return Observation(
        place=document.place,
        size=len(document.text),
        input_kind=InputKind.AUDIT_LOG,
        act=act,
        kind=kind,
        namespace=reference.namespace or shown.metadata.namespace or "",
        name=reference.name or shown.metadata.name or "",
        object=shown.object,
        problem=shown.problem,
        at=answered if answered is not None else asked,
        verb=event.verb,
        refused_holder=None if refused is None else refused.spec.holder_identity or "",
        refused_renew_time=(refused.spec.renew_time or "") if refused is not None else "",
        asked_lease=_find_asked_lease(event, kind),
        asked_manager=truncate("".join(event.query.get("fieldManager", ())[:1]), MAX_NAME)
        if act is Act.CREATED
        else "",
        writer=event.writer,
        answer=Answer(
            event.response_status.code,
            event.response_status.message[:_MAX_MESSAGE],
            max(0, answered - asked) if answered is not None and asked is not None else 0,
            event.annotations or NO_TEXTS,
        ),
        is_dry_run=is_dry_run is True,
        is_surely_not_dry_run=not is_deletion or is_dry_run is not None or is_never_dry(event),
        collection_deletion=_find_collection_deletion(event) if event.verb == "deletecollection" else None,
        uid=shown.metadata.uid or reference.uid or (_find_deleted_uid(event) if is_deletion else ""),
        resource_version=shown.resource_version,
        replaces=reference.resource_version if event.verb == "update" else "",
        version=reference.api_version,
        source=event.source,
        is_from_cache=event.is_from_cache,
        answered_object=_find_answered_object(event) if act is Act.READ else b"",
        user=event.requester,
        rewritings=shown.rewritings,
        sent_patch=_find_sent_patch(event, kind),
        asked=requested.asked,
        patched_renew_time=requested.patched_renew_time,
        asked_changes=requested.asked_changes,
        is_beside_spec=requested.is_beside_spec,
        marks=requested.marks,
        patched_owners=requested.patched_owners,
    )


def _read_object(event: AuditEvent, kind: str, raw: Raw) -> _Shown:
    """Return the object that an event shows, which is `raw`."""
    found, metadata, problem = decode_our_object(kind, event.object_ref.api_version, raw)
    if raw is event.response_object:
        rewritings = tuple(_find_rewritings(event, found))
        return _Shown(found, metadata, problem, metadata.resource_version or "", rewritings)
    if found is not None:
        # It has the stamps of an earlier write, or any that the client invented, and the version that it replaces.
        found = replace(found, metadata=replace(found.metadata, managed_fields=NULL))
    return _Shown(found, metadata, problem)


def _read_patched_object(event: AuditEvent, kind: str, act: Act) -> _Shown:
    """Return the lease that a request had with what webhooks changed of its spec, if the log shows all of that."""
    asked = _find_asked(event, kind) if act in {Act.CREATED, Act.UPDATED} else None
    annotations = event.annotations or NO_TEXTS
    if asked is None or not 200 <= event.response_status.code < 300:
        return _NOTHING_SHOWN
    patched = find_patched_spec(event.request_object, annotations)
    if patched is None:
        return _NOTHING_SHOWN
    try:
        spec = convert(patched, LeaseSpec)
    except ValidationError:
        return _NOTHING_SHOWN
    # It has the stamps of an earlier write, or any that the client invented, and the version that it replaces.
    stored = replace(asked, spec=spec, metadata=replace(asked.metadata, managed_fields=NULL))
    rewritings = tuple(find_rewritings(asked.spec, spec, annotations))
    return _Shown(stored, asked.metadata, rewritings=rewritings, asked=asked if rewritings else None)


def _read_request(event: AuditEvent, kind: str, act: Act) -> _Requested:
    """Return what a write asked for, as far as its request shows that."""
    if act is Act.CREATED:
        return _Requested(_find_asked(event, kind))
    if act is not Act.UPDATED:
        return _NOTHING_REQUESTED
    is_beside_spec = _is_beside_spec(event)
    return _Requested(
        asked=_find_asked(event, kind),
        patched_renew_time=_find_patched_renew_time(event),
        asked_changes=_find_asked_changes(event, kind),
        is_beside_spec=is_beside_spec,
        marks=list_marks(bytes(event.request_object)) if is_beside_spec else (),
        patched_owners=list_owners_of_patch(bytes(event.request_object)) if is_beside_spec else (),
    )


def _find_answered_object(event: AuditEvent) -> bytes:
    """Return the object that a read was answered with, not yet decoded: most of them show what a write did before."""
    answer = bytes(event.response_object)
    return answer if event.verb == "get" and 200 <= event.response_status.code < 300 and b'"spec"' in answer else b""


def _find_act(event: AuditEvent) -> Act | None:
    """Return what a request did; a list or a watch of a single name is a read of it (`filters/requestinfo.go`)."""
    if event.verb in LISTINGS and event.object_ref.name:
        return Act.READ
    return _ACT_OF_VERB.get(event.verb)


class _Details(Struct, frozen=True):
    uid: str = ""


class _Deletion(Struct, frozen=True):
    """The Status with which an API server answers a deletion, which names the object; or the object itself."""

    details: _Details = _Details()
    metadata: _Details = _Details()


_deletions: Final = msgspec.json.Decoder(_Deletion)


def _find_deleted_uid(event: AuditEvent) -> str:
    """Return the uid of what was deleted, "" if a log does not show it."""
    if b'"details"' not in bytes(event.response_object):
        return ""
    try:
        return _deletions.decode(event.response_object).details.uid
    except (ValueError, RecursionError):
        return ""


def _interpret_pod_request(event: AuditEvent) -> PodDeletion | None:
    """Return the deletion or the eviction of a pod; None for any other request, and for one that deleted nothing."""
    reference, at = event.object_ref, event.answered_at
    what = (event.verb, reference.resource, reference.subresource)
    is_about_pod = what in {("delete", "pods", ""), ("create", "pods", "eviction")}
    if not is_about_pod or reference.api_group not in {"", "policy"} or at is None or not reference.name:
        return None
    is_gone = event.response_status.code == HTTPStatus.NOT_FOUND and event.writer.user.startswith(NODE_USER)
    if not (is_gone or 200 <= event.response_status.code < 300):
        return None
    body, answer = bytes(event.request_object), bytes(event.response_object)
    try:
        sent = DeleteOptions() if body == NOTHING else decode_delete_options(body)
        named = _Deletion() if answer == NOTHING else _deletions.decode(answer)
    except (ValueError, RecursionError):
        return None
    options, is_dry_run = sent.delete_options or sent, find_dry_run(event)
    if is_dry_run:
        return None
    return PodDeletion(
        at=at,
        namespace=reference.namespace,
        name=reference.name,
        writer=event.writer,
        uid=named.details.uid or named.metadata.uid or options.preconditions.uid,
        is_eviction=event.verb == "create",
        grace=options.grace_period_seconds,
        is_surely_not_dry_run=is_dry_run is not None or is_never_dry(event),
    )


class _Cleared(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


class _ClearedList(Struct, frozen=True):
    """The answer to a deletion of many objects: those that were deleted."""

    items: Sequence[_Cleared] | None = None


_cleared_lists: Final = msgspec.json.Decoder(_ClearedList)


def _find_collection_deletion(event: AuditEvent) -> CollectionDeletion:
    """Return what a deletion of many objects deleted: by its answer, else by its query, as far as that says."""
    try:
        items = _cleared_lists.decode(event.response_object).items
    except (ValueError, RecursionError):
        items = None
    if items is not None:
        # What has finalizers is only marked.
        gone = [one.metadata for one in items if not one.metadata.finalizers]
        return CollectionDeletion(tuple((one.name or "", one.uid or "") for one in gone))
    query = event.query
    is_partial = not _PARTIAL.isdisjoint(query)
    fields = ",".join(query.get("fieldSelector", ()))
    named = _BY_NAME.fullmatch(fields)
    if named and not is_partial:
        return CollectionDeletion(((named[1], ""),), is_shown=False)
    return CollectionDeletion(is_whole=not is_partial and not fields, is_shown=False)


def _find_asked(event: AuditEvent, kind: str) -> Lease | None:
    """Return the lease that a write asked for, as webhooks were given it; None if that is not shown.

    A write that failed may have been stored all the same; one that was refused was not.
    """
    code = event.response_status.code
    if event.verb not in {"create", "update"} or not (200 <= code < 300 or code >= HTTPStatus.INTERNAL_SERVER_ERROR):
        return None
    if b'"spec"' not in bytes(event.request_object):
        return None
    asked, _, _ = decode_our_object(kind, event.object_ref.api_version, event.request_object)
    return asked if isinstance(asked, Lease) else None


class _PatchedSpec(Struct, frozen=True, rename="camel"):
    renew_time: str = ""


class _MergePatch(Struct, frozen=True):
    """The part that is read of a merge patch or an apply, which look like a part of the object."""

    spec: _PatchedSpec = _PatchedSpec()


_merge_patches: Final = msgspec.json.Decoder(_MergePatch)


def _find_patched_renew_time(event: AuditEvent) -> str:
    """Return the renewTime that a patch asked for; "" if it is none, or if a webhook may have stored another one."""
    patch = bytes(event.request_object)
    if event.verb != "patch" or b'"renewTime"' not in patch or is_mutated(event.annotations or NO_TEXTS):
        return ""
    try:
        return _merge_patches.decode(patch).spec.renew_time
    except (ValueError, RecursionError):
        return ""  # a JSON patch is a list, and anything may be sent to a server that refuses it


def _find_asked_changes(event: AuditEvent, kind: str) -> SpecChanges | None:
    """Return what a patch asked to set in a lease's spec; None if it is none, or if a webhook may have changed that."""
    patch = bytes(event.request_object)
    if event.verb != "patch" or kind != "Lease" or b"spec" not in patch or is_mutated(event.annotations or NO_TEXTS):
        return None
    return read_asked_changes(patch)


def _find_sent_patch(event: AuditEvent, kind: str) -> SentPatch | None:
    """Return what a patch of a lease's spec asked for; None if it is none, or if the log does not show it."""
    if event.verb != "patch" or kind != "Lease":
        return None
    patch = bytes(event.request_object)
    return read_sent_patch(patch) if b"spec" in patch else None


def _is_beside_spec(event: AuditEvent) -> bool:
    """Return whether a patch left the spec as it was: no webhook may have changed that."""
    is_as_sent = event.verb == "patch" and not is_mutated(event.annotations or NO_TEXTS)
    return is_as_sent and leaves_spec(bytes(event.request_object))


def _find_rewritings(event: AuditEvent, stored: Lease | LeaseCandidate | None) -> Iterator[Rewriting]:
    """Yield what of a lease was stored differently than a request with a whole object asked."""
    if not isinstance(stored, Lease) or not may_be_rewritten(event.request_object, event.response_object):
        return
    if (asked := _find_asked(event, "Lease")) is not None:
        yield from find_rewritings(asked.spec, stored.spec, event.annotations or NO_TEXTS)


def _find_refused_lease(event: AuditEvent, kind: str) -> Lease | None:
    """Return the lease that an update asked for which was not stored; None if that is not shown."""
    if event.verb != "update" or event.response_status.code < 400 or b'"spec"' not in bytes(event.request_object):
        return None
    asked, _, _ = decode_our_object(kind, event.object_ref.api_version, event.request_object)
    return asked if isinstance(asked, Lease) else None


def _find_asked_lease(event: AuditEvent, kind: str) -> str:
    """Return the lease that a LeaseCandidate which was not stored is for, "" if a log does not show that."""
    is_whole = event.verb in {"create", "update"} and event.response_status.code >= 400
    if kind != "LeaseCandidate" or not is_whole or b'"spec"' not in bytes(event.request_object):
        return ""
    asked, _, _ = decode_our_object(kind, event.object_ref.api_version, event.request_object)
    return (asked.spec.lease_name or "") if isinstance(asked, LeaseCandidate) else ""


def _choose_object(event: AuditEvent, act: Act) -> Raw | None:
    """Return the object as it was stored, else as it was sent; a patch is not an object.

    What was sent is not what was stored if a mutating webhook changed it.
    """
    if act in {Act.READ, Act.COLLECTION} or not 200 <= event.response_status.code < 300:
        return None
    is_as_sent = not is_mutated(event.annotations or NO_TEXTS)
    for raw in (event.response_object, event.request_object) if is_as_sent else (event.response_object,):
        if b'"spec"' in bytes(raw) and (raw is not event.request_object or event.verb in {"create", "update"}):
            return raw
    return None


def _interpret_fence(event: AuditEvent, document: Document) -> FenceReport | None:
    """Return what an event says of a fence; None if it says nothing of one."""
    is_refused = _is_denied(event)
    message = event.response_status.message if is_refused else ""
    if not _FENCE.search(message):
        message, is_refused = next((text for text in _find_annotated_messages(event) if _FENCE.search(text)), ""), False
    fence, lease, at = _FENCE.search(message), _LEASE.search(message), event.answered_at
    if fence is None or lease is None or at is None:
        return None
    return FenceReport(
        place=document.place,
        at=at,
        fence=fence[1],
        namespace=lease[1],
        name=lease[2],
        writer=event.writer,
        target=_describe_target(event),
        message=message,
        is_refused=is_refused,
    )


def _is_denied(event: AuditEvent) -> bool:
    """Return whether a fence refused a write; a client may choose the resource, the name and much of other messages."""
    resource, message = event.object_ref.full_resource, event.response_status.message
    is_named = " " not in resource and message.startswith(resource)
    return is_named and event.response_status.code == 403 and _DENIED.match(message, len(resource)) is not None


def _find_annotated_messages(event: AuditEvent) -> list[str]:
    try:
        return [one.message for one in _failures.decode((event.annotations or {}).get(FENCE_ANNOTATION, "[]"))]
    except (ValueError, RecursionError):
        return []


def _describe_target(event: AuditEvent) -> str:
    """`create deployments.apps shop/checkout`: what was to be done to what."""
    reference = event.object_ref
    below = f"/{reference.subresource}" if reference.subresource else ""
    name = "/".join(part for part in (reference.namespace, reference.name) if part)
    return " ".join(truncate(part, MAX_NAME) for part in (event.verb, reference.full_resource + below, name) if part)


def interpret_last_line(line: LastLine) -> LogEnd | None:
    """Return when an audit log ended, by its last line; None if that says nothing of it."""
    try:
        at = decode_event(line.text).answered_at
    except (ValueError, RecursionError):
        return None
    return None if at is None else LogEnd(at)
