"""Facts about the election of a lease from other objects: its LeaseCandidates, their pings, and Events."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from webhook.analysis.claims.evidence.contenders.askers import Askers
from webhook.analysis.claims.evidence.coordination.choosers import ChangeOfChooser, find_change_of_chooser
from webhook.analysis.claims.evidence.coordination.other_candidates import OtherCandidates, find_other_candidates
from webhook.analysis.claims.evidence.coordination.unanswered_pings import UnansweredPing, find_unanswered_ping
from webhook.analysis.claims.evidence.coordination.vain_answers import VainAnswer, find_vain_answer
from webhook.analysis.claims.evidence.coordination.vain_creations import VainCreations, find_vain_creations
from webhook.analysis.history.elections.refused_candidates import RefusedCandidate
from webhook.analysis.history.elections.unserved_candidates import UnservedCandidates
from webhook.analysis.history.events import EventKind, LeaseEvent
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import API_SERVER
from webhook.analysis.history.lease import LeaseHistory
from webhook.kubernetes.objects import is_foreign_strategy
from webhook.kubernetes.times import SECOND


class ElectionFacts(Struct, frozen=True):
    """Facts about an election that the lease itself does not hold; none by default."""

    events: tuple[tuple[int, str], ...] = ()
    """Time and text of the Events by which a replica said that it began or stopped to lead."""
    candidate_events: tuple[LeaseEvent, ...] = ()
    """Changes of its LeaseCandidates."""
    missing_candidates: frozenset[str] = frozenset()
    """The names of its LeaseCandidates that were deleted, and are not known to exist again."""
    refused_candidates: tuple[RefusedCandidate, ...] = ()
    """LeaseCandidates for it that an API server refused, and has not stored since."""
    accepted_candidates: tuple[RefusedCandidate, ...] = ()
    """LeaseCandidates for it that an API server had refused until it did not any longer."""
    other_candidates: OtherCandidates | None = None
    """The pods that ask for it while their LeaseCandidates are for another lease; None if there are none."""
    unanswered: UnansweredPing | None = None
    """The latest ping of a candidate of its coordinated election that was not answered."""
    change_of_chooser: ChangeOfChooser | None = None
    """How the API server that chooses changed while the lease had no holder that renewed it."""
    vain: VainAnswer | None = None
    """The latest answer of a candidate that does not count, as its clock is behind."""
    vain_creations: VainCreations | None = None
    """The creations by which an API server tried to name a holder in vain."""
    strategy: str | None = None
    """The strategy of its coordinated election, "" if that is not known; None if it has no such election."""
    emulation_versions: tuple[tuple[str, str], ...] = ()
    """The names of holders in a coordinated election, with the emulationVersion of the LeaseCandidate of each."""
    unserved: UnservedCandidates | None = None
    """The versions of LeaseCandidates that an API server does not serve, if the election is coordinated."""

    @property
    def is_coordinated(self) -> bool:
        """Whether something else than its candidates chooses the holder."""
        return self.strategy is not None

    @property
    def foreign_strategy(self) -> str:
        """The strategy by which no API server chooses a holder; "" if one does, or if it is not known."""
        return self.strategy if self.strategy and is_foreign_strategy(self.strategy) else ""


_LONG: Final = 3 * SECOND
"""Refusals for less than that kept nobody from being chosen."""
NO_ELECTION_FACTS: Final = ElectionFacts()
"""Shared by all leases without candidates and Events: nearly all of a long list."""


def find_election_facts(
    histories: ClusterHistory, history: LeaseHistory, askers: Askers | None, now: int
) -> ElectionFacts:
    """Return what an input shows until `now`, in microseconds since 1970."""
    said = histories.election_events.get((history.namespace, history.name), ())
    events = histories.candidate_events.get((history.namespace, history.name), ())
    candidates = tuple(one for one in events if one.kind is not EventKind.CREATED or _is_by_stranger(one, history))
    deleted = {one.candidate for one in candidates if histories.is_candidate_missing(history.namespace, one.candidate)}
    strategy = histories.find_strategy(history)
    found = ElectionFacts(
        events=tuple(sorted(one for one in said if one[0] <= now)),
        candidate_events=candidates,
        missing_candidates=frozenset(deleted),
        refused_candidates=list_refused_candidates(histories, history),
        accepted_candidates=list_accepted_candidates(histories, history),
        other_candidates=find_other_candidates(histories, history, askers),
        unanswered=find_unanswered_ping(histories, history),
        change_of_chooser=find_change_of_chooser(histories, history),
        vain=find_vain_answer(histories, history),
        vain_creations=find_vain_creations(history),
        strategy=strategy,
        emulation_versions=() if strategy is None else _list_emulation_versions(histories, history),
        unserved=histories.unserved if strategy is not None else None,
    )
    return found if found != NO_ELECTION_FACTS else NO_ELECTION_FACTS


def _list_emulation_versions(histories: ClusterHistory, history: LeaseHistory) -> tuple[tuple[str, str], ...]:
    """Return the versions by which holders were chosen, unless a candidate was edited: then it may have had another."""
    events = histories.candidate_events.get((history.namespace, history.name), ())
    if any("emulationVersion" in one.text for one in events if one.kind is EventKind.EDITED):
        return ()
    holders = dict.fromkeys(one.holder for one in history.tenures)
    found = ((holder, histories.candidates.get((history.namespace, holder))) for holder in holders)
    own = ((holder, one.spec) for holder, one in found if one is not None and one.spec.lease_name == history.name)
    return tuple((holder, spec.emulation_version) for holder, spec in own if spec.emulation_version)


def list_refused_candidates(histories: ClusterHistory, history: LeaseHistory) -> tuple[RefusedCandidate, ...]:
    """Return those for a lease, and for which no later request of the same process was answered, the last one last.

    What is refused to a user that neither asked for the lease nor held it keeps no replica from being chosen.
    """
    found = histories.refused_candidates.list_for_lease(history.namespace, history.name, history.requests.accounts)
    return _select_of_electors([one for one in found if _is_for_lease(one, histories, history)], history)


def _is_for_lease(refused: RefusedCandidate, histories: ClusterHistory, history: LeaseHistory) -> bool:
    """Return whether a candidate is for a lease, where the input need not say for which.

    A process may ask for several leases: its candidate is for one of those of which API servers choose the holder.
    """
    if refused.lease or any(who.user == API_SERVER for who in history.requests.heard.times):
        return True
    others = (one for one in histories.leases.values() if one.namespace == history.namespace and one is not history)
    return not any(refused.writer in other.requests.heard.times for other in others)


def list_accepted_candidates(histories: ClusterHistory, history: LeaseHistory) -> tuple[RefusedCandidate, ...]:
    """Return those for a lease that were not refused any longer in the end, the last one last.

    An API server that starts may refuse anything for a moment.
    """
    found = histories.refused_candidates.list_ended(history.namespace, history.name, history.requests.accounts)
    of_lease = (one for one in found if _is_for_lease(one, histories, history))
    return _select_of_electors([one for one in of_lease if one.last.at - one.first >= _LONG], history)


def _select_of_electors(found: Sequence[RefusedCandidate], history: LeaseHistory) -> tuple[RefusedCandidate, ...]:
    """Return those of users that held the lease or asked for it; of one process only its writes, if there are any."""
    if not found:
        return ()
    users = _list_users_of_holders(history) | history.requests.users
    writers = {one.writer for one in found if not one.last.is_read}
    of_electors = (
        one
        for one in found
        if (one.writer.user in users or not users) and not (one.last.is_read and one.writer in writers)
    )
    return tuple(sorted(of_electors, key=lambda one: one.last.at))


def _list_users_of_holders(history: LeaseHistory) -> set[str]:
    return {one.processes.own.user for one in history.tenures if one.processes.own is not None}


def _is_by_stranger(event: LeaseEvent, history: LeaseHistory) -> bool:
    """Return whether another account than those of the holders did something; False if none of theirs is known.

    Who creates a candidate may hold the lease because of that: those that began later are none of the holders.
    """
    before = [one for one in history.tenures if one.since <= event.at] or history.tenures
    own = {one.processes.own.user for one in before if one.processes.own is not None}
    return bool(own) and event.writer is not None and event.writer.user not in {"", *own}
