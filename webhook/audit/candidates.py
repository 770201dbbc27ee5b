"""LeaseCandidates: dead ones, those that cannot agree, and those of a lease that does not exist."""

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from webhook.api.objects import LeaseCandidate
from webhook.api.text import cut, quote
from webhook.audit.finding import Finding
from webhook.audit.subject import Subject
from webhook.reports.model import Severity
from webhook.rules.election.candidate_strategy_conflict import ID, LIVE, candidates_agree_on_a_strategy
from webhook.rules.times import normalized, readable, span

_SEE: Final = "{kubectl} get leasecandidates -o custom-columns=N:.metadata.name,V:.spec.binaryVersion,S:.spec.strategy"


def dead_candidate(subject: Subject) -> Iterator[Finding]:
    """A candidate that has not renewed itself for half an hour."""
    assert isinstance(subject.object, LeaseCandidate)
    renewed = readable(normalized(subject.object.spec.renew_time))
    if renewed is None:
        message = "the candidate was never renewed, so it is never elected"
    elif subject.now - renewed > LIVE:
        message = f"the candidate was last renewed {span(subject.now - renewed)} ago: its program is gone"
    else:
        return
    yield subject.finding("candidate-dead", Severity.WARNING, message, "{kubectl} delete leasecandidate {name}")


def without_lease(subject: Subject, leases: Collection[tuple[str, str]]) -> Iterator[Finding]:
    """A candidate of a lease that is not there, among the leases of the same input."""
    assert isinstance(subject.object, LeaseCandidate)
    lease = subject.object.spec.lease_name or ""
    if lease and (subject.namespace, lease) not in leases:
        message = f"the candidate stands for lease {quote(cut(lease, 80))}, which does not exist: no one was elected"
        repair = "{kubectl} get lease {lease}; is CoordinatedLeaderElection on at every API server?"
        yield subject.finding("candidate-without-lease", Severity.WARNING, message, repair, lease)


def conflicts(candidates: Iterable[Subject], now: int) -> Iterator[Finding]:
    """The candidates of one lease that cannot agree on a strategy: one finding, at the first of them."""
    subjects = list(candidates)
    objects = [one.object for one in subjects if isinstance(one.object, LeaseCandidate)]
    for found in candidates_agree_on_a_strategy(objects, now):
        repair = f"{_SEE}; give all candidates of the newest version one strategy"
        yield subjects[0].finding(ID, Severity.ERROR, found.error.detail, repair)
