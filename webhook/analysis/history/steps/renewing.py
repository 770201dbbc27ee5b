"""A renewal, by the holder's own process, or by another one under the same identity.

In: a step and a state that follows the one before. Out: the tenure goes on, or that of another pod begins.
"""

from webhook.admission.rules.expiry import date_last_renewal
from webhook.analysis.history.events import EventKind
from webhook.analysis.history.holders.taking import classify_write
from webhook.analysis.history.holders.tenure import Handover, Tenure
from webhook.analysis.history.holders.transition import NextState
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.status import RELEASED_DURATION, find_manager_of_renewal, is_release, is_set_back
from webhook.analysis.history.steps.step import Step
from webhook.analysis.history.steps.tenure_steps import (
    begin_tenure,
    end_tenure,
    is_last_renewal_known,
    measure_clock,
    record_event,
    report_expiry,
)
from webhook.analysis.history.visibility.continuity import is_retaken
from webhook.analysis.history.write import Write
from webhook.analysis.inputs.items import Act, InputKind, Writer
from webhook.kubernetes.objects import LeaseSpec
from webhook.kubernetes.times import get_readable_instant, normalize


def renew(step: Step, state: NextState) -> None:
    """Renew the tenure, by its own process or by another one; a write of the name alone may begin one."""
    history = step.history
    tenure, old, new, at, writer = history.current_tenure, state.old, state.new, state.at, state.writer
    if tenure is not None and is_release(old) and (new.lease_duration_seconds or 0) > RELEASED_DURATION:
        # The holder that was written into a lease that stayed released takes it only now.
        end_tenure(step, at, Handover.UNKNOWN)
        tenure = None
    if tenure is None:
        # The holder that had released it takes it again under the same name.
        begin_tenure(step, state.holder, at, Handover.UNKNOWN, writer)
        return
    if state.seen.counted_renewals is not None:
        history.renewals.resume(state.seen.counted_renewals, at)
        tenure.resume_after_counted_renewals(at - state.seen.counted_renewals.latest[-1])
    if state.act is not Act.STORED and _is_expiry_known(step, tenure, writer):
        held = tenure.held_duration
        report_expiry(step, held.least, tenure.kept_until, at, held.shortened_at)
    if history.succession.is_going_on_beside(writer):
        history.renewals.rejoin_holder(tenure.since)
        tenure = history.succession.rejoin()
    tenure.note_taking_up(writer)
    if history.succession.is_replaced_by(writer, at, is_nameless=_is_nameless(state)):
        _replace(step, tenure, state)
        return
    tenure.extend(step.write)
    if not _note_own_renewal(step, tenure, state):
        renew_time = get_readable_instant(normalize(new.renew_time))
        tenure.note_renewal_by_other(at, writer, renew_time, is_claimed=step.write.is_claimed)
        record_event(step, EventKind.RENEWED, at, writer=writer)
        return
    _count_renewal(step, tenure, state)
    if is_release(new) and (old.lease_duration_seconds or 0) > RELEASED_DURATION:
        end_tenure(step, at, Handover.RELEASED, writer)


def _is_expiry_known(step: Step, tenure: Tenure, writer: Writer | None) -> bool:
    """Return whether the input shows when a holder let the lease expire, if it did, before a renewal.

    Who was chosen has not until it takes up the lease; where it is chosen again instead, it had expired.
    """
    is_renewed = tenure.processes.renewals > 0 or tenure.renewed_by_other is not None
    is_taken_up = tenure.is_chosen and not (is_renewed or tenure.beginning.is_unseen)
    if tenure.held_duration.before_longer is not None or not is_last_renewal_known(step, tenure):
        return False
    if not is_taken_up or (writer is None and _is_renewed_by_chooser(step.history, tenure)):
        return True
    return _is_named_after_another(step.history, tenure, writer)


def _note_own_renewal(step: Step, tenure: Tenure, state: NextState) -> bool:
    history = step.history
    if state.writer is None and (history.kind is InputKind.AUDIT_LOG or _is_renewed_by_chooser(history, tenure)):
        return False
    if tenure.is_chosen and not tenure.processes.renewals and _is_named_after_another(history, tenure, state.writer):
        return False
    within = None if step.write.is_claimed else (step.write.earliest, step.write.latest or state.at)
    return tenure.note_renewal(
        state.writer,
        state.at,
        within,
        is_set_back=is_set_back(state.old, state.new),
        is_nameless=_is_nameless(state),
    )


def _is_nameless(state: NextState) -> bool:
    """Return whether a renewal is a patch that names no holder: whoever makes it need not know whose the lease is."""
    return state.seen.sent_patch is not None and not state.seen.sent_patch.names_holder


def _is_named_after_another(history: LeaseHistory, tenure: Tenure, writer: Writer | None) -> bool:
    """Return whether a chosen identity begins with the name of a pod that asked for the lease, and not of the writer's.

    Whoever may update the lease may be the first to renew it.
    """
    if writer is None or not writer.pod or tenure.holder.startswith(writer.pod):
        return False
    return any(who.pod and tenure.holder.startswith(who.pod) for who in history.requests.heard.times)


def _is_renewed_by_chooser(history: LeaseHistory, tenure: Tenure) -> bool:
    """Return whether the field manager of an API server that chose a holder also made the last renewal."""
    manager = _find_manager(history)
    return tenure.is_chosen and manager != "" and manager == tenure.beginning.manager


def _find_manager(history: LeaseHistory) -> str:
    """Return the field manager of the last renewal, as the present state says; "" if it says none."""
    return find_manager_of_renewal(history.entries, date_last_renewal(history.entries))


def _count_renewal(step: Step, tenure: Tenure, state: NextState) -> None:
    """Count a renewal by the holder's own process."""
    history = step.history
    at, writer = state.at, state.writer
    before, last_at = tenure.clock.ahead_at_last, tenure.last_renewal
    measure_clock(step, tenure)
    if not is_release(state.new):
        tenure.note_renew_times(state.old, state.new, at)
    history.clock_steps.take(last_at, at, before, tenure.clock.ahead_at_last)
    manager = _find_manager(history)
    if not (writer and writer.user):
        tenure.note_ambiguity(is_other=_hints_at_another(tenure, manager, state.old, state.new))
        tenure.follow_manager(manager, at)
    is_first = tenure.processes.renewals == 1 and (tenure.is_chosen or tenure.inherited is not None)
    if is_first and tenure.is_chosen and tenure.leaderless is not None:
        # The API server chose it; that it leads is known from its own first renewal.
        unled = max(0, (step.write.latest or at) - (tenure.beginning.write.latest or tenure.since))
        tenure.extend_leaderless(unled)
        history.vacancy.extend(unled)
    last = tenure.last_renewal_write or tenure.beginning.write
    doubt = _measure_doubt(last, step.write, at)
    # Another clock dates it, or none does, or the holder took the lease anew, as one does that does not know its name.
    is_other_clock = not step.write.is_dated or last.is_claimed != step.write.is_claimed
    is_restarted = is_first or is_other_clock or is_retaken(state.old, state.new)
    longest_gap = tenure.find_longest_gap_until(at)
    tenure.renew(at, step.write, manager)
    if is_restarted:
        history.renewals.restart(at, is_claimed=step.write.has_claimed_time)
    is_counted = history.kind is not InputKind.REVIEW and not is_restarted
    silence = None
    if is_counted:
        silence = history.renewals.add(
            at, tenure.duration, doubt, is_claimed=step.write.is_claimed, longest_gap=longest_gap
        )
    record_event(step, EventKind.RENEWED, at, writer=writer, silence=silence)


def _hints_at_another(tenure: Tenure, manager: str, old: LeaseSpec, new: LeaseSpec) -> bool:
    """Return whether field managers or leaseTransitions hint that another one renewed it: a client may lie."""
    is_counted = (new.lease_transitions or 0) != (old.lease_transitions or 0)
    return (is_counted and tenure.processes.renewals > 1) or tenure.has_other_manager(manager)


def _measure_doubt(before: Write, write: Write, at: int) -> int:
    """Return by how many microseconds the time between two renewals, the second one at `at`, may be longer."""
    if before.is_exact and write.is_exact:
        return 0
    return max(0, (write.latest or at) - at) + max(0, before.at - before.earliest)


def _replace(step: Step, tenure: Tenure, state: NextState) -> None:
    """Begin the tenure of another pod that renews under the same identity: it may not know of the one before."""
    at, writer, is_nameless = state.at, state.writer, _is_nameless(state)
    is_expired = classify_write(tenure, tenure.kept_until, tenure.duration, step.write) is Handover.EXPIRED
    how = Handover.EXPIRED if is_expired else Handover.REPLACED
    if not is_expired and step.history.kind is not InputKind.REVIEW and step.write.is_dated:
        step.history.renewals.note_gap(at, is_claimed=step.write.has_claimed_time)
    end_tenure(step, tenure.last_renewal if is_expired else at, how)
    following = begin_tenure(step, tenure.holder, at, how, writer)
    following.begin_with_renewal(step.write, _find_manager(step.history), tenure, is_nameless=is_nameless)
