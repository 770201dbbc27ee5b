"""Whose leases they are: owners, scaffold names, several applications on one lease, foreign ones in kube-system."""

import re
from collections.abc import Collection, Iterator
from typing import Final

from webhook.api.managed_fields import ANCIENT_CHANGES, APPLY, BEFORE_FIRST_APPLY, Entry
from webhook.api.text import cut, quote
from webhook.api.user import UserInfo
from webhook.audit.finding import Finding
from webhook.audit.subject import Subject
from webhook.history.lease_history import LeaseHistory
from webhook.reports.model import Severity
from webhook.rules.times import HOUR
from webhook.rules.well_known import KUBE_SYSTEM, NODE_LEASES

_SCAFFOLDS: Final = re.compile(
    r"(?:.*\.)?(?:example\.(?:com|org|net)|my\.domain|tutorial\.kubebuilder\.io)"
    r"|controller-leader-election-helper|controller-leader|leader-election|leader-election-id|operator-lock"
    r"|my-operator(?:-lock)?|example(?:-lease|-lock|-operator-lock)?|memcached-operator-lock"
)
"""Names that a generator or a tutorial proposes; two programs that keep one share a lease."""

_NOT_AN_APPLICATION: Final = frozenset({ANCIENT_CHANGES, BEFORE_FIRST_APPLY, "kube-apiserver", "unknown", ""})
_OF_THE_CONTROL_PLANE: Final = re.compile(
    r"apiserver-.+|kube-.+|cloud-controller-manager|.*-cloud-controller-manager|cluster-autoscaler|leader-election-controller"
    r"|cloud-provider-.+|konnectivity-.+|system:konnectivity-.+|cilium-.+|vpa-.+|.*csi.*|plndr-.+|etcd-.+"
)


def node_without_owner(subject: Subject) -> Iterator[Finding]:
    """A node's lease that no node owns stays when the node goes."""
    if subject.namespace != NODE_LEASES:
        return
    owners = subject.object.metadata.owner_references or []
    if not any(owner is not None and owner.kind == "Node" for owner in owners):
        message = "no Node owns this lease, so nothing removes it when the node goes"
        repair = "kubectl get node {name} || {kubectl} delete lease {name}"
        yield subject.finding("node-lease-without-owner", Severity.WARNING, message, repair)


def scaffold_name(subject: Subject) -> Iterator[Finding]:
    """A name that a generator proposed."""
    if _SCAFFOLDS.fullmatch(subject.name) and not subject.is_heartbeat:
        message = (
            "the name is one that a generator or a tutorial proposes; another program that kept it shares this lease"
        )
        repair = "give the elector a name of its own (LeaderElectionID), with all replicas stopped"
        yield subject.finding("scaffold-name", Severity.WARNING, message, repair)


def foreign_in_kube_system(subject: Subject, homes: Collection[str]) -> Iterator[Finding]:
    """A lease in kube-system that does not belong there: platforms refuse such writes.

    Args:
        subject: the lease.
        homes: the namespaces of its writers and of the pod that its holder names, as far as they are known; if none
            is, the name of the lease decides.

    """
    if subject.namespace != KUBE_SYSTEM or subject.is_heartbeat:
        return
    tenants = sorted({*homes} - {KUBE_SYSTEM})
    if not tenants and (homes or _OF_THE_CONTROL_PLANE.match(subject.name)):
        return
    whose = f"a program of namespace {cut(tenants[0], 63)} keeps this lease there, and " if tenants else ""
    message = f"kube-system holds the leases of the cluster itself; {whose}managed platforms refuse those of others"
    repair = "let the program keep its lease in its own namespace (--leader-election-namespace)"
    yield subject.finding("foreign-in-kube-system", Severity.INFO, message, repair)


def homes_of(history: LeaseHistory) -> frozenset[str]:
    """The namespaces of those who wrote a lease; the cluster's own users belong to kube-system."""
    users = {one.user for tenure in history.tenures for one in tenure.writers}
    accounts = (UserInfo(user).service_account for user in users)
    own = {KUBE_SYSTEM for user in users if user.startswith("system:") and not user.startswith("system:serviceaccount")}
    return frozenset(account[0] for account in accounts if account) | own


def several_applications(subject: Subject) -> Iterator[Finding]:
    """A lease whose spec several programs have written, as far as managedFields still show."""
    if subject.is_heartbeat or subject.lease.strategy:
        return
    latest: dict[str, int] = {}
    for entry in subject.entries:
        if _is_application(entry) and entry.stamp is not None:
            latest[entry.manager or ""] = max(entry.stamp, latest.get(entry.manager or "", 0))
    if len(latest) < 2:
        return
    newest, *others = sorted(latest, key=lambda manager: (-latest[manager], manager))
    is_recent = latest[newest] - latest[others[0]] <= HOUR
    names = ", ".join(quote(cut(one, 40)) for one in (newest, *others[:3]))
    message = f"several programs have written this lease: {names}"
    if not is_recent:
        message += "; the others long ago, so it may be one program under a new name"
    repair = "if they are two applications, give each a lease name of its own"
    yield subject.finding("shared-lease", Severity.WARNING if is_recent else Severity.INFO, message, repair)


def _is_application(entry: Entry) -> bool:
    manager = entry.manager or ""
    if entry.operation == APPLY or manager in _NOT_AN_APPLICATION or manager.startswith("kubectl"):
        return False
    return any(True for _ in entry.members("f:spec"))
