"""Interprets a document by its kind: a stored object, a change of a watch, an audit event, or a review.

An event of the API server's audit log says who requested what, when, and with which result: kubernetes/apiserver
`pkg/apis/audit/v1/types.go`. At level Metadata it has no objects. A write of any object that a fence refused is in the
message of the response; a fence in mode warn or audit leaves an annotation
(`pkg/admission/plugin/policy/validating/dispatcher.go`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs, urlsplit

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from webhook.admission.rules.change import change_made_by
from webhook.admission.rules.expiry import stamp_of_writer
from webhook.analysis.inputs.documents import Document, LastLine, Value, describe_problem
from webhook.analysis.inputs.dry_runs import DeleteOptions, decode_delete_options, find_dry_run, is_never_dry
from webhook.analysis.inputs.envelopes import AUDIT
from webhook.analysis.inputs.items import (
    LISTINGS,
    NO_TEXTS,
    Act,
    Answer,
    CollectionDeletion,
    CountedRenewals,
    ElectionEvent,
    FenceReport,
    InputKind,
    Item,
    LogEnd,
    Observation,
    OtherObject,
    Place,
    PodActivity,
    PodDeletion,
    PodRequest,
    RecordingGap,
    RelatedWrite,
    Unreadable,
    Writer,
)
from webhook.analysis.inputs.lines import NOWHERE, Source
from webhook.analysis.inputs.patches import SpecChanges, leaves_spec, list_marks, read_spec_changes
from webhook.analysis.inputs.pod_activity import GROUP_MARKER, PodsWithLeases, interpret_pod_activity
from webhook.analysis.inputs.pod_requests import interpret_pod_status, may_be_pod_request
from webhook.analysis.inputs.related_writes import interpret_related_write, may_be_related_write
from webhook.analysis.inputs.rewriting import Rewriting, find_rewritings, is_mutated, may_be_rewritten
from webhook.kubernetes import times
from webhook.kubernetes.decoding_errors import explain_problem
from webhook.kubernetes.objects import Lease, LeaseCandidate, ObjectMeta, WrongTypesError, decode_object
from webhook.kubernetes.opened_review import ReviewError
from webhook.kubernetes.request import GROUP, KIND_OF, NODE_USER, NULL, VERSIONS_OF, Operation, UserInfo, decode_user
from webhook.kubernetes.review import decode
from webhook.text.quoting import truncate

FENCE_ANNOTATION: Final = "validation.policy.admission.k8s.io/validation_failure"
NO_POD: Final = "a token without a pod"
_FENCE_MARKER: Final = b"(fence "
"""The start of the last part of every message of a fence."""
_MARKERS: Final = (_FENCE_MARKER, b'"delete"', b'"eviction"')
"""Text in every audit event of a fence, in a message, and of a pod that is deleted."""
_TOKEN_MARKER: Final = b"lease-webhook/token-"
"""The prefix of the annotations in which fences keep tokens."""
_LEVELS_WITH_BODIES: Final = frozenset({"Request", "RequestResponse"})
_TRUNCATED: Final = "audit.k8s.io/truncated"
"""The annotation of an event whose objects were left out because it was too long."""
_PARTIAL: Final = frozenset({"labelSelector", "limit", "continue"})
"""Parameters with which a deletion of many objects may leave some."""
_BY_NAME: Final = re.compile(r"metadata\.name==?([a-z0-9.-]{1,253})")
"""A field selector of one object."""
_OURS: Final = frozenset(KIND_OF.values())
_REVIEW: Final = "AdmissionReview"
_MAX_NAME: Final = 253

_ACT_OF_OPERATION: Final = {Operation.CREATE: Act.CREATED, Operation.UPDATE: Act.UPDATED, Operation.DELETE: Act.DELETED}
_ACT_OF_CHANGE: Final = {"": Act.STORED, "ADDED": Act.STORED, "MODIFIED": Act.UPDATED, "DELETED": Act.DELETED}
"""At the start of a watch every object is ADDED, so an addition only says that the object exists."""
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
_NOTHING: Final = bytes(NULL)
"""An object that an event does not show."""
_VERB_OF_OPTIONS: Final = {"CreateOptions": "create", "UpdateOptions": "update", "PatchOptions": "patch"}
GAP: Final = "GAP"
"""The type of an event by which a recorder says what it did not see; no API server sends it."""
_stretches: Final = msgspec.json.Decoder(CountedRenewals, strict=False)
_EVENT_TIMES: Final = (
    ("series", "lastObservedTime"),
    ("lastTimestamp",),
    ("deprecatedLastTimestamp",),
    ("eventTime",),
    ("metadata", "creationTimestamp"),
)
_LED: Final = re.compile(r".{1,253} (?:became leader|stopped leading)")
_FENCE: Final = re.compile(r"\(fence ([a-z0-9.-]{1,253})\)")
_DENIED: Final = re.compile(
    r' (?:"(?:[^"\\]|\\.)*" )?is forbidden: ValidatingAdmissionPolicy \'fence-[a-z0-9.-]+\' with '
)
"""The text after the resource in the message of a fence that refused a write."""
_LEASE: Final = re.compile(r"\blease ([a-z0-9.-]{1,253})/([a-z0-9.-]{1,253}) (?:is held by|has no holder|may write)")


class Manifest(Struct, frozen=True):
    """A bare Lease or LeaseCandidate; `source` is where it stands in its file."""

    place: Place
    document: Value
    source: Source = NOWHERE


Submitted = Document | Manifest | OtherObject | Unreadable
"""The document is an AdmissionReview, byte for byte as it was recorded."""


def may_say_something(line: bytes) -> bool:
    """Return whether a line of an audit log may say something of a lease; nearly all others are not decoded."""
    return GROUP_MARKER in line or _may_say_more(line)


def _may_say_more(line: bytes) -> bool:
    return any(marker in line for marker in _MARKERS) or may_be_related_write(line) or may_be_pod_request(line)


class LineFilter:
    """Which lines of audit logs are to be read for a history: also what a pod did that asked for a lease before."""

    def __init__(self) -> None:
        self._pods = PodsWithLeases()

    def may_say_something(self, line: bytes) -> bool:
        """Return whether a line may say something of a lease, or of a pod that asked for one in an earlier line."""
        if GROUP_MARKER in line:
            self._pods.hear(line)
            return True
        return _may_say_more(line) or self._pods.may_tell_of(line)


def is_of_history(document: Document | Unreadable) -> bool:
    """Return whether it is of an audit log or a watch, of which nothing says by itself what it changed."""
    return isinstance(document, Document) and (bool(document.change) or document.api_version.startswith(AUDIT))


def interpret_for_check(document: Document | Unreadable) -> Submitted:
    """Return a document as what can be evaluated by itself; a key that appears twice makes a manifest unreadable."""
    if isinstance(document, Unreadable):
        return document
    place, kind = document.place, document.kind
    group, slash, _ = document.api_version.partition("/")
    try:
        if kind == _REVIEW:
            return document
        if kind in _OURS and not slash:
            return _refuse_without_group(document)
        if group == GROUP and kind not in _OURS:
            return Unreadable(
                place, f"the kinds of {GROUP} are {' and '.join(KIND_OF.values())}", line=document.source.line_of()
            )
        if group == GROUP:
            return Manifest(place, document.value, document.source)
        return OtherObject(place, kind or "no kind")
    except (ValueError, RecursionError) as error:
        return Unreadable(place, describe_problem(error), line=document.source.line_of())


def interpret_for_history(document: Document | Unreadable | LastLine, received: int | None = None) -> Item | None:
    """Return what a document says; None for what says nothing of one lease, such as another kind's audit event.

    `received` is when a review was received, in microseconds since 1970, if an index says so.
    """
    if isinstance(document, Unreadable):
        return document
    if isinstance(document, LastLine):
        return _interpret_last_line(document)
    try:
        if document.kind == "Event" and document.api_version.startswith(AUDIT):
            return _interpret_event(document)
        return _interpret_review(document, received) if document.kind == _REVIEW else _interpret_object(document)
    except (ValueError, RecursionError) as error:
        return Unreadable(document.place, describe_problem(error))


def interpret_all(documents: Iterable[Document | Unreadable | LastLine], received: int | None = None) -> Iterator[Item]:
    """Yield what each document says, if it says something."""
    return (item for document in documents if (item := interpret_for_history(document, received)) is not None)


class _WithMetadata(Struct, frozen=True, gc=False):
    metadata: ObjectMeta = ObjectMeta()


_with_metadata: Final = msgspec.json.Decoder(_WithMetadata)


def decode_our_object(
    kind: str, version: str, data: bytes | Raw
) -> tuple[Lease | LeaseCandidate | None, ObjectMeta, str]:
    """Return the object of one of our kinds, its metadata, and why it cannot be decoded, if it cannot: then it is None.

    Raises ValueError if it is not JSON, RecursionError if nested deeply.
    """
    try:
        decoded = decode_object(kind, version, data)
    except WrongTypesError as error:
        problem, path = error.problems[0]
        said = f"{path or 'the object'} {explain_problem(problem) or problem}"
        found = msgspec.json.decode(data)
        namespace, name = _get_text(found, "metadata", "namespace"), _get_text(found, "metadata", "name")
        return None, ObjectMeta(namespace=namespace, name=name), said
    return decoded, decoded.metadata, ""


def _get_text(value: object, *path: str) -> str:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


def _interpret_object(document: Document) -> Item | None:
    """Return what an object or a change of a watch says; None for a BOOKMARK, and for an ERROR, which ends a watch.

    ValueError is raised if what a recorder added cannot be read.
    """
    act, place, kind, data = _ACT_OF_CHANGE.get(document.change), document.place, document.kind, document.text
    if act is None:
        return _interpret_gap(document) if document.change == GAP else None
    group, slash, version = document.api_version.partition("/")
    if kind in _OURS and not slash:
        return _refuse_without_group(document)
    if kind not in _OURS or group != GROUP or version not in VERSIONS_OF[f"{kind.lower()}s"]:
        if kind in _OURS and group == GROUP:
            return OtherObject(place, truncate(f"{kind} {version}", _MAX_NAME))
        if kind == "Event" and document.api_version in {"v1", "events.k8s.io/v1"}:
            return _interpret_election_event(place, data)
        # If an object that may hold a lease is gone, the lease is left over.
        is_holder = kind in {"Pod", "Node"} and document.api_version == "v1"
        metadata = _with_metadata.decode(data).metadata if _TOKEN_MARKER in data else None
        if not is_holder and metadata is None:
            return OtherObject(place, kind or "no kind")
        decoded = msgspec.json.decode(data)
        namespace, name = _get_text(decoded, "metadata", "namespace"), _get_text(decoded, "metadata", "name")
        account = _get_text(decoded, "spec", "serviceAccountName") if name and is_holder and kind == "Pod" else ""
        return OtherObject(place, kind or "no kind", namespace, name, account, metadata)
    shown, named, problem = decode_our_object(kind, version, data)
    return Observation(
        place=place,
        input_kind=InputKind.WATCH if document.change else InputKind.DUMP,
        act=act,
        kind=kind,
        namespace=named.namespace or "",
        name=named.name or "",
        object=shown,
        problem=problem,
        uid=named.uid or "",
        resource_version=named.resource_version or "",
        text=data,
        stretch=_stretches.decode(document.renewals) if document.renewals else None,
    )


def _interpret_gap(document: Document) -> RecordingGap:
    found = msgspec.json.decode(document.text)
    start, end = (times.parse_seconds(_get_text(found, name)) for name in ("from", "to"))
    return RecordingGap(start, end, truncate(_get_text(found, "reason"), _MAX_NAME))


def _interpret_election_event(place: Place, data: bytes) -> OtherObject:
    """Return what an Event says of a leader, as client-go records it (`tools/leaderelection/resourcelock`)."""
    event = msgspec.json.decode(data)
    said = _get_text(event, "message") or _get_text(event, "note")
    texts = [text for path in _EVENT_TIMES if (text := _get_text(event, *path))]
    at = times.stamp_of(texts[0]) if texts else None
    about = "involvedObject" if _get_text(event, "involvedObject", "kind") else "regarding"
    if at is None or _get_text(event, about, "kind") != "Lease" or not _LED.fullmatch(said):
        return OtherObject(place, "Event")
    return ElectionEvent(
        place, "Event", _get_text(event, about, "namespace"), lease=_get_text(event, about, "name"), at=at, text=said
    )


def _refuse_without_group(document: Document) -> Unreadable:
    problem = f"a {document.kind} needs apiVersion: {GROUP}/v1 or another version of that group"
    return Unreadable(document.place, problem, line=document.source.line_of())


def _interpret_review(document: Document, received: int | None) -> Observation | OtherObject | Unreadable:
    """Return what a review says; `received` is when it came, None if nothing but its own stamps can say."""
    data = document.text
    try:
        request = decode(data)
    except ReviewError as error:
        return Unreadable(document.place, error.text)
    act = _ACT_OF_OPERATION.get(request.operation)
    if request.contradiction:
        return Unreadable(document.place, request.contradiction)
    if act is None or request.sub_resource or not request.is_ours:
        return OtherObject(document.place, request.kind or "no kind")
    change = change_made_by(request, received or 0)
    before = request.old or request.new
    return Observation(
        place=document.place,
        input_kind=InputKind.REVIEW,
        act=act,
        kind=request.kind,
        namespace=request.namespace,
        name=request.name,
        object=request.old if act is Act.DELETED else request.new,
        old=request.old,
        at=stamp_of_writer(change.set_fields.owners_among(change.new_entries)) if received is None else received,
        verb=_VERB_OF_OPTIONS.get(
            _get_text(msgspec.json.decode(data), "request", "options", "kind"), request.operation.lower()
        ),
        writer=_make_writer(request.user) if request.user else None,
        is_dry_run=bool(request.options.dry_run),
        problem=str(request.object_errors[0]) if request.object_errors else "",
        request=request,
        uid=(before and before.metadata.uid) or "",
    )


def _make_writer(user: UserInfo, by: UserInfo | None = None) -> Writer:
    known = user.username, user.pod_name, user.node_name, user.pod_uid
    return Writer(*known, by.username if by else "", user.groups, by.groups if by else ())


class ObjectReference(Struct, frozen=True, rename="camel"):
    """`objectRef`: what the request was about."""

    resource: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_group: str = ""
    api_version: str = ""
    subresource: str = ""
    resource_version: str = ""


class Status(Struct, frozen=True):
    """`responseStatus`; and in an annotation, one failure of a policy."""

    code: int = 0
    message: str = ""


class AuditEvent(Struct, frozen=True, rename="camel"):
    """The parts of an audit event that are used here, the users and objects undecoded."""

    level: str = ""
    verb: str = ""
    stage: str = ""
    user_info: Raw = msgspec.field(default=NULL, name="user")
    source_ips: Sequence[str] = msgspec.field(default=(), name="sourceIPs")
    user_agent: str = ""
    impersonated_user: Raw = NULL
    object_ref: ObjectReference = ObjectReference()
    response_status: Status = Status()
    request_received_timestamp: str = ""
    stage_timestamp: str = ""
    annotations: Mapping[str, str] | None = None
    request_uri: str = msgspec.field(default="", name="requestURI")
    request_object: Raw = NULL
    response_object: Raw = NULL

    @property
    def user(self) -> UserInfo:
        """Who authenticated."""
        return decode_user(self.user_info) or UserInfo()

    @property
    def pod(self) -> str:
        """The pod that the token named."""
        return self.user.pod_name or NO_POD

    @property
    def writer(self) -> Writer:
        """Who made the request, in short."""
        impersonated = decode_user(self.impersonated_user)
        return _make_writer(impersonated, self.user) if impersonated else _make_writer(self.user)

    @property
    def requester(self) -> UserInfo:
        """Who made the request; an impersonated user counts as the writer."""
        return decode_user(self.impersonated_user) or self.user

    @property
    def shows_body(self) -> bool:
        """Whether a request without a body in the log had none: at level Metadata no event shows any."""
        if self.level in _LEVELS_WITH_BODIES:
            return _TRUNCATED not in (self.annotations or NO_TEXTS)
        return bytes(self.request_object) != _NOTHING or bytes(self.response_object) != _NOTHING

    @property
    def query(self) -> Mapping[str, Sequence[str]]:
        """The parameters of the request."""
        return parse_qs(urlsplit(self.request_uri).query, keep_blank_values=True)

    @property
    def is_from_cache(self) -> bool:
        """Whether an API server may answer without its etcd: a watch, or a read of any state, or of one not older."""
        return self.verb == "watch" or "resourceVersion" in self.request_uri

    @property
    def source(self) -> str:
        """The address and the program that it came from; "" if the log does not say both."""
        return (
            truncate(f"{self.source_ips[-1]} {self.user_agent}", _MAX_NAME)
            if self.source_ips and self.user_agent
            else ""
        )

    @property
    def answered_at(self) -> int | None:
        """The time at which it was logged, in microseconds since 1970; None if that is absent or unreadable."""
        return times.get_instant(times.normalize(self.stage_timestamp))


decode_event: Final = msgspec.json.Decoder(AuditEvent, strict=False).decode
"""Returns an event; raises ValueError or RecursionError."""
_failures: Final = msgspec.json.Decoder(list[Status])


def _interpret_event(
    document: Document,
) -> Observation | FenceReport | PodDeletion | PodRequest | PodActivity | RelatedWrite | None:
    """Return what one event says of leases, candidates, a fence or a pod; None if it is about something else."""
    data = document.text
    event = decode_event(data)
    # Who is not authenticated is answered, and logged, before the request is handled (`filters/authn_audit.go`).
    is_refused_at_once = event.stage == "ResponseStarted" and event.response_status.code == 401
    # A watch may go on when the log ends.
    is_begun = event.stage == "ResponseStarted" and event.verb == "watch"
    if event.stage != "ResponseComplete" and not (is_refused_at_once or is_begun):
        return None
    reference, act = event.object_ref, _find_act(event)
    kind = KIND_OF.get(reference.resource)
    # No subresource of a lease stores anything.
    if kind is None or reference.api_group != GROUP or reference.subresource or act is None:
        if _FENCE_MARKER in data:
            return _interpret_fence(event, document)
        return (
            _interpret_pod_request(event)
            or interpret_related_write(event)
            or interpret_pod_status(event)
            or interpret_pod_activity(event)
        )
    if event.verb == "patch" and event.response_status.code == HTTPStatus.CREATED:
        act = Act.CREATED  # an apply creates what does not exist
    answered, asked = event.answered_at, times.get_instant(times.normalize(event.request_received_timestamp))
    shown = _choose_object(event, act)
    stored, named, problem = None, ObjectMeta(), ""
    if shown is not None:
        stored, named, problem = decode_our_object(kind, reference.api_version, shown)
    if stored is not None and shown is event.request_object:
        # It has the stamps of an earlier write, or any that the client invented.
        stored = replace(stored, metadata=replace(stored.metadata, managed_fields=NULL))
    is_dry_run = find_dry_run(event)
    is_beside_spec = shown is None and act is Act.UPDATED and _is_beside_spec(event)
    return Observation(
        place=document.place,
        input_kind=InputKind.AUDIT_LOG,
        act=act,
        kind=kind,
        namespace=reference.namespace or named.namespace or "",
        name=reference.name or named.name or "",
        object=stored,
        problem=problem,
        at=answered if answered is not None else asked,
        verb=event.verb,
        refused_holder=_find_refused_holder(event, kind),
        asked_lease=_find_asked_lease(event, kind),
        writer=event.writer,
        answer=Answer(
            event.response_status.code,
            event.response_status.message,
            answered - asked if answered is not None and asked is not None else 0,
            event.annotations or NO_TEXTS,
        ),
        is_dry_run=is_dry_run is True,
        is_sure=act is not Act.DELETED or is_dry_run is not None or is_never_dry(event),
        collection_deletion=_find_collection_deletion(event) if event.verb == "deletecollection" else None,
        uid=named.uid or reference.uid or (_find_deleted_uid(event) if act is Act.DELETED else ""),
        # The object of a request has the version that it replaces.
        resource_version=(named.resource_version or "") if shown is event.response_object else "",
        replaces=reference.resource_version if event.verb == "update" else "",
        version=reference.api_version,
        source=event.source,
        is_from_cache=event.is_from_cache,
        answered_object=_find_answered_object(event) if act is Act.READ else b"",
        user=event.requester,
        rewritings=tuple(_find_rewritings(event, stored)) if shown is event.response_object else (),
        asked=_find_asked(event, kind) if shown is None and act in {Act.CREATED, Act.UPDATED} else None,
        patched_renew_time=_find_patched_renew_time(event) if shown is None and act is Act.UPDATED else "",
        spec_changes=_find_spec_changes(event, kind) if shown is None and act is Act.UPDATED else None,
        is_beside_spec=is_beside_spec,
        marks=list_marks(bytes(event.request_object)) if is_beside_spec else (),
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
        sent = DeleteOptions() if body == _NOTHING else decode_delete_options(body)
        named = _Deletion() if answer == _NOTHING else _deletions.decode(answer)
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
        is_sure=is_dry_run is not None or is_never_dry(event),
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


def _find_spec_changes(event: AuditEvent, kind: str) -> SpecChanges | None:
    """Return what a patch set in the spec of a lease; None if it is none, or if a webhook may have changed that."""
    patch = bytes(event.request_object)
    if event.verb != "patch" or kind != "Lease" or b"spec" not in patch or is_mutated(event.annotations or NO_TEXTS):
        return None
    return read_spec_changes(patch) or None


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


def _find_refused_holder(event: AuditEvent, kind: str) -> str | None:
    """Return the holder that an update asked for which was not stored, "" for none; None if that is not shown."""
    if event.verb != "update" or event.response_status.code < 400 or b'"spec"' not in bytes(event.request_object):
        return None
    asked, _, _ = decode_our_object(kind, event.object_ref.api_version, event.request_object)
    return (asked.spec.holder_identity or "") if isinstance(asked, Lease) else None


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
    resource, message = _name_resource(event), event.response_status.message
    is_named = " " not in resource and message.startswith(resource)
    return is_named and event.response_status.code == 403 and _DENIED.match(message, len(resource)) is not None


def _name_resource(event: AuditEvent) -> str:
    return ".".join(part for part in (event.object_ref.resource, event.object_ref.api_group) if part)


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
    return " ".join(truncate(part, _MAX_NAME) for part in (event.verb, _name_resource(event) + below, name) if part)


def _interpret_last_line(line: LastLine) -> LogEnd | None:
    try:
        at = decode_event(line.text).answered_at
    except (ValueError, RecursionError):
        return None
    return None if at is None else LogEnd(at)
