"""Everything that is stored, object by object: findings as soon as they are certain, the rest at the end."""

from collections.abc import Callable, Collection, Iterator
from typing import Final

from msgspec import Struct, field

from webhook.api.objects import Lease, LeaseCandidate
from webhook.audit import candidates, holding, ownership, stamps
from webhook.audit.command_words import kubectl, word
from webhook.audit.finding import Finding
from webhook.audit.rules import broken_rules
from webhook.audit.subject import Subject
from webhook.history.standing import State, standing_of
from webhook.observations.observation import entries_of_object
from webhook.reports.model import Severity
from webhook.rules.well_known import KUBE_SYSTEM, NODE_LEASES
from webhook.rules.writer_identity import LONGEST_HOSTNAME, host_name

LEASE_CHECKS: Final[tuple[Callable[[Subject], Iterator[Finding]], ...]] = (
    holding.frozen,
    broken_rules,
    stamps.forged_stamps,
    stamps.wrong_clock,
    holding.expired,
    holding.timing,
    ownership.node_without_owner,
    ownership.scaffold_name,
    ownership.several_applications,
)
CANDIDATE_CHECKS: Final[tuple[Callable[[Subject], Iterator[Finding]], ...]] = (broken_rules, candidates.dead_candidate)


def subject_of(
    one: Lease | LeaseCandidate,
    namespace: str,
    name: str,
    now: int,
    *,
    interval: float | None = None,
    source: str = "",
    homes: frozenset[str] = frozenset(),
) -> Subject:
    """A stored object as the checks see it."""
    entries = entries_of_object(one)
    if isinstance(one, Lease):
        standing = standing_of(one, entries, now)
        return Subject("Lease", namespace, name, one, entries, now, standing, interval, source, homes)
    return Subject("LeaseCandidate", namespace, name, one, entries, now, source=source)


class Stock(Struct):
    """What an audit remembers between objects; `now` in microseconds since 1970.

    `pods` and `nodes` are those of the input, by namespace, and by name; None as long as the input has none.
    """

    now: int
    leases: dict[tuple[str, str], tuple[State, str]] = field(default_factory=dict)
    candidates: dict[tuple[str, str], list[Subject]] = field(default_factory=dict)
    in_kube_system: list[Subject] = field(default_factory=list)
    without_stamps: list[Finding] = field(default_factory=list)
    has_managed_fields: bool = False
    pods: dict[str, set[str]] = field(default_factory=dict)
    nodes: set[str] = field(default_factory=set)

    def add(self, subject: Subject) -> Iterator[Finding]:
        """Take in one object; gives what is certain about it without the others."""
        if isinstance(subject.object, LeaseCandidate):
            lease = (subject.namespace, subject.object.spec.lease_name or "")
            self.candidates.setdefault(lease, []).append(subject)
            for check in CANDIDATE_CHECKS:
                yield from check(subject)
            return
        standing = subject.stands
        self.leases[subject.namespace, subject.name] = (standing.state, standing.holder)
        self.has_managed_fields = self.has_managed_fields or bool(subject.entries)
        if subject.namespace == KUBE_SYSTEM:
            self.in_kube_system.append(subject)
        if stamps.has_no_stamp(subject):
            self.without_stamps.append(stamps.missing_stamp(subject))
        for check in LEASE_CHECKS:
            yield from check(subject)

    def rest(self) -> Iterator[Finding]:
        """Findings that need all objects."""
        if self.has_managed_fields:
            yield from self.without_stamps
        for subjects in self.candidates.values():
            yield from candidates.conflicts(subjects, self.now)
            for subject in subjects if self.leases else ():
                yield from candidates.without_lease(subject, self.leases)
        homes: dict[str, set[str]] = {}
        for namespace, pods in self.pods.items():
            for pod in pods:
                homes.setdefault(pod, set()).add(namespace)
        for subject in self.in_kube_system:
            pod = holding.pod_of(subject.stands.holder)
            yield from ownership.foreign_in_kube_system(subject, subject.homes | homes.get(pod, set()))
        for (namespace, name), (state, holder) in self.leases.items():
            yield from self._orphans(namespace, name, state, holder, homes.keys())

    def _orphans(
        self, namespace: str, name: str, state: State, holder: str, known: Collection[str]
    ) -> Iterator[Finding]:
        if namespace == NODE_LEASES:
            if self.nodes and name not in self.nodes:
                message = f"there is no node {name}"
                repair = f"{kubectl(namespace)} delete lease {word(name)}"
                yield Finding("Lease", namespace, name, "node-gone", Severity.WARNING, message, repair)
            return
        pod = holding.pod_of(holder)
        # An elector may keep its lease in another namespace; the host name of some pods is that of a node.
        if not pod or not known or pod in known or pod in self.nodes or _is_cut(pod, known):
            return
        # A holder that is not named like a pod shows nothing about a pod. If the input has no pod of the namespace, it
        # may not cover it: then only a lease that no one renews shows that its pod is gone.
        if not holding.names_a_pod(holder) or (namespace not in self.pods and state is State.LIVE):
            return
        message = f"the holder names pod {pod}, which does not exist"
        is_live = state is State.LIVE
        repair = "wait until the lease has expired" if is_live else f"{kubectl(namespace)} get pods"
        severity = Severity.INFO if is_live else Severity.WARNING
        yield Finding("Lease", namespace, name, "holder-gone", severity, message, repair)


def _is_cut(pod: str, pods: Collection[str]) -> bool:
    """Whether this is the host name of a pod whose name is longer."""
    return any(len(one) > LONGEST_HOSTNAME and host_name(one) == pod for one in pods)
