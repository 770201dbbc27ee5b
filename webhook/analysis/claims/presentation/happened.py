"""The events of a lease, as lines in the order of time."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Final, TypeVar

from webhook.analysis.claims.account import Account
from webhook.analysis.claims.claim import Claim
from webhook.analysis.claims.diagnosis import Blame
from webhook.analysis.claims.evidence.api_servers import describe_end
from webhook.analysis.claims.evidence.creations import find_creation_at_first_sight
from webhook.analysis.claims.evidence.failed_writes import describe_stored
from webhook.analysis.claims.evidence.loops import find_loop
from webhook.analysis.claims.evidence.manager_runs import describe_manager_run, find_manager_run
from webhook.analysis.claims.evidence.moved_heartbeats import find_moved_heartbeat
from webhook.analysis.claims.evidence.nameless_renewals import describe_nameless_renewals, list_nameless_renewals
from webhook.analysis.claims.evidence.owners import describe_added_owners, is_by_holder
from webhook.analysis.claims.evidence.related_writes import (
    describe_related_write,
    find_end_of_refusals,
    has_granted,
    is_after_last_failure,
    is_new,
)
from webhook.analysis.claims.evidence.writers_in_turn import describe_turns
from webhook.analysis.claims.facts import describe_handover_with_end
from webhook.analysis.claims.findings.changed_user import find_changed_user
from webhook.analysis.claims.findings.conflicting_updates import find_conflicting_updates
from webhook.analysis.claims.findings.past_rhythms import find_past_rhythms
from webhook.analysis.claims.findings.refused_candidates import describe_accepted_candidates
from webhook.analysis.claims.findings.single_readers import find_single_readers
from webhook.analysis.claims.findings.taken_back import find_taken_back
from webhook.analysis.claims.findings.two_addresses import find_two_addresses
from webhook.analysis.claims.findings.two_servers import find_two_servers
from webhook.analysis.claims.handover_clauses import (
    describe_edit,
    describe_handover,
    describe_renewals_of_another,
    is_request_to_step_down,
)
from webhook.analysis.claims.handovers import find_frequent_changes, has_lost_race, is_next_name, list_edited_holders
from webhook.analysis.claims.presentation.text import Line
from webhook.analysis.claims.words import UNLESS_DRY_RUN, describe_writer, format_clock, format_count, format_name
from webhook.analysis.history.audit_log.refusal import Refusal
from webhook.analysis.history.audit_log.requests import MAX_REFUSALS
from webhook.analysis.history.events import EventKind, LeaseEvent
from webhook.analysis.history.holders.clock import SetBack
from webhook.analysis.history.holders.tenure import API_SERVER, Handover, Tenure, find_latest_pair, with_previous
from webhook.analysis.history.lease import MAX_OTHERS, LeaseHistory
from webhook.analysis.history.renewals import DEFAULT_DURATION, Silence
from webhook.analysis.history.status import RELEASED_DURATION, LeaseState
from webhook.analysis.inputs.items import RelatedWrite, Writer
from webhook.findings import ReportFinding, Severity
from webhook.kubernetes.times import SECOND, format_length

MAX_EVENTS: Final = 16
MAX_GAPS: Final = 4
_MAX_LATEST: Final = 2
_MAX_RELATED: Final = 4
"""Writes to other objects than the lease: the cause of an incident is often an earlier one than what ended it."""
_MAX_LOGS: Final = 2
_MIN_CONFLICTS: Final = 5
"""Who only wants to be the next holder loses a race or two."""
_OWN: Final = (
    "all are from its holder's own {}, and the log shows no other writer, "
    "as with lost answers or several electors in it"
)
_OWN_IN_PARTIAL_LOG: Final = "all are from its holder's own {}, and the log may lack the writes of others"
_DURATION: Final = "leaseDurationSeconds"
_PREFERRED: Final = "preferredHolder"
_STRATEGY: Final = "strategy "
_TAKEN_UP: Final = re.compile(r"leaseDurationSeconds 5 -> \d+(?:, leaseTransitions absent -> 0)?")
"""What a holder writes when it takes up a lease that an API server created for it, with 5 s: `defaultLeaseDuration`."""
_IS_OF_ELECTION: Final = re.compile(r"(?:(?:strategy|preferredHolder) \S+ -> \S+(?:, )?)+")
_MIN_OTHER_WRITES: Final = 3
_REDIRECTION: Final = 300
_PAIR: Final = 2
_MANY_CHANGES: Final = 3
_MANY: Final = 4
_TIME: Final = itemgetter(0)
_Event = tuple[int, str]
_T = TypeVar("_T")


def list_events(account: Account, most: int = MAX_EVENTS) -> Iterator[Line]:
    """Yield the latest events, oldest first."""
    history, now = account.history, account.now
    beside = [*_list_candidates(account), *_list_pod_deletions(account), *_list_related_writes(account)]
    beside += [(one.at, one.text) for one in account.pods.events]
    beside += [
        *_list_failing(account),
        *_list_crossed_locks(account),
        *_list_restarts(account),
        *_list_single_readers(account),
    ]
    beside += [*_list_deleted_waiter(account), *_list_past_rhythms(account), *_list_manager_runs(account)]
    beside += [*_list_change_of_chooser(account), *_list_vain_creations(account), *_list_paused(account)]
    beside += [*_list_accepted_candidates(account), *_list_nameless_renewals(account)]
    beside += [*_list_work_after_releases(account), *_list_idle_times(account), *_list_moved_heartbeat(account)]
    found = sorted(
        [
            *_list_recreation(history)[:-1],
            *_list_creation(history),
            *_list_all(account),
            *_list_changed_user(account),
            *_list_edits(history),
            *_list_added_owners(history),
            *beside,
            *_list_gaps(account),
        ],
        key=_TIME,
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
    loud = (one for one in account.findings if isinstance(one, Claim) and _is_loud(one))
    since = history.latest_tenure.since if history.latest_tenure else 0
    is_told = any(one.check not in _OF_NO_CHANGE and (one.over_since or since) >= since for one in loud)
    edits = _list_edits(history, by_others=True, is_handover_shown=not is_told)
    shown = [*_list_gaps(account)[-1:], *edits[-_MAX_LATEST:]]
    shown += _list_added_owners(history, by_others=True)[-_MAX_LATEST:]
    shown += _list_candidates(account, are_missing=bool(account.election.missing_candidates))[-_MAX_LATEST:]
    is_cause = any(isinstance(one, Claim) and one.cause == Blame.POD for one in account.findings)
    related = _list_related_writes(account, are_latest=True)
    # What came first may be the cause of the rest.
    shown += [*related[:-_MAX_RELATED][:1], *related[-_MAX_RELATED:]]
    # Of a lease that no one holds, those of the last two say that the next one went, too.
    last_deletions = _MAX_LATEST if account.state is LeaseState.RELEASED else 1
    shown += [] if is_cause else _list_pod_deletions(account)[-last_deletions:]
    shown += _list_telling_pod_events(account)[-_MAX_LATEST:] + _list_failing(account)[-_MAX_LATEST:]
    shown += [
        *_list_crossed_locks(account),
        *_list_restarts(account),
        *_list_change_of_chooser(account),
        *_list_vain_creations(account),
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
    before_last = history.tenures[-_PAIR].since if len(history.tenures) >= _PAIR else 0
    shown += [one for one in _list_nameless_renewals(account)[-1:] if one[0] >= before_last]
    shown += [*_list_unshown_durations(account), *_list_two_addresses(history), *_list_two_servers(account)]
    shown += [*_list_conflicts(account)][-_MAX_LATEST:]
    shown += [] if is_told else [*_list_slow_writes(history)][-_MAX_LATEST:]
    shown += [*_list_other_writes(history)[-_MAX_LATEST:], *[*_list_accepted_writes(history)][-_MAX_LATEST:]]
    if loop := find_loop(history.tenures, account.now):
        shown.append((loop.tenures[0].since, loop.describe(account.now)))
    elif not is_told:
        shown += _list_edited_holders(history)[-_MAX_LATEST:]
        shown += [_describe_set_back(one, one.set_back) for one in [*history.tenures][-2:] if one.set_back is not None]
        shown += _find_last_handover(account)
    # That a lease is new explains one that is well.
    shown += [] if any(_is_loud(one) for one in account.findings) else _list_creation(history)
    shown += _list_changed_user(account)
    for at, text in [] if history.is_mixed else sorted(shown, key=_TIME):
        yield Line(format_clock(at, account.now), text)


def _list_failing(account: Account) -> list[_Event]:
    """Return what its holders asked for besides the lease that failed again and again."""
    return [(one.first, one.describe(account.tenure, account.now)) for one in account.pods.failing]


def _list_work_after_releases(account: Account) -> list[_Event]:
    """Return which pods wrote on that had released the lease, while the next holder's did."""
    return [(one.at, one.describe(account.now)) for one in account.pods.work_after_releases]


def _list_idle_times(account: Account) -> list[_Event]:
    """Return when former holders renewed the lease and wrote nothing else."""
    return [(one.start, one.describe()) for one in account.pods.idle_times]


def _list_nameless_renewals(account: Account) -> list[_Event]:
    """Return when it was renewed without a holder."""
    found = list_nameless_renewals(account.history)
    return [(one.since, describe_nameless_renewals(one, account.now)) for one in found]


def _list_crossed_locks(account: Account) -> list[_Event]:
    """Return that its holder and that of another lease asked for each other's."""
    crossed = account.surroundings.crossed
    return [] if crossed is None else [(crossed.since, crossed.describe(account.now))]


def _list_paused(account: Account) -> list[_Event]:
    """Return that pods of one node paused together, as a holder that another one followed."""
    found = account.pods.paused
    return [] if found is None else [(found.start, found.describe(account.now))]


def _list_change_of_chooser(account: Account) -> list[_Event]:
    """Return that another API server was to choose a holder, as that which was to had fallen silent."""
    found = account.election.change_of_chooser
    return [] if found is None else [(found.at, found.describe(account.now))]


def _list_vain_creations(account: Account) -> list[_Event]:
    """Return that an API server tried again and again to name a holder, in vain."""
    found = account.election.vain_creations
    return [] if found is None else [(found.first, found.describe(account.now))]


def _list_accepted_candidates(account: Account) -> list[_Event]:
    """Return until when its LeaseCandidates were refused, if they were not any longer in the end."""
    found = account.election.accepted_candidates
    return [(found[0].first, describe_accepted_candidates(found, account.now))] if found else []


def _list_deleted_waiter(account: Account) -> list[_Event]:
    """Return that the only pod was deleted that would have taken the lease over."""
    found = account.pods.deleted_waiter
    return [] if found is None else [(found.deletion.at, found.describe())]


def _list_restarts(account: Account) -> list[_Event]:
    """Return that a pod which asks for the lease may be restarted again and again."""
    found = account.askers.restarted if account.askers is not None else None
    return [] if found is None else [(found.rounds[0], found.describe(account.now))]


def _list_single_readers(account: Account) -> list[_Event]:
    """Return that pods read the lease once, found it held, and asked no more."""
    found = find_single_readers(account)
    return [] if found is None else [(found.first, found.describe(account.now))]


def _list_manager_runs(account: Account) -> list[_Event]:
    """Return that holders were renewed under another field manager, where nothing shows by whom."""
    found = (find_manager_run(one) for one in account.history.tenures)
    return [(one.first, describe_manager_run(account.history, one, account.now)) for one in found if one is not None]


def _list_moved_heartbeat(account: Account) -> list[_Event]:
    """Return since when something else than its kubelet writes the heartbeat of a node."""
    found = find_moved_heartbeat(account.history)
    return [] if found is None else [(found.run.first, found.describe(account.now))]


def _list_past_rhythms(account: Account) -> list[_Event]:
    """Return until when two electors seem to have renewed the lease in turn."""
    found = find_past_rhythms(account.history)
    return [] if found is None else [(found.rhythms.start, found.describe(account.now))]


def _list_telling_pod_events(account: Account) -> list[_Event]:
    """Return what a log shows of pods, unless it only shows a kubelet, or is said as part of a cause."""
    causes = [one.message for one in account.findings if _is_loud(one)]
    causes += [account.cause.evidence] if account.cause is not None else []
    telling = [one for one in account.pods.events if not one.is_vague]
    return [(one.at, one.text) for one in telling if not (one.ending and any(one.ending in cause for cause in causes))]


def _find_last_handover(account: Account) -> list[_Event]:
    """Return how the present holder followed another one, or how the last one ended."""
    history = account.history
    last = history.latest_tenure
    if last is None:
        return []
    if last.until is not None:
        return [(last.until, describe_end(history, last))]
    latest = find_latest_pair(history.tenures)
    if latest is None:
        return _list_recreation(history)
    previous, last = latest
    text = describe_handover_with_end(account, last, previous)
    # The advice counts those that are frequent.
    if history.changes >= _MANY_CHANGES and find_frequent_changes(history.tenures, history.moment) is None:
        text += f"; as far as the input shows, the holder changed {history.changes} times"
    handover = (last.since, text)
    if previous.is_deleted and last.began is Handover.CLAIMED and previous.until is not None:
        # Who held it lost it then, and another one created it without a holder.
        return [(previous.until, describe_end(history, previous)), handover]
    return [handover]


def _list_edited_holders(history: LeaseHistory) -> list[_Event]:
    """Return how holders before the last one were written in by who edited the lease, as a watch shows that."""
    edited = list_edited_holders([*history.tenures][:-1])
    return [(one.since, describe_handover(one, None)) for one in edited]


def _list_creation(history: LeaseHistory) -> list[_Event]:
    """Return that a lease was created just before its first state in the input, if nothing else says so."""
    created = find_creation_at_first_sight(history)
    return [] if created is None else [(created, "the lease was created (creationTimestamp)")]


def _list_recreation(history: LeaseHistory) -> list[_Event]:
    """Return that a lease was deleted and created again, if the input does not show who held it before."""
    tenures, existence = list(history.tenures), history.existence
    if not tenures or len(tenures) > 1 or tenures[0].began is not Handover.DELETED:
        return []
    doubt = "" if existence.is_deletion_sure else f" ({UNLESS_DRY_RUN})"
    by = existence.deleted_by
    deleted = f"{describe_writer(by)} deleted the lease{doubt}" if by is not None and by.name else ""
    handover = (tenures[0].since, describe_handover(tenures[0], None))
    return [(existence.deleted_at, deleted), handover] if deleted else [handover]


def _list_changed_user(account: Account) -> list[_Event]:
    """Return that the user of the holder became another one, unless a finding says that several have held it."""
    changed = find_changed_user(account.history)
    is_told = any(one.check == "lease-shared" for one in account.findings)
    return [(changed.at, changed.describe())] if changed is not None and not is_told else []


def _list_odd_renewals(history: LeaseHistory) -> list[_Event]:
    """Return who besides the last two holders renewed it, too rarely for a finding that says so."""
    found = []
    for tenure in [*history.tenures][-2:]:
        for other, seen in tenure.processes.others.items():
            if other not in tenure.processes.sharers:
                found.append((seen.first, describe_renewals_of_another(tenure, other, seen, history.moment)))
    return sorted(found, key=_TIME)


def _is_loud(finding: ReportFinding) -> bool:
    return finding.severity is not Severity.INFO


def _list_gaps(account: Account) -> list[_Event]:
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
    return sorted(known, key=_TIME)[-MAX_GAPS:]


def _list_edits(history: LeaseHistory, *, by_others: bool = False, is_handover_shown: bool = False) -> list[_Event]:
    """Return edits, or those that need not be its holder's own doing, or that change how long it lasts.

    A watch does not show whose an edit is: what it has is listed of a log as well, where that names the writer.
    `is_handover_shown`: omit the request to step down, which the clause of the last handover has.
    """
    taken_back = find_taken_back(history)
    found = [one for one in history.edits if not (by_others and _is_unremarkable(one))]
    if is_handover_shown and history.latest_tenure is not None and history.latest_tenure.began is Handover.PREFERRED:
        before = history.succession.before
        found = [one for one in found if not (one.tenure is before and is_request_to_step_down(one))]
    if taken_back is None:
        return _list_repeated_last(found)
    others = [one for one in found if not (taken_back.has(one.at) and _IS_OF_ELECTION.fullmatch(one.text))]
    # What is done again and again is one line, which others do not displace.
    return [*_list_repeated_last(others), (taken_back.start, taken_back.describe())]


def _list_repeated_last(edits: Sequence[LeaseEvent]) -> list[_Event]:
    """Return edits in order, and after them those that one writer made again and again, each of these as one."""
    groups: dict[tuple[str, Writer | None, str, str], list[LeaseEvent]] = {}
    for edit in edits:
        who = edit.writer.process if edit.writer is not None and edit.writer.user else None
        groups.setdefault((edit.text, who, edit.manager, edit.candidate), []).append(edit)
    repeated = [several for several in groups.values() if len(several) >= _MIN_OTHER_WRITES]
    in_groups = {id(one) for several in repeated for one in several}
    least = "at least " if len(edits) == MAX_REFUSALS else ""
    found = [*_keep_order(one for one in edits if id(one) not in in_groups)]
    for several in repeated:
        until = format_clock(several[-1].at, several[0].at)
        found.append((several[0].at, f"{describe_edit(several[0])}, {least}{len(several)} times until {until}"))
    return found


def _keep_order(edits: Iterable[LeaseEvent]) -> Iterator[_Event]:
    """Yield edits, given as they were stored, with times that keep this order: a stamp has no fraction of a second."""
    latest = 0
    for edit in edits:
        latest = max(latest, edit.at) if latest // SECOND == edit.at // SECOND else edit.at
        yield latest, describe_edit(edit)


def _list_added_owners(history: LeaseHistory, *, by_others: bool = False) -> list[_Event]:
    """Return the additions of owners, or those that need not be its holder's own doing."""
    return [
        (one.at, describe_added_owners(one)) for one in history.added_owners if not (by_others and is_by_holder(one))
    ]


def _list_candidates(account: Account, *, are_missing: bool = False) -> list[_Event]:
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


def _list_pod_deletions(account: Account) -> list[_Event]:
    """Return the deletions of pods of holders."""
    return [(one.deletion.at, one.text) for one in account.pods.deletions]


def _list_related_writes(account: Account, *, are_latest: bool = False) -> list[_Event]:
    """Return what was done to what its holders depend on.

    `are_latest`: without workloads and accounts that were created before the first holder came, as they must be.
    What is done again and again, as by an autoscaler, is one line, lest it displaces what happened to the lease.
    """
    first = account.history.tenures[0].since if account.history.tenures else account.now
    found = (
        one
        for one in account.related_writes
        if not (are_latest and one.at <= first and is_new(one, account.related_writes))
    )
    groups = _group_by_tenure(account.history, found, lambda one: (one.at, describe_related_write(one)))
    if are_latest:
        groups = _join_repeated(groups)
    # The first of two may be the cause, and the last one its cure.
    groups = [
        part for group in groups for part in ([[one] for one in group] if _is_change_and_return(group) else [group])
    ]
    lines = [
        (
            group[0].at,
            describe_related_write(group[0], _count_times(group, account.now)) + _describe_effect(account, group),
        )
        for group in groups
    ]
    return sorted(lines, key=_TIME)


def _describe_effect(account: Account, group: Sequence[RelatedWrite]) -> str:
    """Say that what a write may have been meant to help went on after it, or had failed for the last time before it."""
    if is_after_last_failure(group[0], account.history):
        return ", after the last write of the lease that failed because of a webhook"
    if has_granted(group[-1], account.history):
        return ", which had allowed what was refused after that"
    end = find_end_of_refusals(group[-1], account.history)
    return f", after which refusals went on until {format_clock(end, account.now)}" if end else ""


def _is_change_and_return(group: Sequence[RelatedWrite]) -> bool:
    """Return whether two updates may be a change and its return; who scales twice, as an autoscaler, does so again."""
    return len(group) == _PAIR and group[0].verb == "updated"


def _join_repeated(groups: Sequence[list[RelatedWrite]]) -> list[list[RelatedWrite]]:
    """Return the groups, with those in one of which the same was done again and again, whoever held the lease."""
    by_text: dict[str, list[RelatedWrite]] = {}
    for write in (one for group in groups for one in group):
        by_text.setdefault(describe_related_write(write), []).append(write)
    often = [group for group in by_text.values() if len(group) >= _MANY]
    known = {describe_related_write(group[0]) for group in often}
    return [*(group for group in groups if describe_related_write(group[0]) not in known), *often]


def _count_times(group: Sequence[RelatedWrite], now: int) -> str:
    return f" {len(group)} times until {format_clock(group[-1].at, now)}" if len(group) > 1 else ""


def _is_unremarkable(edit: LeaseEvent) -> bool:
    tenure, who = edit.tenure, edit.writer
    if tenure is not None and tenure.is_coordinated and _TAKEN_UP.fullmatch(edit.text):
        return True
    if any(field in edit.text for field in (_DURATION, _PREFERRED, _STRATEGY)):
        return False
    is_server = who is not None and who.user == API_SERVER
    own = tenure.processes.own if tenure is not None else None
    return is_server or (own is not None and own.is_same(who))


def _list_all(account: Account) -> Iterator[_Event]:
    history = account.history
    tenures = list(history.tenures)
    handovers = dict(_list_handovers(account, tenures))
    for number, (tenure, after) in enumerate(zip(tenures, chain(tenures[1:], [None]), strict=False)):
        # What is of one time stays in this order.
        yield from handovers.get(number, ())
        yield from _describe_end(account, tenure, after)
    yield from _list_silences(history)
    yield from _list_refused_writes(history)
    yield from _list_slow_writes(history)
    yield from _list_two_addresses(history)
    yield from _list_two_servers(account)
    yield from _list_conflicts(account)
    yield from _list_accepted_writes(history)
    yield from _list_other_writes(history)
    yield from _list_fenced_writes(history)


def _list_handovers(account: Account, tenures: Sequence[Tenure]) -> Iterator[tuple[int, list[_Event]]]:
    """Yield how each holder followed the one before, by its number; names that one pod wrote in turn are one event."""
    run: list[Tenure] = []
    for number, (before, tenure) in enumerate(with_previous(tenures)):
        after = tenures[number + 1] if number + 1 < len(tenures) else None
        is_next = before is not None and is_next_name(tenures, tenure, before)
        if not is_next or before is None:
            yield number, [(tenure.since, describe_handover_with_end(account, tenure, before))]
            continue
        run = [*(run or [before]), tenure]
        if after is None or not is_next_name(tenures, after, tenure):
            yield number, [_describe_run(run)]
            run = []


def _describe_run(run: Sequence[Tenure]) -> _Event:
    """Describe names that one pod wrote one after another; the first one is that which it had before."""
    before, first, last = run[0], run[1], run[-1]
    if len(run) == _PAIR:
        return first.since, describe_handover(first, before)
    who = f"all were written from one pod ({describe_writer(last.processes.taken_by or Writer())})"
    until = format_clock(last.since, first.since)
    names = f"{len(run) - 1} names followed {format_name(before.holder)} until {until}, the last one"
    return first.since, f"{names} {format_name(last.holder)}: {who}"


def _describe_end(account: Account, tenure: Tenure, after: Tenure | None) -> Iterator[_Event]:
    history, duration = account.history, tenure.duration or 0
    if (
        tenure.processes.requests_after_loss
        and tenure.removal.is_own is not True
        and not _comes_to_delete(tenure, after)
    ):
        # Who released it is expected to ask for it again.
        pod, heard = format_name(tenure.processes.pods[-1]), tenure.processes.requests_after_loss
        # A single request may be one that was sent before, and held back on its way.
        is_late = len(heard) == 1
        has_asked = any(tenure.last_of_identity < at < heard[0] for at in tenure.processes.requests)
        text = f"pod {pod}, the previous holder, {'still ' if has_asked else ''}asks for the lease"
        yield heard[0], f"a request of pod {pod}, the previous holder, was received" if is_late else text
    for other, seen in tenure.processes.others.items():
        yield seen.first, describe_renewals_of_another(tenure, other, seen, history.moment)
    if tenure.set_back is not None:
        yield _describe_set_back(tenure, tenure.set_back)
    if tenure.until is None:
        return
    is_free = after is not None and after.began in {Handover.RELEASED, Handover.CREATED}
    if tenure.is_deleted or tenure is history.latest_tenure or is_free:
        # A watch does not say when a lease was deleted; it was before the lease was created again.
        at = min(tenure.until, after.since if after is not None else tenure.until)
        # Of two writes in one second, a stamp of the second one is that of its beginning.
        yield max(at, tenure.since), describe_end(history, tenure)
    elif after and after.began is Handover.EXPIRED and duration > RELEASED_DURATION:
        expired = tenure.kept_until + duration * SECOND
        if account.unshown_duration is not None and account.unshown_duration.after is after:
            yield from _list_unshown_durations(account)
            return
        yield expired, f"the lease expired, {duration} s after {_describe_last_sign(tenure)}"


def _describe_set_back(tenure: Tenure, back: SetBack) -> _Event:
    """Say that a renewal moved renewTime back: a watch without stamps shows that by itself."""
    at = max(back.at, back.before) if tenure.is_claimed else back.at
    moved = f"set renewTime back by {format_length(back.length)}, to {format_clock(back.after, at)}"
    return at, f"a renewal as {format_name(tenure.holder)} {moved}: by a clock that was set back, or an old time"


def _comes_to_delete(tenure: Tenure, after: Tenure | None) -> bool:
    """Return whether a holder that is heard again has not asked for the lease, but deletes it at once."""
    own, deleter = tenure.processes.own, after.deletion.by if after else None
    if own is None or after is None or after.until is None or not own.is_same(deleter):
        return False
    return after.until - SECOND <= tenure.processes.requests_after_loss[0] <= after.until


def _describe_last_sign(tenure: Tenure) -> str:
    """Say what made a lease live for the last time, as the end of a clause."""
    if tenure.renewed_by_other and tenure.kept_until != tenure.last_renewal:
        return f"the last renewal by {describe_writer(tenure.renewed_by_other.writer)}"
    if tenure.kept_until < tenure.since:
        return f"the last renewal, before {format_name(tenure.holder)} was written into it"
    if tenure.was_left_as_written or tenure.is_never_taken_up:
        taker = tenure.processes.taken_by
        wrote = f"{describe_writer(taker)} wrote {{}} into it" if taker else "{} was written into it"
        return wrote.format(format_name(tenure.holder))
    doubt = ", or by someone writing in its name" if tenure.is_ambiguous else ""
    return f"the last renewal by {format_name(tenure.holder)}{doubt}"


def _list_silences(history: LeaseHistory) -> Iterator[_Event]:
    for silence in history.late_silences:
        if history.is_nameless:
            yield silence.start, f"it was not renewed for {format_length(silence.length)}"
            yield silence.end, "it was renewed again"
            continue
        if silence.expired_at is not None:
            is_chosen = history.lease is not None and bool(history.lease.spec.strategy)
            none = "no API server chose another holder" if is_chosen else "no one took it"
            yield silence.expired_at, f"the lease expired, and {none}"
        who = _describe_silent(history, silence)
        yield silence.start, f"{who} did not renew it for {format_length(silence.length)}"
        yield silence.end, f"{who} renewed it again"


def _describe_silent(history: LeaseHistory, silence: Silence) -> str:
    """Name who did not renew: the process, where another one renewed as the same holder meanwhile."""
    tenure = history.find_tenure_of_silence(silence) if silence.longest_gap is not None else None
    own = tenure.processes.own if tenure is not None else None
    return describe_writer(own) if own is not None else "the holder"


def _group_by_tenure(
    history: LeaseHistory, found: Iterable[_T], kind: Callable[[_T], tuple[int, object]]
) -> list[list[_T]]:
    """Group what is of one kind while one holder had the lease; `kind` returns the time of one, and what it is."""
    groups: dict[tuple[int, object], list[_T]] = {}
    for item in found:
        at, what = kind(item)
        groups.setdefault((bisect_right(history.tenures, at, key=attrgetter("since")), what), []).append(item)
    return list(groups.values())


def _list_fenced_writes(history: LeaseHistory) -> Iterator[_Event]:
    for several in _group_by_tenure(
        history, history.requests.fenced, lambda one: (one.at, (one.fence, describe_writer(one.writer)))
    ):
        what = f"{format_count(len(several), 'write')} by {describe_writer(several[0].writer)} without the lease"
        yield several[0].at, f"fence {format_name(several[0].fence)} refused {what}, such as: {several[0].target}"


def _list_slow_writes(history: LeaseHistory) -> Iterator[_Event]:
    """Yield whose writes were answered late again and again, and what took most of that time, if a log says so."""
    slow = (one for one in history.requests.refusals if one.code < _REDIRECTION and not one.is_read)
    for several in _group_by_tenure(history, slow, lambda one: (one.at, describe_writer(one.writer))):
        if len(several) < _MIN_OTHER_WRITES:
            continue
        slowest, parts = max(one.took for one in several), {one.slow_part for one in several}
        most = f", most of that for {parts.pop()}" if len(parts) == 1 and parts != {""} else ""
        number = f"at least {format_count(len(several), 'write')} by {describe_writer(several[0].writer)}"
        yield several[0].at, f"{number} were answered after up to {format_length(slowest)}{most}"


def _list_accepted_writes(history: LeaseHistory) -> Iterator[_Event]:
    """Yield who besides the holder made writes whose content a log does not show."""
    in_turn = [one for one in history.rival.turns if one.is_in_turn]
    yield from ((one.since, describe_turns(one, history.moment)) for one in in_turn)
    others = [
        (at, writer) for at, writer in history.requests.accepted if not any(one.has(at, writer) for one in in_turn)
    ]
    for several in _group_by_tenure(history, others, lambda one: one):
        writer, times = several[0][1], [at for at, _ in several]
        tenure = history.find_tenure_at(times[0])
        pods = (
            [held.pod for held in tenure.processes.writers if held.user == writer.user and not writer.pod]
            if tenure
            else []
        )
        beside = f", not with a token of pod {format_name(pods[-1])}," if pods and pods[-1] else ""
        within = f" within {format_length(times[-1] - times[0])}" if times[-1] - times[0] >= SECOND else ""
        what = f"{'was' if len(times) == 1 else 'were'} accepted{within}; the log does not show what was stored"
        is_cut = len(history.requests.accepted) == MAX_REFUSALS and times[0] == history.requests.accepted[0][0]
        writes = f"{'the latest ' if is_cut else ''}{format_count(len(times), 'write')}"
        yield times[0], f"{writes} by {describe_writer(writer)}{beside} {what}"


def _list_other_writes(history: LeaseHistory) -> list[_Event]:
    """Return who besides the holder wrote again and again, and left holder and renewals as they were."""
    taken_back = find_taken_back(history)
    foreign = [
        (one.at, one.foreign.process)
        for one in history.idle_writes
        if one.foreign is not None and not (taken_back is not None and taken_back.has(one.at))
    ]
    is_cut = len(history.idle_writes) == MAX_OTHERS
    found = []
    for several in _group_by_tenure(history, foreign, lambda one: one):
        times = [at for at, _ in several]
        if len(times) >= _MIN_OTHER_WRITES:
            number = f"{'at least ' if is_cut else ''}{format_count(len(times), 'write')}"
            within = f" within {format_length(times[-1] - times[0])}" if times[-1] - times[0] >= SECOND else ""
            left = "left the holder and its renewals as they were"
            found.append((times[0], f"{number} by {describe_writer(several[0][1])}{within} {left}"))
    return found


def _name_logs(history: LeaseHistory, refused: Sequence[Refusal]) -> str:
    """Say in which of several logs some answers are: each may be the log of another API server."""
    names = {path: path.rpartition("/")[2] for path in history.requests.logs}
    found = sorted({names[one.log] for one in refused if one.log in names})
    # Names that several folders have say nothing.
    is_clear = len(names) > 1 and len(set(names.values())) == len(names) and len(found) <= _MAX_LOGS
    return f" (log {' and '.join(map(format_name, found))})" if is_clear and found else ""


def _list_conflicts(account: Account) -> Iterator[_Event]:
    """Yield who tried again and again to write a lease that another one held, from a state that had changed by then."""
    history = account.history
    updates = find_conflicting_updates(history)
    yield from ((one.first, one.describe(history.moment)) for one in updates)
    listed = {id(refusal) for one in updates for refusal in one.refused}
    wanted = [
        one
        for one in history.requests.refusals
        if one.is_of_other_state and one.writer.user != API_SERVER and id(one) not in listed
    ]
    for several in _group_by_tenure(history, wanted, lambda one: (one.at, (one.writer.process, one.is_deletion))):
        tenure, first = history.find_tenure_at(several[0].at), several[0]
        if len(several) < _MIN_CONFLICTS or tenure is None:
            continue
        if tenure.is_deleted and tenure.until is not None and first.at >= tenure.until:
            continue  # an update of a lease that is gone conflicts
        is_own, last = tenure.is_by(first.writer), several[-1].at
        if is_own and tenure is history.current_tenure and find_two_addresses(history) is not None:
            continue  # which says more
        if is_own is None or (is_own and not _is_explained_by_holder(history, tenure, several)):
            continue
        held = f"the lease had the holder {format_name(tenure.holder)} then"
        if is_own:
            held = _OWN_IN_PARTIAL_LOG if account.is_partial else _OWN
            held = held.format("pod" if first.writer.pod else "user")
            held = _describe_repeats(several) or held
        is_cut = history.requests.has_forgotten_since(tenure.since)
        number = f"{'at least ' if is_cut else ''}{len(several)} {'deletions' if first.is_deletion else 'updates'}"
        until = f"{' from then or earlier' if is_cut else ''} until {format_clock(last, history.moment)}"
        yield first.at, f"{number} by {describe_writer(first.writer)} conflicted (409){until}; {held}"


def _describe_repeats(conflicts: Sequence[Refusal]) -> str:
    """Say how many conflicts are of requests that were sent twice; "" if most are not: they tell of no other writer."""
    number = sum(1 for one in conflicts if one.is_repeat)
    if 2 * number <= len(conflicts):
        return ""
    which = "all" if number == len(conflicts) else f"{number} of them"
    repeat = "repeat an update that had just been accepted, with its resourceVersion and renewTime"
    return f"{which} {repeat}: its client, or a proxy, sent it twice"


def _list_unshown_durations(account: Account) -> list[_Event]:
    """Return the doubt about how long the lease lasts, as a log of requests raises it."""
    found = account.unshown_duration
    return [] if found is None else [(found.since, found.describe(account.now))]


def _list_two_servers(account: Account) -> list[_Event]:
    """Return that several API servers renew an identity lease."""
    found = find_two_servers(account.history)
    return [(found.start, found.describe(account.now))] if found is not None else []


def _list_two_addresses(history: LeaseHistory) -> list[_Event]:
    """Return that the present holder writes from several addresses in turn."""
    found = find_two_addresses(history)
    return [(found.start, found.describe())] if found is not None else []


def _is_explained_by_holder(history: LeaseHistory, tenure: Tenure, conflicts: list[Refusal]) -> bool:
    """Return whether conflicts of a holder with itself come as often as electors renew, and not with others' writes.

    Now and then an answer is lost, and the next renewal is made for a state that has changed by its own hand.
    """
    first, last = conflicts[0].at, conflicts[-1].at
    is_often = last - first <= (len(conflicts) - 1) * (tenure.duration or DEFAULT_DURATION) * SECOND
    return is_often and not _is_written_by_others(history, tenure, first, last)


def _is_written_by_others(history: LeaseHistory, tenure: Tenure, start: int, end: int) -> bool:
    """Return whether others than its holder wrote a lease in a time, so that its updates may conflict with theirs."""
    times = (*(one.at for one in history.idle_writes), *(at for at, _ in history.requests.accepted))
    is_shared = bool(tenure.processes.others) or tenure.renewed_by_other is not None
    return is_shared or any(start <= at <= end for at in times)


def _list_refused_writes(history: LeaseHistory) -> Iterator[_Event]:
    writes = (one for one in history.requests.refusals if not one.is_read and not has_lost_race(one, history))
    wanted = (one for one in writes if one.is_denied or one.has_failed)
    for several in _group_by_tenure(
        history, wanted, lambda one: (one.at, (one.code, describe_writer(one.writer), one.name))
    ):
        who, answer = describe_writer(several[0].writer), f"{several[0].code}{several[0].refuser}"
        refused = "was refused" if len(several) == 1 else "were refused"
        what = "failed" if several[0].has_failed else refused
        length = several[-1].at - several[0].at  # the line has the time of the first answer
        within = f" within {format_length(length)}" if len(several) > 1 and length >= SECOND else ""
        tenure = history.find_tenure_at(several[0].at)
        is_cut = history.requests.has_forgotten_since(tenure.since if tenure else 0)
        number = f"{'at least ' if is_cut else ''}{format_count(len(several), 'write')}"
        earlier = ", then or earlier" if is_cut else ""
        where = f"{within}{_name_logs(history, several)}{earlier}"
        yield several[0].at, f"{number} by {who} {what} with {answer}{where}{describe_stored(several)}"
