"""How a lease goes on after what was not seen: under the same holder or not; how the holder changed is not known.

In: the last state before, and the first one after. Out: frozen values, in microseconds since 1970.
"""

from collections.abc import Sequence

from msgspec import Struct

from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.history.status import (
    date_naming,
    date_renewal,
    date_state,
    is_renewal_dated,
    is_renewal_logged,
    is_renewed_by_holder,
)
from webhook.analysis.history.write import Write
from webhook.kubernetes.managed_fields import Entry
from webhook.kubernetes.objects import Lease, LeaseSpec
from webhook.kubernetes.times import SECOND


class Resumption(Struct, frozen=True):
    """A state that follows what was not seen: `last` is the last renewal that was seen, `at` is when it goes on."""

    at: int
    last: int
    is_kept: bool
    """The previous holder still has the lease."""
    may_go_on: bool
    """It does, or it may: nothing shows that it took the lease again."""
    is_missed: bool
    """What was not seen is worth a word: more than the time to the next renewal, or the expiry."""


def read_resumption(
    tenure: Tenure | None,
    states: tuple[Lease, Lease],
    owners: tuple[Sequence[Entry], Sequence[Entry]],
    write: Write,
    *,
    at: int,
    seen_until: int | None,
    longest_usual: int | None,
) -> Resumption:
    """Read how the second state goes on after the first one; `at` is the time of the write that showed it.

    `owners` are the entries of managedFields of both.
    """
    before, after = states
    entries = owners[1]
    if not write.is_logged:
        # The write that put the holder there may be the latest of those that were not seen.
        at = max(at, date_state(after.spec, entries) or at)
    last = min(at, (tenure.last_renewal if tenure else seen_until) or at)
    may_go_on = tenure is not None and _may_go_on(tenure, before, after)
    # Its holder writes acquireTime once; without one, another tenure of the same name looks the same, but for the stamp
    # of the API server that chose the holder, if that had renewed it.
    named = {date_naming(entries) for entries in owners}
    is_led = tenure is not None and tenure.last_renewal_write is not None and bool(after.spec.strategy)
    is_kept = may_go_on and (after.spec.acquire_time is not None or (is_led and _is_one(named)))
    usual = longest_usual or (after.spec.lease_duration_seconds or 0) * SECOND
    return Resumption(
        at=at, last=last, is_kept=is_kept, may_go_on=may_go_on, is_missed=not is_kept or at - last > usual
    )


def _is_one(stamps: set[int | None]) -> bool:
    return len(stamps) == 1 and None not in stamps


def _may_go_on(tenure: Tenure, before: Lease, after: Lease) -> bool:
    """Return whether a state may be of the same tenure as one before."""
    is_same = before.metadata.uid == after.metadata.uid and tenure.holder == (after.spec.holder_identity or "")
    return is_same and before.spec.acquire_time == after.spec.acquire_time


def date_resumed_renewal(spec: LeaseSpec, entries: Sequence[Entry], write: Write, at: int) -> tuple[int, bool]:
    """Return the last renewal by a state that a write showed by `at`, and whether the state dates it."""
    if is_renewal_logged(spec, entries, write):
        return at, True
    is_dated = is_renewal_dated(spec, entries) and is_renewed_by_holder(entries)
    return (min(at, date_renewal(spec, entries) or at), True) if is_dated else (at, False)


def may_renew_with(write: Write, renewed: int) -> bool:
    """Return whether a write may be the last renewal, of which a state has the stamp: that has whole seconds."""
    return write.earliest // SECOND * SECOND <= renewed
