"""One holder after another: a free lease is claimed, a held one taken, and a holder removed.

In: a step and a state that follows the one before. Out: the tenure that ended, and the one that began.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from webhook.admission.rules.expiry import date_last_renewal
from webhook.analysis.history.holders.beginning import RequestsBefore, find_claimed_times, is_renaming
from webhook.analysis.history.holders.taking import find_taking
from webhook.analysis.history.holders.tenure import Handover, Tenure
from webhook.analysis.history.holders.transition import NextState
from webhook.analysis.history.status import (
    find_manager_of_holder,
    find_manager_of_renewal,
    is_earlier_renewal,
    is_release,
)
from webhook.analysis.history.steps.step import Step
from webhook.analysis.history.steps.tenure_steps import begin_tenure, end_tenure, report_expiry
from webhook.analysis.inputs.items import Writer
from webhook.kubernetes.managed_fields import Entry

_KEPT_AFTER_VACANCY: Final = frozenset({Handover.RELEASED, Handover.UNKNOWN})
"""How a tenure ended if the next holder of a lease that names none took it so, too; else it was claimed."""


def claim(step: Step, state: NextState) -> None:
    """Begin the tenure of a holder that was written into a free lease."""
    _note_last_manager(step, state.known)
    step.history.succession.forget_nameless()
    how, before = step.history.vacancy.how, step.history.latest_tenure
    began = how if how in _KEPT_AFTER_VACANCY else Handover.CLAIMED
    following = begin_tenure(step, state.holder, state.at, began, state.writer)
    if before is None:
        following.beginning = replace(following.beginning, free_since=date_last_renewal(state.known))
    _note_requests_before(step, following, state.writer)
    # Who is written into a lease that stays released does not hold it.
    is_held = state.new.renew_time is not None and not is_release(state.new)
    is_left = is_held and not state.has_other_renew_time
    if how is Handover.UNKNOWN:
        # Before the input showed it again without a holder, another process may have held it.
        following.forget_previous()
        if is_left:
            following.resume(state.at, is_seen=False, is_claimed=step.write.is_claimed)
    elif is_left and before is not None and before.ended is not None:
        following.inherit(before)


def take_from_holder(step: Step, state: NextState) -> None:
    """End the tenure of a holder that was still named when another one took the lease."""
    history = step.history
    _note_last_manager(step, state.known)
    before, at = history.latest_tenure, state.at
    taking = find_taking(before, state.old, state.known, step.write, at)
    # A log of requests alone does not show what this one wrote over: the lease may have been released unseen.
    is_unshown = taking.how is Handover.STOLEN and state.is_before_sent
    taking = replace(taking, how=Handover.UNKNOWN) if is_unshown else taking
    if taking.has_expired:
        shortened_at = before.held_duration.shortened_at if before is not None else 0
        report_expiry(step, taking.duration, taking.kept_until, at, shortened_at)
    end_tenure(step, taking.ended, taking.how)
    history.vacancy.begin_earlier(at if taking.kept_until is None else taking.kept_until)
    following = begin_tenure(step, state.holder, at, taking.how, state.writer)
    claimed_silence, claimed_since = find_claimed_times(state.old, state.new)
    following.beginning = replace(
        following.beginning,
        may_have_been_expired=taking.is_close,
        is_over_unshown=is_unshown,
        claimed_silence=claimed_silence,
        claimed_since=claimed_since,
    )
    _note_requests_before(step, following, state.writer)
    is_stale = following.processes.foreign_taker is not None and is_earlier_renewal(state.old, state.new)
    if before is None or (state.has_other_renew_time and not is_stale):
        following.beginning = replace(following.beginning, is_renaming=is_renaming(state.old, state.new))
    else:
        following.inherit(before)


def release(step: Step, state: NextState) -> None:
    """End a tenure whose holder was removed, by itself or by another writer: then it may go on as the leader."""
    history = step.history
    _note_last_manager(step, state.known)
    holder = history.current_tenure
    if holder:
        manager, is_field_gone = find_manager_of_holder(state.entries, state.known), state.new.holder_identity is None
        elsewhere = history.requests.find_elsewhere(state.seen)
        is_renewal = state.has_other_renew_time and state.new.renew_time is not None
        sent = state.seen.sent_patch
        holder.note_removal(
            state.writer,
            manager,
            is_field_gone=is_field_gone,
            is_renewal=is_renewal,
            is_blind=sent is not None and not sent.has_precondition,
            elsewhere=elsewhere,
        )
    end_tenure(step, state.at, Handover.RELEASED, state.writer)
    if holder and holder.removal.may_be_by_another:
        history.vacancy.begin(holder.last_renewal, Handover.RELEASED)  # it may have stopped long before


def _note_requests_before(step: Step, following: Tenure, writer: Writer | None) -> None:
    """Note when the next holder asked for the lease before it took it."""
    waiting = step.history.requests.waiting
    if writer is not None and (asking := waiting.asking.get(writer.process)):
        following.requests_before = RequestsBefore(
            tuple(asking.times), waiting.since, has_asked_earlier=writer.process in waiting.known
        )


def _note_last_manager(step: Step, known: Sequence[Entry]) -> None:
    history = step.history
    if history.latest_tenure:
        history.latest_tenure.note_manager(find_manager_of_renewal(known, date_last_renewal(known)))
