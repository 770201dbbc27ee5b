"""Detects managedFields that no API server makes of an ordinary request.

Each check compares object with oldObject; our clock is used only if the write set nothing that an API server could
have stamped. Entries that were stored before are never held against a later write.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from webhook.admission.rules.change import LeaseChange
from webhook.admission.rules.expiry import (
    BOUND,
    MAX_TOLERANCE,
    date_last_renewal,
    date_write_by_writer,
    find_latest_stamp_of_writer,
    truncate_to_seconds,
)
from webhook.admission.rules.stamps import NAMES, is_constant
from webhook.kubernetes.managed_fields import (
    APPLY,
    BEFORE_FIRST_APPLY,
    MAX_LEVELS,
    Entry,
    OwnedFields,
    is_nested_too_deeply,
)
from webhook.kubernetes.times import format_time, get_instant
from webhook.text.quoting import quote, truncate

AHEAD: Final = BOUND // 2
"""The most by which a write may move the stamp of the last renewal ahead, to another stored time, as merging does.

The rest of the bound is for clocks that differ: the stamp must still count for a steal that another clock dates.
"""


def is_stamped(change: LeaseChange) -> bool:
    """True if an API server stamped this write, whether or not the policy file lists the namespace.

    What a write sets has an owner of this moment, unless the API server replaced the list by the constant entry. So a
    client can bring that entry only into a write that sets nothing. Only spec and the stamps count, because other
    webhooks may set the rest. A stored list is not held against a later write.
    """
    if not is_constant(change.new_entries):
        return False
    set_now = change.set_fields
    stamped = any(name.startswith(f"f:{NAMES}") for name in set_now.annotations)
    return stamped or bool(set_now.spec) or is_constant(change.old_entries)


def has_usual_entries(change: LeaseChange) -> bool:
    """True if a write sets renewTime, and managedFields are at first sight what an API server makes of that.

    One entry, stamped and not of an apply, owns renewTime; all others were there before, with the same times. Then
    neither `find_tampering_in_update` nor `find_tampering_in_create` finds anything, which are slower by far. A CREATE
    has no entries from before, whatever its review brings as oldObject: `decode` drops it.
    """
    new, old = change.new_entries, change.old_entries
    if not change.renews or len(new) > len(old) + 1 or not (old or change.is_create):
        return False
    owner, others = None, []
    for entry in new:
        if entry.operation == APPLY or entry.owned.below or entry.owned.is_deep:
            return False
        if not entry.owns_renew_time:
            others.append(entry)
        elif owner is None and entry.stamp is not None and not entry.is_fold:
            owner = entry
        else:
            return False
    if owner is None or not others:
        return owner is not None
    known = {(entry.key, entry.stamp) for entry in old}
    return all((entry.key, entry.stamp) in known for entry in others)


def find_tampering_in_update(change: LeaseChange) -> str | None:
    """Return what an UPDATE does to managedFields that no API server does, or None."""
    new, old = change.new_entries, change.old_entries
    if not new:
        return f"erases {describe_last_renewal(old)}" if old else None
    problem = _check_structure(new, old)
    if problem:
        return problem
    writers_entries = change.set_fields.find_owners(new)
    if old:
        return _check_additions(change, writers_entries) or _check_renewal(change, writers_entries)
    is_apply = _is_one_apply(change, writers_entries, date_write_by_writer(writers_entries, change.now))
    return None if is_apply else "fills managedFields that were empty, which only an apply does"


def find_tampering_in_create(change: LeaseChange) -> str | None:
    """Return what the managedFields of a CREATE, which are not empty, hold that no API server writes, or None."""
    new = change.new_entries
    problem = _check_structure(new, ())
    if problem:
        return problem
    writers_entries = change.set_fields.find_owners(new)
    if len(new) == 1 and _is_of_dropped_fields(change, new[0]):
        return None
    latest = find_latest_stamp_of_writer(writers_entries)
    if latest is None or any(entry.is_fold for entry in writers_entries):
        return "creates the object with entries whose fields another entry owns"
    for entry in new:
        if entry.stamp is not None and entry.stamp > latest:
            return f"creates the object with an entry {_describe_entry(entry)}, which is later than this write"
    return None


def describe_last_renewal(entries: Iterable[Entry]) -> str:
    """Return the last renewal according to an entry, as text."""
    owners = [(entry.stamp, entry.manager or "") for entry in entries if entry.owns_renew_time]
    stamp, manager = min(((at, who) for at, who in owners if at is not None), default=(None, ""))
    if stamp is None:
        return "what the API server saw of the lease"
    return f"the time of the last renewal ({_clock(stamp)} by manager {quote(truncate(manager, 40))})"


def _check_structure(new: Sequence[Entry], old: Sequence[Entry]) -> str | None:
    is_deep, below = False, None
    for entry in new:
        owned = entry.owned
        is_deep = is_deep or owned.is_deep
        if owned.below and below is None:
            below = entry
    if is_deep and not is_nested_too_deeply(old):
        return f"brings an entry that nests deeper than {MAX_LEVELS} levels"
    if below is None or any(one.owned.below for one in old):
        return None
    # The first by name, since the order of keys says nothing.
    place = f"below {quote(truncate(min(below.owned.below), 40))} of spec"
    return f"brings an owner of something {place} ({_describe_manager(below)}), where nothing can be"


def _check_additions(change: LeaseChange, writers_entries: Sequence[Entry]) -> str | None:
    new, old = change.new_entries, change.old_entries
    if len(new) > len(old) + 1:
        return f"adds {len(new) - len(old)} entries at once"
    stamps = {entry.stamp for entry in old}
    fresh = [entry for entry in new if entry.stamp not in stamps]
    if len(fresh) > 1:
        return (
            f"brings {len(fresh)} entries with new times, {_describe_entry(fresh[0])} and {_describe_entry(fresh[1])}"
        )
    if len(writers_entries) == len(new):
        return None
    known = {(entry.key, entry.stamp) for entry in old}
    foldable: set[int | None] | None = None
    for entry in new:
        if (
            entry.operation == APPLY
            or (entry.key, entry.stamp) in known
            or change.set_fields.is_owned_in_part_by(entry)
        ):
            continue
        if _is_of_dropped_fields(change, entry):
            continue
        if foldable is None:
            # Only Update entries are folded. An invented Apply entry may have any time; its fold would fold renewals.
            foldable = {one.stamp for one in old if one.operation != APPLY}
        if not (entry.is_fold and entry.stamp in foldable):
            return f"brings an entry {_describe_entry(entry)}, which owns nothing that this write sets"
    return None


def date_dropped_fields(change: LeaseChange) -> int | None:
    """Return when an UPDATE was made of which the API server dropped all that was set, if its entries look like that.

    Nothing but the entry says so, which a client may have invented.
    """
    known = {(entry.key, entry.stamp) for entry in change.old_entries}
    fresh = (entry for entry in change.new_entries if (entry.key, entry.stamp) not in known)
    return find_latest_stamp_of_writer(entry for entry in fresh if _owns_dropped_fields(change, entry))


def _is_of_dropped_fields(change: LeaseChange, entry: Entry) -> bool:
    """True if an entry is what an API server makes now of a write of which it dropped all that was set.

    A client can invent such an entry as well. It gains no more than by a label of its own, because the stamp may be
    ahead by no more than clocks differ: once ten Update entries are dated ahead, each renewal is folded into one of
    them and dated so. A second owner of a field is refused, but a later write may change what a stored entry owns, so
    there may be ten.
    """
    if entry.stamp is None or not change.now - BOUND <= entry.stamp <= change.now + MAX_TOLERANCE:
        return False
    return _owns_dropped_fields(change, entry)


def _owns_dropped_fields(change: LeaseChange, entry: Entry) -> bool:
    """True if an entry owns what an API server dropped of a write, and this write set nothing else.

    Without the feature gate CoordinatedLeaderElection it drops strategy and preferredHolder where the lease has none,
    after it has recorded who set them (PrepareForUpdate in `pkg/registry/coordination/lease/strategy.go` of
    kubernetes). Their one owner owns nothing else that it did not own before.
    """
    new, old = change.new_spec, change.old_spec
    dropped = {
        name
        for name, after, before in (
            ("f:strategy", new.strategy, old.strategy),
            ("f:preferredHolder", new.preferred_holder, old.preferred_holder),
        )
        if after is None and before is None and name in entry.owned.spec
    }
    if not dropped or change.set_fields or entry.is_fold or entry.owned.is_deep:
        return False
    owners = [one for one in change.new_entries if not dropped.isdisjoint(one.owned.spec)]
    if len(owners) > 1:
        return False
    owned = next((one.owned for one in change.old_entries if one.key == entry.key), OwnedFields())
    allowed = {**owned.fields, "f:spec": {**owned.in_spec, **{name: {} for name in dropped}}}
    return _is_within(entry.owned.fields, allowed)


def _is_within(fields: object, others: object) -> bool:
    """True if all that an entry owns is among what another owns; neither nests deeply."""
    if not (isinstance(fields, dict) and isinstance(others, dict)):
        return False
    return all(name in others and _is_within(value, others[name]) for name, value in fields.items())


def _is_one_apply(change: LeaseChange, writers_entries: Sequence[Entry], at: int) -> bool:
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
        and (change.new_spec.renew_time is None or _renewal_is_stamped_now(change, writers_entries, at))
    )


def _renewal_is_stamped_now(change: LeaseChange, writers_entries: Sequence[Entry], at: int) -> bool:
    """True if the owner of renewTime has a stamp of this write, by an API server's clock if it set something.

    If it set nothing, our clock may be wrong by the bound; but no stamp may make the lease look older than its holder's
    renewTime does, or whoever brings the first stamps could let a live lease expire.
    """
    seen = date_last_renewal(change.new_entries)
    if seen is None:
        return False
    if find_latest_stamp_of_writer(writers_entries) is not None:
        return seen >= at - MAX_TOLERANCE
    renewed_to = get_instant(change.new_renew_time)
    claimed = change.now if renewed_to is None else min(change.now, renewed_to)
    return seen >= max(at - BOUND, truncate_to_seconds(claimed) - MAX_TOLERANCE)


def _check_renewal(change: LeaseChange, writers_entries: Sequence[Entry]) -> str | None:
    """Return what the write does to the stamp of the last renewal that neither a renewal nor a clock does."""
    if change.new_spec.renew_time is None:
        return None
    after, before = date_last_renewal(change.new_entries), date_last_renewal(change.old_entries)
    if change.renews and after is None:
        return "renews the lease and leaves no stamp of it"
    if before is None or after == before:
        return None
    if after is None:
        return f"removes {describe_last_renewal(change.old_entries)}"
    if after in [entry.stamp for entry in writers_entries if entry.owns_renew_time and not entry.is_fold]:
        return None
    if after < before:
        # A writer that calls itself ancient-changes is dated by the entries that are folded into its own.
        if change.renews and after >= truncate_to_seconds(change.now) - MAX_TOLERANCE:
            return None
        return f"moves {describe_last_renewal(change.old_entries)} back to {_clock(after)}"
    if change.renews:
        return None
    known = any(entry.stamp == after for entry in change.old_entries)
    if after > date_write_by_writer(writers_entries, change.now) + (AHEAD if known else MAX_TOLERANCE):
        return f"moves {describe_last_renewal(change.old_entries)} ahead to {_clock(after)}"
    return None


def _describe_entry(entry: Entry) -> str:
    stamp = entry.stamp
    return f"of {_describe_manager(entry)} at {format_time(stamp) if stamp is not None else 'no time'}"


def _describe_manager(entry: Entry) -> str:
    return f"manager {quote(truncate(entry.manager or '', 40))}"


def _clock(stamp: int) -> str:
    return format_time(stamp)[11:]
