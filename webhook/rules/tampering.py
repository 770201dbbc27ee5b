"""Whether a write brings managedFields that no API server makes of an ordinary request.

The answer is one sentence, or None. Each check compares object with oldObject; our clock is used only if the write
set nothing that an API server could have stamped. Entries that were stored before are never held against a later write.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from webhook.api import micro_time
from webhook.api.managed_fields import APPLY, BEFORE_FIRST_APPLY, Entry, Key, nest_too_deeply
from webhook.api.nesting import DEEPEST
from webhook.api.text import cut, quote
from webhook.rules.expiry import BOUND, LARGEST_TOLERANCE, seen_at, whole_seconds
from webhook.rules.set_fields import SetFields

AHEAD: Final = BOUND // 2
"""How far a write may move the stamp of the last renewal ahead to another stored time, as merging entries does.

The rest of the bound is for clocks that differ: the stamp must still count for a steal that another clock dates.
"""


class Lists(Struct, frozen=True):
    """Both lists of managedFields of a write, and what the write set.

    `renewed` is whether the write sets renewTime to another value, `has_renew_time` whether there is one afterwards,
    `renew_time` that one (None if it is no time); `now` is the caller's clock. Both are microseconds since 1970.
    """

    new: Sequence[Entry]
    old: Sequence[Entry]
    was_set: SetFields
    renewed: bool
    has_renew_time: bool
    renew_time: int | None
    now: int


def moment_of(mine: Iterable[Entry], now: int) -> int:
    """When the write was made: the latest stamp of an entry that is its writer's, else `now` in whole seconds."""
    stamp = stamp_of_writer(mine)
    return whole_seconds(now) if stamp is None else stamp


def stamp_of_writer(mine: Iterable[Entry]) -> int | None:
    """The latest stamp of an entry that is the writer's and not a fold, whose time a client can choose."""
    stamps = (entry.stamp for entry in mine if not entry.is_fold)
    return max((stamp for stamp in stamps if stamp is not None), default=None)


def tampering_of_update(lists: Lists) -> str | None:
    """What an UPDATE does to managedFields that no API server does, or None."""
    new, old = lists.new, lists.old
    if not new:
        return f"empties managedFields and with it {last_renewal(old)}" if old else None
    problem = _structure(new, old)
    if problem:
        return problem
    mine = lists.was_set.owners_among(new)
    at = moment_of(mine, lists.now)
    if not old:
        return None if _one_apply(lists, mine, at) else "fills managedFields that were empty, which only an apply does"
    return _added(new, old, mine) or _renewal(lists, mine, at)


def tampering_of_create(new: Sequence[Entry], was_set: SetFields) -> str | None:
    """What the managedFields of a CREATE, which are not empty, hold that no API server writes, or None."""
    problem = _structure(new, ())
    if problem:
        return problem
    mine = was_set.owners_among(new)
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
    return f"the time of the last renewal ({_clock(stamp)} by manager {quote(cut(manager, 40))})"


def _structure(new: Sequence[Entry], old: Sequence[Entry]) -> str | None:
    if nest_too_deeply(new) and not nest_too_deeply(old):
        return f"brings an entry that nests deeper than {DEEPEST} levels"
    planted = next(((entry, name) for entry in new if entry.fields for name in entry.fields_with_owners_below()), None)
    if planted is None or any(name for entry in old for name in entry.fields_with_owners_below()):
        return None
    entry, name = planted
    place = f"below {quote(cut(name, 40))} of spec"
    return f"brings an owner of something {place} ({_manager(entry)}), where nothing can be"


_Known = frozenset[tuple[Key, int | None]]


def _added(new: Sequence[Entry], old: Sequence[Entry], mine: Sequence[Entry]) -> str | None:
    if len(new) > len(old) + 1:
        return f"adds {len(new) - len(old)} entries at once"
    known: _Known = frozenset((entry.key, entry.stamp) for entry in old)
    times = frozenset(entry.stamp for entry in old)
    fresh = [entry for entry in new if (entry.key, entry.stamp) not in known and entry.stamp not in times]
    if len(fresh) > 1:
        return f"brings {len(fresh)} entries with new times, {_shown(fresh[0])} and {_shown(fresh[1])}"
    by_this_write = {id(entry) for entry in mine}
    # Only Update entries are folded. An invented Apply entry may have any time, and a fold of it would fold renewals.
    foldable = frozenset(entry.stamp for entry in old if entry.operation != APPLY)
    for entry in new:
        if entry.operation == APPLY or (entry.key, entry.stamp) in known or id(entry) in by_this_write:
            continue
        if not (entry.is_fold and entry.stamp in foldable):
            return f"brings an entry {_shown(entry)}, which owns nothing that this write sets"
    return None


def _one_apply(lists: Lists, mine: Sequence[Entry], at: int) -> bool:
    """Whether a list is what an apply makes of an object without entries: its own, and one of all that was there.

    Between them they own renewTime, and the API server has just stamped its owner: an older stamp was brought along.
    """
    applies = [entry for entry in lists.new if entry.operation == APPLY]
    others = [entry for entry in lists.new if entry.operation != APPLY]
    return (
        len(applies) <= 1
        and len(others) <= 1
        and all(entry.manager == BEFORE_FIRST_APPLY for entry in others)
        and all(entry.stamp is None or entry.stamp <= at + BOUND for entry in lists.new)
        and (not lists.has_renew_time or _renewal_is_stamped_now(lists, mine, at))
    )


def _renewal_is_stamped_now(lists: Lists, mine: Sequence[Entry], at: int) -> bool:
    """Whether the owner of renewTime has a stamp of this write, by an API server's clock if it set something.

    If it set nothing, our clock may be wrong by the bound; but no stamp may make the lease look older than its holder's
    renewTime does, or whoever brings the first stamps could let a live lease expire.
    """
    seen = seen_at(lists.new)
    if seen is None:
        return False
    if stamp_of_writer(mine) is not None:
        return seen >= at - LARGEST_TOLERANCE
    claimed = lists.now if lists.renew_time is None else min(lists.now, lists.renew_time)
    return seen >= max(at - BOUND, whole_seconds(claimed) - LARGEST_TOLERANCE)


def _renewal(lists: Lists, mine: Sequence[Entry], at: int) -> str | None:
    """What the write does to the stamp of the last renewal that neither a renewal nor a clock does."""
    if not lists.has_renew_time:
        return None
    after, before = seen_at(lists.new), seen_at(lists.old)
    if lists.renewed and after is None:
        return "renews the lease and leaves no stamp of it"
    if before is None or after == before:
        return None
    if after is None:
        return f"removes {last_renewal(lists.old)}"
    by_this_write = any(entry.owns_renew_time and entry.stamp == after and not entry.is_fold for entry in mine)
    if by_this_write:
        return None
    if after < before:
        # A writer that calls itself ancient-changes is dated by the entries that are folded into its own.
        if lists.renewed and after >= whole_seconds(lists.now) - LARGEST_TOLERANCE:
            return None
        return f"moves {last_renewal(lists.old)} back to {_clock(after)}"
    if lists.renewed:
        return None
    known = any(entry.stamp == after for entry in lists.old)
    if after > at + (AHEAD if known else LARGEST_TOLERANCE):
        return f"moves {last_renewal(lists.old)} ahead to {_clock(after)}"
    return None


def _shown(entry: Entry) -> str:
    stamp = entry.stamp
    return f"of {_manager(entry)} at {micro_time.canonical_seconds(stamp) if stamp is not None else 'no time'}"


def _manager(entry: Entry) -> str:
    return f"manager {quote(cut(entry.manager or '', 40))}"


def _clock(stamp: int) -> str:
    return micro_time.canonical_seconds(stamp)[11:]
