"""True if a write brings managedFields that no API server makes of an ordinary request.

The answer is one sentence, or None. Each check compares object with oldObject; our clock is used only if the write
set nothing that an API server could have stamped. Entries that were stored before are never held against a later write.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from webhook.api.managed_fields import APPLY, BEFORE_FIRST_APPLY, MAX_LEVELS, Entry, nest_too_deeply
from webhook.api.text import quote, truncate
from webhook.api.times import canonical_seconds, instant
from webhook.rules.change import LeaseChange
from webhook.rules.expiry import BOUND, MAX_TOLERANCE, seen_at, whole_seconds

AHEAD: Final = BOUND // 2
"""How far a write may move the stamp of the last renewal ahead to another stored time, as merging entries does.

The rest of the bound is for clocks that differ: the stamp must still count for a steal that another clock dates.
"""


def moment_of(mine: Iterable[Entry], now: int) -> int:
    """When the write was made: the latest stamp of an entry that is its writer's, else `now` in whole seconds."""
    stamp = stamp_of_writer(mine)
    return whole_seconds(now) if stamp is None else stamp


def stamp_of_writer(mine: Iterable[Entry]) -> int | None:
    """The latest stamp of an entry that is the writer's and not a fold, whose time a client can choose."""
    latest = None
    for entry in mine:
        if not entry.is_fold and (stamp := entry.stamp) is not None and (latest is None or stamp > latest):
            latest = stamp
    return latest


def tampering_of_update(change: LeaseChange) -> str | None:
    """What an UPDATE does to managedFields that no API server does, or None."""
    new, old = change.new_entries, change.old_entries
    if not new:
        return f"empties managedFields and with it {last_renewal(old)}" if old else None
    problem = _structure(new, old)
    if problem:
        return problem
    mine = change.was_set.owners_among(new)
    at = moment_of(mine, change.now)
    if not old:
        return None if _one_apply(change, mine, at) else "fills managedFields that were empty, which only an apply does"
    return _added(new, old, mine) or _renewal(change, mine, at)


def tampering_of_create(change: LeaseChange) -> str | None:
    """What the managedFields of a CREATE, which are not empty, hold that no API server writes, or None."""
    new = change.new_entries
    problem = _structure(new, ())
    if problem:
        return problem
    mine = change.was_set.owners_among(new)
    latest = stamp_of_writer(mine)
    if latest is None or any(entry.is_fold for entry in mine):
        return "creates the object with entries whose fields another entry owns"
    for entry in new:
        if entry.stamp is not None and entry.stamp > latest:
            return f"creates the object with an entry {_shown(entry)}, which is later than this write"
    return None


def last_renewal(entries: Iterable[Entry]) -> str:
    """The last renewal according to an entry, as text."""
    owners = [(entry.stamp, entry.manager or "") for entry in entries if entry.owns_renew_time]
    stamp, manager = min(((at, who) for at, who in owners if at is not None), default=(None, ""))
    if stamp is None:
        return "what the API server saw of the lease"
    return f"the time of the last renewal ({_clock(stamp)} by manager {quote(truncate(manager, 40))})"


def _structure(new: Sequence[Entry], old: Sequence[Entry]) -> str | None:
    for entry in new:
        if entry.owned.is_deep and not nest_too_deeply(old):
            return f"brings an entry that nests deeper than {MAX_LEVELS} levels"
    for entry in new:
        if entry.owned.below:
            if any(any(one.owned.below) for one in old):
                return None
            place = f"below {quote(truncate(entry.owned.below[0], 40))} of spec"
            return f"brings an owner of something {place} ({_manager(entry)}), where nothing can be"
    return None


def _added(new: Sequence[Entry], old: Sequence[Entry], mine: Sequence[Entry]) -> str | None:
    if len(new) > len(old) + 1:
        return f"adds {len(new) - len(old)} entries at once"
    known = {(entry.key, entry.stamp) for entry in old}
    unknown = [entry for entry in new if (entry.key, entry.stamp) not in known]
    if len(unknown) > 1:
        stamps = {entry.stamp for entry in old}
        fresh = [entry for entry in unknown if entry.stamp not in stamps]
        if len(fresh) > 1:
            return f"brings {len(fresh)} entries with new times, {_shown(fresh[0])} and {_shown(fresh[1])}"
    by_this_write = {id(entry) for entry in mine}
    invented = [entry for entry in unknown if entry.operation != APPLY and id(entry) not in by_this_write]
    if invented:
        # Only Update entries are folded. An invented Apply entry may have any time, and its fold would fold renewals.
        foldable = {entry.stamp for entry in old if entry.operation != APPLY}
        for entry in invented:
            if not (entry.is_fold and entry.stamp in foldable):
                return f"brings an entry {_shown(entry)}, which owns nothing that this write sets"
    return None


def _one_apply(change: LeaseChange, mine: Sequence[Entry], at: int) -> bool:
    """True if a list is what an apply makes of an object without entries: its own, and one of all that was there.

    Between them they own renewTime, and the API server has just stamped its owner: an older stamp was brought along.
    """
    applies = [entry for entry in change.new_entries if entry.operation == APPLY]
    others = [entry for entry in change.new_entries if entry.operation != APPLY]
    return (
        len(applies) <= 1
        and len(others) <= 1
        and all(entry.manager == BEFORE_FIRST_APPLY for entry in others)
        and all(entry.stamp is None or entry.stamp <= at + BOUND for entry in change.new_entries)
        and (change.new_spec.renew_time is None or _renewal_is_stamped_now(change, mine, at))
    )


def _renewal_is_stamped_now(change: LeaseChange, mine: Sequence[Entry], at: int) -> bool:
    """True if the owner of renewTime has a stamp of this write, by an API server's clock if it set something.

    If it set nothing, our clock may be wrong by the bound; but no stamp may make the lease look older than its holder's
    renewTime does, or whoever brings the first stamps could let a live lease expire.
    """
    seen = seen_at(change.new_entries)
    if seen is None:
        return False
    if stamp_of_writer(mine) is not None:
        return seen >= at - MAX_TOLERANCE
    renewed_to = instant(change.new_renew_time)
    claimed = change.now if renewed_to is None else min(change.now, renewed_to)
    return seen >= max(at - BOUND, whole_seconds(claimed) - MAX_TOLERANCE)


def _renewal(change: LeaseChange, mine: Sequence[Entry], at: int) -> str | None:
    """What the write does to the stamp of the last renewal that neither a renewal nor a clock does."""
    if change.new_spec.renew_time is None:
        return None
    after, before = seen_at(change.new_entries), seen_at(change.old_entries)
    if change.renews and after is None:
        return "renews the lease and leaves no stamp of it"
    if before is None or after == before:
        return None
    if after is None:
        return f"removes {last_renewal(change.old_entries)}"
    if any(entry.owns_renew_time and entry.stamp == after and not entry.is_fold for entry in mine):
        return None
    if after < before:
        # A writer that calls itself ancient-changes is dated by the entries that are folded into its own.
        if change.renews and after >= whole_seconds(change.now) - MAX_TOLERANCE:
            return None
        return f"moves {last_renewal(change.old_entries)} back to {_clock(after)}"
    if change.renews:
        return None
    known = any(entry.stamp == after for entry in change.old_entries)
    if after > at + (AHEAD if known else MAX_TOLERANCE):
        return f"moves {last_renewal(change.old_entries)} ahead to {_clock(after)}"
    return None


def _shown(entry: Entry) -> str:
    stamp = entry.stamp
    return f"of {_manager(entry)} at {canonical_seconds(stamp) if stamp is not None else 'no time'}"


def _manager(entry: Entry) -> str:
    return f"manager {quote(truncate(entry.manager or '', 40))}"


def _clock(stamp: int) -> str:
    return canonical_seconds(stamp)[11:]
