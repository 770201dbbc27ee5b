"""The resources that a fence may name, and why it may not name some."""

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from webhook.api.request import GROUP
from webhook.api.text import quote
from webhook.policy.error import PolicyError, nearest

BUILT_IN: Final[Mapping[str, str]] = {
    "": "bindings configmaps endpoints events limitranges namespaces nodes persistentvolumeclaims persistentvolumes "
    "pods podtemplates replicationcontrollers resourcequotas secrets serviceaccounts services",
    "apps": "controllerrevisions daemonsets deployments replicasets statefulsets",
    "batch": "cronjobs jobs",
    "autoscaling": "horizontalpodautoscalers",
    "policy": "poddisruptionbudgets",
    "rbac.authorization.k8s.io": "clusterrolebindings clusterroles rolebindings roles",
}
"""The groups of Kubernetes whose lists of resources have not changed for years: others do not exist there."""

SUBRESOURCES: Final = (
    *("approval", "attach", "binding", "ephemeralcontainers", "eviction", "exec", "finalize", "log", "portforward"),
    *("proxy", "resize", "scale", "status", "token"),
)
"""Those that Kubernetes' own resources have."""

_KNOWN: Final = [
    f"{resource}.{group}" if group else resource for group, names in BUILT_IN.items() for resource in names.split()
]
_FORM: Final = re.compile(
    r"(?P<resource>[a-z]([-a-z0-9]{0,61}[a-z0-9])?)(\.(?P<group>[a-z0-9][-a-z0-9.]*[a-z0-9]))?"
    r"(/(?P<subresource>[a-z][-a-z0-9]*))?"
)
_SUBRESOURCE_BEFORE_GROUP: Final = re.compile(r"([a-z0-9-]+)/([a-z0-9-]+)\.([a-z0-9.-]+)")
_ELECTION: Final = {
    "leases": "a follower writes the lease to become its holder, so no takeover would be possible; leave leases out, "
    "and protect the lease with a binding",
    "leasecandidates": "a candidate is written before it leads, so no candidate could be elected; leave it out",
}
_POLICIES: Final = frozenset(
    kind + suffix for kind in ("validatingadmissionpolicies", "mutatingadmissionpolicies") for suffix in ("", "/status")
) | {"validatingadmissionpolicybindings", "mutatingadmissionpolicybindings"}


class FencedResource(Struct, frozen=True, order=True):
    """A resource of one group (`""`: the core group), or a subresource of it."""

    group: str
    resource: str
    subresource: str = ""

    @property
    def path(self) -> str:
        """As rules of the API server name it: `deployments/scale`."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource

    def __str__(self) -> str:
        """As policy files name it: `deployments.apps/scale`."""
        name = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{name}/{self.subresource}" if self.subresource else name


def read(text: str, path: str) -> FencedResource:
    """The resource that a policy file names; raises PolicyError if no fence may name it."""
    if "*" in text:
        problem = (
            "`*` includes the leases, events and access reviews that followers must write; list resources by name, "
            "and each subresource (deployments.apps/status) beside its resource"
        )
        raise PolicyError(problem, path)
    form = _FORM.fullmatch(text)
    if form is None:
        raise PolicyError(f"{quote(text)} is not a resource{_hint(text)}", path)
    found = FencedResource(form["group"] or "", form["resource"], form["subresource"] or "")
    _check_existence(found, path)
    reason = why_not(found)
    if reason:
        raise PolicyError(f"{quote(text)} cannot be fenced: {reason}", path)
    return found


def why_not(found: FencedResource) -> str:
    """Why followers must be able to write it, or why a fence would not see it; "" if it can be fenced."""
    if found.group == GROUP and found.resource in _ELECTION:
        return _ELECTION[found.resource]
    if found.resource == "events" and found.group in ("", "events.k8s.io"):
        return "followers write events too, for example during the election; leave events out"
    if found.group in ("authentication.k8s.io", "authorization.k8s.io") or found.subresource == "token":
        return "followers send it to authenticate and to authorize, and nothing is stored; leave it out"
    if found.group == "admissionregistration.k8s.io" and found.path in _POLICIES:
        return "the API server admits it without evaluating any policy; leave it out"
    return ""


def _check_existence(found: FencedResource, path: str) -> None:
    if found.group not in BUILT_IN:
        return
    if found.resource not in BUILT_IN[found.group].split():
        group = f"group {found.group}" if found.group else "the core group"
        same = [name for name in _KNOWN if name.partition(".")[0] == found.resource]
        hint = f"; did you mean {quote(same[0])}?" if same else nearest(str(found).partition("/")[0], _KNOWN)
        form = "" if hint else "; write the group of a custom resource after its name, as in widgets.example.com"
        raise PolicyError(f"{quote(found.resource)} is not a resource of {group}{hint}{form}", path)
    if found.subresource and found.subresource not in SUBRESOURCES:
        hint = nearest(found.subresource, SUBRESOURCES)
        raise PolicyError(f"{quote(found.subresource)} is not a subresource of {found.resource}{hint}", path)


def _hint(text: str) -> str:
    swapped = _SUBRESOURCE_BEFORE_GROUP.fullmatch(text)
    if swapped:
        return f"; did you mean {quote(f'{swapped[1]}.{swapped[3]}/{swapped[2]}')}?"
    form = "; write the plural in lower case, its group and the subresource, as in deployments.apps/scale"
    kind, dot, group = text.partition(".")
    return nearest(f"{kind.lower().removesuffix('s')}s{dot}{group.lower()}", _KNOWN) or form
