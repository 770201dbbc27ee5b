"""Everything that is stored, object by object: findings as soon as they are certain, the rest at the end."""

from collections.abc import Callable, Collection, Iterator
from typing import Final

from msgspec import Struct, field

from webhook.api.objects import LeaseCandidate
from webhook.audit import leases
from webhook.audit.subject import Subject, broken_rules
from webhook.findings import Finding, ObjectName, Severity, kubectl, word
from webhook.history.status import State
from webhook.rules.change import NODE_LEASES
from webhook.rules.holders import MAX_HOSTNAME, host_name

_LEASE_CHECKS: Final[tuple[Callable[[Subject], Iterator[Finding]], ...]] = (
    leases.frozen,
    broken_rules,
    leases.forged_stamps,
    leases.wrong_clock,
    leases.expired,
    leases.timing,
    leases.several_applications,
)


class Inventory(Struct):
    """The objects that an audit remembers; `now` in microseconds since 1970. `pods` are by namespace."""

    now: int
    stamped: frozenset[str] = frozenset()
    """Namespaces in which the API server stamps writers, as the policy file says."""
    leases: dict[tuple[str, str], tuple[State, str]] = field(default_factory=dict)
    without_stamps: list[Finding] = field(default_factory=list)
    has_managed_fields: bool = False
    pods: dict[str, set[str]] = field(default_factory=dict)
    nodes: set[str] = field(default_factory=set)

    def add(self, subject: Subject) -> Iterator[Finding]:
        """Take in one object; yield what is certain about it without the others."""
        if isinstance(subject.object, LeaseCandidate):
            yield from broken_rules(subject)
            return
        standing = subject.status
        self.leases[subject.namespace, subject.name] = (standing.state, standing.holder)
        self.has_managed_fields = self.has_managed_fields or bool(subject.entries)
        if subject.namespace in self.stamped:
            yield from leases.not_stamped(subject)
        elif missing := leases.missing_stamp(subject):
            self.without_stamps.append(missing)
        yield from of_state(subject)

    def rest(self) -> Iterator[Finding]:
        """Findings that need all objects."""
        if self.has_managed_fields:
            yield from self.without_stamps
        known = {pod for pods in self.pods.values() for pod in pods}
        for (namespace, name), (state, holder) in self.leases.items():
            yield from self._orphans(namespace, name, state, holder, known)

    def _orphans(
        self, namespace: str, name: str, state: State, holder: str, known: Collection[str]
    ) -> Iterator[Finding]:
        subject = ObjectName("Lease", namespace, name)
        if namespace == NODE_LEASES:
            if self.nodes and name not in self.nodes:
                message = f"node {name} does not exist"
                fix = f"{kubectl(namespace)} delete lease {word(name)}"
                yield Finding("node-gone", Severity.WARNING, message, fix, subject=subject)
            return
        pod = leases.pod_of(holder)
        # An elector may keep its lease in another namespace; the host name of some pods is that of a node.
        if not pod or not known or pod in known or pod in self.nodes or _is_cut(pod, known):
            return
        # A holder that is not named like a pod shows nothing about a pod. If the input has no pod of the namespace, it
        # may not cover it: then only a lease that no one renews shows that its pod is gone.
        if not leases.names_a_pod(holder) or (namespace not in self.pods and state is State.LIVE):
            return
        message = f"the holder names pod {pod}, which does not exist"
        is_live = state is State.LIVE
        fix = "wait until the lease has expired" if is_live else f"{kubectl(namespace)} get pods"
        severity = Severity.INFO if is_live else Severity.WARNING
        yield Finding("holder-gone", severity, message, fix, subject=subject)


def of_state(subject: Subject) -> Iterator[Finding]:
    """Yield what is certain about a lease without the others."""
    for check in _LEASE_CHECKS:
        yield from check(subject)


def _is_cut(pod: str, pods: Collection[str]) -> bool:
    """True if this is the host name of a pod whose name is longer."""
    return any(len(one) > MAX_HOSTNAME and host_name(one) == pod for one in pods)
