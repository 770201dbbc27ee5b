"""A state after writes that were not seen: a holder goes on, or another one has taken over meanwhile.

In: a step and that state; `resumption` says what the two states leave open. Out: tenures that say what is not known.
"""

from msgspec.structs import replace

from webhook.admission.rules.expiry import MAX_TOLERANCE, date_last_renewal
from webhook.analysis.history.events import EventKind
from webhook.analysis.history.holders.resumption import date_resumed_renewal, may_renew_with, read_resumption
from webhook.analysis.history.holders.tenure import Handover, Tenure
from webhook.analysis.history.holders.transition import NextState
from webhook.analysis.history.status import date_naming, find_manager_of_renewal
from webhook.analysis.history.steps.step import Step
from webhook.analysis.history.steps.tenure_steps import begin_tenure, end_tenure, forget_undated, record_event
from webhook.analysis.history.visibility.continuity import Visibility
from webhook.analysis.history.write import Dating
from webhook.kubernetes.times import get_readable_instant, normalize


def resume(step: Step, state: NextState) -> None:
    """Go on after what was not seen: neither a silence nor how the holder changed is known."""
    history = step.history
    assert state.before is not None
    tenure = history.current_tenure
    history.continuity.is_partial = True
    # An API server may store a write and answer that it failed.
    is_failed = any(one.has_failed for one in history.requests.refusals)
    is_explained = history.hidden_since is not None or state.seen.is_order_unsure or is_failed
    if step.write.is_logged and not is_explained:
        history.continuity.is_log_leaky = True
    at = state.at
    if not step.write.is_logged and at < (history.at or 0) - MAX_TOLERANCE:
        # A stamp that is older than what was seen before is forged: the write came later.
        at = history.at or 0
        step.write = replace(step.write, at=at, latest=None, dating=Dating.ORDER)
    resumed = read_resumption(
        tenure,
        (state.before, state.lease),
        (state.known, state.entries),
        step.write,
        at=at,
        seen_until=history.hidden_since or history.at,
        longest_usual=history.renewals.longest_usual,
    )
    at, last = resumed.at, resumed.last
    if resumed.is_missed:
        record_event(step, EventKind.MISSED, last)
        history.renewals.miss(last, at)
    if tenure and resumed.is_kept:
        _resume_tenure(step, tenure, state, at)
        return
    if tenure:
        end_tenure(step, last, Handover.UNKNOWN)
        if not state.is_held or tenure.is_last_unseen:
            tenure.note_end_dated(is_dated=False)
        if history.continuity.visibility is Visibility.STORE_RESTORED:
            history.vacancy.forget_since()
    elif not state.is_held:
        # Another process may have held and released it.
        history.vacancy.begin(None, Handover.UNKNOWN)
    if state.is_held:
        following = _add_unseen(step, tenure, state, at, is_new=not resumed.may_go_on)
        is_after_restore = history.continuity.visibility is Visibility.STORE_RESTORED
        following.beginning = replace(
            following.beginning, is_after_restore=is_after_restore, may_go_on=resumed.may_go_on
        )


def _resume_tenure(step: Step, tenure: Tenure, state: NextState, at: int) -> None:
    assert state.before is not None
    at = _note_resumed_renewal(step, tenure, state, at)
    tenure.extend(step.write)
    step.history.renewals.restart(at, is_claimed=step.write.has_claimed_time)
    forget_undated(step, tenure)
    is_same = normalize(state.new.renew_time) == normalize(state.before.spec.renew_time)
    record_event(step, EventKind.RESUMED if is_same else EventKind.RENEWED, at, writer=state.writer)


def _note_resumed_renewal(step: Step, tenure: Tenure, state: NextState, at: int, *, is_left: bool = False) -> int:
    """Note the last renewal, as far as a state shows it after what was not seen, and return when it was.

    Nothing shows what the write changed: it need not have been a renewal, and is none of its own if renewTime `is_left`
    as it was.
    """
    at, is_dated = date_resumed_renewal(state.new, state.entries, step.write, at)
    is_shown = is_dated and not is_left
    is_by_other = is_shown and may_renew_with(step.write, at) and tenure.is_by(state.writer) is False
    is_claimed = step.write.is_claimed
    tenure.resume(at, is_seen=is_shown and not is_by_other, is_claimed=is_claimed)
    if is_by_other:
        # When its own process renewed it last was not seen.
        tenure.note_renewal_by_other(at, state.writer, is_claimed=is_claimed)
    return at


def _add_unseen(step: Step, before: Tenure | None, state: NextState, at: int, *, is_new: bool) -> Tenure:
    """Add a holder that took the lease by a time, unseen; without `is_new` it may continue the tenure before."""
    history = step.history
    spec, named = state.new, date_naming(state.entries)
    # A patch may leave the holder that it found, whoever sent it, and so does what leaves renewTime as it was.
    is_named_with = named is not None and may_renew_with(step.write, named)
    is_left = before is not None and before.holder == state.holder and not state.has_other_renew_time
    writer = state.writer if not is_left and (state.seen.verb != "patch" or is_named_with) else None
    tenure = begin_tenure(step, state.holder, at, Handover.UNKNOWN, writer, is_new=is_new)
    _note_resumed_renewal(step, tenure, state, at, is_left=is_left)
    tenure.note_renew_time(get_readable_instant(normalize(spec.renew_time)))
    forget_undated(step, tenure)
    if before and before.holder == state.holder and not (writer and writer.user):
        tenure.note_manager(before.manager)
        manager = find_manager_of_renewal(history.entries, date_last_renewal(history.entries))
        tenure.note_ambiguity(is_other=tenure.has_other_manager(manager) or before.is_ambiguous)
        tenure.follow_manager(manager, at)
    tenure.begin_unseen()
    return tenure
