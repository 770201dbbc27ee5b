"""The events of a lease, as lines in the order of time."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from webhook.analysis.claims.account import Account
from webhook.analysis.claims.claim import Claim
from webhook.analysis.claims.diagnosis import Blame
from webhook.analysis.claims.evidence.contenders.refused_creations import find_refused_creations
from webhook.analysis.claims.evidence.machines.moved_heartbeats import find_moved_heartbeat
from webhook.analysis.claims.evidence.pods.loops import find_loop
from webhook.analysis.claims.evidence.pods.rollouts import describe_templates
from webhook.analysis.claims.evidence.writers.manager_runs import describe_manager_run, find_manager_run
from webhook.analysis.claims.evidence.writers.nameless_renewals import (
    describe_nameless_renewals,
    list_nameless_renewals,
)
from webhook.analysis.claims.evidence.writers.stored_copies import find_stored_copies
from webhook.analysis.claims.findings.changed_user import find_changed_user
from webhook.analysis.claims.findings.past_rhythms import find_past_rhythms
from webhook.analysis.claims.findings.refused_candidates import describe_accepted_candidates
from webhook.analysis.claims.findings.single_readers import find_single_readers
from webhook.analysis.claims.findings.two_addresses import find_two_addresses
from webhook.analysis.claims.findings.two_servers import find_two_servers
from webhook.analysis.claims.handover_clauses import (
    describe_edit,
    describe_renewals_of_another,
)
from webhook.analysis.claims.handovers import FrequentChanges, find_frequent_changes
from webhook.analysis.claims.presentation.advise import advise
from webhook.analysis.claims.presentation.events.edits import list_added_owners, list_edits, list_label_changes
from webhook.analysis.claims.presentation.events.event import PAIR, Event, get_time
from webhook.analysis.claims.presentation.events.handovers import (
    describe_ending,
    describe_set_back,
    find_last_handover,
    list_changed_durations,
    list_creation,
    list_handovers,
    list_recreation,
    list_silences,
    list_unshown_durations,
    list_writing_in,
)
from webhook.analysis.claims.presentation.events.related_writes import (
    is_loud,
    list_pod_deletions,
    list_related_writes,
    list_telling_pod_events,
)
from webhook.analysis.claims.presentation.events.writes import (
    list_accepted_writes,
    list_conflicts,
    list_fenced_writes,
    list_other_writes,
    list_refused_writes,
    list_slow_writes,
)
from webhook.analysis.claims.presentation.text import Line
from webhook.analysis.claims.words import format_clock, format_count
from webhook.analysis.history.events import EventKind, LeaseEvent
from webhook.analysis.history.holders.tenure import Handover, with_previous
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.status import LeaseState
from webhook.kubernetes.times import format_length

MAX_EVENTS: Final = 16
MAX_GAPS: Final = 4
_MAX_LATEST: Final = 2
_MIN_CHANGES: Final = 3
"""Changes of the holder within a few minutes: of fewer, the last one says enough."""
_CHANGED: Final = "holder changed"
_MAX_RELATED: Final = 4
"""Writes to other objects than the lease: the cause of an incident is often an earlier one than what ended it."""


def list_events(account: Account, most: int = MAX_EVENTS) -> Iterator[Line]:
    """Yield the latest events, oldest first."""
    history, now = account.history, account.now
    beside = [*_list_candidates(account), *list_pod_deletions(account), *list_related_writes(account)]
    beside += [(one.at, one.text) for one in account.pods.events]
    beside += [
        *_list_failing(account),
        *_list_crossed_locks(account),
        *_list_restarts(account),
        *_list_single_readers(account),
    ]
    beside += [*_list_deleted_waiter(account), *_list_past_rhythms(account), *_list_manager_runs(account)]
    beside += [*_list_change_of_chooser(account), *_list_vain_creations(account), *_list_paused(account)]
    beside += [*_list_refused_creations(account), *_list_job_status(account)]
    beside += [*_list_accepted_candidates(account), *_list_nameless_renewals(account)]
    beside += [*_list_work_after_releases(account), *_list_idle_times(account), *_list_moved_heartbeat(account)]
    found = sorted(
        [
            *list_recreation(history)[:-1],
            *list_creation(account),
            *_list_all(account),
            *_list_changed_user(account),
            *list_edits(history),
            *list_changed_durations(history),
            *list_added_owners(history),
            *list_label_changes(account),
            *beside,
            *_list_gaps(account),
        ],
        key=get_time,
    )
    if history.is_mixed or (len(found) == 1 and history.latest_tenure and history.latest_tenure.began is Handover.SEEN):
        return  # the headline says as much
    if len(found) > most:
        yield Line("", f"{format_count(len(found) - most, 'earlier event')} left out")
    for at, text in found[-most:]:
        yield Line(format_clock(at, now), text)


_OF_NO_CHANGE: Final = frozenset(
    {"lease-shared", "read-refused", "stored-other-than-asked", "write-refused", "write-fenced"}
)
"""Findings that say nothing of how the present holder followed the one before."""


def list_latest(account: Account) -> Iterator[Line]:
    """Yield what neither the headline nor a finding says: edits by others, what was not recorded, the last handover."""
    history = account.history
    loud = (one for one in account.findings if isinstance(one, Claim) and is_loud(one))
    since = history.latest_tenure.since if history.latest_tenure else 0
    is_told = any(one.check not in _OF_NO_CHANGE and (one.over_since or since) >= since for one in loud)
    edits = list_edits(history, by_others=True, is_handover_shown=not is_told)
    shown = [*_list_gaps(account)[-1:], *edits[-_MAX_LATEST:]]
    shown += [*list_added_owners(history, by_others=True)[-_MAX_LATEST:], *_list_changed_duration(account)]
    shown += list_label_changes(account, is_short=True)[-_MAX_LATEST:]
    shown += _list_candidates(account, are_missing=bool(account.election.missing_candidates))[-_MAX_LATEST:]
    is_cause = any(isinstance(one, Claim) and one.cause == Blame.POD for one in account.findings)
    related = list_related_writes(account, are_latest=True)
    # What came first may be the cause of the rest.
    shown += [*related[:-_MAX_RELATED][:1], *related[-_MAX_RELATED:]]
    if left_out := related[1:-_MAX_RELATED]:
        until = f" until {format_clock(left_out[-1][0], account.now)}" if len(left_out) > 1 else ""
        more = format_count(len(left_out), "more write")
        shown.append((left_out[0][0], f"{more} to what its holders depend on{until}: --verbose has them"))
    # Of a lease that no one holds, those of the last two say that the next one went, too.
    last_deletions = _MAX_LATEST if account.state is LeaseState.RELEASED else 1
    shown += [] if is_cause else list_pod_deletions(account)[-last_deletions:]
    shown += list_telling_pod_events(account)[-_MAX_LATEST:] + _list_failing(account)[-_MAX_LATEST:]
    shown += [
        *_list_crossed_locks(account),
        *_list_restarts(account),
        *_list_job_status(account),
        *_list_change_of_chooser(account),
        *_list_vain_creations(account),
        *_list_refused_creations(account),
        *_list_deleted_waiter(account),
        *_list_accepted_candidates(account),
        *_list_paused(account),
        *_list_single_readers(account),
        *_list_past_rhythms(account),
        *_list_manager_runs(account)[-1:],
        *_list_moved_heartbeat(account),
        *_list_odd_renewals(history)[-_MAX_LATEST:],
    ]
    shown += _list_work_after_releases(account)[-_MAX_LATEST:] + _list_idle_times(account)[-_MAX_LATEST:]
    # Those before an earlier handover than the last one are over.
    before_last = history.tenures[-PAIR].since if len(history.tenures) >= PAIR else 0
    shown += [one for one in _list_nameless_renewals(account)[-1:] if one[0] >= before_last]
    shown += [*list_unshown_durations(account), *_list_two_addresses(history), *_list_two_servers(account)]
    shown += [*list_conflicts(account)][-_MAX_LATEST:]
    shown += [] if is_told else [*list_slow_writes(history)][-_MAX_LATEST:]
    shown += [*list_other_writes(history)[-_MAX_LATEST:], *[*list_accepted_writes(history)][-_MAX_LATEST:]]
    if loop := find_loop(history.tenures, account.now):
        shown.append((loop.tenures[0].since, loop.describe(account.now)))
    elif not is_told:
        shown += list_writing_in(history)[-_MAX_LATEST:]
        shown += [describe_set_back(one, one.set_back) for one in [*history.tenures][-2:] if one.set_back is not None]
        shown += find_last_handover(account)
    shown += _list_changes(account, shown)
    # That a lease is new explains one that is well.
    shown += [] if any(is_loud(one) for one in account.findings) else list_creation(account)
    shown += _list_changed_user(account)
    for at, text in [] if history.is_mixed else sorted(shown, key=get_time):
        yield Line(format_clock(at, account.now), text)


def _list_changes(account: Account, shown: Sequence[Event]) -> list[Event]:
    """Return how often the holder changed lately, unless the advice or another event says it."""
    history = account.history
    changes = find_frequent_changes(history.tenures, account.now, least=_MIN_CHANGES)
    copies = find_stored_copies(history)
    if changes is not None and copies is not None:
        return [(copies.tenures[0].since, f"from then on {copies.describe()}")]
    is_told = changes is None or changes.text in advise(account).sentence
    is_told |= any(_CHANGED in text for _, text in shown) or find_loop(history.tenures, account.now) is not None
    if changes is None or is_told or any(one.check == "lease-contended" for one in account.findings):
        return []
    pods = describe_templates(list(history.tenures), changes.since, changes.count)
    return [(changes.since, f"{changes.text} since then{_describe_how(history, changes)}{pods and f'; {pods}'}")]


def _describe_how(history: LeaseHistory, changes: FrequentChanges) -> str:
    """Say that it was free each time, or had expired, as the end of a clause; "" if neither, or not known."""
    pairs = [(a, b) for a, b in with_previous(history.tenures) if a is not None and b.since >= changes.since]
    is_known = len(pairs) == changes.count and not any(after.beginning.write.is_claimed for _, after in pairs)
    released = sum(1 for before, after in pairs if after.began is Handover.RELEASED and before.removal.is_own is True)
    expired = sum(1 for _, after in pairs if after.began is Handover.EXPIRED)
    if not is_known or released + expired != len(pairs):
        return ""
    if not (released and expired):
        return ", each time after a release" if released else ", each time after it had expired"
    return f", {format_count(released, 'time')} after a release, {format_count(expired, 'time')} after it had expired"


def _list_changed_duration(account: Account) -> list[Event]:
    """Return the last change of the duration with the holder; of a loss, the sentence says how long it had lasted."""
    losses = (one for one in account.findings if isinstance(one, Claim) and one.check == "leader-lost")
    told = max((one.over_since or 0 for one in losses), default=0)
    return [(at, text) for at, text in list_changed_durations(account.history) if at != told][-1:]


def _list_failing(account: Account) -> list[Event]:
    """Return what its holders asked for besides the lease that failed again and again."""
    return [(one.first, one.describe(account.tenure, account.now)) for one in account.pods.failing]


def _list_work_after_releases(account: Account) -> list[Event]:
    """Return which pods wrote on that had released the lease, while the next holder's did."""
    return [(one.at, one.describe(account.now)) for one in account.pods.work_after_releases]


def _list_idle_times(account: Account) -> list[Event]:
    """Return when former holders renewed the lease and wrote nothing else."""
    return [(one.start, one.describe()) for one in account.pods.idle_times]


def _list_nameless_renewals(account: Account) -> list[Event]:
    """Return when it was renewed without a holder."""
    found = list_nameless_renewals(account.history)
    return [(one.since, describe_nameless_renewals(one, account.now)) for one in found]


def _list_crossed_locks(account: Account) -> list[Event]:
    """Return that its holder and that of another lease asked for each other's."""
    crossed = account.surroundings.crossed
    return [] if crossed is None else [(crossed.since, crossed.describe(account.now))]


def _list_paused(account: Account) -> list[Event]:
    """Return that pods of one node paused together, as a holder that another one followed."""
    found = account.pods.paused
    return [] if found is None else [(found.start, found.describe(account.now))]


def _list_change_of_chooser(account: Account) -> list[Event]:
    """Return that another API server was to choose a holder, as that which was to had fallen silent."""
    found = account.election.change_of_chooser
    return [] if found is None else [(found.at, found.describe(account.now))]


def _list_vain_creations(account: Account) -> list[Event]:
    """Return that an API server tried again and again to name a holder, in vain."""
    found = account.election.vain_creations
    return [] if found is None else [(found.first, found.describe(account.now))]


def _list_job_status(account: Account) -> list[Event]:
    """Return that the status of the Job of the last holder was written after the last write of the lease."""
    found = account.pods.job
    is_current = found is not None and account.state is not LeaseState.LIVE
    return [(found.at, found.describe())] if found is not None and is_current else []


def _list_refused_creations(account: Account) -> list[Event]:
    """Return who was refused to create the lease, as its holder has it."""
    found = find_refused_creations(account.history)
    return [] if found is None else [(found.first, found.describe(account.now))]


def _list_accepted_candidates(account: Account) -> list[Event]:
    """Return until when its LeaseCandidates were refused, if they were not any longer in the end."""
    found = account.election.accepted_candidates
    return [(found[0].first, describe_accepted_candidates(found, account.now))] if found else []


def _list_deleted_waiter(account: Account) -> list[Event]:
    """Return that the only pod was deleted that would have taken the lease over."""
    found = account.pods.deleted_waiter
    return [] if found is None else [(found.deletion.at, found.describe())]


def _list_restarts(account: Account) -> list[Event]:
    """Return that a pod which asks for the lease may be restarted again and again."""
    found = account.askers.restarted if account.askers is not None else None
    return [] if found is None else [(found.rounds[0], found.describe(account.now))]


def _list_single_readers(account: Account) -> list[Event]:
    """Return that pods read the lease once, found it held, and asked no more."""
    found = find_single_readers(account)
    return [] if found is None else [(found.first, found.describe(account.now))]


def _list_manager_runs(account: Account) -> list[Event]:
    """Return that holders were renewed under another field manager, where nothing shows by whom."""
    found = (find_manager_run(one) for one in account.history.tenures)
    return [(one.first, describe_manager_run(account.history, one, account.now)) for one in found if one is not None]


def _list_moved_heartbeat(account: Account) -> list[Event]:
    """Return since when something else than its kubelet writes the heartbeat of a node."""
    found = find_moved_heartbeat(account.history)
    return [] if found is None else [(found.run.first, found.describe(account.now))]


def _list_past_rhythms(account: Account) -> list[Event]:
    """Return until when two electors seem to have renewed the lease in turn."""
    found = find_past_rhythms(account.history)
    return [] if found is None else [(found.rhythms.start, found.describe(account.now))]


def _list_changed_user(account: Account) -> list[Event]:
    """Return that the user of the holder became another one, unless a finding says that several have held it."""
    changed = find_changed_user(account.history)
    is_told = any(one.check == "lease-shared" for one in account.findings)
    return [(changed.at, changed.describe())] if changed is not None and not is_told else []


def _list_odd_renewals(history: LeaseHistory) -> list[Event]:
    """Return who besides the last two holders renewed it, too rarely for a finding that says so."""
    found = []
    for tenure in [*history.tenures][-2:]:
        for other, seen in tenure.processes.others.items():
            if other not in tenure.processes.sharers:
                found.append((seen.first, describe_renewals_of_another(tenure, other, seen, history.moment)))
    return sorted(found, key=get_time)


def _list_gaps(account: Account) -> list[Event]:
    """Return the latest times of which the input does not show what was written."""
    recorder = account.coverage.unrecorded[-MAX_GAPS:]
    known = [(one.start, str(one)) for one in recorder]
    for gap in account.history.renewals.unseen:
        if gap.start < gap.end and not any(one.start <= gap.end and gap.start <= one.end for one in recorder):
            until = format_clock(gap.end, account.now)
            text = f"the input lacks writes from then until {until}; what they changed is not known"
            if any(gap.start <= at <= gap.end for at in account.history.requests.hidden):
                text = f"the input does not show what all writes from then until {until} changed"
            elif until == format_clock(gap.start, account.now):
                continue  # there is no time to speak of
            known.append((gap.start, text))
    for one in account.coverage.quiet:
        until = f"until {format_clock(one.end, account.now)}, for {format_length(one.end - one.start)}"
        why = ", and lacks some: the input shows writes to leases of that time"
        why = why if one.lacks_writes else ": none was given then, or it lacks them"
        known.append((one.start, f"the log has no answer about any lease {until}{why}"))
    return sorted(known, key=get_time)[-MAX_GAPS:]


def _list_candidates(account: Account, *, are_missing: bool = False) -> list[Event]:
    """Return what was done to candidates of a coordinated election, which chooses by what they say.

    `are_missing`: only the deletions of those that are still gone, and creations by others than its holders' accounts.
    """
    wanted = (
        one
        for one in account.election.candidate_events
        if not are_missing or one.candidate in account.election.missing_candidates or one.kind is EventKind.CREATED
    )
    return [(one.at, f"{describe_edit(one)}{_describe_absence(account, one)}") for one in wanted]


def _describe_absence(account: Account, event: LeaseEvent) -> str:
    """Say that a candidate is not known to be there again."""
    is_gone = event.candidate in account.election.missing_candidates
    return "; the input does not show that it was created again" if is_gone else ""


def _list_all(account: Account) -> Iterator[Event]:
    history = account.history
    tenures = list(history.tenures)
    handovers = dict(list_handovers(account, tenures))
    for number, (tenure, after) in enumerate(zip(tenures, chain(tenures[1:], [None]), strict=False)):
        # What is of one time stays in this order.
        yield from handovers.get(number, ())
        yield from describe_ending(account, tenure, after)
    yield from list_silences(history)
    yield from list_refused_writes(history)
    yield from list_slow_writes(history)
    yield from _list_two_addresses(history)
    yield from _list_two_servers(account)
    yield from list_conflicts(account)
    yield from list_accepted_writes(history)
    yield from list_other_writes(history)
    yield from list_fenced_writes(history)


def _list_two_servers(account: Account) -> list[Event]:
    """Return that several API servers renew an identity lease."""
    found = find_two_servers(account.history)
    return [(found.start, found.describe(account.now))] if found is not None else []


def _list_two_addresses(history: LeaseHistory) -> list[Event]:
    """Return that the present holder writes from several addresses in turn."""
    found = find_two_addresses(history)
    return [(found.start, found.describe())] if found is not None else []
