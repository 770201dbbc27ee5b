"""States of a lease, one after another: what is missing between two of them, and what the next one does.

In: a step, and a state that it shows. Out: that state is the present one, and its holder is followed by its kind of
`transition`: `beginning`, `resuming`, `taking_over` or `renewing`.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from typing import Final

from msgspec.structs import replace

from webhook.admission.rules.expiry import date_last_renewal
from webhook.analysis.history.events import EventKind, describe_changed_fields, list_changed_fields
from webhook.analysis.history.holders.nameless_renewals import follow_nameless_renewals
from webhook.analysis.history.holders.taken_back import find_election_field_changes
from webhook.analysis.history.holders.tenure import Handover, Tenure
from webhook.analysis.history.holders.transition import NextState, Transition
from webhook.analysis.history.idle_writes import IdleWrite
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.marks import LabelChange, MarkedLease, add_label_change, find_changed_labels, find_marks
from webhook.analysis.history.owners import find_added_owners
from webhook.analysis.history.status import (
    date_duration_by_another,
    date_state,
    find_manager_of_renewal,
    find_stamp_between,
    is_duration_by_another,
    is_renewal_logged,
)
from webhook.analysis.history.steps.beginning import begin_state
from webhook.analysis.history.steps.deletion import delete_unseen
from webhook.analysis.history.steps.renewing import renew
from webhook.analysis.history.steps.resuming import resume
from webhook.analysis.history.steps.step import Step
from webhook.analysis.history.steps.taking_over import claim, release, take_from_holder
from webhook.analysis.history.steps.tenure_steps import advance_at, is_last_renewal_known, record_event, report_expiry
from webhook.analysis.history.visibility.continuity import Visibility
from webhook.analysis.history.visibility.dating import date_state_before
from webhook.analysis.history.visibility.existence import is_other_uid, measure_overlap
from webhook.analysis.history.visibility.forged_stamps import find_forged_stamps
from webhook.analysis.inputs.items import Act, InputKind, Observation, parse_number
from webhook.kubernetes.managed_fields import PREFERRED_HOLDER, Entry
from webhook.kubernetes.objects import Lease
from webhook.kubernetes.times import SECOND


class Missing(Enum):
    """What is missing between the state that is known and the next one."""

    NOTHING = auto()
    UNSEEN_WRITES = auto()
    """Writes between the two were not seen."""
    UNKNOWN_PREDECESSOR = auto()
    """Writes were not seen: the next state follows one that is hidden, or not known."""
    STORED_FAILURE = auto()
    """A write of the holder was stored although its answer says that it failed; its request was seen."""

    @property
    def is_gap(self) -> bool:
        """Whether writes between the two states were not seen."""
        return self in {Missing.UNSEEN_WRITES, Missing.UNKNOWN_PREDECESSOR}


_FOLLOWERS: Final[Mapping[Transition, Callable[[Step, NextState], object]]] = {
    Transition.RENEWAL: renew,
    Transition.TAKING: take_from_holder,
    Transition.CLAIM: claim,
    Transition.RELEASE: release,
    Transition.BEGINNING: begin_state,
    Transition.RESUMPTION: resume,
}
"""What each transition does to tenures; NONE does nothing."""


def take_state(step: Step, lease: Lease, entries: Sequence[Entry], act: Act) -> None:
    """Take in the next state of the lease; the observation shows it, or shows it as the state before."""
    history, seen = step.history, step.seen
    # After a patch of labels alone, which a log need not show as stored, managedFields are not those before it.
    is_known_before = bool(history.continuity.version) and not history.continuity.paths.isdisjoint(seen.paths)
    state = _replace_current_state(step, lease, entries, act)
    _note_log(step, state)
    is_dated_by_stamp = state.before is not None and seen.at is None
    history.stamped = find_stamp_between(state.old, state.new, state.known, entries) if is_dated_by_stamp else 0
    history.is_resumed = state.is_gap and act is Act.STORED
    _follow_holder(step, state)
    _note_nameless_renewal(history, state)
    if history.current_tenure:
        _note_facts(step, history.current_tenure, state)
    if not state.is_gap:
        _record_idle_write(step, state)
        _record_changes(step, state, is_known_before=is_known_before)
    advance_at(step, state.moment or None)


def _replace_current_state(step: Step, lease: Lease, entries: Sequence[Entry], act: Act) -> NextState:
    """Make a state the present one; return it with the state before, if the lease was not deleted in between."""
    history = step.history
    is_other = is_other_uid(history.lease.metadata.uid if history.lease else None, lease.metadata.uid)
    if is_other:
        _note_other_uid(history, lease)
    missing = _find_missing(history, step.seen, lease, act, is_other=is_other)
    _note_missing(step, missing)
    # A review of a creation comes before it is known whether the lease exists.
    if not missing.is_gap and (is_other or (act is Act.CREATED and history.kind is not InputKind.REVIEW)):
        delete_unseen(step)
    state = _make_next_state(history, step.seen, lease, entries, act, is_gap=missing.is_gap)
    _apply(step, state, is_other=is_other)
    return state


def _note_other_uid(history: LeaseHistory, lease: Lease) -> None:
    """Note that the lease is not the one that is known, by its uid, and whether both existed at once."""
    history.existence.replace_uid(history.lease.metadata.uid if history.lease else None, lease.metadata.uid)
    if not (history.is_deleted or history.continuity.visibility is Visibility.STORE_RESTORED):
        overlap = measure_overlap(lease, history.stored_write)
        history.existence.overlap = max(history.existence.overlap, overlap)


def _make_next_state(
    history: LeaseHistory, seen: Observation, lease: Lease, entries: Sequence[Entry], act: Act, *, is_gap: bool
) -> NextState:
    """Return a state with the one before, which the history still has as the present one."""
    is_old_state = lease is seen.old
    moment: int | None = history.moment
    if is_old_state:
        moment = None if history.known_state.has_same_renewal(lease) else date_state(lease.spec, entries)
    return NextState(
        seen=seen,
        act=act,
        lease=lease,
        entries=entries,
        before=None if history.is_deleted else history.lease,
        known=() if history.is_deleted else history.entries,
        at=moment or history.at or 0,
        moment=moment,
        writer=None if is_old_state else seen.writer,
        is_gap=is_gap,
        is_new=history.is_deleted or act is Act.CREATED,
        is_nameless=history.is_nameless_in(lease),
        is_before_sent=history.is_as_sent,
    )


def _apply(step: Step, state: NextState, *, is_other: bool) -> None:
    """Make a state the present one of its history."""
    history, seen = step.history, state.seen
    if state.act is Act.CREATED and not history.tenures:
        history.existence.note_creation(state.writer, state.at)
    if state.is_before_write:
        step.write = date_state_before(state.moment, history.at or 0, step.write.skew)
    history.lease, history.entries = state.lease, state.entries
    history.existence.restore(is_other=is_other)
    history.continuity.path, history.continuity.version = seen.place.path, seen.resource_version
    history.continuity.sent_after = 0 if seen.resource_version else parse_number(seen.replaces)
    history.continuity.paths = frozenset(seen.paths)


def _find_missing(history: LeaseHistory, seen: Observation, lease: Lease, act: Act, *, is_other: bool) -> Missing:
    """Find what is missing between the state that is known and the next one."""
    if history.lease is None or history.is_deleted:
        return Missing.NOTHING
    if history.continuity.is_cut(seen):
        return Missing.UNKNOWN_PREDECESSOR
    if _names_another(history.lease, lease) and history.continuity.hide_since_own_write():
        return Missing.UNSEEN_WRITES
    if seen.is_order_unsure and _names_another(history.lease, lease):
        return Missing.UNSEEN_WRITES
    if not (seen.replaces and history.continuity.version):
        is_gap = history.continuity.has_gap_between(seen, history.lease, lease, act, is_other=is_other)
        return Missing.UNSEEN_WRITES if is_gap else Missing.NOTHING
    # A request names the state that it replaces.
    if seen.replaces == history.continuity.version:
        return Missing.NOTHING
    return Missing.STORED_FAILURE if _is_explained_by_failure(history) else Missing.UNKNOWN_PREDECESSOR


def _is_explained_by_failure(history: LeaseHistory) -> bool:
    """Return whether the write that is missing is one of the holder that was stored although its answer failed."""
    refusals = history.requests.refusals
    # Whoever asks meanwhile may be refused, which stores nothing.
    unknown = [one for one in refusals if one.was_stored is None]
    last = next(reversed(unknown or refusals), None)
    if history.current_tenure is None or last is None or last.code < 500 or last.at < (history.at or 0):
        return False
    return history.current_tenure.is_by(last.writer) is True


def _names_another(before: Lease, after: Lease) -> bool:
    """Return whether another text stands in holderIdentity, or none does."""
    return (before.spec.holder_identity or "") != (after.spec.holder_identity or "")


def _note_missing(step: Step, missing: Missing) -> None:
    """Remember what a write shows to be missing before it."""
    if missing is Missing.UNKNOWN_PREDECESSOR:
        step.history.continuity.note_skip(step.seen)
    if missing is Missing.STORED_FAILURE:
        step.write = replace(step.write, is_doubtful=True)


def _note_log(step: Step, state: NextState) -> None:
    """Note when a log shows the last renewal, if the new state has no stamp of it."""
    history = step.history
    if state.before is not None and not state.has_other_renew_time:
        return
    # After what was not seen, the renewal may be of another write than the one that shows it.
    is_seen = not state.is_gap or is_renewal_logged(state.new, state.entries, step.write)
    is_made = state.before is not None or state.act is Act.CREATED
    is_logged = is_seen and is_made and history.kind is InputKind.AUDIT_LOG
    history.logged = state.seen.at if is_logged and date_last_renewal(state.entries) is None else None


def _follow_holder(step: Step, state: NextState) -> None:
    """Have the next state renew, end or begin a tenure, or do neither."""
    transition = state.classify(is_released=step.history.vacancy.how is Handover.RELEASED)
    if transition is not Transition.NONE:
        _FOLLOWERS[transition](step, state)


def _note_nameless_renewal(history: LeaseHistory, state: NextState) -> None:
    """Note a renewal without a holder; what removed the last one was the first of them, if more have followed."""
    removed, before = history.latest_tenure, history.nameless
    history.nameless = nameless = follow_nameless_renewals(before, state, removed)
    if nameless is None and before is not None and before.is_run:
        history.past_nameless.append(before)
    if nameless is None or not nameless.is_run or removed is None or removed.until != nameless.since:
        return
    if removed.removal.writer is None:
        removed.doubt_removal()


def _note_facts(step: Step, tenure: Tenure, state: NextState) -> None:
    """Have the holder remember its term, how long the lease lasts, and whether it is asked to step down."""
    old, new = state.old, state.new
    tenure.note_term(None if state.is_before_write or state.seen.is_stamp_old else state.seen.term)
    # After a gap, a renewal may stand beside the duration that another manager wrote.
    is_renewed = state.has_other_renew_time and not is_duration_by_another(state.entries)
    if is_renewed:
        tenure.held_duration = tenure.held_duration.confirm()
    if tenure.held_duration.would_change(new.lease_duration_seconds):
        is_begun = any(one.kind is EventKind.ACQUIRED for one in step.events)
        is_same_write = state.has_other_renew_time or is_begun or state.is_gap
        if not is_same_write and is_last_renewal_known(step, tenure):
            # By what it lasted until then it may have expired before it was made to last longer.
            report_expiry(
                step, tenure.held_duration.least, tenure.kept_until, state.at, tenure.held_duration.shortened_at
            )
        managers = [
            find_manager_of_renewal(entries, date_last_renewal(entries)) for entries in (state.entries, state.known)
        ]
        at = step.write.at if state.before else max(step.write.at, date_duration_by_another(state.entries))
        lasted = tenure.held_duration.seconds
        tenure.set_duration(new.lease_duration_seconds, state.writer, *managers, at=at, is_renewed=is_renewed)
        is_longer = lasted is not None and (new.lease_duration_seconds or 0) > lasted
        is_undated = state.is_gap or not step.write.is_dated
        if is_longer and is_undated and not (state.has_other_renew_time or is_begun):
            tenure.held_duration = replace(tenure.held_duration, before_longer=lasted)
        if not is_renewed and (new.lease_duration_seconds or 0) < (old.lease_duration_seconds or 0):
            # Until then it lasted as long as it said before.
            tenure.held_duration = replace(tenure.held_duration, shortened_at=_date_shortening(step, tenure, state))
    asker = None if state.is_gap or state.act is Act.STORED else state.writer
    manager = "" if state.is_gap or asker is not None else state.find_manager_of({PREFERRED_HOLDER})
    tenure.step_down = tenure.step_down.follow(
        old.preferred_holder, new.preferred_holder, step.write, asker, manager, is_renewal=state.has_other_renew_time
    )


def _date_shortening(step: Step, tenure: Tenure, state: NextState) -> int:
    """Return when another writer shortened the lease at the latest, or when it had expired before that."""
    write = step.write
    if write.is_dated and not state.is_gap:
        return write.at
    shortened_at = max(write.at, date_duration_by_another(state.entries), 0 if write.is_dated else write.latest or 0)
    expired_at = tenure.kept_until + (tenure.duration or 0) * SECOND
    is_open = write.latest is None and not write.is_dated
    lasted = expired_at if is_open else min(shortened_at, expired_at)
    return lasted if is_last_renewal_known(step, tenure) else shortened_at


def _record_idle_write(step: Step, state: NextState) -> None:
    """Record a write that changed neither the holder nor the renewal."""
    history, tenure = step.history, step.history.current_tenure
    # A write that a log may show is counted there.
    is_idle = not step.events and state.act is Act.UPDATED and not state.seen.may_be_logged
    if tenure is None or not is_idle:
        return
    name = state.writer.name if state.writer and state.writer.user else state.only_changed_manager
    is_own = tenure.is_by(state.writer, state.only_changed_manager, tenure.manager)
    history.idle_writes.append(IdleWrite(state.at, name, state.writer if is_own is False else None))
    if state.writer is not None and tenure.is_by(state.writer):
        tenure.processes.unrenewed.append(state.at)


def _record_changes(step: Step, state: NextState, *, is_known_before: bool) -> None:
    """Record what a write changed besides the holder and the renewal, and stamps that it invented.

    `is_known_before`: the same input shows the whole state that it replaced.
    """
    before, version = state.before, state.lease.metadata.resource_version
    if state.act is Act.STORED or (before and version and before.metadata.resource_version == version):
        return
    if before is None or state.seen.old or is_known_before:
        _record_forgery(step, state)
    if before is not None:
        _note_marks(step, state, before)
        _note_label_changes(step, state, before)
        _record_edits(step, state)
    patched, step.history.patched_owners = step.history.patched_owners, frozenset()
    added = find_added_owners(state, step.history.latest_tenure, step.write, step.history.stored_write, patched)
    if added is not None:
        step.history.added_owners.append(added)
        record_event(step, EventKind.OWNED, added.at, writer=added.writer)


def _record_forgery(step: Step, state: NextState) -> None:
    """Record stamps that no API server would have made of the state before."""
    problem = find_forged_stamps(state.seen, state.before, state.known, state.at, is_dated=step.write.is_dated)
    if problem:
        record_event(step, EventKind.FORGED, state.at, writer=state.writer, text=problem)


def _record_edits(step: Step, state: NextState) -> None:
    """Record changes of fields that no renewal changes."""
    history, at = step.history, state.at
    # A stamp has whole seconds, and the write before may have been in the same one.
    edited = max(at, step.write_before.at) if step.write.may_include(step.write_before.at) else at
    history.election_field_changes.extend(find_election_field_changes(state.old, state.new, edited, state.writer))
    if edit := describe_changed_fields(state.old, state.new):
        is_by_known = state.writer is not None and bool(state.writer.user)
        manager = "" if is_by_known else state.find_manager_of(list_changed_fields(state.old, state.new))
        record_event(step, EventKind.EDITED, edited, writer=state.writer, text=edit)
        step.events[-1] = replace(step.events[-1], manager=manager)
        asked = ", ".join(one.asked or "none" for one in state.seen.rewritings if f"{one.field} " in edit)
        if asked:
            # Who asked for something else did not change it.
            step.events[-1] = replace(step.events[-1], writer=None, asked=asked, asker=state.writer)
        history.edits.append(step.events[-1])


def _note_marks(step: Step, state: NextState, before: Lease) -> None:
    """Remember the labels and annotations that a writer other than the holder put on the lease."""
    history, writer = step.history, state.writer if state.writer and state.writer.user else None
    tenure = history.current_tenure
    if tenure is None or (writer is not None and tenure.is_by(writer)):
        return
    is_by_other = writer is not None or _is_renewal_under_other_manager(tenure, state)
    found = find_marks(before, state.lease, is_by_other=is_by_other)
    history.marks.extend(MarkedLease(state.at, one, writer, is_dated=step.write.is_dated) for one in found)


def _is_renewal_under_other_manager(tenure: Tenure, state: NextState) -> bool:
    """Return whether a lease was renewed under another field manager than before: that need not be the holder."""
    run = tenure.manager_run
    return run is not None and not run.is_over and run.last == state.at


def _note_label_changes(step: Step, state: NextState, before: Lease) -> None:
    """Remember the labels that a writer other than the holder set, changed or removed.

    Who takes the lease, or renews it, writes its own labels with that; a field manager hints at another one.
    """
    if before.metadata.labels == state.lease.metadata.labels:
        return  # as in most writes
    history, writer = step.history, state.writer if state.writer and state.writer.user else None
    tenure = history.current_tenure
    is_taken = state.holder != (state.old.holder_identity or "")
    is_own = writer is not None and tenure is not None and tenure.is_by(writer)
    is_hint = tenure is not None and _is_renewal_under_other_manager(tenure, state)
    if is_taken or is_own or (writer is None and state.has_other_renew_time and not is_hint):
        return
    # What removes a label need not leave a stamp.
    is_dated = step.write.is_dated and (writer is not None or any(one not in state.known for one in state.entries))
    for key, old, new in find_changed_labels(before, state.lease):
        manager = "" if writer is not None else state.find_manager_of_label(key)
        add_label_change(history.label_changes, LabelChange(state.at, key, old, new, writer, manager, is_dated))
