"""An audit of an input: stored objects are examined one by one, a history when the input ends."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct, field

from webhook.audit.finding import RANK, Finding
from webhook.audit.ownership import homes_of
from webhook.audit.stock import Stock, subject_of
from webhook.cli.cluster_options import moment_of_input
from webhook.explanation.account import interval_of
from webhook.explanation.incidents import incidents
from webhook.history.cluster_history import ClusterHistory
from webhook.observations.observation import Fenced, Foreign, Item, LogEnd, Observation, Origin, Unreadable
from webhook.reports.model import Severity


class Audit(Struct):
    """An audit in progress: objects of a dump are examined as they are read, a history when it ends."""

    stock: Stock
    fail_on: Severity
    known: frozenset[str]
    now: str | None
    paths: Sequence[str]
    history: ClusterHistory = field(default_factory=ClusterHistory)
    examined: list[tuple[str, str]] = field(default_factory=list)
    """(name, source) of everything that was examined, in order."""
    counts: Counter[str] = field(default_factory=Counter)
    counts_by_check: Counter[tuple[str, str]] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    unreadable: list[Unreadable] = field(default_factory=list)
    passed_over: int = 0

    def run(self, items: Iterable[Item]) -> Iterator[Finding]:
        """Every finding that is not in the baseline, each as soon as it is certain."""
        for item in items:
            for finding in self._take(item):
                yield from self._new(finding)
        for finding in self._rest():
            yield from self._new(finding)

    @property
    def exit_code(self) -> int:
        """2 if something could not be read, 1 if something severe was found, else 0."""
        if self.unreadable or not (self.examined or self.skipped):
            return 2
        return int(any(self.counts[one.value] for one in Severity if RANK[one] >= RANK[self.fail_on]))

    def complaints(self) -> Iterator[str]:
        """What the input does not show."""
        if not self.examined and not self.unreadable:
            yield "no lease and no candidate is in the input"
        if self.stock.leases and not self.stock.has_managed_fields:
            yield "the input has no managedFields, so stamps are not examined; kubectl needs --show-managed-fields"

    def _take(self, item: Item) -> Iterator[Finding]:
        if isinstance(item, Fenced):
            return  # it is about another object
        if isinstance(item, Unreadable):
            self.unreadable.append(item)
        elif isinstance(item, Foreign):
            self.skipped[item.kind] += 1
            if item.kind == "Pod":
                self.stock.pods.setdefault(item.namespace, set()).add(item.name)
            elif item.kind == "Node":
                self.stock.nodes.add(item.name)
        elif isinstance(item, LogEnd) or item.origin is not Origin.DUMP:
            self.history.observe(item)
        else:
            yield from self._stored(item)

    def _stored(self, item: Observation) -> Iterator[Finding]:
        name = f"{item.kind} {item.namespace}/{item.name}"
        self.examined.append((name, item.source.path))
        if item.object is None:
            yield Finding(
                kind=item.kind,
                namespace=item.namespace,
                name=item.name,
                check="object-types",
                severity=Severity.ERROR,
                message=item.problem,
                repair="correct the type in the manifest; an API server refuses the object",
                source=str(item.source),
            )
            return
        subject = subject_of(item.object, item.namespace, item.name, self.stock.now, source=str(item.source))
        yield from self.stock.add(subject)

    def _rest(self) -> Iterator[Finding]:
        """Findings that need the whole history, or all objects."""
        if self.history.leases or self.history.candidates:
            at = moment_of_input(self.now, self.paths, self.history.until).at
            self.stock.now = at if not self.stock.leases else self.stock.now
            for (namespace, name), history in self.history.leases.items():
                self.examined.append((f"Lease {namespace}/{name}", ", ".join(self.paths)))
                if history.lease is not None and not history.is_deleted:
                    interval, homes = interval_of(history), homes_of(history)
                    subject = subject_of(history.lease, namespace, name, at, interval=interval, homes=homes)
                    yield from self.stock.add(subject)
                yield from incidents(self.history, history, at)
            for (namespace, name), candidate in self.history.candidates.items():
                self.examined.append((f"LeaseCandidate {namespace}/{name}", ", ".join(self.paths)))
                yield from self.stock.add(subject_of(candidate, namespace, name, at))
        yield from self.stock.rest()

    def _new(self, finding: Finding) -> Iterator[Finding]:
        if finding.fingerprint in self.known:
            self.passed_over += 1
            return
        self.counts[finding.severity.value] += 1
        self.counts_by_check[finding.check, finding.severity.value] += 1
        yield finding
