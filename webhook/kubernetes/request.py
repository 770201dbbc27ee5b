"""The request inside an AdmissionReview, as a frozen value: what is written, how, and by whom."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from webhook.cached_property import cached_property
from webhook.kubernetes.field import FieldError
from webhook.kubernetes.formats import MAX_NAME
from webhook.kubernetes.managed_fields import truncate_review
from webhook.kubernetes.objects import Lease, LeaseCandidate, list_versions
from webhook.text.quoting import cached_if_short

GROUP: Final = "coordination.k8s.io"
NODE_USER: Final = "system:node:"
"""What the name of a kubelet as a user begins with; that of its node follows."""
NODE_CONTROLLER: Final = "system:serviceaccount:kube-system:node-controller"
TAINT_EVICTORS: Final = frozenset({NODE_CONTROLLER, "system:serviceaccount:kube-system:taint-eviction-controller"})
"""Who deletes pods that do not tolerate a taint of their node: the second one does so from Kubernetes 1.29 on, under a
user of its own if it has one."""
"""Watches whether nodes are heard, and evicts pods from those that are not."""
NULL: Final = Raw(b"null")

MAX_REQUEST: Final = 3 * 1024 * 1024
"""Bytes of a write that an API server takes (kubernetes/apiserver `pkg/server/config.go`, MaxRequestBodyBytes)."""


class Operation(StrEnum):
    """What the caller asked the API server to do; PATCH and apply arrive as UPDATE or CREATE."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


class Resource(StrEnum):
    """The resources that this webhook validates."""

    LEASES = "leases"
    LEASECANDIDATES = "leasecandidates"


_LEASES: Final = Resource.LEASES.value
KIND_OF: Final = {"leases": "Lease", "leasecandidates": "LeaseCandidate"}
VERSIONS_OF: Final = {resource: list_versions(kind) for resource, kind in KIND_OF.items()}
"""The versions that this webhook decodes and evaluates, for Leases more than API servers still serve."""


class Options(Struct, frozen=True, gc=False, rename="camel"):
    """CreateOptions, UpdateOptions or DeleteOptions; absent and null are one value."""

    dry_run: list[str] | None = None
    field_manager: str | None = None
    field_validation: str | None = None
    grace_period_seconds: int | None = None
    propagation_policy: str | None = None
    orphan_dependents: bool | None = None
    preconditions: dict[str, str | None] | None = None


NO_OPTIONS = Options()

Specs = tuple[Mapping[str, Any], Mapping[str, Any]]
"""`spec` of object and of oldObject as JSON values; empty if there is none."""
NO_SPECS: Final[Specs] = {}, {}


class UserInfo(Struct, frozen=True, dict=True):
    """The user who writes, as the API server authenticated it.

    One value serves all requests of a user, so it keeps what was computed of it.
    """

    username: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}

    @cached_property
    def pod_name(self) -> str:
        """The pod that the writer's token is bound to, or ""; a text longer than a name can be is ignored."""
        return self._get_extra("pod-name")

    @property
    def pod_uid(self) -> str:
        """The uid of that pod, or ""."""
        return self._get_extra("pod-uid")

    @property
    def node_name(self) -> str:
        """The node of that pod, as the API server wrote it into the token, or ""."""
        return self._get_extra("node-name")

    def _get_extra(self, what: str) -> str:
        names = self.extra.get(f"authentication.kubernetes.io/{what}")
        return names[0] if names and len(names[0]) <= MAX_NAME else ""

    @cached_property
    def requesters(self) -> tuple[str, ...]:
        """Return what an exemption may name: this user, its groups, and "" for anyone."""
        return (f"user:{self.username}", *[f"group:{group}" for group in self.groups], "")

    @cached_property
    def service_account(self) -> tuple[str, str] | None:
        """Return (namespace, name) of a service account, else None."""
        prefix, _, rest = self.username.partition("system:serviceaccount:")
        namespace, colon, name = rest.partition(":")
        return (namespace, name) if not prefix and colon else None


class _Nullable(Struct, frozen=True, gc=False):
    username: str | None = None
    groups: tuple[str, ...] | None = None
    extra: dict[str, tuple[str, ...] | None] | None = None


_user: Final[msgspec.json.Decoder[_Nullable | None]] = msgspec.json.Decoder(_Nullable | None)


def decode_user(user_info: Raw) -> UserInfo | None:
    """Return the writer; None for null and anything unreadable, for which rules about the writer report a finding.

    No authenticator names a writer in more than MAX_REQUEST bytes, so that is unreadable as well.
    """
    text = bytes(user_info)
    return _decode_user(text) if len(text) <= MAX_REQUEST else None


@cached_if_short(
    max_entries=256, max_length=1024
)  # each client writes often, and the API server says the same of it each time
def _decode_user(user_info: bytes) -> UserInfo | None:
    try:
        user = _user.decode(user_info)
    except msgspec.ValidationError:
        return None
    if user is None:
        return None
    extra = {key: values or () for key, values in user.extra.items()} if user.extra else {}
    return UserInfo(user.username or "", user.groups or (), extra)


class AdmissionRequest(Struct, frozen=True, dict=True):
    """One write, as the API server describes it in a review.

    `name` and `namespace` are those of the object if the request leaves them empty.
    `user` is None if userInfo is absent or unreadable.
    `contradiction` is set for a request that contradicts itself (a verdict with code 400).
    `object_errors` are wrong JSON types inside object or oldObject; rules then do not run.
    `specs` are empty if there is no review.
    `api_version` is that of the review, repeated in the response. `body` is the review, for what only one rule reads.
    """

    uid: str
    operation: Operation = Operation.CREATE
    resource: str = ""
    kind: str = ""
    version: str = ""
    group: str = ""
    sub_resource: str = ""
    namespace: str = ""
    name: str = ""
    user: UserInfo | None = None
    new: Lease | LeaseCandidate | None = None
    old: Lease | LeaseCandidate | None = None
    specs: Specs = NO_SPECS
    options: Options = NO_OPTIONS
    object_errors: tuple[FieldError, ...] = ()
    contradiction: str = ""
    api_version: str = "admission.k8s.io/v1"
    body: bytes = b""

    @property
    def lease_name(self) -> str:
        """The lease that the write is about: its own name, or the one that a candidate names."""
        if self.resource == _LEASES:
            return self.name
        for candidate in (self.new, self.old):
            if isinstance(candidate, LeaseCandidate) and candidate.spec.lease_name:
                return candidate.spec.lease_name
        return ""

    @property
    def kept_lease_name(self) -> str:
        """`lease_name`; "" for a candidate that this write moves to another lease, which API servers refuse."""
        old, name = self.old, self.lease_name
        return "" if isinstance(old, LeaseCandidate) and old.spec.lease_name not in (None, "", name) else name

    @property
    def is_ours(self) -> bool:
        """True if the request is about a resource, in a version, that this webhook decodes."""
        return self.group == GROUP and self.version in VERSIONS_OF.get(self.resource, ())

    @cached_property
    def _raw(self) -> tuple[Raw, Raw]:
        try:
            request = _review.decode(self.body or b'{"request":{}}').request
        except RecursionError:
            request = _review.decode(truncate_review(self.body)).request
        return request.object, request.old_object

    @property
    def sizes(self) -> tuple[int, int]:
        """The bytes of object and of oldObject as the review carries them; at least as many as etcd stores.

        Containers that nest too deeply were removed from the body of a review before.
        """
        new, old = self._raw
        return len(memoryview(new)), len(memoryview(old))

    @property
    def set_in_spec(self) -> frozenset[str]:
        """The fields of `specs` that the write added or changed, as managedFields spells them.

        A null is set: it is the zero time, which is owned. So is a field that is not known here.
        """
        spec, known = self.specs
        return frozenset([f"f:{name}" for name, value in spec.items() if name not in known or known[name] != value])


class _Request(Struct, frozen=True, gc=False, rename="camel"):
    object: Raw = NULL
    old_object: Raw = NULL


class _Review(Struct, frozen=True, gc=False):
    request: _Request


_review: Final = msgspec.json.Decoder(_Review)
