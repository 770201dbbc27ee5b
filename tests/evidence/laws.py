"""What must hold of each write, whatever was written before: the truth of the history against the verdict."""

from typing import Final

from tests.evidence.conditions import owns_renew_time
from tests.evidence.records import SECOND, Record, Write
from tests.evidence.stamping import CONSTANT, WRITER, annotations_of, requester_of
from tests.evidence.stored_lease import Lease
from webhook.admission.rules.expiry import MAX_TOLERANCE, find_tolerance
from webhook.kubernetes import times

BOUND: Final = 60
"""Seconds by which the stamps in a list may be ahead of a write and still count."""

NO_VERDICT: Final = "a body of an API server has no verdict"
REPLACED: Final = "a live holder is replaced"
FOREIGN: Final = "a live stamped lease is written by another writer"
CALLED_TAMPERED: Final = "an honest write is called tampered"
FROZEN: Final = "an honest takeover is refused beyond the duration and the bound"
TOO_LONG: Final = "an honest takeover is refused for longer than the clocks differ"
WEAKENED: Final = "an honest takeover of a stamped lease is said to have no stamps"
HONEST_REFUSED: Final = "an honest write is refused"

MUST: Final = {
    NO_VERDICT: "have a verdict",
    REPLACED: "be denied",
    FOREIGN: "be denied",
    CALLED_TAMPERED: "not be called tampered",
    FROZEN: "be allowed",
    TOO_LONG: "be allowed",
    WEAKENED: "not be said to have no stamps",
    HONEST_REFUSED: "be allowed",
}
"""What each law asks of the last write of a history."""


def broken_law(record: Record, *, attacked: bool) -> str:
    """The law that the outcome of a write breaks, or ""."""
    write, outcome = record.write, record.outcome
    if outcome.trouble:
        return NO_VERDICT
    if not write.honest:
        if not record.allowed or _is_known(record):
            return ""
        if _replaces_a_live_holder(write):
            return REPLACED
        return FOREIGN if _writes_a_live_lease(write) else ""
    if outcome.tampered:
        return "" if _is_a_known_refusal(write) else CALLED_TAMPERED
    if write.kind != "takeover":
        return "" if outcome.allowed or _is_of_another_writer(write) else HONEST_REFUSED
    if not outcome.allowed:
        if write.final_try:
            return FROZEN
        return TOO_LONG if not attacked and _waited_for(write) >= _waiting_allowed(write) else ""
    return WEAKENED if is_well_dated(write) and (outcome.without_stamps or outcome.weakened) else ""


def is_well_dated(write: Write) -> bool:
    """Return whether the lease was stamped, and the clocks that date the write differ by no more than half the bound.

    The other half is how far a write may move the stamp ahead to another stored time.

    A lease that was created without a field has no stamps until it is applied. One that had stamps may not lose them.
    """
    return write.stamped and write.clocks_differ <= BOUND * SECOND // 2


def replaces_a_live_holder(write: Write) -> bool:
    """Return whether the attacker takes, releases or deletes a lease that its honest holder renewed in time."""
    return not write.honest and _replaces_a_live_holder(write)


def _replaces_a_live_holder(write: Write) -> bool:
    old = write.old
    if old is None or not old.holder.startswith("checkout-") or old.renew_time is None or not old.duration:
        return False
    if write.new is not None and write.new.holder == old.holder:
        return False
    return _is_live(write, old) and not (write.listed and not _is_of_another_writer(write))


def _writes_a_live_lease(write: Write) -> bool:
    """Return whether the attacker changes what decides who leads, of a live lease whose writer is stamped."""
    old, new = write.old, write.new
    if not write.listed or old is None or not old.holder.startswith("checkout-") or not old.duration:
        return False
    owners = [one.object["metadata"].get("ownerReferences") for one in (old, new) if one is not None]
    changed = new is None or new.spec != old.spec or owners[0] != owners[-1]
    return changed and _is_of_another_writer(write) and _is_live(write, old)


def _is_live(write: Write, old: Lease) -> bool:
    left = write.renewed_by_holder + old.duration * SECOND - write.at
    # Earlier by the tolerance, by the difference of the clocks, and by a second because stamps are whole seconds.
    return left > find_tolerance(old.duration) + write.clocks_differ + SECOND


def _is_known(record: Record) -> bool:
    """Without any stamp, or by a webhook's clock beyond the bound, the holder's renewTime decides.

    Then a denial weakens to a warning, and a lease whose renewTime has passed counts as expired.
    """
    write = record.write
    if is_well_dated(write) or write.old is None or write.old.renew_time is None:
        return False
    if write.listed:
        return True
    ends = times.parse(write.old.renew_time) + write.old.duration * SECOND
    return record.outcome.weakened or ends - find_tolerance(write.old.duration) - SECOND <= write.now


def _is_a_known_refusal(write: Write) -> bool:
    return (
        _is_first_stamped(write)
        or _removes_the_last_field(write)
        or _starts_tracking_by_a_wrong_clock(write)
        or _folds_into_a_renewal(write)
    )


def _is_first_stamped(write: Write) -> bool:
    """Nothing shows that the first stamped write was: it left spec as it was, and the stamps were there before."""
    return (
        write.new is not None
        and write.old is not None
        and write.new.entries == (CONSTANT,)
        and write.new.spec == write.old.spec
    )


def _is_of_another_writer(write: Write) -> bool:
    """Somebody else became the writer of the lease when it had expired, and whoever led before finds out now."""
    writer = annotations_of(write.old).get(WRITER)
    return write.listed and writer != requester_of(write.user)


def _removes_the_last_field(write: Write) -> bool:
    """Whoever removes the last field that anybody owns empties the list."""
    return write.new is not None and not write.new.entries


def _starts_tracking_by_a_wrong_clock(write: Write) -> bool:
    """Only the clocks of the webhook and the holder can date the first stamps of a lease, and one is wrong."""
    return not write.stamped and write.clocks_differ > MAX_TOLERANCE


def _folds_into_a_renewal(write: Write) -> bool:
    """Somebody renewed as `ancient-changes`: until the next renewal a fold gives it an older time."""
    updates = [entry for entry in (write.old.entries if write.old else None) or () if entry.operation == "Update"]
    folds = [entry for entry in updates if entry.manager == "ancient-changes" and owns_renew_time(entry)]
    return any((entry.time or "") < (fold.time or "") for fold in folds for entry in updates)


def _waited_for(write: Write) -> int:
    """Return how long ago the old lease ended, in microseconds."""
    assert write.old is not None
    return write.at - write.moved - write.old.duration * SECOND


def _waiting_allowed(write: Write) -> int:
    """Return how long an honest takeover may be refused: as long as the clocks differ by more than the tolerance."""
    assert write.old is not None
    tolerance = find_tolerance(write.old.duration) // SECOND * SECOND
    return max(0, write.clocks_differ - tolerance)
