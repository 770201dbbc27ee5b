"""What every step does to a tenure: it begins, ends, or is said to have expired, and each gives its event.

In: a step, and what was concluded of it. Out: the events of the step, and the tenures of its history.
"""

from webhook.admission.rules.stamps import is_constant
from webhook.analysis.history.events import EventKind, LeaseEvent
from webhook.analysis.history.holders.beginning import Beginning
from webhook.analysis.history.holders.clock import measure_by_request
from webhook.analysis.history.holders.processes import HolderProcesses
from webhook.analysis.history.holders.tenure import Handover, Tenure
from webhook.analysis.history.status import find_manager_of_holder, measure_ahead
from webhook.analysis.history.steps.step import Step
from webhook.analysis.inputs.items import InputKind, Writer
from webhook.kubernetes.objects import Lease
from webhook.kubernetes.times import SECOND, get_readable_instant, normalize, parse_stamp


def begin_tenure(
    step: Step,
    holder: str,
    since: int,
    how: Handover,
    writer: Writer | None,
    *,
    seen: int | None = None,
    is_new: bool = True,
) -> Tenure:
    """Add a holder; `seen` is its last renewal if it had the lease already when the input begins.

    Without `is_new` it may continue the tenure before. Where no input shows the lease, a writer stands in for a holder.
    """
    history = step.history
    is_created_again = how is Handover.DELETED and history.lease is not None
    created = parse_stamp(history.lease.metadata.creation_timestamp) if history.lease and is_created_again else None
    tenure = Tenure(
        HolderProcesses(holder, history.namespace),
        since,
        how,
        since if seen is None else seen,
        beginning=Beginning(
            step.write,
            asked_manager=step.seen.asked_manager,
            is_dated=step.write.is_dated or how is Handover.SEEN,
            written_renew_time=_read_renew_time(history.lease),
            created=created,
        ),
        last_extension=step.write,
        is_own_claimed=step.write.is_claimed,
        is_stand_in=history.lease is None,
        is_coordinated=history.lease is not None and bool(history.lease.spec.strategy),
    )
    manager = "" if is_constant(history.entries) else find_manager_of_holder(history.entries, ())
    if how is Handover.SEEN:
        tenure.begin_seen(writer, manager)
    else:
        known = None if how is Handover.REPLACED else history.succession.find_process(holder, writer)
        tenure.begin(writer, manager, known)
    measure_clock(step, tenure)
    history.succession.begin(tenure, is_new=is_new, shows_renewals=history.kind is not InputKind.REVIEW)
    has_expired, is_claimed = how is Handover.EXPIRED, step.write.has_claimed_time
    history.renewals.restart_with_holder(tenure.last_renewal, has_expired=has_expired, is_claimed=is_claimed)
    if step.write.is_claimed:
        history.renewals.set_back(tenure.last_renewal)
    history.renewals.latest.clear()
    record_event(step, EventKind.ACQUIRED, since, writer=writer)
    return tenure


def _read_renew_time(lease: Lease | None) -> int | None:
    return get_readable_instant(normalize(lease.spec.renew_time)) if lease is not None else None


def end_tenure(step: Step, at: int, how: Handover, writer: Writer | None = None) -> None:
    """End the present tenure, if there is one: no one leads from then on."""
    # Clocks of API servers may differ: a read that seems to come before the end may show what was created after it.
    ended = step.history.succession.end(at, how, step.write, step.history.stored_write)
    if ended is not None and how is Handover.RELEASED:
        record_event(step, EventKind.RELEASED, at, writer=writer)


def record_event(
    step: Step, kind: EventKind, at: int, writer: Writer | None = None, text: str = "", *, silence: int | None = None
) -> None:
    """Add an event of the latest tenure to those of the step."""
    event = LeaseEvent(
        kind,
        at,
        step.history.latest_tenure,
        writer=writer,
        text=text,
        silence=silence,
        is_dated=step.write.is_dated or kind is EventKind.EXPIRED,
        is_claimed=step.write.is_claimed and kind is not EventKind.EXPIRED,
    )
    step.events.append(event)


def report_expiry(step: Step, duration: int | None, last: int | None, before: int, shortened_at: int = 0) -> None:
    """Say when the lease expired, if that was before the write that is seen; not before it was shortened."""
    if last is not None and duration and duration > 0:
        expired = max(last + duration * SECOND, shortened_at)
        if expired < before:
            record_event(step, EventKind.EXPIRED, expired)


def advance_at(step: Step, at: int | None) -> None:
    """Note until when the lease was observed, None if that is not known."""
    history = step.history
    if at is not None:
        history.at = at if history.at is None else max(history.at, at)


def measure_clock(step: Step, tenure: Tenure) -> None:
    """Measure the clock of a holder by the write that is seen, or else by the state that is known."""
    history = step.history
    ahead = measure_ahead(history.lease.spec, history.entries) if history.lease else None
    # Of clocks that differ, a log says by how much at least.
    if (ahead is not None or history.is_as_sent) and not step.bounds.skew:
        asked = measure_by_request(step.seen)
        ahead = ahead if asked is None else asked
    tenure.measure_clock(ahead, step.bounds.skew)


def forget_undated(step: Step, tenure: Tenure) -> None:
    """Count no silence from a last renewal of which neither stamps nor a log show when it was made."""
    if tenure.has_unseen_renewals and not step.write.is_logged:
        step.history.renewals.forget()


def is_last_renewal_known(step: Step, tenure: Tenure) -> bool:
    """Return whether the input shows the last renewal of a holder before a write, by the clock of that write."""
    is_shown = step.history.kind is not InputKind.REVIEW and not tenure.is_last_unseen
    return is_shown and tenure.last_extension.is_claimed == step.write.is_claimed
