"""Stored objects, in a dump or a change of a watch: a Lease or LeaseCandidate as a typed value, the rest by name."""

from typing import Final

import msgspec
from msgspec import Raw, Struct

from webhook.api.field import reworded
from webhook.api.objects import Lease, LeaseCandidate, WrongTypesError, decode_object
from webhook.api.request import GROUP, KIND_OF
from webhook.inputs.documents import Document
from webhook.inputs.items import Act, Foreign, InputKind, Observation, Place, Unreadable

OURS: Final = frozenset(KIND_OF.values())

_HOLDERS: Final = frozenset({"Pod", "Node"})
"""Kinds whose objects may hold a lease: if the object is gone, the lease is left over."""
_NULL: Final = Raw(b"null")
_ACTS: Final = {"ADDED": Act.STORED, "MODIFIED": Act.UPDATED, "DELETED": Act.DELETED}
"""At the start of a watch every object is ADDED, so an addition only says that the object exists."""


class TypedObject(Struct, frozen=True, gc=False):
    """An object of one of our kinds; `object` is None if it could not be decoded: see `problem`."""

    namespace: str = ""
    name: str = ""
    object: Lease | LeaseCandidate | None = None
    problem: str = ""

    @property
    def uid(self) -> str:
        """`metadata.uid`, "" if it has none."""
        return (self.object and self.object.metadata.uid) or ""

    @property
    def resource_version(self) -> str:
        """`metadata.resourceVersion`, "" if it has none."""
        return (self.object and self.object.metadata.resource_version) or ""


class _Metadata(Struct, frozen=True, gc=False):
    name: object = None
    namespace: object = None


class _Spec(Struct, frozen=True, gc=False, rename="camel"):
    service_account_name: object = None


class _Named(Struct, frozen=True, gc=False):
    metadata: _Metadata | None = None


class _Pod(Struct, frozen=True, gc=False):
    spec: _Spec | None = None


class _Change(Struct, frozen=True, gc=False):
    type: str = ""
    object: Raw = _NULL


class _Kind(Struct, frozen=True, gc=False, rename="camel"):
    kind: str | None = None
    api_version: str | None = None


_named: Final = msgspec.json.Decoder(_Named)
_pod: Final = msgspec.json.Decoder(_Pod)
_change: Final = msgspec.json.Decoder(_Change)
_kind: Final = msgspec.json.Decoder(_Kind)


def typed(kind: str, data: bytes | Raw) -> TypedObject:
    """Return the object of one of our kinds.

    Raises:
        ValueError: the text is not JSON.
        RecursionError: it nests too deeply.

    """
    try:
        one = decode_object(kind, data)
    except WrongTypesError as error:
        problem, path = error.problems[0]
        return TypedObject(*_names_of(data), None, f"{path or 'the object'} {reworded(problem) or problem}")
    return TypedObject(one.metadata.namespace or "", one.metadata.name or "", one)


def observed(document: Document) -> Observation | Foreign | Unreadable | None:
    """Return an object, or a change of a watch; None for an event of a watch that shows no object.

    Raises:
        ValueError: it is not JSON.
        RecursionError: it nests too deeply.

    """
    data = document.data
    if document.kind:
        return _stored(document.place, document.kind, document.api_version, data, InputKind.DUMP, Act.STORED)
    try:
        change = _change.decode(data)
        act = _ACTS.get(change.type)
        if not change.type or change.object is _NULL:
            return Foreign(document.place, "no kind")
        # A BOOKMARK says nothing, an ERROR ends the watch: what follows is another one.
        envelope = _kind.decode(change.object) if act else _Kind()
    except msgspec.ValidationError:
        return Unreadable(document.place, "not a Kubernetes object")
    if act is None:
        return None
    kind, version = envelope.kind or "", envelope.api_version or ""
    return _stored(document.place, kind, version, change.object, InputKind.WATCH, act)


def _stored(
    place: Place, kind: str, version: str, data: bytes | Raw, input_kind: InputKind, act: Act
) -> Observation | Foreign | Unreadable:
    group, slash, _ = version.partition("/")
    if kind in OURS and not slash:
        return Unreadable(place, without_group(kind))
    if kind not in OURS or group != GROUP:
        namespace, name = _names_of(data) if kind in _HOLDERS and version == "v1" else ("", "")
        account = _service_account_of(data) if name and kind == "Pod" else ""
        return Foreign(place, kind or "no kind", namespace, name, account)
    named = typed(kind, data)
    return Observation(
        place=place,
        input_kind=input_kind,
        act=act,
        kind=kind,
        namespace=named.namespace,
        name=named.name,
        object=named.object,
        problem=named.problem,
        uid=named.uid,
        resource_version=named.resource_version,
    )


def without_group(kind: str) -> str:
    """Return what is wrong with an object of one of our kinds whose apiVersion has no group."""
    return f"a {kind} needs apiVersion: {GROUP}/v1 or another version of that group"


def _names_of(data: bytes | Raw) -> tuple[str, str]:
    """The namespace and name of any object, "" if it has none."""
    try:
        metadata = _named.decode(data).metadata or _Metadata()
    except msgspec.ValidationError:
        metadata = _Metadata()
    return _text(metadata.namespace), _text(metadata.name)


def _service_account_of(pod: bytes | Raw) -> str:
    """The name of the service account that a pod runs as, "" if it does not say."""
    try:
        spec = _pod.decode(pod).spec or _Spec()
    except msgspec.ValidationError:
        spec = _Spec()
    return _text(spec.service_account_name)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
