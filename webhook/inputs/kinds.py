"""The kind of a document, and what it says: a stored object, a change of a watch, an audit event, or a review."""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec import Struct

from webhook.api.request import GROUP, KIND_OF, AdmissionRequest, Operation
from webhook.api.review import ReviewError, decode
from webhook.inputs import audit_event, stored
from webhook.inputs.documents import Document, LastLine, Value, problem_of
from webhook.inputs.items import Act, Foreign, InputKind, Item, LogEnd, Observation, Place, Unreadable, Writer
from webhook.rules.change import change_made_by
from webhook.rules.election.renewal_stamp import stamp_of_writer

LEASE_MARKERS: Final = (b"coordination.k8s.io", audit_event.FENCE_MARKER)
"""What every audit event of a lease says in its objectRef, and every one of a fence in a message."""

_REVIEW: Final = "AdmissionReview"
_ACTS: Final = {Operation.CREATE: Act.CREATED, Operation.UPDATE: Act.UPDATED, Operation.DELETE: Act.DELETED}
_VERBS: Final = {"CreateOptions": "create", "UpdateOptions": "update", "PatchOptions": "patch"}


class Review(Struct, frozen=True):
    """An AdmissionReview, byte for byte as it was recorded."""

    place: Place
    body: bytes


class Manifest(Struct, frozen=True):
    """A bare Lease or LeaseCandidate."""

    place: Place
    document: Value


Submitted = Review | Manifest | Foreign | Unreadable


def submitted(document: Document | Unreadable) -> Submitted:
    """Return a document as what can be evaluated; a key that appears twice makes a manifest unreadable."""
    if isinstance(document, Unreadable):
        return document
    place, kind = document.place, document.kind
    group, slash, _ = document.api_version.partition("/")
    try:
        if kind == _REVIEW:
            return Review(place, document.data)
        if kind in stored.OURS and not slash:
            return Unreadable(place, stored.without_group(kind))
        if group == GROUP and kind not in stored.OURS:
            return Unreadable(place, f"the kinds of {GROUP} are {' and '.join(KIND_OF.values())}")
        return Manifest(place, document.value) if group == GROUP else Foreign(place, kind or "no kind")
    except (ValueError, RecursionError) as error:
        return Unreadable(place, problem_of(error))


def observed(document: Document | Unreadable | LastLine, received: int | None = None) -> Item | None:
    """Return what a document says; None for what says nothing of one lease, such as another kind's audit event.

    Args:
        document: what was read.
        received: when a review was received, in microseconds since 1970, if an index says so.

    """
    if isinstance(document, Unreadable):
        return document
    if isinstance(document, LastLine):
        return _log_end(document)
    try:
        if document.kind == "Event" and document.api_version.startswith("audit.k8s.io/"):
            return audit_event.observed(document)
        return _reviewed(document, received) if document.kind == _REVIEW else stored.observed(document)
    except (ValueError, RecursionError) as error:
        return Unreadable(document.place, problem_of(error))


def observations(documents: Iterable[Document | Unreadable | LastLine], received: int | None = None) -> Iterator[Item]:
    """Yield what each document says, if it says something."""
    return (item for document in documents if (item := observed(document, received)) is not None)


def _log_end(line: LastLine) -> LogEnd | None:
    try:
        at = audit_event.decoded(line.text).answered
    except (ValueError, RecursionError):
        return None
    return None if at is None else LogEnd(at)


class _Options(Struct, frozen=True):
    kind: object = None


class _Request(Struct, frozen=True):
    options: _Options | None = None


class _Review(Struct, frozen=True):
    request: _Request = _Request()


_options: Final = msgspec.json.Decoder(_Review)


def _reviewed(document: Document, received: int | None) -> Observation | Foreign | Unreadable:
    """What a review says; `received` is when it came, None if nothing but its own stamps can say."""
    data = document.data
    try:
        request = decode(data)
    except ReviewError as error:
        return Unreadable(document.place, error.text)
    act = _ACTS.get(request.operation)
    if request.contradiction:
        return Unreadable(document.place, request.contradiction)
    if act is None or request.sub_resource or not request.is_ours:
        return Foreign(document.place, request.kind or "no kind")
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
        at=stamp_of_writer(change.was_set.owners_among(change.new_entries)) if received is None else received,
        verb=_verb_of(data, request.operation),
        writer=_writer_of(request),
        is_dry_run=bool(request.options.dry_run),
        problem=str(request.object_errors[0]) if request.object_errors else "",
        request=request,
        uid=(before and before.metadata.uid) or "",
    )


def _writer_of(request: AdmissionRequest) -> Writer | None:
    user = request.user
    is_administrator = user is not None and audit_event.ADMINISTRATORS in user.groups
    return Writer(user.username, user.pod_name, is_administrator) if user else None


def _verb_of(data: bytes, operation: Operation) -> str:
    """What RBAC calls the request of a review: its options have a kind of their own for each verb."""
    try:
        options = _options.decode(data).request.options or _Options()
    except msgspec.ValidationError:
        options = _Options()
    return _VERBS.get(str(options.kind), operation.lower())
