"""An event of an audit log as an API server writes it: `pkg/apis/audit/v1/types.go` of kubernetes/apiserver."""

import re
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import parse_qs

import msgspec
from msgspec import Raw, Struct

from webhook.analysis.inputs.items import NO_TEXTS, Writer
from webhook.analysis.inputs.our_objects import MAX_NAME
from webhook.kubernetes import times
from webhook.kubernetes.request import NULL, UserInfo, decode_user
from webhook.text.quoting import truncate

NO_POD: Final = "a token without a pod"
_LEVELS_WITH_BODIES: Final = frozenset({"Request", "RequestResponse"})
_TRUNCATED: Final = "audit.k8s.io/truncated"
"""The annotation of an event whose objects were left out because it was too long."""
_INVALID_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
NOTHING: Final = bytes(NULL)
"""An object that an event does not show."""


def make_writer(user: UserInfo, by: UserInfo | None = None) -> Writer:
    """Return who made a request, `by` whom it was impersonated, if it was."""
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

    @property
    def full_resource(self) -> str:
        """The resource and its group: `deployments.apps`, `pods`."""
        return ".".join(part for part in (self.resource, self.api_group) if part)


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
        return make_writer(impersonated, self.user) if impersonated else make_writer(self.user)

    @property
    def requester(self) -> UserInfo:
        """Who made the request; an impersonated user counts as the writer."""
        return decode_user(self.impersonated_user) or self.user

    @property
    def shows_body(self) -> bool:
        """Whether a request without a body in the log had none: at level Metadata no event shows any."""
        if self.level in _LEVELS_WITH_BODIES:
            return _TRUNCATED not in (self.annotations or NO_TEXTS)
        return bytes(self.request_object) != NOTHING or bytes(self.response_object) != NOTHING

    @property
    def query(self) -> Mapping[str, Sequence[str]]:
        """The parameters, as an API server reads them: a request has no fragment, and what is invalid is skipped."""
        parts = self.request_uri.partition("?")[2].split("&")
        valid = [one for one in parts if not _INVALID_ESCAPE.search(one) and ";" not in one]
        return parse_qs("&".join(valid), keep_blank_values=True)

    @property
    def is_from_cache(self) -> bool:
        """Whether an API server may answer without its etcd: a watch, or a read of any state, or of one not older."""
        return self.verb == "watch" or "resourceVersion" in self.request_uri

    @property
    def source(self) -> str:
        """The address and the program that it came from; "" if the log does not say both."""
        return (
            truncate(f"{self.source_ips[-1]} {self.user_agent}", MAX_NAME)
            if self.source_ips and self.user_agent
            else ""
        )

    @property
    def answered_at(self) -> int | None:
        """The time at which it was logged, in microseconds since 1970; None if that is absent or unreadable."""
        return times.get_instant(times.normalize(self.stage_timestamp))


decode_event: Final = msgspec.json.Decoder(AuditEvent, strict=False).decode
"""Returns an event; raises ValueError or RecursionError."""
