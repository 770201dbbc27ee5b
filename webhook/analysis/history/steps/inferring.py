"""Writes whose object a log does not show: who writes regularly leads, as far as can be known.

In: a step; `hidden_write` says of which kind it is. Out: tenures of writers, or renewals of the holder that is known.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from webhook.analysis.history.events import EventKind
from webhook.analysis.history.holders.hidden_write import (
    HiddenWrite,
    classify_write_to_known,
    classify_write_to_unknown,
    name_writer,
)
from webhook.analysis.history.holders.tenure import API_SERVER, Handover, Tenure
from webhook.analysis.history.idle_writes import IdleWrite
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.marks import LabelChange, MarkedLease, add_label_change
from webhook.analysis.history.owners import find_patched_owners
from webhook.analysis.history.steps.step import Step
from webhook.analysis.history.steps.tenure_steps import (
    advance_at,
    begin_tenure,
    end_tenure,
    is_last_renewal_known,
    record_event,
    report_expiry,
)
from webhook.analysis.inputs.items import Act, Writer
from webhook.analysis.inputs.patches import Mark


def take_logged_write(step: Step, at: int) -> None:
    """Take in a write to a lease that no input shows: who writes regularly leads, as far as can be known."""
    history, seen = step.history, step.seen
    writer, tenure = seen.writer or Writer(), history.current_tenure
    if tenure is None:
        history.existence.restore(is_other=False)
        begin_tenure(step, name_writer(writer), at, _find_beginning(step), writer)
        # Who is chosen in a coordinated election renews by updates: Kubernetes has no other client for that.
        history.rival.begin("update" if name_writer(writer) == API_SERVER else seen.verb)
        history.rival.note_writer(at, writer)
    else:
        _take_next_logged_write(step, tenure, seen.verb, at, writer)
    advance_at(step, at)


def _take_next_logged_write(step: Step, tenure: Tenure, verb: str, at: int, writer: Writer) -> None:
    history = step.history
    match classify_write_to_unknown(tenure, history.rival, writer, verb):
        case HiddenWrite.RENEWAL:
            tenure.processes.note_beside(history.rival.others)
            history.rival.begin(verb)
            history.rival.note_writer(at, writer)
            _renew_hidden(step, tenure, at, writer)
        case HiddenWrite.BY_RIVAL:
            history.requests.accepted.append((at, writer))
            history.rival.add(at, writer)
            history.rival.note_writer(at, writer)
            _follow_rival(step, tenure, at, writer)
        case _:
            history.requests.accepted.append((at, writer))


def _find_beginning(step: Step) -> Handover:
    history = step.history
    if step.seen.act is Act.CREATED:
        return Handover.DELETED if history.vacancy.how is Handover.DELETED else Handover.CREATED
    return Handover.UNKNOWN if history.latest_tenure else Handover.SEEN


def _follow_rival(step: Step, tenure: Tenure, at: int, writer: Writer) -> None:
    history = step.history
    if not history.rival.has_followed(at, history.renewals.usual):
        return
    (since, _), *renewals = history.rival.writes
    end_tenure(step, tenure.last_renewal, Handover.UNKNOWN)
    if tenure.holder == API_SERVER:
        history.vacancy.forget_since()  # it may have named this writer, or another one that never led
    following = begin_tenure(step, name_writer(writer), since, Handover.UNKNOWN, writer)
    is_between = any(
        tenure.last_renewal < one < since and another.user == writer.user for one, another in history.requests.accepted
    )
    following.beginning = replace(
        following.beginning, is_after_turns=history.rival.end_turns(), is_written_between=is_between
    )
    tenure.processes.note_requests_after_loss_since(since)
    history.requests.drop_accepted(writer, since)
    for renewed, _ in renewals:
        _renew_hidden(step, following, renewed, writer)
    history.rival.follow_holder(step.seen.verb)


def take_hidden_write(step: Step, at: int) -> None:
    """Take in such a write to a lease that is known: a renewal, unless another input shows it."""
    history, seen = step.history, step.seen
    tenure = history.current_tenure
    if not (seen.may_change_nothing and history.continuity.is_shown_beside):
        history.continuity.version = ""
    history.requests.hidden.append(at)
    if tenure and seen.writer and not seen.may_change_nothing:
        _take_hidden_write_by(step, seen.writer, tenure, seen.verb, at)
    advance_at(step, at)


def _take_hidden_write_by(step: Step, writer: Writer, tenure: Tenure, verb: str, at: int) -> None:
    history = step.history
    usual = history.renewals.usual
    is_shown_beside = history.continuity.is_shown_beside
    match classify_write_to_known(tenure, writer, verb, at, usual, is_shown_beside=is_shown_beside):
        case HiddenWrite.RENEWAL:
            history.logged = at
            _renew_hidden(step, tenure, at, writer)
        case HiddenWrite.SHOWN_RENEWAL:
            tenure.note_renewal(writer, at)
        case HiddenWrite.BY_ANOTHER:
            history.requests.accepted.append((at, writer))
        case _:
            pass


def take_write_beside_spec(step: Step, at: int) -> None:
    """Take in a patch that left the spec as it was, though the log does not show what that is: it renews nothing."""
    history, writer = step.history, step.seen.writer or Writer()
    tenure = history.current_tenure
    if step.seen.verb == "patch":
        history.continuity.version = ""  # labels are stored as another version
    is_own = tenure is not None and tenure.is_by(writer)
    history.idle_writes.append(IdleWrite(at, writer.name, None if is_own else writer))
    if not is_own:
        history.marks.extend(MarkedLease(at, one, writer) for one in step.seen.marks if one.value is not None)
        _note_patched_labels(history, step.seen.marks, at, writer)
    if history.lease is not None and (added := find_patched_owners(step.seen, history.lease, history.latest_tenure)):
        history.added_owners.append(added)
        history.patched_owners = frozenset(one.uid for one in step.seen.patched_owners)
        record_event(step, EventKind.OWNED, at, writer=writer)
    advance_at(step, at)


def _note_patched_labels(history: LeaseHistory, marks: Iterable[Mark], at: int, writer: Writer) -> None:
    """Remember the labels that a patch set, changed or removed: one that sets what is there changes nothing."""
    labels = (history.lease.metadata.labels if history.lease is not None else None) or {}
    for one in (mark for mark in marks if mark.kind == "label"):
        # What the holder sent last need not have the changes of others since then.
        changed = [change for change in history.label_changes if change.key == one.key][-1:]
        is_seen_since = bool(changed) and (history.renewals.last or 0) > changed[-1].at
        before = changed[-1].after if changed and not is_seen_since else labels.get(one.key)
        is_known = history.lease is not None or bool(changed)
        if before != one.value or not is_known or any(change.writer is None for change in changed):
            add_label_change(history.label_changes, LabelChange(at, one.key, before, one.value, writer))


def _renew_hidden(step: Step, tenure: Tenure, at: int, writer: Writer | None) -> None:
    if is_last_renewal_known(step, tenure):
        report_expiry(step, tenure.duration, tenure.kept_until, at)
    tenure.note_renewal(writer, at)
    tenure.renew_hidden(at)
    record_event(step, EventKind.RENEWED, at, writer=writer, silence=step.history.renewals.add(at, tenure.duration))
