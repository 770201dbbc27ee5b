"""Fences: only the holder of a lease may make some writes; what of a policy file can be enforced, and what cannot."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import UNSET, Struct

from webhook.admission.policy.schema import (
    DEFAULT_HOLDER,
    Choice,
    Expired,
    FenceMode,
    FenceSetting,
    PolicyError,
    suggest_nearest,
)
from webhook.admission.rules.holders import make_host_name
from webhook.admission.rules.stamps import Stamps
from webhook.kubernetes.request import GROUP
from webhook.text.quoting import quote

_VARIABLE: Final = re.compile(r"\$\{(pod|node)\}")
_OF_NAMES: Final = re.compile(r"[a-z0-9.-]")
"""Characters of the names of pods and nodes: one of them next to a name may belong to a longer name."""
_BUILT_IN: Final[Mapping[str, str]] = {
    "": "bindings configmaps endpoints events limitranges namespaces nodes persistentvolumeclaims persistentvolumes "
    "pods podtemplates replicationcontrollers resourcequotas secrets serviceaccounts services",
    "apps": "controllerrevisions daemonsets deployments replicasets statefulsets",
    "batch": "cronjobs jobs",
    "autoscaling": "horizontalpodautoscalers",
    "policy": "poddisruptionbudgets",
    "rbac.authorization.k8s.io": "clusterrolebindings clusterroles rolebindings roles",
}
"""The groups of Kubernetes whose lists of resources have not changed for years: others do not exist there."""
_SUBRESOURCES: Final = (
    *("approval", "attach", "binding", "ephemeralcontainers", "eviction", "exec", "finalize", "log", "portforward"),
    *("proxy", "resize", "scale", "status", "token"),
)
"""Subresources that Kubernetes' own resources have."""
_BUILT_IN_RESOURCES: Final = [
    f"{resource}.{group}" if group else resource for group, names in _BUILT_IN.items() for resource in names.split()
]
_FORM: Final = re.compile(
    r"(?P<resource>[a-z]([-a-z0-9]{0,61}[a-z0-9])?)(\.(?P<group>[a-z0-9][-a-z0-9.]*[a-z0-9]))?"
    r"(/(?P<subresource>[a-z][-a-z0-9]*))?"
)
_ELECTION: Final = {
    "leases": "a follower writes the lease to become its holder, so no takeover would be possible; leave leases out, "
    "and protect the lease with a binding",
    "leasecandidates": "a candidate is written before it leads, so no candidate could be elected; leave it out",
}
_REQUESTS: Final = "certificates.k8s.io/certificatesigningrequests"
_WITH_STATUS: Final = frozenset(
    {
        *("/namespaces", "/nodes", "/persistentvolumeclaims", "/persistentvolumes", "/pods", "/replicationcontrollers"),
        *("/resourcequotas", "/services", "apps/daemonsets", "apps/deployments", "apps/replicasets"),
        *("apps/statefulsets", "batch/cronjobs", "batch/jobs", "autoscaling/horizontalpodautoscalers"),
        *("policy/poddisruptionbudgets", "networking.k8s.io/ingresses"),
        *("apiextensions.k8s.io/customresourcedefinitions", _REQUESTS),
    }
)
"""Resources whose `status` stores annotations. That of custom resources, and of many others, puts back all metadata."""
_POLICIES: Final = re.compile("(validating|mutating)admissionpolic(ies(/status)?|ybindings)")


class HolderTemplate(Struct, frozen=True):
    """Holder identities: `before`, the name of the `claim` ("pod" or "node"), `after`, and any more if `is_open`."""

    before: str
    claim: str
    after: str
    is_open: bool

    def fits(self, name: str, holder: str) -> bool:
        """True if a holder identity is that of a pod, or node, of this name; never if the name is not known ("")."""
        identities = [f"{self.before}{one}{self.after}" for one in {name, make_host_name(name)} if one]
        return any(holder.startswith(one) if self.is_open else holder == one for one in identities)


class FencedResource(Struct, frozen=True, order=True):
    """A resource of one group (`""`: the core group), or a subresource of it."""

    group: str
    resource: str
    subresource: str = ""

    @property
    def has_stored_metadata(self) -> bool:
        """True if its subresource `status` is known to store the annotations that are written there."""
        return f"{self.group}/{self.resource}" in _WITH_STATUS

    @property
    def storing_subresources(self) -> tuple[str, ...]:
        """The subresources that are known to store the annotations that are written there."""
        of_requests = ("approval",) if f"{self.group}/{self.resource}" == _REQUESTS else ()
        return ("status", *of_requests) if self.has_stored_metadata else ()

    @property
    def path(self) -> str:
        """The name in rules of the API server: `deployments/scale`."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource

    def __str__(self) -> str:
        """Return the name in policy files: `deployments.apps/scale`."""
        name = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{name}/{self.subresource}" if self.subresource else name


class Fence(Struct, frozen=True):
    """A fence: only the holder of the lease, among the writers, may make these writes.

    `writers` are service accounts of one namespace; `namespaces` are those of the objects written, empty for all.
    `suffix` is that of the stamps of the lease, "" without; `is_by_stamp`: the holder is the stamped writer.
    """

    name: str
    namespace: str
    lease: str
    writers: tuple[tuple[str, str], ...]
    holders: tuple[HolderTemplate, ...]
    resources: tuple[FencedResource, ...]
    operations: tuple[str, ...]
    namespaces: tuple[str, ...]
    mode: FenceMode
    when_unheld: Choice
    missing_lease: Choice
    suffix: str = ""
    is_by_stamp: bool = False
    has_token: bool = False
    when_expired: Expired = "allow"

    @property
    def usernames(self) -> tuple[str, ...]:
        """The user names that the writers' tokens authenticate as."""
        return tuple(f"system:serviceaccount:{namespace}:{name}" for namespace, name in self.writers)

    @property
    def lease_text(self) -> str:
        """`namespace/name` of the lease."""
        return f"{self.namespace}/{self.lease}"

    @property
    def token_key(self) -> str:
        """The annotation in which objects keep the token."""
        return f"{self.name}.lease-webhook/token-{self.suffix}"

    @property
    def denies_if_lease_is_missing(self) -> bool:
        """True if all writes of the writers are denied while the lease does not exist."""
        # If the parameter is not found, the API server denies the write as an error of the configuration, whatever the
        # actions of the binding are. So only a fence in mode deny may set that.
        return self.mode == "deny" and self.missing_lease == "deny"


def make_fences(settings: Sequence[FenceSetting], stamps: Mapping[str, Stamps]) -> tuple[Fence, ...]:
    """Return the fences; raises PolicyError if two have one name, or one could not enforce what it says.

    `stamps` are those of leases, by namespace.
    """
    first: dict[str, int] = {}
    for position, setting in enumerate(settings):
        if setting.name in first:
            raise PolicyError(f"fences[{first[setting.name]}] already has this name", f"fences[{position}].name")
        first[setting.name] = position
    return tuple(_make_fence(setting, f"fences[{position}]", stamps) for position, setting in enumerate(settings))


def read_resource(text: str, path: str) -> FencedResource:
    """Return the resource that a policy file names; raises PolicyError if no fence may name it."""
    if "*" in text:
        problem = (
            "`*` includes the leases, events and access reviews that followers must write; list resources by name, "
            "and each subresource (deployments.apps/status) beside its resource"
        )
        raise PolicyError(problem, path)
    form = _FORM.fullmatch(text)
    if form is None:
        example = "write the plural in lower case, its group and the subresource, as in deployments.apps/scale"
        raise PolicyError(f"{quote(text)} is not a resource; {example}", path)
    found = FencedResource(form["group"] or "", form["resource"], form["subresource"] or "")
    _check_existence(found, path)
    if reason := find_reason_not_to_fence(found):
        raise PolicyError(f"{quote(text)} cannot be fenced: {reason}", path)
    return found


def find_reason_not_to_fence(found: FencedResource) -> str:
    """Return why followers must be able to write it, or why a fence would not see it; "" if it can be fenced."""
    if found.group == GROUP and found.resource in _ELECTION:
        return _ELECTION[found.resource]
    if found.resource == "events" and found.group in ("", "events.k8s.io"):
        return "followers write events too, for example during the election; leave events out"
    if found.group in ("authentication.k8s.io", "authorization.k8s.io") or found.subresource == "token":
        return "followers send it to authenticate and to authorize, and nothing is stored; leave it out"
    if found.group == "admissionregistration.k8s.io" and _POLICIES.fullmatch(found.path):
        return "the API server admits it without evaluating any policy; leave it out"
    return ""


def _make_fence(setting: FenceSetting, path: str, stamps: Mapping[str, Stamps]) -> Fence:
    namespace, _, lease = setting.lease.partition("/")
    suffix = stamps[namespace].suffix if namespace in stamps else ""
    _check_stamps(setting, path, suffix)
    holder = [DEFAULT_HOLDER] if setting.holder is UNSET else setting.holder
    # With Deny, API servers refuse these writes by anyone while the lease does not exist: a namespace at most, unasked.
    missing: Choice = "deny" if setting.token or (setting.namespaces and setting.mode == "deny") else "allow"
    resources = [read_resource(text, f"{path}.resources[{number}]") for number, text in enumerate(setting.resources)]
    return Fence(
        name=setting.name,
        namespace=namespace,
        lease=lease,
        writers=_parse_writers(setting.writers, f"{path}.writers"),
        holders=tuple(dict.fromkeys(_parse_holders(holder, f"{path}.holder"))),
        resources=tuple(dict.fromkeys(resources)),
        operations=tuple(dict.fromkeys(setting.operations)),
        namespaces=tuple(dict.fromkeys(setting.namespaces)),
        mode=setting.mode,
        when_unheld=setting.when_unheld,
        missing_lease=missing if setting.missing_lease is UNSET else setting.missing_lease,
        suffix=suffix,
        is_by_stamp=bool(suffix) and setting.holder is UNSET,
        has_token=setting.token,
        when_expired=setting.expired,
    )


def _check_stamps(setting: FenceSetting, path: str, suffix: str) -> None:
    """Raise PolicyError if a key of a fence needs what no API server writes into its lease."""
    for key, asked in (("token", setting.token), ("expired", setting.expired != "allow")):
        if asked and not suffix:
            problem = "needs the stamps of the lease: install deploy/stamp, and name the lease's namespace in `stamps`"
            raise PolicyError(problem, f"{path}.{key}")
    if setting.token and setting.missing_lease == "allow":
        problem = "must be deny beside `token`: without the lease no API server knows a term"
        raise PolicyError(problem, f"{path}.missing_lease")


def _parse_writers(texts: Sequence[str], path: str) -> tuple[tuple[str, str], ...]:
    writers = [text.partition("/")[::2] for text in dict.fromkeys(texts)]
    for number, (namespace, _) in enumerate(writers):
        if namespace != writers[0][0]:
            problem = (
                "must be of the same namespace as the first writer: pods of two namespaces may have one name, "
                "and the holder identity does not contain the namespace"
            )
            raise PolicyError(problem, f"{path}[{number}]")
    return tuple(writers)


def _parse_holders(texts: list[str], path: str) -> Iterator[HolderTemplate]:
    """Yield the templates of one fence; raises PolicyError if two pods could not be distinguished."""
    for number, text in enumerate(texts):
        before, claim, after = _VARIABLE.split(text)
        template = HolderTemplate(before, claim, after.removesuffix("*"), is_open=after.endswith("*"))
        if template.is_open and (not template.after or _OF_NAMES.fullmatch(template.after[0])):
            problem = (
                "`*` also matches longer names: that of op-1 matches op-10; put a character that no name has between "
                f"them, as in {quote(f'{before}${{{claim}}}_*')}"
            )
            raise PolicyError(problem, f"{path}[{number}]")
        if len(texts) > 1 and (_OF_NAMES.fullmatch(before[-1:]) or _OF_NAMES.fullmatch(after[:1])):
            problem = (
                "next to other templates, the name must be separated by a character that no name has, such as _: "
                "otherwise two pods match one holder"
            )
            raise PolicyError(problem, f"{path}[{number}]")
        yield template


def _check_existence(found: FencedResource, path: str) -> None:
    if found.group not in _BUILT_IN:
        return
    if found.resource not in _BUILT_IN[found.group].split():
        group = f"group {found.group}" if found.group else "the core group"
        same = [name for name in _BUILT_IN_RESOURCES if name.partition(".")[0] == found.resource]
        hint = (
            f"; did you mean {quote(same[0])}?"
            if same
            else suggest_nearest(str(found).partition("/")[0], _BUILT_IN_RESOURCES)
        )
        form = "" if hint else "; write the group of a custom resource after its name, as in widgets.example.com"
        raise PolicyError(f"{quote(found.resource)} is not a resource of {group}{hint}{form}", path)
    if found.subresource and found.subresource not in _SUBRESOURCES:
        hint = suggest_nearest(found.subresource, _SUBRESOURCES)
        raise PolicyError(f"{quote(found.subresource)} is not a subresource of {found.resource}{hint}", path)
