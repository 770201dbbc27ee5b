"""The lease is gone: by a deletion that an input shows, or by what follows one that it does not show.

In: a step. Out: the end of the tenure, and what `existence` knows of the deletion.
"""

from typing import Final

from msgspec.structs import replace

from webhook.analysis.history.events import EventKind, LeaseEvent
from webhook.analysis.history.holders.deletion import DeletionOfHeld
from webhook.analysis.history.holders.tenure import Handover
from webhook.analysis.history.owners import list_owners, may_be_owned_by_choice_of_holder
from webhook.analysis.history.steps.step import Step
from webhook.analysis.history.steps.tenure_steps import advance_at, end_tenure, record_event
from webhook.analysis.inputs.items import Act, Observation
from webhook.kubernetes.objects import Lease

_READS_OF_NONE: Final = 2


def store_deletion(step: Step) -> None:
    """Take in a deletion that the input shows, once."""
    history, seen = step.history, step.seen
    if history.current_tenure and (history.hidden_since is not None or history.continuity.is_after_gap):
        # Another process may have held it by then.
        holder = history.current_tenure
        end_tenure(step, history.hidden_since or history.moment, Handover.UNKNOWN)
        holder.note_end_dated(is_dated=False)
        if history.hidden_since is not None:
            record_event(step, EventKind.MISSED, history.hidden_since)
    shown = seen.object if isinstance(seen.object, Lease) else None
    if history.is_deleted or (shown is not None and history.is_older(shown)):
        return
    if shown is not None:
        history.continuity.advance_to(shown)
    _delete(step, seen, history.moment)


def take_absence(step: Step) -> None:
    """Take in that the lease does not exist: its deletion was not seen. A single read may be answered from a cache.

    What an input shows before may have been replaced unseen.
    """
    history, seen = step.history, step.seen
    is_known = history.lease is not None or history.current_tenure is not None
    number = history.requests.absent[0] if history.requests.absent else 0
    if history.is_deleted or not is_known or (seen.act is Act.READ and number < _READS_OF_NONE):
        return
    holder = history.current_tenure
    if holder and (history.hidden_since is not None or history.continuity.is_after_gap):
        end_tenure(step, history.hidden_since or history.at or 0, Handover.UNKNOWN)
        holder.note_end_dated(is_dated=False)
    _delete(step, replace(seen, act=Act.STORED, at=None, writer=None, is_surely_not_dry_run=True), history.at or 0)


def confirm_deletion(step: Step) -> None:
    """Note that a deletion was none of a dry run."""
    history = step.history
    history.existence.is_deletion_sure = True
    if history.latest_tenure is not None:
        history.latest_tenure.deletion = replace(history.latest_tenure.deletion, is_sure=True)


def delete_unseen(step: Step) -> None:
    """Take in a deletion that the input does not show, which therefore has neither a time nor a writer."""
    history = step.history
    if history.lease is not None and not history.is_deleted:
        _delete(step, replace(step.seen, at=None, writer=None), history.at or 0)


def _delete(step: Step, seen: Observation, at: int) -> None:
    """End the tenure by a deletion at a time, and note who asked for it."""
    history = step.history
    holder, is_dated = history.current_tenure, seen.at is not None
    by = history.existence.find_deleter(seen)
    if holder is not None:
        # Who asks again for a deletion that waits for finalizers removes none of them.
        is_request = seen.act is Act.DELETED and seen.writer is not None
        marked_at = 0 if is_request else history.existence.marked_at
        # What a watch shows of a deletion is the lease as it was last.
        is_shown = seen.act is Act.DELETED and isinstance(seen.object, Lease)
        last = seen.object if is_shown else history.lease
        entries = seen.entries if is_shown else history.entries
        is_by_choice = may_be_owned_by_choice_of_holder(entries)
        owners = list_owners(last.metadata.owner_references) if last is not None and is_by_choice else ()
        holder.note_end_dated(is_dated=is_dated)
        holder.deletion = DeletionOfHeld(
            is_deleted=True,
            by=by,
            is_sure=seen.is_surely_not_dry_run,
            marked_at=marked_at,
            last_finalizer_by=seen.writer if marked_at else None,
            owners=tuple(owners),
        )
    step.events.append(LeaseEvent(EventKind.DELETED, at, holder, seen.writer, is_dated=is_dated))
    if holder is not None or history.lease is None:
        end_tenure(step, at, Handover.DELETED)
    history.existence.delete(at, by, is_surely_not_dry_run=seen.is_surely_not_dry_run)
    advance_at(step, at)
