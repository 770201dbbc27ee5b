"""Interprets a document by its kind: a stored object, a change of a watch, an audit event, or a review."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec import Struct

from webhook.admission.rules.change import make_change
from webhook.admission.rules.expiry import find_latest_stamp_of_writer
from webhook.analysis.inputs.audit_event import make_writer
from webhook.analysis.inputs.audit_log import interpret_event, interpret_last_line
from webhook.analysis.inputs.documents import Document, LastLine, Value, describe_problem
from webhook.analysis.inputs.envelopes import AUDIT
from webhook.analysis.inputs.items import (
    NO_KIND,
    Act,
    CountedRenewals,
    ElectionEvent,
    InputKind,
    Item,
    Observation,
    OtherObject,
    Place,
    RecordingGap,
    Unreadable,
)
from webhook.analysis.inputs.lines import NOWHERE, Source
from webhook.analysis.inputs.our_objects import MAX_NAME, decode_our_object, get_text
from webhook.kubernetes import times
from webhook.kubernetes.objects import ObjectMeta
from webhook.kubernetes.opened_review import ReviewError
from webhook.kubernetes.request import GROUP, KIND_OF, VERSIONS_OF, Operation
from webhook.kubernetes.review import decode
from webhook.text.quoting import truncate

_TOKEN_MARKER: Final = b"lease-webhook/token-"
"""The prefix of the annotations in which fences keep tokens."""
_OURS: Final = frozenset(KIND_OF.values())
_REVIEW: Final = "AdmissionReview"

_ACT_OF_OPERATION: Final = {Operation.CREATE: Act.CREATED, Operation.UPDATE: Act.UPDATED, Operation.DELETE: Act.DELETED}
_ACT_OF_CHANGE: Final = {"": Act.STORED, "ADDED": Act.STORED, "MODIFIED": Act.UPDATED, "DELETED": Act.DELETED}
"""At the start of a watch every object is ADDED, so an addition only says that the object exists."""
_VERB_OF_OPTIONS: Final = {"CreateOptions": "create", "UpdateOptions": "update", "PatchOptions": "patch"}
GAP: Final = "GAP"
"""The type of an event by which a recorder says what it did not see; no API server sends it."""
_counted_renewals: Final = msgspec.json.Decoder(CountedRenewals, strict=False)
_EVENT_TIMES: Final = (
    ("series", "lastObservedTime"),
    ("lastTimestamp",),
    ("deprecatedLastTimestamp",),
    ("eventTime",),
    ("metadata", "creationTimestamp"),
)
_LED: Final = re.compile(r".{1,253} (?:became leader|stopped leading)")


class Manifest(Struct, frozen=True):
    """A bare Lease or LeaseCandidate; `source` is where it stands in its file."""

    place: Place
    document: Value
    source: Source = NOWHERE


Submitted = Document | Manifest | OtherObject | Unreadable
"""The document is an AdmissionReview, byte for byte as it was recorded."""


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
                place, f"the kinds of {GROUP} are {' and '.join(KIND_OF.values())}", line=document.source.find_line()
            )
        if group == GROUP:
            return Manifest(place, document.value, document.source)
        return OtherObject(place, kind or NO_KIND)
    except (ValueError, RecursionError) as error:
        return Unreadable(place, describe_problem(error), line=document.source.find_line())


def interpret_for_history(document: Document | Unreadable | LastLine, received: int | None = None) -> Item | None:
    """Return what a document says; None for what says nothing of one lease, such as another kind's audit event.

    `received` is when a review was received, in microseconds since 1970, if an index says so.
    """
    if isinstance(document, Unreadable):
        return document
    if isinstance(document, LastLine):
        return interpret_last_line(document)
    try:
        if document.kind == "Event" and document.api_version.startswith(AUDIT):
            return interpret_event(document)
        return _interpret_review(document, received) if document.kind == _REVIEW else _interpret_object(document)
    except (ValueError, RecursionError) as error:
        return Unreadable(document.place, describe_problem(error))


def interpret_all(documents: Iterable[Document | Unreadable | LastLine], received: int | None = None) -> Iterator[Item]:
    """Yield what each document says, if it says something."""
    return (item for document in documents if (item := interpret_for_history(document, received)) is not None)


class _WithMetadata(Struct, frozen=True, gc=False):
    metadata: ObjectMeta = ObjectMeta()


_with_metadata: Final = msgspec.json.Decoder(_WithMetadata)


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
            return OtherObject(place, truncate(f"{kind} {version}", MAX_NAME))
        if kind == "Event" and document.api_version in {"v1", "events.k8s.io/v1"}:
            return _interpret_election_event(place, data)
        # If an object that may hold a lease is gone, the lease is left over.
        is_holder = kind in {"Pod", "Node"} and document.api_version == "v1"
        metadata = _with_metadata.decode(data).metadata if _TOKEN_MARKER in data else None
        if not is_holder and metadata is None:
            return OtherObject(place, kind or NO_KIND)
        decoded = msgspec.json.decode(data)
        namespace, name = get_text(decoded, "metadata", "namespace"), get_text(decoded, "metadata", "name")
        account = get_text(decoded, "spec", "serviceAccountName") if name and is_holder and kind == "Pod" else ""
        return OtherObject(place, kind or NO_KIND, namespace, name, account, metadata)
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
        size=len(data),
        counted_renewals=_counted_renewals.decode(document.renewals) if document.renewals else None,
    )


def _interpret_gap(document: Document) -> RecordingGap:
    found = msgspec.json.decode(document.text)
    start, end = (times.parse_seconds(get_text(found, name)) for name in ("from", "to"))
    return RecordingGap(start, end, truncate(get_text(found, "reason"), MAX_NAME), document.place)


def _interpret_election_event(place: Place, data: bytes) -> OtherObject:
    """Return what an Event says of a leader, as client-go records it (`tools/leaderelection/resourcelock`)."""
    event = msgspec.json.decode(data)
    said = get_text(event, "message") or get_text(event, "note")
    texts = [text for path in _EVENT_TIMES if (text := get_text(event, *path))]
    at = times.parse_stamp(texts[0]) if texts else None
    about = "involvedObject" if get_text(event, "involvedObject", "kind") else "regarding"
    if at is None or get_text(event, about, "kind") != "Lease" or not _LED.fullmatch(said):
        return OtherObject(place, "Event")
    return ElectionEvent(
        place, "Event", get_text(event, about, "namespace"), lease=get_text(event, about, "name"), at=at, text=said
    )


def _refuse_without_group(document: Document) -> Unreadable:
    problem = f"a {document.kind} needs apiVersion: {GROUP}/v1 or another version of that group"
    return Unreadable(document.place, problem, line=document.source.find_line())


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
        return OtherObject(document.place, request.kind or NO_KIND)
    change = make_change(request, received or 0)
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
        at=find_latest_stamp_of_writer(change.set_fields.find_owners(change.new_entries))
        if received is None
        else received,
        verb=_VERB_OF_OPTIONS.get(
            get_text(msgspec.json.decode(data), "request", "options", "kind"), request.operation.lower()
        ),
        writer=make_writer(request.user) if request.user else None,
        is_dry_run=bool(request.options.dry_run),
        problem=str(request.object_errors[0]) if request.object_errors else "",
        request=request,
        size=len(data),
        uid=(before and before.metadata.uid) or "",
    )
