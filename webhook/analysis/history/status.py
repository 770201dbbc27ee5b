"""The state of a stored lease at a moment: whether it is held, when it expired, when another replica may take it.

The API server's stamp of the last renewal decides, as it does for the rules; only if there is none, the holder's own
renewTime stands in. All instants are microseconds since 1970.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.admission.rules.expiry import MAX_TOLERANCE, date_last_renewal, date_write_by_field, find_tolerance
from webhook.admission.rules.registry import RULES
from webhook.admission.rules.stamps import find_latest_stamp, is_constant
from webhook.analysis.heartbeats import is_nameless_heartbeat
from webhook.analysis.history.write import Write
from webhook.analysis.inputs.items import is_dated_by_stamp
from webhook.kubernetes.managed_fields import (
    ACQUIRE_TIME,
    BEFORE_FIRST_APPLY,
    DURATION,
    HOLDER,
    OF_API_SERVERS,
    RENEW_TIME,
    Entry,
)
from webhook.kubernetes.objects import Lease, LeaseSpec
from webhook.kubernetes.times import SECOND, format_span, get_instant, get_readable_instant, is_readable, normalize

MAX_TRANSITIONS: Final = 2**31 - 1
"""client-go writes int32(transitions + 1): at this count every takeover is refused by the API server."""

MAX_DURATION: Final = RULES["duration-too-long"].default_limits["deny_above_seconds"]
MAX_AHEAD: Final = RULES["renew-time-in-future"].default_limits["deny_above_seconds"] * SECOND
RELEASED_DURATION: Final = 1
"""The duration that clients write when they release: an API server refuses 0."""
_OWNED: Final = {
    "renew_time": RENEW_TIME,
    "holder_identity": HOLDER,
    "acquire_time": ACQUIRE_TIME,
    "lease_duration_seconds": DURATION,
}
"""Fields of which every write sets one, but for those that only add to a lease; nearly all set the first."""
_TO_SECOND: Final = len("2026-01-31T12:00:00")


class LeaseState(StrEnum):
    """The state of a lease."""

    LIVE = "live"
    EXPIRED = "expired"
    RELEASED = "released"
    NEVER_HELD = "never-held"
    FROZEN = "frozen"
    """No other holder can take it, for longer than any duration explains."""
    UNKNOWN = "unknown"


class TakeoverBlock(Struct, frozen=True, gc=False):
    """The `rule` by which no other can take a lease before `until` (None: ever), because of a value of `field`."""

    rule: str
    field: str
    reason: str
    until: int | None = None


class LeaseStatus(Struct, frozen=True, gc=False):
    """A lease at one moment.

    `last_renewal` is when the API server saw the last renewal, or what the holder claims if `from_stamps` is false.
    `is_disputed`: only the state's own stamp dates it, and renewTime says another time: another write moved the stamp,
    or the holder's clock is wrong.
    `takeable_at` is from when another may take the lease, None for never or if that cannot be known.
    `ahead` is how far the holder's clock is ahead of the API server's, None if it cannot be known.
    `is_choice`: by field managers, an API server named the holder of a coordinated election with the last renewal.
    `is_within_skew`: it has expired by the clock of one API server, and may be live by that of another.
    """

    state: LeaseState
    holder: str = ""
    duration: int | None = None
    last_renewal: int | None = None
    takeable_at: int | None = None
    from_stamps: bool = False
    is_disputed: bool = False
    manager: str = ""
    is_choice: bool = False
    ahead: int | None = None
    is_within_skew: bool = False
    block: TakeoverBlock | None = None


def find_state_of_lease(
    lease: Lease, entries: Sequence[Entry], now: int, logged: int | None = None, *, is_last: bool = False
) -> LeaseStatus:
    """Return the status of a lease at `now`; `logged` is a renewal after this state, which a log shows.

    `is_last`: it was the last one, even if the stamps of the state say otherwise.
    """
    spec = lease.spec
    holder = spec.holder_identity or ""
    # A field that is gone has no owner: one that claims to own it was invented.
    stamp = None if normalize(spec.renew_time) is None else date_last_renewal(entries)
    # A stamp that is ahead of the moment was invented, or the input is later than the moment that was given.
    from_stamps = stamp is not None and stamp <= now + MAX_TOLERANCE
    claimed = get_readable_instant(normalize(spec.renew_time))
    renewed = refine(stamp, claimed) if stamp is not None and from_stamps else claimed
    if logged is not None and renewed is not None:
        renewed = max(renewed, logged) if from_stamps and not is_last else logged
    duration = spec.lease_duration_seconds
    expires = None if renewed is None or duration is None else renewed + max(0, duration) * SECOND
    state = _find_state(spec, renewed, expires, now)
    if state is LeaseState.EXPIRED and logged is None and from_stamps:
        latest = find_latest_expiry(spec, entries)
        state = LeaseState.UNKNOWN if latest is not None and latest > now else state
    is_by_clock_ahead = stamp is None and renewed is not None and renewed > now + MAX_TOLERANCE
    if state is LeaseState.LIVE and is_by_clock_ahead:
        state = LeaseState.UNKNOWN  # no renewal was in the future, and nothing else says when it was
    takeable = expires if (holder or is_nameless_heartbeat(spec)) and not is_release(spec) else renewed
    if state is LeaseState.LIVE and logged is None and may_be_unstamped(spec, entries):
        takeable = None
    manager = find_manager_of_renewal(entries, stamp)
    status = LeaseStatus(
        state=state,
        holder=holder,
        duration=duration,
        last_renewal=renewed,
        takeable_at=takeable,
        from_stamps=from_stamps or logged is not None,
        is_disputed=from_stamps and logged is None and not (is_constant(entries) or is_renewal_dated(spec, entries)),
        manager=manager,
        # An API server writes how long the lease lasts with the holder that it names.
        is_choice=bool(spec.strategy) and manager == OF_API_SERVERS and not is_duration_by_another(entries),
        ahead=measure_ahead(spec, entries) if from_stamps else None,
    )
    block = _find_block(spec, entries, expires, max(now, renewed or now) if from_stamps else now)
    if block is None:
        return status
    return replace(status, state=LeaseState.FROZEN, takeable_at=block.until, block=block)


def may_be_unstamped(spec: LeaseSpec, entries: Sequence[Entry]) -> bool:
    """Return whether the last renewal may be later than the stamp of a stamped lease.

    Administrators, API servers and controllers leave the stamp of the write before theirs.
    """
    claimed = get_readable_instant(normalize(spec.renew_time))
    return is_dated_by_stamp(entries) and claimed is not None and claimed > (entries[0].stamp or 0) + 2 * SECOND


def refine(stamp: int, claimed: int | None) -> int:
    """Return a stamp, which has whole seconds, with the holder's fraction if that lies in the same second."""
    if claimed is None:
        return stamp
    return min(max(claimed, stamp), stamp + SECOND - 1)


def measure_ahead(spec: LeaseSpec, entries: Sequence[Entry]) -> int | None:
    """Return how far the holder's clock is ahead of the API server's, less the uncertainty of a whole second.

    None if that is not known: also if the manager that wrote renewTime is not the one that wrote the holder.
    """
    if len(entries) == 1 and entries[0].owns_renew_time and HOLDER in entries[0].owned.spec:
        time, said = entries[0].time or "", spec.renew_time or ""
        if time[-1:] == said[-1:] == "Z" and time[:_TO_SECOND] == said[:_TO_SECOND]:
            return 0  # as in nearly all renewals
    stamp, claimed = date_last_renewal(entries), get_readable_instant(normalize(spec.renew_time))
    if stamp is None or claimed is None:
        return None
    renewing = find_manager_of_renewal(entries, stamp)
    if not spec.strategy and not any(HOLDER in one.owned.spec and (one.manager or "") == renewing for one in entries):
        return None
    return claimed - refine(stamp, claimed)


def is_release(spec: LeaseSpec) -> bool:
    """Return whether its holder released it and is still named, as fabric8 does since 7.5: duration 1, equal times."""
    return (
        spec.lease_duration_seconds == RELEASED_DURATION
        and spec.renew_time is not None
        and spec.renew_time == spec.acquire_time
    )


def _find_state(spec: LeaseSpec, renewed: int | None, expires: int | None, now: int) -> LeaseState:
    if not spec.holder_identity and not is_nameless_heartbeat(spec):
        was_held = renewed is not None or normalize(spec.acquire_time) is not None or bool(spec.lease_transitions)
        return LeaseState.RELEASED if was_held else LeaseState.NEVER_HELD
    if normalize(spec.renew_time) is None or spec.lease_duration_seconds is None:
        # Pekko keeps them elsewhere. Some electors take such a lease at once, others wait for its whole duration.
        return LeaseState.UNKNOWN
    if expires is None or now >= expires:
        return LeaseState.RELEASED if is_release(spec) else LeaseState.EXPIRED
    return LeaseState.LIVE


def find_latest_expiry(spec: LeaseSpec, entries: Sequence[Entry]) -> int | None:
    """Return when the lease expires at the latest, if one who wrote after the last renewal may have dated that back.

    If renewTime does not agree with the stamp, either is wrong, and a state alone does not show which. The renewal came
    before that write, whose stamp is true.
    """
    stamp = date_last_renewal(entries)
    if stamp is None or is_renewal_dated(spec, entries):
        return None
    later = [one.stamp for one in entries if one.stamp is not None and one.stamp > stamp and not one.owns_renew_time]
    if not later:
        return None
    return max(later) + SECOND + max(0, spec.lease_duration_seconds or 0) * SECOND


def _find_block(spec: LeaseSpec, entries: Sequence[Entry], expires: int | None, clock: int) -> TakeoverBlock | None:
    for entry in entries:
        if entry.time is not None and entry.stamp is None and not is_readable(entry.time):
            return TakeoverBlock(
                rule="time-unreadable",
                field="metadata.managedFields",
                reason=f"an entry of managedFields has the time {entry.time!r}, which clients cannot decode: they fail "
                "on the whole object",
            )
    renew = normalize(spec.renew_time)
    if renew is not None and get_readable_instant(renew) is None:
        return TakeoverBlock(
            rule="time-unreadable",
            field="spec.renewTime",
            reason=f"renewTime {spec.renew_time!r} is not a time that clients can decode: "
            "they fail on the whole object",
        )
    if (spec.lease_transitions or 0) >= MAX_TRANSITIONS:
        return TakeoverBlock(
            rule="transitions-jump",
            field="spec.leaseTransitions",
            reason=f"leaseTransitions is {spec.lease_transitions}: the next holder would count one more, which the API "
            "server refuses",
        )
    ahead_by = (get_instant(renew) or clock) - clock
    if spec.holder_identity and ahead_by > MAX_AHEAD:
        until = clock + ahead_by + max(0, spec.lease_duration_seconds or 0) * SECOND
        return TakeoverBlock(
            rule="renew-time-in-future",
            field="spec.renewTime",
            reason=(
                f"renewTime is {format_span(ahead_by)} ahead: clients that compare it with their own clock wait as long"
            ),
            until=until,
        )
    duration = spec.lease_duration_seconds
    if spec.holder_identity and duration is not None and duration > MAX_DURATION:
        return TakeoverBlock(
            rule="duration-too-long",
            field="spec.leaseDurationSeconds",
            reason=f"leaseDurationSeconds is {duration}: if the holder dies, "
            f"it keeps the lease for {format_span(duration * SECOND)}",
            until=expires,
        )
    return None


def find_manager_of_renewal(entries: Sequence[Entry], stamp: int | None) -> str:
    """Return the field manager of the last renewal, "" if it is not known."""
    return next((_name_manager(entry) for entry in entries if entry.owns_renew_time and entry.stamp == stamp), "")


def _name_manager(entry: Entry) -> str:
    """Return the field manager of an entry, "" if an API server put fields there whose manager it does not know."""
    return "" if entry.manager == BEFORE_FIRST_APPLY else entry.manager or ""


def is_duration_by_another(entries: Sequence[Entry]) -> bool:
    """Return true if another field manager than that of the last renewal wrote the duration."""
    owners = [entry for entry in entries if DURATION in entry.owned.spec]
    return bool(owners) and not any(entry.owns_renew_time for entry in owners)


def date_duration_by_another(entries: Sequence[Entry]) -> int:
    """Return the stamp of a duration that another field manager wrote, by which it lasted another time; 0 if none."""
    stamps = [entry.stamp or 0 for entry in entries if DURATION in entry.owned.spec]
    return max(stamps) if is_duration_by_another(entries) else 0


def date_renewal(spec: LeaseSpec, entries: Sequence[Entry]) -> int | None:
    """Return when the last renewal was seen: the stamp with the fraction of the holder; else what the holder claims."""
    claimed = get_readable_instant(normalize(spec.renew_time))
    stamp = date_last_renewal(entries)
    if stamp is not None and claimed is not None and claimed >= stamp + SECOND:
        return stamp  # the fraction is unknown, and what is counted from here is a bound
    return claimed if stamp is None else refine(stamp, claimed)


def is_earlier_renewal(old: LeaseSpec, new: LeaseSpec) -> bool:
    """Return whether a write moves renewTime back, as a stale copy does."""
    before, after = get_readable_instant(normalize(old.renew_time)), get_readable_instant(normalize(new.renew_time))
    return before is not None and after is not None and after < before


def is_set_back(old: LeaseSpec, new: LeaseSpec) -> bool:
    """Return whether a write moves renewTime back by more than the duration: it renews nothing.

    A restored backup and a file that is applied again do, in the name of a holder that is at work.
    """
    before, after = get_readable_instant(normalize(old.renew_time)), get_readable_instant(normalize(new.renew_time))
    duration = old.lease_duration_seconds
    return before is not None and after is not None and duration is not None and before - after > duration * SECOND


def is_renewal_dated(spec: LeaseSpec, entries: Sequence[Entry]) -> bool:
    """Return whether a state alone dates its last renewal: its stamp is of that write, if renewTime agrees with it.

    Whoever may write the lease can send managedFields with another time, and a stamped lease has that of any write.
    """
    stamp, claimed = date_last_renewal(entries), get_readable_instant(normalize(spec.renew_time))
    if stamp is None or claimed is None or is_constant(entries):
        return False
    return stamp - SECOND <= claimed <= stamp + 2 * SECOND


def is_renewal_logged(spec: LeaseSpec, entries: Sequence[Entry], write: Write) -> bool:
    """Return whether a write that a log dates set renewTime, in a state without stamps that would say so."""
    claimed = get_readable_instant(normalize(spec.renew_time))
    if claimed is None or not write.is_logged or (entries and not is_constant(entries)):
        return False
    return write.earliest - SECOND // 2 <= claimed <= (write.latest or write.at) + SECOND // 2


def is_renewed_by_holder(entries: Sequence[Entry]) -> bool:
    """Return whether, by field managers, the last renewal came with or after the write that put the holder there."""
    renewed = date_last_renewal(entries)
    return renewed is not None and all((one.stamp or 0) <= renewed for one in entries if HOLDER in one.owned.spec)


def date_acquisition(spec: LeaseSpec, entries: Sequence[Entry]) -> int | None:
    """Return when the holder says that it took the lease, corrected by the error of its clock at the last renewal."""
    acquired = get_readable_instant(normalize(spec.acquire_time))
    if acquired is None:
        return None
    ahead = measure_ahead(spec, entries) or 0
    # A renewTime of another age is not an error of a clock.
    return acquired - ahead if abs(ahead) <= MAX_AHEAD else acquired


def has_written_both(entries: Sequence[Entry]) -> bool:
    """Return whether one field manager wrote the holder and when it took the lease, as who takes it does."""
    owners = [{name for name in (HOLDER, ACQUIRE_TIME) if name in one.owned.spec} for one in entries]
    return [one for one in owners if one] == [{HOLDER, ACQUIRE_TIME}] and not is_constant(entries)


def date_naming(entries: Sequence[Entry]) -> int | None:
    """Return when the holder was last written, by a field manager's stamp; None if that is not known."""
    owners = [one for one in entries if HOLDER in one.owned.spec]
    return owners[0].stamp if len(owners) == 1 and not is_constant(entries) else None


def is_acquired_by_holder(spec: LeaseSpec, entries: Sequence[Entry]) -> bool:
    """Return whether the holder wrote itself when it took the lease, and that is not after its last renewal.

    Where renewTime and its stamp differ, its clock is wrong or another one sent the stamp, and that cannot be told.
    """
    acquired, renewed = date_acquisition(spec, entries), date_renewal(spec, entries)
    if measure_ahead(spec, entries) and not is_renewal_dated(spec, entries):
        return False
    return has_written_both(entries) and acquired is not None and renewed is not None and acquired <= renewed


def date_holding(spec: LeaseSpec, entries: Sequence[Entry]) -> int | None:
    """Return since when the holder has it at the latest, None if nothing dates that.

    acquireTime is of an earlier holder if another field manager wrote it, and of none if it is after the last renewal.
    """
    renewed = date_renewal(spec, entries)
    if is_acquired_by_holder(spec, entries):
        acquired = date_acquisition(spec, entries)
        return acquired if acquired is None or renewed is None else min(acquired, renewed)
    named = date_naming(entries)
    # Stamps have whole seconds.
    return renewed if renewed is not None and (named is None or renewed < named + SECOND) else named


def date_state(spec: LeaseSpec, entries: Sequence[Entry]) -> int | None:
    """Return when a state was written, as far as it shows: the stamp of its holder or of a later renewal."""
    renewed = date_renewal(spec, entries)
    if spec.holder_identity is None or not entries:
        # A removed field has no owner: whatever was written last is the best guess.
        latest = find_latest_stamp(entries)
        return renewed if latest is None else latest
    stamp = date_write_by_field(entries, (), HOLDER, 0)
    return renewed if renewed is not None and renewed >= stamp else stamp or renewed


def find_stamp_between(old: LeaseSpec, new: LeaseSpec, known: Sequence[Entry], entries: Sequence[Entry]) -> int:
    """Return the stamp of a write between two states, 0 if it shows none that no client can invent.

    `known` and `entries` are those of the states. What a write sets has one owner afterwards, which is stamped then.
    """
    for name, owned in _OWNED.items():
        value = getattr(new, name)
        if value is not None and value != getattr(old, name):
            owners = [one for one in entries if owned in one.owned.spec]
            stamp = owners[0].stamp if len(owners) == 1 and not owners[0].is_fold else None
            if stamp is not None and all(one.stamp != stamp for one in known):
                return stamp
    return 0


def was_live(last: int | None, duration: int | None, at: int) -> bool:
    """Return whether a lease that was last renewed at `last` was still live at `at`, by the clocks of API servers."""
    if last is None or duration is None:
        return False
    return at - last + find_tolerance(duration) < duration * SECOND


def has_expired(last: int | None, duration: int | None, at: int) -> bool:
    """Return whether a lease that was last renewed at `last` had expired at `at`; True if it is not known when."""
    return last is None or duration is None or at - last >= duration * SECOND


def find_manager_of_holder(entries: Sequence[Entry], before: Sequence[Entry]) -> str:
    """Return the field manager of a write that set the holder, from the lists after and before it; "" if unknown."""
    owners = [one for one in entries if HOLDER in one.owned.spec]
    return _name_manager(owners[0]) if len(owners) == 1 and owners[0] not in before else ""
