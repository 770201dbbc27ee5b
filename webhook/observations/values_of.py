"""What one JSON value says about leases: a stored object, an event of a watch, an audit event, or a review."""

import re
from typing import Final

import msgspec
from msgspec import Raw, Struct

from webhook.api.request import GROUP, KIND_OF
from webhook.observations import audit_event, review
from webhook.observations.fenced_write import MARKER as FENCE_MARKER
from webhook.observations.fenced_write import fenced_write_of
from webhook.observations.observation import Act, Foreign, Item, Observation, Origin, Source, Unreadable
from webhook.observations.stored import names_of, service_account_of, typed

AUDIT_GROUP: Final = "audit.k8s.io/"
OURS: Final = frozenset(KIND_OF.values())
HOLDERS: Final = frozenset({"Pod", "Node"})
"""Kinds whose objects may hold a lease: if the object is gone, the lease is left over."""

_NULL: Final = Raw(b"null")
_KIND: Final = re.compile(rb'"kind"\s*+:\s*+"(\w+)List"')
_WATCHED: Final = {"ADDED": Act.STORED, "MODIFIED": Act.UPDATED, "DELETED": Act.DELETED}
"""At the start of a watch every object is ADDED, so an addition only says that the object exists."""


class _Envelope(Struct, frozen=True, gc=False, rename="camel"):
    kind: str | None = None
    api_version: str | None = None
    type: str | None = None
    object: Raw = _NULL


_envelope: Final = msgspec.json.Decoder(_Envelope)


def observe(data: bytes, head: bytes, source: Source, received: int | None = None) -> Item | None:
    """What a value says; None for what says nothing of one lease, such as another kind's audit event.

    Args:
        data: the bytes of one JSON value.
        head: the beginning of the List that it stands in, "" if it stands alone.
        source: where it stands.
        received: when a review was received, in microseconds since 1970, if an index says so.

    """
    try:
        return _observe(data, head, source, received)
    except RecursionError:
        return Unreadable(source, "nested too deeply")
    except ValueError as error:
        return Unreadable(source, f"not JSON: {error}" if isinstance(error, msgspec.DecodeError) else str(error))


def _observe(data: bytes, head: bytes, source: Source, received: int | None) -> Item | None:
    try:
        envelope = _envelope.decode(data)
    except msgspec.ValidationError:
        return Unreadable(source, "not a Kubernetes object")
    kind, version = envelope.kind or "", envelope.api_version or ""
    if not kind and envelope.type and envelope.object is not _NULL:
        return _watched(envelope.type, envelope.object, source)
    if kind == "Event" and version.startswith(AUDIT_GROUP):
        found = audit_event.observation_of(data, source)
        # What names a fence is decoded once more: it is rare.
        return fenced_write_of(data, source) if found is None and FENCE_MARKER in data else found
    if kind == "AdmissionReview":
        return review.observation_of(data, source, received)
    if not kind and (listed := _KIND.search(head)):
        kind, version = listed[1].decode(), f"{GROUP}/v1"
    return _stored(kind, version, data, source, Origin.DUMP, Act.STORED)


def _watched(event: str, data: Raw, source: Source) -> Item | None:
    act = _WATCHED.get(event)
    if act is None:
        # A BOOKMARK says nothing, an ERROR ends the watch: what follows is another one.
        return None
    envelope = _envelope.decode(data)
    kind, version = envelope.kind or "", envelope.api_version or ""
    return _stored(kind, version, bytes(data), source, Origin.WATCH, act)


def _stored(kind: str, version: str, data: bytes, source: Source, origin: Origin, act: Act) -> Item | None:
    group, slash, _ = version.partition("/")
    if kind in OURS and not slash:
        return Unreadable(source, f"a {kind} needs apiVersion: {GROUP}/v1 or another version of that group")
    if kind not in OURS or group != GROUP:
        namespace, name = names_of(data) if kind in HOLDERS and version == "v1" else ("", "")
        account = service_account_of(data) if name and kind == "Pod" else ""
        return Foreign(source, kind or "no kind", namespace, name, account)
    named = typed(kind, data)
    return Observation(
        source=source,
        origin=origin,
        act=act,
        kind=kind,
        namespace=named.namespace,
        name=named.name,
        object=named.object,
        problem=named.problem,
    )
