"""What became of the writes to a lease that stored no renewal: refused, slow, in conflict."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from webhook.analysis.claims.account import Account
from webhook.analysis.claims.evidence.silent_holders.other_leases import MIN_OTHER_WRITES
from webhook.analysis.claims.evidence.writers.failed_writes import describe_stored, name_logs
from webhook.analysis.claims.evidence.writers.writers_in_turn import describe_turns
from webhook.analysis.claims.findings.conflicting_updates import find_conflicting_updates
from webhook.analysis.claims.findings.taken_back import find_taken_back
from webhook.analysis.claims.findings.two_addresses import find_two_addresses
from webhook.analysis.claims.handovers import has_lost_race
from webhook.analysis.claims.presentation.events.event import Event, group_by_tenure
from webhook.analysis.claims.words import describe_writer, format_clock, format_count, format_name
from webhook.analysis.history.audit_log.kept_refusals import MAX_REFUSALS
from webhook.analysis.history.audit_log.refusal import Refusal
from webhook.analysis.history.holders.tenure import API_SERVER, Tenure
from webhook.analysis.history.lease import MAX_OTHERS, LeaseHistory
from webhook.analysis.history.renewals import DEFAULT_DURATION
from webhook.analysis.inputs.rewriting import HOLDER_IDENTITY
from webhook.kubernetes.times import SECOND, format_length

_MIN_CONFLICTS: Final = 5
"""Who only wants to be the next holder loses a race or two."""
_OWN: Final = (
    "all are from its holder's own {}, and the log shows no other writer, "
    "as with lost answers or several electors in it"
)
_OWN_IN_PARTIAL_LOG: Final = "all are from its holder's own {}, and the log may lack the writes of others"
_REDIRECTION: Final = 300


def list_fenced_writes(history: LeaseHistory) -> Iterator[Event]:
    """Yield the writes that a fence refused."""
    for several in group_by_tenure(
        history, history.requests.fenced, lambda one: (one.at, (one.fence, describe_writer(one.writer)))
    ):
        what = f"{format_count(len(several), 'write')} by {describe_writer(several[0].writer)} without the lease"
        yield several[0].at, f"fence {format_name(several[0].fence)} refused {what}, such as: {several[0].target}"


def list_slow_writes(history: LeaseHistory) -> Iterator[Event]:
    """Yield whose writes were answered late again and again, and what took most of that time, if a log says so."""
    slow = (one for one in history.requests.refusals if one.code < _REDIRECTION and not one.is_read)
    for several in group_by_tenure(history, slow, lambda one: (one.at, describe_writer(one.writer))):
        if len(several) < MIN_OTHER_WRITES:
            continue
        slowest, parts = max(one.took for one in several), {one.slow_part for one in several}
        most = f", most of that for {parts.pop()}" if len(parts) == 1 and parts != {""} else ""
        number = f"at least {format_count(len(several), 'write')} by {describe_writer(several[0].writer)}"
        yield several[0].at, f"{number} were answered after up to {format_length(slowest)}{most}"


def list_accepted_writes(history: LeaseHistory) -> Iterator[Event]:
    """Yield who besides the holder made writes whose content a log does not show."""
    in_turn = [one for one in history.rival.turns if one.is_in_turn]
    yield from ((one.began, describe_turns(one, history.moment)) for one in in_turn)
    others = [
        (at, writer) for at, writer in history.requests.accepted if not any(one.has(at, writer) for one in in_turn)
    ]
    for several in group_by_tenure(history, others, lambda one: one):
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


def list_other_writes(history: LeaseHistory) -> list[Event]:
    """Return who besides the holder wrote again and again, and left holder and renewals as they were."""
    taken_back, rewritten = find_taken_back(history), history.requests.rewritten
    foreign = [
        (one.at, one.foreign.process)
        for one in history.idle_writes
        if one.foreign is not None
        and not (taken_back is not None and taken_back.has(one.at))
        # Of these a finding says what they asked for.
        and rewritten.find_span(HOLDER_IDENTITY, one.foreign, 0, history.moment) is None
    ]
    is_cut = len(history.idle_writes) == MAX_OTHERS
    found = []
    for several in group_by_tenure(history, foreign, lambda one: one):
        times = [at for at, _ in several]
        if len(times) >= MIN_OTHER_WRITES:
            number = f"{'at least ' if is_cut else ''}{format_count(len(times), 'write')}"
            within = f" within {format_length(times[-1] - times[0])}" if times[-1] - times[0] >= SECOND else ""
            left = "left the holder and its renewals as they were"
            found.append((times[0], f"{number} by {describe_writer(several[0][1])}{within} {left}"))
    return found


def list_conflicts(account: Account) -> Iterator[Event]:
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
    for several in group_by_tenure(history, wanted, lambda one: (one.at, (one.writer.process, one.is_deletion))):
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
        has_lost = partial(history.requests.has_forgotten_of, first.writer.process, tenure.since)
        is_cut = has_lost()
        number = f"{'at least ' if is_cut else ''}{len(several)} {'deletions' if first.is_deletion else 'updates'}"
        until = f"{' from then or earlier' if has_lost(first.at) else ''} until {format_clock(last, history.moment)}"
        yield first.at, f"{number} by {describe_writer(first.writer)} conflicted (409){until}; {held}"


def _describe_repeats(conflicts: Sequence[Refusal]) -> str:
    """Say how many conflicts are of requests that were sent twice; "" if most are not: they tell of no other writer."""
    number = sum(1 for one in conflicts if one.is_repeat)
    if 2 * number <= len(conflicts):
        return ""
    which = "all" if number == len(conflicts) else f"{number} of them"
    repeat = "repeat an update that had just been accepted, with its resourceVersion and renewTime"
    return f"{which} {repeat}: its client, or a proxy, sent it twice"


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


def list_refused_writes(history: LeaseHistory) -> Iterator[Event]:
    """Yield the writes that were refused or failed, by who asked and why."""
    writes = (one for one in history.requests.refusals if not one.is_read and not has_lost_race(one, history))
    wanted = (one for one in writes if one.is_denied or one.has_failed)
    for several in group_by_tenure(
        history, wanted, lambda one: (one.at, (one.code, describe_writer(one.writer), one.name))
    ):
        who, answer = describe_writer(several[0].writer), f"{several[0].code}{several[0].refuser}"
        refused = "was refused" if len(several) == 1 else "were refused"
        what = "failed" if several[0].has_failed else refused
        length = several[-1].at - several[0].at  # the line has the time of the first answer
        within = f" within {format_length(length)}" if len(several) > 1 and length >= SECOND else ""
        tenure = history.find_tenure_at(several[0].at)
        has_lost = partial(history.requests.has_forgotten_of, several[0].writer.process, tenure.since if tenure else 0)
        is_cut = has_lost()
        number = f"{'at least ' if is_cut else ''}{format_count(len(several), 'write')}"
        earlier = ", then or earlier" if has_lost(several[0].at) else ""
        where = f"{within}{name_logs(history, several)}{earlier}"
        yield several[0].at, f"{number} by {who} {what} with {answer}{where}{describe_stored(several)}"
