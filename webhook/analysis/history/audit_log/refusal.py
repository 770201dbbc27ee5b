"""Requests for a lease that an API server refused, or answered late, and what refused them.

All instants are microseconds since 1970 by the clocks of API servers.
"""

import re
from enum import Enum, StrEnum, auto
from typing import Final, Self

from msgspec import Struct

from webhook.analysis.history.audit_log.latency import find_slow_part
from webhook.analysis.inputs.items import Act, Answer, Observation, Writer
from webhook.kubernetes.times import SECOND
from webhook.text.quoting import truncate

SLOW: Final = 1 * SECOND
"""An answer that took longer is remembered: clients give up after a few seconds."""
MAX_MESSAGE: Final = 400
MAX_REASON: Final = 100
AUTHORIZATION_REASON: Final = "authorization.k8s.io/reason"
"""An annotation that the API server writes. Source: kubernetes/apiserver `pkg/endpoints/filters/authorization.go`."""
AUTHORIZATION_FAILED: Final = "internal error"
"""The reason that it writes if an authorizer failed, and did not refuse."""
_CUT_OFF: Final = re.compile(r"stream error: stream ID [0-9]{1,20}; [A-Z_0-9]{1,40}")
"""The whole answer if a client stops, or resets its stream, before an API server has read all of a request.

Source: `StreamError` of golang.org/x/net `http2/errors.go`, which reading the body returns; of what an API server asks
itself, such as a webhook, the message says more.
"""
_RBAC: Final = "RBAC: "
_DECISION: Final = "authorization.k8s.io/decision"
_ALLOWED: Final = "allow"
UNAUTHENTICATED: Final = 401
ANONYMOUS: Final = "system:anonymous"
"""The user of requests without credentials. Source: `user.Anonymous` of kubernetes/apiserver."""
NOT_FOUND: Final = 404
UNKNOWN_RESOURCE: Final = "the server could not find the requested resource"
"""The message of 404 to a request for a kind, or a version of it, that an API server does not serve."""
_CONFLICT: Final = 409
TOO_MANY_REQUESTS: Final = 429
_INTERNAL_ERROR: Final = 500
_UNPROCESSABLE: Final = 422
UNAPPLIED_PATCH: Final = "the server rejected our request due to an error in our request"
"""The answer to a JSON patch that does not fit what is stored. Source: kubernetes/apiserver
`pkg/endpoints/handlers/patch.go`, and `NewGenericServerResponse` of apimachinery."""
_EXISTS: Final = re.compile(r'leases\.coordination\.k8s\.io "[^"]{1,253}" already exists')
"""Another 409 may be of a quota. Source: `NewAlreadyExists` of apimachinery `pkg/api/errors`."""
_APPLY_CONFLICT: Final = "Apply failed with "
"""How the answer to a server-side apply of others' fields begins. Source: `NewApplyConflict` of apimachinery."""
_WEBHOOK: Final = re.compile(r'admission webhook "([^"]{1,253})" denied the request')
_FAILED_WEBHOOK: Final = re.compile(r'failed calling webhook "([^"]{1,253})"')
_FORBIDDEN: Final = r'[a-z0-9./-]{1,253}(?: "[^"]{0,253}")? is forbidden: '
"""How an API server's own messages begin. What follows may quote a client, as the message of a policy does."""
_POLICY: Final = re.compile(rf"{_FORBIDDEN}ValidatingAdmissionPolicy '([^']{{1,253}})'")
_RIGHTS: Final = re.compile(rf'{_FORBIDDEN}User "[^"]*" cannot ')
_NAMED_HEAD: Final = re.compile(
    rf"\A(?:{_WEBHOOK.pattern}|{_POLICY.pattern} with binding '[^']{{1,253}}' denied request): (?=\S)"
)
"""What a message begins with that says no more than which webhook or policy refused."""
_OF_LEASES: Final = re.compile(
    rf'\A({_FORBIDDEN}User "[^"]*" cannot [a-z]+ resource "leases") '
    r'in API group "coordination\.k8s\.io"(?: in the namespace "[^"]*")?'
)
_LACKED: Final = re.compile(r'^[^"]*(?:"[^"]*" )?is forbidden: User "[^"]*" cannot ([a-z]{3,20}) resource ')
_ROLES: Final = {"clusterrole": "ClusterRole", "role": "Role"}
_MISSING_ROLE: Final = re.compile(r'(clusterrole|role)\.rbac\.authorization\.k8s\.io "([^"]{1,253})" not found')
"""What RBAC adds to a refusal. Source: kubernetes `plugin/pkg/auth/authorizer/rbac/rbac.go`."""
_IMPERSONATION: Final = re.compile(
    r'(users|serviceaccounts) "([^"]{1,253})" is forbidden: User "[^"]*" cannot impersonate resource "\1" '
    r'in API group ""(?: in the namespace "([^"]{1,63})")?'
)
"""Source: kubernetes `staging/src/k8s.io/apiserver/pkg/endpoints/filters/impersonation.go`."""
_HELD: Final = re.compile(r"lease is held by \S{1,320} \(pod uid ([0-9a-f-]{36})\)")
"""How the guard of stamps names the holder that it kept the lease for: deploy/stamp/policies.yaml."""
_OWNER: Final = re.compile(rf"{_FORBIDDEN}cannot set an ownerRef on a resource you can't delete")
_BLOCKED_OWNER: Final = re.compile(rf"{_FORBIDDEN}cannot set blockOwnerDeletion ")
"""Source: kubernetes `plugin/pkg/admission/gc/gc_admission.go`, the plugin OwnerReferencesPermissionEnforcement."""

_TERMINATED: Final = re.compile(
    rf"{_FORBIDDEN}unable to create new content in namespace \S{{1,63}} because it is being term"
)
"""Source: kubernetes/apiserver `pkg/admission/plugin/namespace/lifecycle/admission.go`."""


def is_not_served(answer: "Answer | Refusal") -> bool:
    """Return whether an API server says that it does not serve a kind, or a version of it."""
    return answer.code == NOT_FOUND and answer.message == UNKNOWN_RESOURCE


class RefusedBy(StrEnum):
    """The part of an API server that refused a write."""

    RIGHTS = "rights"
    """The writer may not do this: RBAC, or another authorizer."""
    CREDENTIALS = "credentials"
    """The API server does not know who writes: an expired token, or one whose pod was deleted."""
    WEBHOOK = "webhook"
    POLICY = "policy"
    """A ValidatingAdmissionPolicy."""
    FIELDS = "fields"
    """Another field manager owns what it applies without force."""
    OTHER = "other"


class RequestKind(Enum):
    """What a request was to do to a lease."""

    READ = auto()
    CREATION = auto()
    UPDATE = auto()
    RELEASE = auto()
    """An update that would have left no holder."""
    DELETION = auto()

    @classmethod
    def from_observation(cls, seen: Observation) -> Self:
        """Return the kind of a request that a log shows."""
        if seen.act is Act.READ:
            return cls.READ
        if seen.act is Act.DELETED:
            return cls.DELETION
        if seen.verb == "create":
            return cls.CREATION
        return cls.RELEASE if seen.refused_holder == "" else cls.UPDATE


class Refusal(Struct, frozen=True):
    """A write or a read that was refused or failed, or was answered late (`code` is then one of success)."""

    at: int
    code: int
    message: str
    took: int
    writer: Writer
    source: str = ""
    """The address and the program that it came from, as far as a log says."""
    request: RequestKind = RequestKind.UPDATE
    asked_holder: str = ""
    """The holder that an update asked for, shortened; "" for none, or if a log does not show it."""
    was_stored: bool | None = False
    """It was stored all the same, although its answer says that it failed; None if that is not known."""
    log: str = ""
    """The path of the log that shows it."""
    reason: str = ""
    """What an authorizer gave as its reason, "" if none did, or if RBAC is what decided."""
    slow_part: str = ""
    """What took most of the time of the answer, if the API server says so."""
    was_authorized: bool = False
    """The authorizers allowed it, as the API server says, so that admission refused it."""
    is_repeat: bool = False
    """An update that was accepted just before, sent again: it names the same version, and has the same renewTime."""

    @classmethod
    def from_observation(cls, seen: Observation) -> "Refusal | None":
        """Return what is remembered of an answer; None if it succeeded in time, or its time is not known."""
        answer = seen.answer
        if answer is None or seen.at is None or (answer.is_stored and answer.took <= SLOW):
            return None
        message = truncate(answer.message, MAX_MESSAGE)
        reason = truncate(answer.annotations.get(AUTHORIZATION_REASON, ""), MAX_REASON)
        return cls(
            at=seen.at,
            code=answer.code,
            message=message,
            took=answer.took,
            writer=seen.writer or Writer(),
            source=seen.source,
            request=RequestKind.from_observation(seen),
            asked_holder=truncate(seen.refused_holder or "", MAX_MESSAGE),
            was_stored=seen.was_stored,
            log=seen.log_path,
            reason="" if reason.startswith(_RBAC) else reason,
            slow_part=find_slow_part(answer.annotations) if answer.took > SLOW else "",
            was_authorized=answer.annotations.get(_DECISION) == _ALLOWED,
        )

    @property
    def is_read(self) -> bool:
        """Whether it was to read the lease."""
        return self.request is RequestKind.READ

    @property
    def is_creation(self) -> bool:
        """Whether it was to create the lease."""
        return self.request is RequestKind.CREATION

    @property
    def is_deletion(self) -> bool:
        """Whether it was to delete the lease."""
        return self.request is RequestKind.DELETION

    @property
    def is_release(self) -> bool:
        """Whether it was to leave no holder, so its writer asked to give the lease up."""
        return self.request is RequestKind.RELEASE

    @property
    def is_anonymous(self) -> bool:
        """True if it carried no credentials, so that rights do not explain it: nobody acts for that user as another."""
        return self.writer.user == ANONYMOUS and not self.writer.impersonator

    @property
    def has_conflicted(self) -> bool:
        """True if another write came first; 409 to a creation means that the object exists."""
        return self.code == _CONFLICT and not (self.is_creation or self.is_deletion or self.is_apply_conflict)

    @property
    def is_of_existing_lease(self) -> bool:
        """True if it would have created the lease, and the API server answered that it exists."""
        return self.is_creation and self.code == _CONFLICT and _EXISTS.fullmatch(self.message) is not None

    @property
    def is_of_other_state(self) -> bool:
        """True if it was made for a state, or an object, that is not the stored one; a deletion may name either."""
        return self.has_conflicted or (self.code == _CONFLICT and self.is_deletion)

    @property
    def received(self) -> int:
        """The time at which the API server received it, in microseconds since 1970."""
        return self.at - self.took

    @property
    def is_held_by_another(self) -> bool:
        """True if the guard of stamps kept the lease for another pod than the one that asked."""
        held = _HELD.search(self.message) if self.by is RefusedBy.POLICY and self.writer.uid else None
        return held is not None and held[1] != self.writer.uid

    @property
    def is_denied_write(self) -> bool:
        """True if the API server did not want a write."""
        return self.is_denied and not self.is_read

    @property
    def is_denied(self) -> bool:
        """True if the API server did not want it, rather than being unable to store it, or asked to try again."""
        return self.is_apply_conflict or (400 <= self.code < 500 and self.code not in {404, 409, 429})

    def asks_for_other_than(self, *holders: str) -> bool:
        """Return whether a log shows that it was to name another holder than these: a pod may run several processes."""
        known = [truncate(one, MAX_MESSAGE) for one in holders]
        return bool(self.asked_holder) and self.asked_holder not in known

    @property
    def is_apply_conflict(self) -> bool:
        """True if other field managers own what it applied: unlike after another conflict, to try again is in vain."""
        return self.code == _CONFLICT and self.message.startswith(_APPLY_CONFLICT)

    @property
    def is_unapplied_patch(self) -> bool:
        """True if a JSON patch did not fit what was stored: electors race by its operation `test`, as by a conflict."""
        return self.code == _UNPROCESSABLE and self.message == UNAPPLIED_PATCH

    @property
    def is_of_unexpected_state(self) -> bool:
        """True if an update, or a JSON patch, was made for a state that is not the stored one."""
        return self.has_conflicted or self.is_unapplied_patch

    @property
    def has_failed(self) -> bool:
        """True if the API server was unable to store it; not if the client hung up before a second had passed."""
        is_abandoned = "context canceled" in self.message and self.took < SLOW
        return (self.code >= 500 or self.code == 429) and not is_abandoned

    @property
    def is_cut_off(self) -> bool:
        """True if the API server did not receive all of the request, so that it stored nothing."""
        return self.code == _INTERNAL_ERROR and _CUT_OFF.fullmatch(self.message) is not None

    @property
    def is_unserved(self) -> bool:
        """True if the API server serves no leases, or not of this version: else it names the lease it has not found."""
        return self.code == NOT_FOUND and self.message in {"", UNKNOWN_RESOURCE}

    @property
    def has_failed_at_once(self) -> bool:
        """True if the API server answered that it failed, and was not slow itself: etcd or a webhook refused."""
        return self.code == _INTERNAL_ERROR and self.took < SLOW

    @property
    def is_unknown_user(self) -> bool:
        """True if no credentials were accepted with it, so that the log has no name of who sent it."""
        return self.code == UNAUTHENTICATED and not self.writer.user

    @property
    def failed_webhook(self) -> str:
        """The name of the webhook that the API server could not call, and without which it stores nothing, or ""."""
        found = _FAILED_WEBHOOK.search(self.message)
        return found[1] if found else ""

    @property
    def is_in_terminated_namespace(self) -> bool:
        """True if it would have created something in a namespace that is being deleted."""
        return _TERMINATED.match(self.message) is not None

    @property
    def lacks_deletion(self) -> bool:
        """True if it sets an ownerReference, and its writer may not delete the lease, as admission asks then."""
        return _OWNER.match(self.message) is not None

    @property
    def lacks_finalizers(self) -> bool:
        """True if it sets blockOwnerDeletion, and its writer may not set finalizers of the owner."""
        return _BLOCKED_OWNER.match(self.message) is not None

    @property
    def lacks_rights(self) -> bool:
        """True if a right is missing: to do this, or one that admission asks for besides."""
        return self.by is RefusedBy.RIGHTS or self.lacks_deletion or self.lacks_finalizers

    @property
    def lacked_verb(self) -> str:
        """The verb that an authorizer did not allow, such as `update`; "" if the answer does not name it."""
        found = _LACKED.search(self.message)
        return found[1] if found else ""

    @property
    def missing_roles(self) -> tuple[tuple[str, str], ...]:
        """The kinds and names of roles that RBAC looked for, as a binding names them, and did not find."""
        text = self.message.partition(_RBAC)[2] if self.by is RefusedBy.RIGHTS else ""
        return tuple((_ROLES[kind], name) for kind, name in _MISSING_ROLE.findall(text))

    @property
    def impersonated(self) -> str:
        """The user as which its writer asked and may not ask, "" if it asked as itself: the answer names it."""
        found = _IMPERSONATION.match(self.message)
        if found is None:
            return ""
        return f"system:serviceaccount:{found[3]}:{found[2]}" if found[3] else found[2]

    @property
    def by(self) -> RefusedBy:
        """The part of the API server that refused it, as far as the message says."""
        if self.is_apply_conflict:
            return RefusedBy.FIELDS
        if _WEBHOOK.match(self.message):
            return RefusedBy.WEBHOOK
        if _POLICY.match(self.message):
            return RefusedBy.POLICY
        if self.code == UNAUTHENTICATED:
            return RefusedBy.CREDENTIALS
        return RefusedBy.RIGHTS if _RIGHTS.match(self.message) else RefusedBy.OTHER

    @property
    def name(self) -> str:
        """The name of the webhook or policy that refused it, "" if it was neither."""
        found = _WEBHOOK.match(self.message) or _POLICY.match(self.message)
        return found[1] if found else ""

    @property
    def refuser(self) -> str:
        """` by webhook fence.example.org`, if the answer names what refused it, else ""."""
        return f" by {self.by.value} {self.name}" if self.name else ""

    @property
    def shown_message(self) -> str:
        """The message, without what a sentence about a lease that has `by` and `name` says already."""
        return _OF_LEASES.sub(r"\1", _NAMED_HEAD.sub("", self.message, count=1), count=1)
