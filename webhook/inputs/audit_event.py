"""An event of the API server's audit log: who requested what, when, and with which result.

Source: kubernetes/apiserver `pkg/apis/audit/v1/types.go`. At level Metadata an event has no objects. A write of any
object that a fence refused is in the message of the response; a fence in mode warn or audit leaves an annotation
(`pkg/admission/plugin/policy/validating/dispatcher.go`).
"""

import re
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Raw, Struct

from webhook.api import times
from webhook.api.request import GROUP, KIND_OF
from webhook.api.text import truncate
from webhook.inputs.documents import Document
from webhook.inputs.items import NO_TEXTS, Act, Answer, Fenced, InputKind, Observation, Writer
from webhook.inputs.stored import TypedObject, typed

FENCE_MARKER: Final = b"(fence "
"""What the message of every fence ends with."""
FENCE_ANNOTATION: Final = "validation.policy.admission.k8s.io/validation_failure"
NO_POD: Final = "a token without a pod"
ADMINISTRATORS: Final = "system:masters"

_POD_NAME: Final = "authentication.kubernetes.io/pod-name"
_ACTS: Final[Mapping[str, Act]] = {
    "create": Act.CREATED,
    "update": Act.UPDATED,
    "patch": Act.UPDATED,
    "delete": Act.DELETED,
    "get": Act.READ,
    "list": Act.COLLECTION,
    "watch": Act.COLLECTION,
    "deletecollection": Act.COLLECTION,
}
_SELECTOR: Final = "Selector="
_UNAUTHENTICATED: Final = 401
_WITHOUT_OBJECT: Final = frozenset({Act.READ, Act.COLLECTION})
_FENCE: Final = re.compile(r"\(fence ([a-z0-9.-]{1,253})\)")
_LEASE: Final = re.compile(r"\blease ([a-z0-9.-]{1,253})/([a-z0-9.-]{1,253}) (?:is held by|has no holder|may write)")
_MAX_NAME: Final = 253
_NULL: Final = Raw(b"null")


class User(Struct, frozen=True):
    """`user`; the groups are undecoded."""

    username: str = ""
    extra: Mapping[str, tuple[str, ...]] | None = None
    groups: Raw = _NULL

    @property
    def pod(self) -> str:
        """The pod that the token named, "" if none."""
        names = (self.extra or {}).get(_POD_NAME, ())
        return names[0] if len(names) == 1 else ""


class ObjectReference(Struct, frozen=True, rename="camel"):
    """`objectRef`: what the request was about."""

    resource: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_group: str = ""
    subresource: str = ""


class Status(Struct, frozen=True):
    """`responseStatus`."""

    code: int = 0
    message: str = ""


class AuditEvent(Struct, frozen=True, rename="camel"):
    """The parts of an audit event that are used here, the objects undecoded."""

    level: str = ""
    verb: str = ""
    stage: str = ""
    user: User = User()
    impersonated_user: User | None = None
    object_ref: ObjectReference = ObjectReference()
    response_status: Status = Status()
    request_received_timestamp: str = ""
    stage_timestamp: str = ""
    annotations: Mapping[str, str] | None = None
    request_uri: str = msgspec.field(default="", name="requestURI")
    request_object: Raw = _NULL
    response_object: Raw = _NULL

    @property
    def pod(self) -> str:
        """The pod that the token named."""
        return self.user.pod or NO_POD

    @property
    def writer(self) -> Writer:
        """Who made the request; an impersonated user counts as the writer."""
        user = self.impersonated_user or self.user
        return Writer(user.username, user.pod, f'"{ADMINISTRATORS}"'.encode() in bytes(user.groups))

    @property
    def answered(self) -> int | None:
        """When it was logged, in microseconds since 1970; None if that is absent or unreadable."""
        return _moment(self.stage_timestamp)


class _Failure(Struct, frozen=True, gc=False):
    message: str = ""


_decoder: Final = msgspec.json.Decoder(AuditEvent, strict=False)
_failures: Final = msgspec.json.Decoder(list[_Failure])


def decoded(data: bytes) -> AuditEvent:
    """Return a decoded event; raises ValueError or RecursionError."""
    return _decoder.decode(data)


def observed(document: Document) -> Observation | Fenced | None:
    """Return what one event says of leases, candidates or a fence; None if it is about something else.

    Raises:
        ValueError: it is not JSON of an audit event.

    """
    data = document.data
    event = decoded(data)
    # Who is not authenticated is answered, and logged, before the request is handled (`filters/authn_audit.go`).
    is_refused_at_once = event.stage == "ResponseStarted" and event.response_status.code == _UNAUTHENTICATED
    if event.stage != "ResponseComplete" and not is_refused_at_once:
        return None
    reference, act = event.object_ref, _ACTS.get(event.verb)
    kind = KIND_OF.get(reference.resource)
    if kind is None or reference.api_group != GROUP or act is None:
        return _fenced(event, document) if FENCE_MARKER in data else None
    answered, asked = event.answered, _moment(event.request_received_timestamp)
    shown = _object(event, act)
    named = typed(kind, shown) if shown is not None else TypedObject()
    return Observation(
        place=document.place,
        input_kind=InputKind.AUDIT_LOG,
        act=act,
        kind=kind,
        namespace=reference.namespace or named.namespace,
        name=reference.name or named.name,
        object=named.object,
        problem=named.problem,
        at=answered if answered is not None else asked,
        verb=event.verb,
        writer=event.writer,
        answer=Answer(
            event.response_status.code,
            event.response_status.message,
            answered - asked if answered is not None and asked is not None else 0,
            event.annotations or NO_TEXTS,
        ),
        is_dry_run="dryRun=" in event.request_uri,
        is_clearing=event.verb == "deletecollection" and _SELECTOR not in event.request_uri,
        uid=named.uid or reference.uid,
        # The object of a request has the version that it replaces.
        resource_version=named.resource_version if shown is event.response_object else "",
        level=event.level,
    )


def _object(event: AuditEvent, act: Act) -> Raw | None:
    """The object as it was stored, else as it was sent; a patch is not an object."""
    if act in _WITHOUT_OBJECT or not 200 <= event.response_status.code < 300:
        return None
    for raw in (event.response_object, event.request_object):
        if b'"spec"' in bytes(raw) and (raw is not event.request_object or event.verb in {"create", "update"}):
            return raw
    return None


def _fenced(event: AuditEvent, document: Document) -> Fenced | None:
    """What an event says of a fence; None if it says nothing of one."""
    is_refused = event.response_status.code >= 400
    message = event.response_status.message if is_refused else ""
    fence = _FENCE.search(message)
    if fence is None:
        message = next((text for text in _annotated(event) if _FENCE.search(text)), "")
        fence, is_refused = _FENCE.search(message), False
    at = event.answered
    if fence is None or at is None:
        return None
    lease = _LEASE.search(message)
    return Fenced(
        place=document.place,
        at=at,
        fence=fence[1],
        namespace=lease[1] if lease else "",
        name=lease[2] if lease else "",
        writer=event.writer,
        target=_target(event),
        message=message,
        is_refused=is_refused,
    )


def _annotated(event: AuditEvent) -> list[str]:
    try:
        return [one.message for one in _failures.decode((event.annotations or {}).get(FENCE_ANNOTATION, "[]"))]
    except (ValueError, RecursionError):
        return []


def _target(event: AuditEvent) -> str:
    """`create deployments.apps shop/checkout`: what was to be done to what."""
    reference = event.object_ref
    resource = ".".join(part for part in (reference.resource, reference.api_group) if part)
    below = f"/{reference.subresource}" if reference.subresource else ""
    name = "/".join(part for part in (reference.namespace, reference.name) if part)
    return " ".join(truncate(part, _MAX_NAME) for part in (event.verb, resource + below, name) if part)


def _moment(text: str) -> int | None:
    try:
        return times.parse(text)
    except ValueError:
        return None
