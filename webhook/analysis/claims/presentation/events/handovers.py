"""How a lease passed from one holder to the next, and the silences before."""

from collections.abc import Iterator, Sequence
from typing import Final

from webhook.analysis.claims.account import Account
from webhook.analysis.claims.evidence.coordination.creations import (
    find_creation_at_first_sight,
    find_creation_of_unheld,
)
from webhook.analysis.claims.evidence.machines.api_servers import describe_end
from webhook.analysis.claims.facts import describe_handover_with_end
from webhook.analysis.claims.handover_clauses import (
    describe_handover,
    describe_renewals_of_another,
)
from webhook.analysis.claims.handovers import find_frequent_changes, is_next_name, list_edited_holders
from webhook.analysis.claims.presentation.events.event import PAIR, Event
from webhook.analysis.claims.words import UNLESS_DRY_RUN, describe_writer, format_clock, format_name
from webhook.analysis.history.holders.clock import SetBack
from webhook.analysis.history.holders.tenure import Handover, Tenure, find_latest_pair, with_previous
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.renewals import Silence
from webhook.analysis.history.status import RELEASED_DURATION, LeaseState
from webhook.analysis.inputs.items import Writer
from webhook.kubernetes.times import SECOND, format_length

_MANY_CHANGES: Final = 3


def find_last_handover(account: Account) -> list[Event]:
    """Return how the present holder followed another one, or how the last one ended."""
    history = account.history
    last = history.latest_tenure
    if last is None:
        return []
    if last.until is not None:
        return [(last.until, describe_end(history, last))]
    latest = find_latest_pair(history.tenures)
    if latest is None:
        return list_recreation(history)
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


def list_writing_in(history: LeaseHistory) -> list[Event]:
    """Return how holders before the last one were written in by who edited the lease, as a watch shows that."""
    edited = list_edited_holders([*history.tenures][:-1])
    return [(one.since, describe_handover(one, None)) for one in edited]


def list_changed_durations(history: LeaseHistory) -> list[Event]:
    """Return which holders that took the lease once it was free, or had expired, gave it another duration.

    If they end without a release, others wait for that.
    """
    pairs = ((before, after) for before, after in with_previous(history.tenures) if before is not None)
    return [(after.since, _describe_durations(before, after)) for before, after in pairs if _differ(before, after)]


def _differ(before: Tenure, after: Tenure) -> bool:
    """Return whether two holders chose other durations, as far as is known: a release writes one of its own."""
    is_own = after.began in {Handover.EXPIRED, Handover.RELEASED} and not after.is_coordinated
    durations = (before.duration or 0, after.duration or 0)
    return is_own and min(durations) > RELEASED_DURATION and before.duration != after.duration


def _describe_durations(before: Tenure, after: Tenure) -> str:
    took = f"{format_name(after.holder)} took it after {format_name(before.holder)}"
    return f"{took}, with a duration of {after.duration} s (before: {before.duration} s)"


def list_creation(account: Account) -> list[Event]:
    """Return that a lease was created just before its first state in the input, or that one was that no one has held.

    Nothing if something else says so.
    """
    unheld = find_creation_of_unheld(account.history) if account.state is LeaseState.NEVER_HELD else None
    if unheld is not None:
        return [(unheld.at, unheld.describe())]
    created = find_creation_at_first_sight(account.history)
    return [] if created is None else [(created, "the lease was created (creationTimestamp)")]


def list_recreation(history: LeaseHistory) -> list[Event]:
    """Return that a lease was deleted and created again, if the input does not show who held it before."""
    tenures, existence = list(history.tenures), history.existence
    if not tenures or len(tenures) > 1 or tenures[0].began is not Handover.DELETED:
        return []
    doubt = "" if existence.is_deletion_sure else f" ({UNLESS_DRY_RUN})"
    by = existence.deleted_by
    deleted = f"{describe_writer(by)} deleted the lease{doubt}" if by is not None and by.name else ""
    handover = (tenures[0].since, describe_handover(tenures[0], None))
    return [(existence.deleted_at, deleted), handover] if deleted else [handover]


def list_handovers(account: Account, tenures: Sequence[Tenure]) -> Iterator[tuple[int, list[Event]]]:
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


def _describe_run(run: Sequence[Tenure]) -> Event:
    """Describe names that one pod wrote one after another; the first one is that which it had before."""
    before, first, last = run[0], run[1], run[-1]
    if len(run) == PAIR:
        return first.since, describe_handover(first, before)
    who = f"all were written from one pod ({describe_writer(last.processes.taken_by or Writer())})"
    until = format_clock(last.since, first.since)
    names = f"{len(run) - 1} names followed {format_name(before.holder)} until {until}, the last one"
    return first.since, f"{names} {format_name(last.holder)}: {who}"


def describe_ending(account: Account, tenure: Tenure, after: Tenure | None) -> Iterator[Event]:
    """Yield what ended a tenure, and what its holder did last."""
    history, duration = account.history, tenure.duration or 0
    if (
        tenure.processes.requests_after_loss
        and tenure.removal.is_own is not True
        and not _comes_to_delete(tenure, after)
    ):
        # Who released it is expected to ask for it again.
        yield tenure.processes.requests_after_loss[0], _describe_first_request_after_loss(history, tenure)
    for other, seen in tenure.processes.others.items():
        yield seen.first, describe_renewals_of_another(tenure, other, seen, history.moment)
    if tenure.set_back is not None:
        yield describe_set_back(tenure, tenure.set_back)
    if tenure.until is None:
        return
    is_free = after is not None and after.began in {Handover.RELEASED, Handover.CREATED}
    if tenure.is_deleted or tenure is history.latest_tenure or is_free:
        # A watch does not say when a lease was deleted; it was before the lease was created again.
        at = min(tenure.until, after.since if after is not None else tenure.until)
        # Of two writes in one second, a stamp of the second one is that of its beginning.
        yield max(at, tenure.since), describe_end(history, tenure)
    elif after and after.began is Handover.EXPIRED and duration > RELEASED_DURATION and tenure.copied_age is None:
        # By an old time that is written in, it has expired at once; who waits for a duration then, waits by its own.
        expired = tenure.kept_until + duration * SECOND
        if account.unshown_duration is not None and account.unshown_duration.after is after:
            yield from list_unshown_durations(account)
            return
        yield expired, f"the lease expired, {duration} s after {_describe_last_sign(tenure)}"


def _describe_first_request_after_loss(history: LeaseHistory, tenure: Tenure) -> str:
    """Say what was heard first of a holder that had lost the lease."""
    who, heard = (
        f"pod {format_name(tenure.processes.pods[-1])}, the previous holder,",
        tenure.processes.requests_after_loss,
    )
    if tenure.processes.conflicted_after_loss == heard[0]:
        return f"a write by {who} was refused, as another one had come before it (409)"
    if len(heard) == 1:
        # It may have been sent before, and held back on its way.
        return f"a request of {who} was received"
    # What it read may be what the next process in a container that restarted has read.
    answers = (one for one in history.requests.refusals if tenure.last_of_identity < one.at < heard[0])
    has_asked = any(tenure.is_by(one.writer) for one in answers)
    return f"{who} {'still ' if has_asked else ''}asks for the lease"


def describe_set_back(tenure: Tenure, back: SetBack) -> Event:
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
        return f"the last renewal, which was before {format_name(tenure.holder)} was written into it"
    if tenure.was_left_as_written or tenure.is_never_taken_up:
        taker = tenure.processes.taken_by
        wrote = f"{describe_writer(taker)} wrote {{}} into it" if taker else "{} was written into it"
        return wrote.format(format_name(tenure.holder))
    doubt = ", or by someone writing in its name" if tenure.is_ambiguous else ""
    return f"the last renewal by {format_name(tenure.holder)}{doubt}"


def list_silences(history: LeaseHistory) -> Iterator[Event]:
    """Yield the silences of each holder that count."""
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


def list_unshown_durations(account: Account) -> list[Event]:
    """Return the doubt about how long the lease lasts, as a log of requests raises it."""
    found = account.unshown_duration
    return [] if found is None else [(found.since, found.describe(account.now))]
