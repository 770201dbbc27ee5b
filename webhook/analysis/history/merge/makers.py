"""Whether a request of a log may have made a state, by what it asked for, what it replaced, and when."""

from collections.abc import Sequence

from msgspec.structs import replace

from webhook.admission.rules.stamps import find_latest_stamp
from webhook.analysis.history.audit_log.failed_writes import may_stamp, normalize_times
from webhook.analysis.history.merge.dated import DatedItem, is_as_sent
from webhook.analysis.inputs.items import Act, Observation, parse_number
from webhook.analysis.inputs.patches import find_stored_changes, patch_spec
from webhook.kubernetes.objects import Lease
from webhook.kubernetes.times import SECOND, get_readable_instant, normalize, parse_stamp


def may_have_made(request: Observation, states: Sequence[DatedItem], number: int) -> bool:
    """Return whether a write, which a log dates, may have made a state that is none of a deletion."""
    state = states[number].observation
    if _has_replaced_another(request, states, number) or _has_created_another(request, states, number):
        return False
    if _has_made_in_time(request, states, number):
        return True
    if has_made_another(request, states, number):
        return False
    if request.patched_renew_time:
        return _may_have_patched(request, states, number)
    is_successor = _has_replaced(request, states, number)
    if request.asked is not None and request.replaces and not is_successor:
        return False
    if request.object is not None and not (is_as_sent(request) and is_successor):
        return False
    if is_successor and number and _may_change_nothing(request, states[number - 1].observation):
        return False
    if request.verb == "patch" and number and not _is_stamped_later(state, states[number - 1].observation):
        # A patch that removes fields may leave nothing that it owns, and so no stamp of its own.
        return is_successor
    stamp = find_stamp_of_write(states, number)
    if stamp is None:
        # kubectl shows no managedFields unless it is asked to.
        return is_successor and _may_have_sent(request, state)
    return may_stamp(request, stamp)


def find_stamp_of_write(states: Sequence[DatedItem], number: int) -> int | None:
    """Return the latest stamp that a state has, and the one before it has not; None if it has no stamps.

    Clocks of API servers differ: the stamp of an earlier write may be the latest of all. Of two writes by one manager
    in one second, the second one adds no stamp: a renewal has that of the owner of renewTime.
    """
    state = states[number].observation
    # Another write may take fields from an entry, which keeps its stamp.
    before = {(one.manager, one.stamp) for one in states[number - 1].observation.entries} if number else ()
    stamp = find_latest_stamp([one for one in state.entries if (one.manager, one.stamp) not in before])
    if stamp is None and is_renewal(states, number):
        stamp = find_latest_stamp([one for one in state.entries if one.owns_renew_time])
    return state.latest_stamp if stamp is None else stamp


def _has_created_another(request: Observation, states: Sequence[DatedItem], number: int) -> bool:
    """Return whether a write created an object, and a state is a later one of the object before it."""
    if request.act is not Act.CREATED or not number or states[number - 1].is_deletion:
        return False
    before, shown = (states[one].observation.object for one in (number - 1, number))
    return bool(before and shown and shown.metadata.uid and before.metadata.uid == shown.metadata.uid)


def _may_have_patched(request: Observation, states: Sequence[DatedItem], number: int) -> bool:
    """Return whether a patch that asked for the renewTime of a state may have made it."""
    stamp = find_stamp_of_write(states, number)
    is_stored = normalize(request.patched_renew_time) == get_renew_time(states[number]) and is_renewal(states, number)
    return is_stored and (stamp is None or may_stamp(request, stamp))


def _has_made_in_time(request: Observation, states: Sequence[DatedItem], number: int) -> bool:
    """Return whether a patch turns the state before into this one, and an API server may have stamped it so."""
    stamp = find_stamp_of_write(states, number)
    return stamp is not None and may_stamp(request, stamp) and has_made(request, states, number)


def has_made(request: Observation, states: Sequence[DatedItem], number: int) -> bool:
    """Return whether a patch turns the state before into this one."""
    before, shown = states[number - 1].observation.object if number else None, states[number].observation.object
    changes = find_stored_changes(request.asked_changes)
    if changes is None or not isinstance(before, Lease) or not isinstance(shown, Lease):
        return False
    is_change = before.spec != shown.spec and before.metadata.uid == shown.metadata.uid
    return is_change and patch_spec(before.spec, changes) == shown.spec


def has_made_another(request: Observation, states: Sequence[DatedItem], number: int) -> bool:
    """Return whether a patch turns the state before into something other than this state, as far as a log shows it."""
    shown = states[number].observation.object
    asked, changes = request.patched_renew_time, find_stored_changes(request.asked_changes)
    if changes is None or not isinstance(shown, Lease):
        return isinstance(shown, Lease) and asked != "" and normalize(asked) != get_renew_time(states[number])
    before = states[number - 1].observation.object if number else None
    known = before if isinstance(before, Lease) and before.metadata.uid == shown.metadata.uid else shown
    patched = patch_spec(known.spec, changes)
    return patched is None or normalize_times(patched) != normalize_times(shown.spec)


def _may_have_sent(request: Observation, state: Observation) -> bool:
    """Return whether a write sent the renewTime of a state, or may have: a log does not show what a webhook changed."""
    if request.object is None:
        return True
    sent = request.object.spec.renew_time
    return sent is not None and state.object is not None and sent == state.object.spec.renew_time


def _may_change_nothing(request: Observation, before: Observation) -> bool:
    """Return whether a write asked for the state before it, as it is or as a webhook changes it.

    It does if it asked for what made that state, or if the webhook cuts fractions of seconds.
    """
    asked = request.object if request.asked is None else request.asked
    if not isinstance(asked, Lease) or not isinstance(before.object, Lease):
        return False
    sent, known = asked.spec, before.object.spec
    if isinstance(before.asked, Lease) and before.asked.spec == sent:
        return True
    renewed, cut = get_readable_instant(normalize(sent.renew_time)), get_readable_instant(normalize(known.renew_time))
    if renewed is None or cut not in {renewed, renewed // SECOND * SECOND}:
        return False
    return replace(sent, renew_time=known.renew_time, acquire_time=known.acquire_time) == known


def _is_stamped_later(state: Observation, before: Observation) -> bool:
    """Return whether a state has a later stamp than the one before it, if both have any."""
    return state.latest_stamp is None or before.latest_stamp is None or state.latest_stamp > before.latest_stamp


def is_renewal(states: Sequence[DatedItem], number: int) -> bool:
    """Return whether a state has another renewTime than the one before: else any write may have left it as it was."""
    return number == 0 or get_renew_time(states[number]) != get_renew_time(states[number - 1])


def get_renew_time(seen: DatedItem) -> int | str | None:
    """Return the renewTime of a state so that equal ones are equal, None if it has none."""
    shown = seen.observation.object
    return normalize(shown.spec.renew_time) if isinstance(shown, Lease) else None


def is_stamped_by(request: Observation, state: Observation) -> bool:
    """Return whether a write, of which a log shows neither what it asked for nor what it made, may have stamped so."""
    is_hidden = request.object is None and request.asked is None and not request.patched_renew_time
    return is_hidden and state.latest_stamp is not None and may_stamp(request, state.latest_stamp)


def is_as_asked(request: Observation, state: Observation) -> bool:
    """Return whether a write may have been stored as it was asked for, as far as a log shows it."""
    asked = request.object if request.asked is None else request.asked
    return asked is None or (isinstance(state.object, Lease) and asked.spec == state.object.spec)


def is_known_maker(request: Observation, states: Sequence[DatedItem], number: int) -> bool:
    """Return whether a write surely made a state: it asked for exactly this one.

    It is a creation, or an update that names the state before, which has another spec.
    """
    asked = request.object if request.asked is None else request.asked
    shown = states[number].observation.object
    if not (isinstance(asked, Lease) and isinstance(shown, Lease) and asked.spec == shown.spec):
        return False
    if not number or request.act is Act.CREATED:
        return request.act is Act.CREATED
    before = states[number - 1].observation.object
    is_change = isinstance(before, Lease) and before.spec != shown.spec
    return is_change and _has_replaced(request, states, number)


def _has_replaced_another(request: Observation, states: Sequence[DatedItem], number: int) -> bool:
    """Return whether a request replaced a revision older than the state before this one, or as new as this one."""
    replaced, own = parse_number(request.replaces), states[number].revision
    before = states[number - 1].revision if number else 0
    return replaced > 0 and own > 0 and not before <= replaced < own


def _has_replaced(request: Observation, states: Sequence[DatedItem], number: int) -> bool:
    """Return whether a request replaced the state before this one: what is stored is replaced by one write only."""
    if request.act is Act.CREATED:
        state = states[number].observation
        created = parse_stamp(state.object.metadata.creation_timestamp) if state.object else None
        is_first = number == 0 or states[number - 1].is_deletion
        is_stamped = created is not None and (
            may_stamp(request, created) if state.latest_stamp is None else created == state.latest_stamp
        )
        return is_first and is_stamped
    return number > 0 and 0 < states[number - 1].revision == parse_number(request.replaces)
