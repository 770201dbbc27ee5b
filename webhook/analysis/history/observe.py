"""Takes in the observations of one lease: each write is classified once, and gives events.

The observations come in order, each of them once: `webhook.analysis.history.merge` sees to that. Here the parts come
together: its states one after another (`states`), its deletion (`deletion`), logs without objects (`inferring`), what
links them (`continuity`), and what an audit log shows beside (`requests`).
"""

from msgspec.structs import replace

from webhook.analysis.heartbeats import is_identity_of_api_server
from webhook.analysis.history.audit_log.requests import note_request_of_holder
from webhook.analysis.history.events import EventKind, LeaseEvent
from webhook.analysis.history.holders.rival import estimate_patience
from webhook.analysis.history.holders.tenure import API_SERVER
from webhook.analysis.history.lease import LeaseHistory, ShownByRead, UnloggedWrites
from webhook.analysis.history.patched_states import show_patched_state
from webhook.analysis.history.serving_addresses import ADDRESS
from webhook.analysis.history.steps.deletion import confirm_deletion, store_deletion, take_absence
from webhook.analysis.history.steps.inferring import take_hidden_write, take_logged_write, take_write_beside_spec
from webhook.analysis.history.steps.states import take_state
from webhook.analysis.history.steps.step import Step
from webhook.analysis.history.steps.tenure_steps import record_event
from webhook.analysis.history.visibility.bounds import Bounds
from webhook.analysis.history.visibility.continuity import Visibility, VisibilityChange
from webhook.analysis.history.visibility.dating import estimate_write
from webhook.analysis.inputs.items import Act, InputKind, Observation
from webhook.kubernetes.managed_fields import list_entries
from webhook.kubernetes.objects import Lease
from webhook.kubernetes.times import parse_stamp


def observe(history: LeaseHistory, seen: Observation, bounds: Bounds) -> list[LeaseEvent]:
    """Take in one observation of a lease, and return what happened; those of one lease come in order."""
    step = _begin(history, seen, bounds)
    _take(step)
    history.write = step.write
    return step.events


def _begin(history: LeaseHistory, seen: Observation, bounds: Bounds) -> Step:
    seen = show_patched_state(history, seen)
    write = estimate_write(seen, history.known_state, bounds)
    history.forget_status()
    history.note_skew(bounds.skew)
    history.moment = write.at
    history.continuity.begin(seen, write, history.write, bounds)
    history.is_list_only = history.is_list_only and seen.input_kind is InputKind.DUMP
    return Step(history, seen, bounds, write, history.write)


def _take(step: Step) -> None:
    history, seen = step.history, step.seen
    if seen.input_kind is InputKind.AUDIT_LOG:
        _note_logged_request(step)
    if history.is_deleted and (seen.shows_absence or (seen.act is Act.CREATED and seen.is_stored)):
        confirm_deletion(step)
    if seen.act is Act.READ:
        history.requests.take_read(seen, history.renewals, history.tenures)
    else:
        history.requests.take_write(seen)
    if seen.shows_absence:
        take_absence(step)
    if seen.act is not Act.READ and seen.is_stored:
        _take_stored(step)


def _take_stored(step: Step) -> None:
    """Take in what a write stored."""
    history, before = step.history, step.history.lease
    goes_on = _goes_on(step)
    history.stores.hear(step.seen)
    _store_state_before(step)
    _store(step)
    _note_serving_address(step)
    history.stored_write = step.write
    is_watched = step.seen.is_watched or step.seen.input_kind is InputKind.WATCH
    history.watch = step.seen.place.path if is_watched else ""
    read_at = step.seen.read_at
    is_made_unseen = read_at is not None and step.seen.requested_at is None
    history.read = ShownByRead(read_at or 0, step.seen.is_from_cache) if is_made_unseen else None
    history.unchanged_at = step.seen.unchanged_at
    if read_at is not None and not (is_made_unseen or step.seen.is_from_cache):
        history.unchanged_at = read_at
    if _is_unlogged(step):
        first = history.unlogged or UnloggedWrites(step.write.earliest, step.write.latest, step.write.at)
        is_watched = first.is_watched or read_at is None
        history.unlogged = replace(first, until=step.write.at, is_watched=is_watched)
    _note_asked(step)
    if not _is_edit(before, history.lease, step.seen):
        history.requests.waiting.restart(history.moment, is_dated=step.write.is_dated_by_a_server)
    _note_visibility(step, goes_on=goes_on)
    _report_sharing(step)


def _note_asked(step: Step) -> None:
    """Note which holder its process asked for; who writes another's name as it is stored asked for nothing else."""
    tenure, asked = step.history.current_tenure, step.history.requests.rewritten.asked_holder
    is_own = None if tenure is None else tenure.is_by(step.seen.writer)
    if tenure is not None and (is_own or (is_own is None and asked)):
        tenure.note_asked(asked)


def _note_serving_address(step: Step) -> None:
    """Note from where an API server renewed its identity lease: another writer leaves the address as it was."""
    history, seen = step.history, step.seen
    is_own = seen.writer is None or seen.writer.user in {"", API_SERVER}
    if not (is_own and isinstance(seen.object, Lease) and is_identity_of_api_server(history.namespace, history.name)):
        return
    if address := (seen.object.metadata.annotations or {}).get(ADDRESS):
        history.serving_addresses.note(address, history.moment)


def _is_unlogged(step: Step) -> bool:
    """Return whether a watch or a read shows an update, although a log had begun: it lacks requests for the lease."""
    began, seen = step.bounds.first_request, step.seen
    # Of a write that failed and was stored all the same, the log shows who made it.
    is_logged = seen.may_be_logged or seen.writer is not None
    if seen.read_at is not None:
        return not is_logged
    is_change = seen.act is Act.UPDATED and not is_logged
    is_of_watch = seen.input_kind is InputKind.WATCH and is_change and step.write.is_dated_by_a_server
    return is_of_watch and began is not None and step.write.earliest > began


def _note_logged_request(step: Step) -> None:
    """Note what any request in an audit log shows."""
    history, seen = step.history, step.seen
    history.requests.note_request(seen)
    note_request_of_holder(seen, history.latest_tenure, history.succession.before)
    if history.continuity.visibility is Visibility.IN_HOLE and _has_waited(step):
        history.continuity.apply(VisibilityChange.HOLDER_HAD_WAITED)


def _has_waited(step: Step) -> bool:
    """Return whether the holder had waited for this answer since its last renewal: it made no other request then.

    If anything else was written, the next write to the lease replaces a state that is not known.
    """
    history, seen = step.history, step.seen
    holder, last = history.current_tenure, history.renewals.last
    if seen.at is None or holder is None or last is None:
        return False
    received, usual = seen.at - seen.took, min(history.renewals.usual or 0, holder.processes.find_longest_pause(last))
    return received <= last + usual + usual // 2 and holder.is_by(seen.writer) is True


def _goes_on(step: Step) -> bool:
    """Return whether a write comes as soon as the next renewal after the last one before what was hidden.

    Then no other has held it meanwhile.
    """
    history, seen = step.history, step.seen
    times = [at for at in (history.renewals.last, history.hidden_since) if at is not None]
    return seen.at is not None and bool(times) and seen.at - min(times) <= estimate_patience(history.renewals.usual)


def _note_visibility(step: Step, *, goes_on: bool) -> None:
    """Note what of the present state is known after a write; `goes_on`: it is none that may follow another holder."""
    history, seen = step.history, step.seen
    if not history.is_deleted and step.write.is_dated:
        history.continuity.note_state(step.write, step.bounds)
    is_hidden = _is_change_hidden(step) and seen.at is not None
    is_own = is_hidden and _is_update_by_holder(step)
    history.continuity.own_hidden_at = seen.at if is_own else None
    is_behind = is_hidden and (not is_own or (history.continuity.visibility is Visibility.BEHIND_WRITE and not goes_on))
    history.continuity.apply(
        VisibilityChange.WRITE_WAS_HIDDEN if is_behind else VisibilityChange.STATE_WAS_SHOWN, seen.at
    )


def _is_change_hidden(step: Step) -> bool:
    """Return whether neither a log shows what a write changed, nor a watch or reviews of the same time."""
    history, seen = step.history, step.seen
    if seen.object is not None or seen.is_beside_spec or history.lease is None:
        return False
    if history.is_deleted:
        return history.existence.is_creation_hidden
    return not history.continuity.is_shown_beside


def _is_update_by_holder(step: Step) -> bool:
    """Return whether the holder wrote the lease: it renews it, or releases it."""
    history, seen = step.history, step.seen
    return (
        history.current_tenure is not None
        and history.current_tenure.is_by(seen.writer) is True
        and seen.verb == "update"
    )


def _report_sharing(step: Step) -> None:
    """Report each tenure once if several processes take turns to renew it."""
    history = step.history
    tenure = history.latest_tenure
    if (
        tenure
        and tenure is not history.reported_shared_tenure
        and tenure.processes.has_several_writers
        and tenure.processes.renews_in_turns
        and len(tenure.processes.writers) > 1
    ):
        history.reported_shared_tenure = tenure
        record_event(step, EventKind.SHARED, history.at or 0)


def _store_state_before(step: Step) -> None:
    """Take in the state that a write replaced, if the input shows it."""
    history, old = step.history, step.seen.old
    if isinstance(old, Lease) and not history.is_older(old):
        history.continuity.advance_to(old)
        # Its write is another one, which this copy has.
        take_state(replace(step), old, list_entries(old.metadata.managed_fields), Act.STORED)


def _store(step: Step) -> None:
    history, seen = step.history, step.seen
    if seen.is_deletion:
        store_deletion(step)
    elif isinstance(seen.object, Lease):
        if not history.is_older(seen.object):
            history.continuity.advance_to(seen.object)
            take_state(step, seen.object, seen.entries, seen.act)
        if seen.act is Act.DELETED:
            history.existence.mark(seen.writer, history.moment)
        elif marked := parse_stamp(seen.object.metadata.deletion_timestamp):
            history.existence.mark(None, marked)
    elif seen.at is not None:
        _store_unseen(step, seen.at)
    elif seen.input_kind is InputKind.DUMP:
        history.problem = seen.problem


def _store_unseen(step: Step, at: int) -> None:
    """Take in a write of which the input does not show what it stored."""
    history, seen = step.history, step.seen
    if seen.is_beside_spec:
        take_write_beside_spec(step, at)
    elif history.lease is not None and not seen.problem:
        if seen.act is Act.CREATED:
            history.existence.note_hidden_creation()
        take_hidden_write(step, at)
    elif not seen.problem:
        take_logged_write(step, at)


def _is_edit(before: Lease | None, after: Lease | None, seen: Observation) -> bool:
    """Return whether a write is known to have left what electors wait for as it was: the holder, and its renewal."""
    if seen.is_beside_spec:
        return True
    if before is None or after is None or seen.object is None or before.metadata.uid != after.metadata.uid:
        return False
    old, new = before.spec, after.spec
    kept = (old.holder_identity, old.renew_time, old.lease_duration_seconds)
    return kept == (new.holder_identity, new.renew_time, new.lease_duration_seconds)
