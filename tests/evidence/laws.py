"""What must hold of each write, whatever was written before: the truth of the history against the verdict."""

from typing import Final

from tests.evidence.records import SECOND, Record, Write
from webhook.rules.evidence import tolerance_of

BOUND: Final = 60
"""Seconds by which the stamps in a list may be ahead of a write and still count."""

NO_VERDICT: Final = "a body of an API server has no verdict"
REPLACED: Final = "a live holder is replaced"
CALLED_TAMPERED: Final = "an honest write is called tampered"
FROZEN: Final = "an honest takeover is refused beyond the duration and the bound"
TOO_LONG: Final = "an honest takeover is refused for longer than the clocks differ"
WEAKENED: Final = "an honest takeover of a stamped lease is said to have no stamps"
HONEST_REFUSED: Final = "an honest write is refused"

MUST: Final = {
    NO_VERDICT: "have a verdict",
    REPLACED: "be denied",
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
        return REPLACED if _replaces_a_live_holder(write) and record.allowed and not _is_known(record) else ""
    if outcome.tampered:
        return "" if _removes_the_last_field(write) or _starts_tracking_by_a_wrong_clock(write) else CALLED_TAMPERED
    if write.kind != "takeover":
        return "" if outcome.allowed else HONEST_REFUSED
    if not outcome.allowed:
        if write.final_try:
            return FROZEN
        return TOO_LONG if not attacked and _waited_for(write) >= _waiting_allowed(write) else ""
    return WEAKENED if is_well_dated(write) and (outcome.without_stamps or outcome.weakened) else ""


def is_well_dated(write: Write) -> bool:
    """Whether the lease was stamped, and the clocks that date the write differ by no more than the bound.

    A lease that was created without a field has no stamps until it is applied. One that had stamps may not lose them.
    """
    return write.stamped and write.clocks_differ <= BOUND * SECOND


def replaces_a_live_holder(write: Write) -> bool:
    """Whether the attacker takes, releases or deletes a lease that its honest holder renewed in time."""
    return not write.honest and _replaces_a_live_holder(write)


def _replaces_a_live_holder(write: Write) -> bool:
    old = write.old
    if old is None or not old.holder.startswith("checkout-") or old.renew_time is None or not old.duration:
        return False
    if write.new is not None and write.new.holder == old.holder:
        return False
    left = write.renewed_by_holder + old.duration * SECOND - write.at
    # Earlier by the tolerance, by the difference of the clocks, and by a second because stamps are whole seconds.
    return left > tolerance_of(old.duration) + write.clocks_differ + SECOND


def _is_known(record: Record) -> bool:
    """A denial weakens to a warning, never more, without any stamp, or by a webhook's clock beyond the bound."""
    return record.outcome.weakened and not is_well_dated(record.write)


def _removes_the_last_field(write: Write) -> bool:
    """A known refusal: whoever removes the last field that anybody owns empties the list."""
    return write.new is not None and not write.new.entries


def _starts_tracking_by_a_wrong_clock(write: Write) -> bool:
    """A known refusal: only the webhook's clock can date the first stamps of a lease, and it is off by a minute."""
    return not write.stamped and write.clocks_differ > BOUND * SECOND


def _waited_for(write: Write) -> int:
    """How long ago the old lease ended, in microseconds."""
    assert write.old is not None
    return write.at - write.moved - write.old.duration * SECOND


def _waiting_allowed(write: Write) -> int:
    """How long an honest takeover may be refused: as long as the clocks differ by more than the tolerance."""
    assert write.old is not None
    tolerance = tolerance_of(write.old.duration) // SECOND * SECOND
    return max(0, write.clocks_differ - tolerance)
