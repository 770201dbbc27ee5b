"""The first state of a lease: it was created, or it was there before the input begins.

In: a step and that state. Out: the first tenure, as far as the state shows it, and the event of its creation.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from webhook.admission.rules.expiry import BOUND, truncate_to_seconds
from webhook.analysis.history.events import EventKind
from webhook.analysis.history.holders.first_state import read_first_state
from webhook.analysis.history.holders.tenure import Handover, Tenure
from webhook.analysis.history.holders.transition import NextState
from webhook.analysis.history.status import date_renewal
from webhook.analysis.history.steps.step import Step
from webhook.analysis.history.steps.tenure_steps import begin_tenure, forget_undated, record_event
from webhook.analysis.history.write import Dating, Write
from webhook.analysis.inputs.items import Act
from webhook.kubernetes.managed_fields import Entry
from webhook.kubernetes.times import SECOND, get_readable_instant, normalize, parse_stamp


def begin_state(step: Step, state: NextState) -> None:
    """Begin with a state before which the lease did not exist, or was not known."""
    if state.is_held:
        _begin_holder(step, state)
    elif state.act is Act.CREATED and (before := step.history.latest_tenure) is not None:
        before.deletion = replace(before.deletion, created_again_by=state.writer)
    _report_creation(step, state)


def _begin_holder(step: Step, state: NextState) -> None:
    history, tenure = step.history, step.history.current_tenure
    if tenure is not None and _names_stand_in(tenure, state.holder):
        # A log without objects showed who writes; now a watch shows the holder identity, or that there is none.
        tenure.name_holder(state.holder)
    elif history.vacancy.how is Handover.DELETED or state.is_new:
        _begin_as_created(step, state)
    else:
        _begin_as_seen(step, state)


def _names_stand_in(tenure: Tenure, holder: str) -> bool:
    """Return whether a holder may be the one for which the writer of a lease stands in."""
    is_alike = bool(tenure.holder) and (not holder or holder.startswith(tenure.holder))
    return tenure.is_stand_in and is_alike


def _begin_as_created(step: Step, state: NextState) -> None:
    """Begin a tenure with a lease that was created, perhaps after another one of its name was deleted."""
    vacancy = step.history.vacancy
    is_first = _is_as_created(step, state)
    is_unseen = vacancy.how is Handover.UNKNOWN
    how = Handover.DELETED if vacancy.how is Handover.DELETED else Handover.CREATED
    at = state.moment or date_renewal(state.new, state.entries) or 0
    tenure = begin_tenure(step, state.holder, at, how if is_first else Handover.UNKNOWN, state.writer)
    if not is_first:
        tenure.begin_unseen()
    if is_unseen or not is_first:
        tenure.forget_previous()


def _is_as_created(step: Step, state: NextState) -> bool:
    """Return whether a state is the one that was created."""
    if state.act is Act.UPDATED or (step.history.existence.is_creation_hidden and state.act is not Act.CREATED):
        return False  # what is updated was created before
    if state.act is not Act.CREATED and _was_written_since_created(step, state):
        return False
    # After a gap the first state need not be the one that was created.
    return not step.history.continuity.is_after_gap or step.write.is_logged


def _was_written_since_created(step: Step, state: NextState) -> bool:
    """Return whether an API server created the lease earlier than it stored what is seen first of it."""
    created = parse_stamp(state.lease.metadata.creation_timestamp)
    return created is not None and created + SECOND + step.bounds.skew < step.write.earliest


def _begin_as_seen(step: Step, state: NextState) -> None:
    """Begin a tenure with the first state of an input, which was held already."""
    history = step.history
    first = read_first_state(state.lease, state.entries, step.write, state.moment, history.kind)
    # A patch is answered with the state that it found if it changed nothing.
    is_renewer = state.seen.verb != "patch" and _may_be_renewal(state.entries, step.write)
    writer = state.writer if is_renewer else None
    tenure = begin_tenure(step, state.holder, first.since, Handover.SEEN, writer, seen=first.last_renewal)
    tenure.begin_before_input(is_unseen=first.is_unseen, is_since_own=first.is_since_own)
    if first.is_unseen and step.write.dating is Dating.STAMP:
        # Any write until the latest stamp may have been a renewal.
        stamped = (state.seen.latest_stamp or 0) + SECOND
        tenure.extend(replace(step.write, latest=max(step.write.latest or 0, stamped)))
    if not is_renewer:
        tenure.extend(replace(tenure.last_extension, writer=None))
    tenure.note_renew_time(get_readable_instant(normalize(state.new.renew_time)))
    forget_undated(step, tenure)
    if first.is_as_chosen:
        history.renewals.forget()  # the API server made what looks like its last renewal


def _report_creation(step: Step, state: NextState) -> None:
    """Say when a lease came to exist; a watch and a dump show only when it was created."""
    history = step.history
    if history.current_tenure and (not step.events or history.current_tenure.began is not Handover.SEEN):
        return
    created, at = parse_stamp(state.lease.metadata.creation_timestamp), state.moment or history.at or 0
    if state.act is Act.STORED and created is not None and created <= at + BOUND:
        record_event(step, EventKind.CREATED, min(created, at), text="it was created, by its creationTimestamp")
    elif state.act is Act.CREATED:
        record_event(step, EventKind.CREATED, at, writer=state.writer)


def _may_be_renewal(entries: Sequence[Entry], write: Write) -> bool:
    """Return whether the write of a first state may be the last renewal, by the field managers stamped since then."""
    began = truncate_to_seconds(write.earliest)
    return all(one.owns_renew_time for one in entries if one.stamp is not None and one.stamp >= began)
