"""An event of the API server's audit log: who requested what for a lease, when, and with which result.

Source: kubernetes/apiserver `pkg/apis/audit/v1/types.go`. At level Metadata an event has no objects.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Raw, Struct

from webhook.api import micro_time
from webhook.api.request import GROUP, KIND_OF
from webhook.observations.observation import NO_TEXTS, Act, Answer, Observation, Origin, Source, Writer
from webhook.observations.stored import Named, typed

POD_NAME: Final = "authentication.kubernetes.io/pod-name"
NO_POD: Final = "a token without a pod"

ACT_OF_VERB: Final[Mapping[str, Act]] = {
    "create": Act.CREATED,
    "update": Act.UPDATED,
    "patch": Act.UPDATED,
    "delete": Act.DELETED,
    "get": Act.READ,
    "list": Act.COLLECTION,
    "watch": Act.COLLECTION,
    "deletecollection": Act.COLLECTION,
}

_WITHOUT_OBJECT: Final = frozenset({Act.READ, Act.COLLECTION})
_NULL: Final = Raw(b"null")
_ADMINISTRATORS: Final = b'"system:masters"'
_KINDS: Final = {resource.value: kind for resource, kind in KIND_OF.items()}


class User(Struct, frozen=True):
    """`user`."""

    username: str = ""
    extra: Mapping[str, tuple[str, ...]] | None = None


class ObjectReference(Struct, frozen=True, rename="camel"):
    """`objectRef`: what the request was about."""

    resource: str = ""
    namespace: str = ""
    name: str = ""
    api_group: str = ""
    subresource: str = ""


class Status(Struct, frozen=True):
    """`responseStatus`."""

    code: int = 0
    message: str = ""


class AuditEvent(Struct, frozen=True, rename="camel"):
    """The parts of an audit event that are used here."""

    verb: str = ""
    stage: str = ""
    user: User = User()
    object_ref: ObjectReference = ObjectReference()
    response_status: Status = Status()
    request_received_timestamp: str = ""

    @property
    def pod(self) -> str:
        """The pod that the token named."""
        names = (self.user.extra or {}).get(POD_NAME, ())
        return names[0] if len(names) == 1 else NO_POD


class LoggedUser(User, frozen=True):
    """The same with the groups, undecoded."""

    groups: Raw = _NULL


class LoggedRequest(AuditEvent, frozen=True, rename="camel"):
    """The same with the objects, undecoded."""

    user: LoggedUser = LoggedUser()
    impersonated_user: LoggedUser | None = None
    stage_timestamp: str = ""
    annotations: Mapping[str, str] | None = None
    request_uri: str = msgspec.field(default="", name="requestURI")
    request_object: Raw = _NULL
    response_object: Raw = _NULL


_decoder: Final = msgspec.json.Decoder(LoggedRequest, strict=False)


def observation_of(data: bytes, source: Source) -> Observation | None:
    """What one event says of leases or candidates; None if it is about something else.

    Raises:
        ValueError: it is not JSON of an audit event.

    """
    event = decoded(data)
    reference = event.object_ref
    act = ACT_OF_VERB.get(event.verb)
    kind = _KINDS.get(reference.resource)
    if kind is None or reference.api_group != GROUP or act is None or event.stage != "ResponseComplete":
        return None
    answered = moment_of(event.stage_timestamp)
    asked = moment_of(event.request_received_timestamp)
    shown = _object(event, act)
    named = typed(kind, shown) if shown is not None else Named()
    return Observation(
        source=source,
        origin=Origin.AUDIT_LOG,
        act=act,
        kind=kind,
        namespace=reference.namespace or named.namespace,
        name=reference.name or named.name,
        object=named.object,
        problem=named.problem,
        at=answered if answered is not None else asked,
        verb=event.verb,
        writer=writer_of(event),
        answer=Answer(
            event.response_status.code,
            event.response_status.message,
            answered - asked if answered is not None and asked is not None else 0,
            event.annotations or NO_TEXTS,
        ),
        is_dry_run="dryRun=" in event.request_uri,
    )


def decoded(data: bytes) -> LoggedRequest:
    """An audit event; raises ValueError."""
    return _decoder.decode(data)


def moment_of(text: str) -> int | None:
    """A time of an event in microseconds since 1970; None if it is absent or unreadable."""
    try:
        return micro_time.parse(text)
    except ValueError:
        return None


def last_moment(data: bytes) -> int | None:
    """When an event was logged, whatever it is about; None if there is none."""
    try:
        return moment_of(decoded(data).stage_timestamp)
    except (ValueError, RecursionError):
        return None


def _object(event: LoggedRequest, act: Act) -> Raw | None:
    """The object as it was stored, else as it was sent; a patch is not an object."""
    if act in _WITHOUT_OBJECT or not 200 <= event.response_status.code < 300:
        return None
    for raw in (event.response_object, event.request_object):
        if b'"spec"' in bytes(raw) and (raw is not event.request_object or event.verb in {"create", "update"}):
            return raw
    return None


def writer_of(event: LoggedRequest) -> Writer:
    """Who made the request; an impersonated user counts as the writer."""
    user = event.impersonated_user or event.user
    names = (user.extra or {}).get(POD_NAME, ())
    pod = names[0] if len(names) == 1 else ""
    return Writer(user.username, pod, _ADMINISTRATORS in bytes(user.groups))
