"""Writes that remove or forge the API server's stamps, the first step of a two-step steal, and the size of a lease.

Where etcd refuses an update as too large, the API server removes managedFields and tries once more (isTooLargeError in
`pkg/endpoints/handlers` of apiserver). It is the API server's own way out, and a denial would close it to an honest
holder and to its successor permanently: it is a warning in a write that renews. `lease-too-large` keeps leases from
getting there.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from webhook.admission.rules.change import LeaseChange, SetFields, set_fields
from webhook.admission.rules.expiry import BOUND, MAX_TOLERANCE, date_last_renewal, whole_seconds
from webhook.admission.rules.rule import NO_FINDINGS, Finding, Mode, Statement, literal, texts
from webhook.admission.rules.stamps import NAMES, is_constant
from webhook.kubernetes.field import forbidden
from webhook.kubernetes.managed_fields import (
    APPLY,
    BEFORE_FIRST_APPLY,
    MAX_LEVELS,
    Entry,
    Key,
    OwnedFields,
    nest_too_deeply,
)
from webhook.kubernetes.objects import NO_METADATA, LeaseSpec, ObjectMeta
from webhook.kubernetes.times import canonical_seconds, instant, stamp_of
from webhook.text.quoting import quote, truncate

_FIELD: Final = "metadata.managedFields"
MAX_VERSION_DIGITS: Final = 19
"""Digits of a resourceVersion, which is a revision of etcd: a positive signed number of 64 bits."""
_REMOVE: Final = "remove metadata.managedFields from the file or patch and send it again"
_RESTORE: Final = "`kubectl apply --server-side` of apiVersion, kind, name and namespace only brings a stamp back"


@texts(
    source="ours: a client may send any managedFields, and apimachinery's field manager keeps invented entries",
    why="The stamps in managedFields are the only evidence of when a lease was renewed. Without them a live lease "
    "looks expired, or an expired one live.",
    who="Clients that send back an object whose `metadata.managedFields` was edited or comes from an older copy: "
    "Velero restoring over an existing Lease, `kubectl replace` of a saved file, kubectl's migration of a manifest "
    "with `renewTime` to server-side apply.",
    fix="Delete `metadata.managedFields` from the file or the request; the API server then keeps its own.",
    attack="forged the record of the last renewal",
)
def renewal_stamp_tampered(change: LeaseChange) -> Iterable[Finding]:
    """A write may not bring managedFields that no API server would make of it.

    They hold the time of the last renewal, which a write may neither remove nor move. What an earlier write stored is
    never held against a later one. Renaming and merging entries is allowed. `kubectl` moving a manifest with renewTime
    from client-side to server-side apply is refused as well, and kubectl itself calls that refusal non-fatal. Where the
    API server stamps writers, its one entry is accepted if the write sets something.
    """
    if is_stamped(change):
        return NO_FINDINGS
    problem = _check_create(change) if change.is_create else _check_update(change)
    if problem is None:
        return NO_FINDINGS
    happened = Statement(f"this write {literal(problem)}")
    if _may_lose_entries(change):
        detail = f"this write {problem}, as the API server does if etcd refuses the object as too large; {_RESTORE}"
        return (Finding(forbidden(_FIELD, detail), tier=Mode.WARN, happened=happened),)
    return (Finding(forbidden(_FIELD, f"this write {problem}; {_REMOVE}"), happened=happened),)


def is_stamped(change: LeaseChange) -> bool:
    """True if an API server stamped this write, whether or not the policy file lists the namespace.

    What a write sets has an owner of this moment, unless the API server replaced the list by the constant entry. So a
    client can bring that entry only into a write that sets nothing. Of what is set, spec and the stamps count: other
    webhooks may set the rest. A stored list is not held against a later write.
    """
    if not is_constant(change.new_entries):
        return False
    set_now = change.was_set
    stamped = any(name.startswith(f"f:{NAMES}") for name in set_now.annotations)
    return stamped or bool(set_now.spec) or is_constant(change.old_entries)


def _check_update(change: LeaseChange) -> str | None:
    if not change.renews and change.new_metadata.managed_fields == change.old_metadata.managed_fields:
        return None
    return tampering_of_update(change) or _owns_what_is_not_there(change)


def _check_create(change: LeaseChange) -> str | None:
    if change.request.user is None and _was_stored(change.new_metadata):
        return None  # a manifest of a stored object, which is checked as if it were created
    if change.new_entries:
        return tampering_of_create(change) or _owns_what_is_not_there(change)
    return _check_creation_without_entries(change)


_SPEC: Final = frozenset(f"f:{name}" for name in LeaseSpec.__struct_encode_fields__)
_METADATA: Final = frozenset(
    f"f:{name}"
    for name in (
        "labels", "annotations", "ownerReferences", "finalizers", "generateName",
        "deletionTimestamp", "deletionGracePeriodSeconds",
    )
)  # fmt: skip


def _owns_what_is_not_there(change: LeaseChange) -> str | None:
    """An apply owns what it applied, which the object has then: anything else makes the list larger for nothing."""
    known: dict[Key, OwnedFields] | None = None
    there: SetFields | None = None
    for entry in change.new_entries:
        if entry.operation != APPLY:
            continue
        if known is None:
            known = {one.key: one.owned for one in change.old_entries if one.operation == APPLY}
        if (before := known.get(entry.key, OwnedFields())) == entry.owned:
            continue
        if there is None:
            # Every field of a Lease counts as there: an apply of null owns a field that the object does not have.
            spec = _SPEC | {f"f:{name}" for name in change.request.specs[0]}
            there = set_fields(spec, change.new_metadata, NO_METADATA)
        absent = min(_find_absent(entry.owned, before, there), default=None)
        if absent is not None:
            who, what = quote(truncate(entry.manager or "", 40)), quote(truncate(absent, 40))
            return f"brings an entry of an apply (manager {who}) that owns {what}, which the object does not have"
    return None


def _find_absent(new: OwnedFields, old: OwnedFields, there: SetFields) -> Iterator[str]:
    """Names that an entry owns now and did not before, and that stand for nothing in the object."""
    parts = (
        (new.spec, old.spec, there.spec),
        (new.metadata, old.metadata, _METADATA),
        (new.labels, old.labels, there.labels),
        (new.annotations, old.annotations, there.annotations),
        (new.finalizers, old.finalizers, there.finalizers),
        (new.owners, old.owners, there.owners),
    )
    return (name for mine, before, known in parts for name in mine - before - known if name != ".")


def _was_stored(metadata: ObjectMeta) -> bool:
    """True if the resourceVersion is one of a stored object.

    A POST with one is refused, but a PUT to a name that does not exist creates an object with any; with 0 and, by a
    POST, with text that does not parse as a number, too (Create in `pkg/storage/etcd3/store.go` of apiserver). So in
    what an API server sends it says nothing.
    """
    version = metadata.resource_version or ""
    return version.isascii() and version.isdigit() and len(version) <= MAX_VERSION_DIGITS and int(version) > 0


def _check_creation_without_entries(change: LeaseChange) -> str | None:
    """A manifest has no entries either, but what an API server sends has just been given a uid and a time."""
    metadata = change.new_metadata
    created = stamp_of(metadata.creation_timestamp)
    if not change.was_set or not metadata.uid or created is None or abs(change.now - created) > BOUND:
        return None
    return "creates the object without managedFields"


MAX_BYTES: Final = 256 * 1024
"""Bytes of JSON to which a lease may grow. Honest ones have a few thousand; etcd takes 1.5 MiB."""

MAX_OWN_GROWTH: Final = MAX_BYTES
"""Bytes by which a larger lease may grow in a write that renews, takes or releases it.

An elector puts back with each write what it always sets, and someone else may have replaced that by as much as
`MAX_BYTES` allow, so it is measured by what it adds itself. In the holder's name five such writes reach the size that
`_may_lose_entries` asks for; a renewal with a duration of 1 s takes a lease in two.
"""

MAX_GROWTH_BY_FIRST_ENTRIES: Final = 3
"""How many times as large a lease without entries may become by the write that brings its first ones, an apply."""

_MIN_BYTES_OF_FALLBACK: Final = 1024 * 1024
"""Bytes of JSON, which are more than those of protobuf in etcd, from which on etcd may refuse a lease."""


@texts(
    source="ours: kube-apiserver drops managedFields of what etcd refuses as too large, and with them all stamps",
    why="Where etcd refuses an object as too large, the API server removes its managedFields, and with them all that "
    "proves when the lease was renewed. Whoever may update a lease can fill it up to that limit.",
    who="Attackers. Leases of known clients have a few thousand bytes.",
    fix="Write fewer or shorter labels, owners, finalizers and entries of managedFields. A lease that is larger than "
    "256 KiB already can be renewed, taken over and made smaller.",
    attack="filled a lease so that etcd would refuse its next write",
)
def lease_too_large(change: LeaseChange) -> Iterable[Finding]:
    """A lease may not grow beyond 256 KiB.

    A lease that was larger before may shrink or stay. A renewal, a takeover or a release may add as much to any lease:
    its writer puts back what others replaced.
    """
    if len(change.request.body) <= MAX_BYTES:
        return NO_FINDINGS
    after, before = change.request.sizes
    allowed = before
    if change.is_of_an_elector:
        allowed += MAX_OWN_GROWTH
    if change.new_entries and not change.old_entries:
        # The first entries name each label, annotation, finalizer and owner once more.
        allowed = max(allowed, MAX_GROWTH_BY_FIRST_ENTRIES * before)
    if after <= max(MAX_BYTES, allowed):
        return NO_FINDINGS
    detail = (
        f"must not grow beyond {MAX_BYTES} bytes, from {before} to {after}: etcd refuses objects that are too large; "
        "write fewer or shorter labels, owners, finalizers and entries of managedFields"
    )
    happened = Statement(f"the lease grew from {before} to {after} bytes: etcd refuses objects that are too large")
    return (Finding(forbidden("metadata", detail), happened=happened),)


def _may_lose_entries(change: LeaseChange) -> bool:
    """True if the API server itself may have removed managedFields from this write, which renews the lease.

    Only a write that moves renewTime: it leaves a holder's own time, by which the next one is still warned of, and an
    identity binding covers it. Any other can be repeated after the next renewal, or can remove the large entry alone.
    The size of a list that nests too deeply is not known.
    """
    if not change.renews or change.new_entries:
        return False
    is_deep = nest_too_deeply(change.old_entries)
    return is_deep or change.request.sizes[1] >= _MIN_BYTES_OF_FALLBACK


# ---- what no API server makes of an ordinary request -----------------------------------------------------------------
# Each check compares object with oldObject; our clock is used only if the write set nothing that an API server could
# have stamped. Entries that were stored before are never held against a later write.


AHEAD: Final = BOUND // 2
"""How far a write may move the stamp of the last renewal ahead to another stored time, as merging entries does.

The rest of the bound is for clocks that differ: the stamp must still count for a steal that another clock dates.
"""


def date_write(mine: Iterable[Entry], now: int) -> int:
    """Return when the write was made: the latest stamp of its writer's entries, else `now` in whole seconds."""
    stamp = stamp_of_writer(mine)
    return whole_seconds(now) if stamp is None else stamp


def stamp_of_writer(mine: Iterable[Entry]) -> int | None:
    """Return the latest stamp of an entry that is the writer's and not a fold, whose time a client can choose."""
    latest = None
    for entry in mine:
        if not entry.is_fold and (stamp := entry.stamp) is not None and (latest is None or stamp > latest):
            latest = stamp
    return latest


def tampering_of_update(change: LeaseChange) -> str | None:
    """Return what an UPDATE does to managedFields that no API server does, or None."""
    new, old = change.new_entries, change.old_entries
    if not new:
        return f"erases {last_renewal(old)}" if old else None
    problem = _structure(new, old)
    if problem:
        return problem
    mine = change.was_set.owners_among(new)
    if old:
        return _check_additions(change, mine) or _renewal(change, mine)
    is_apply = _one_apply(change, mine, date_write(mine, change.now))
    return None if is_apply else "fills managedFields that were empty, which only an apply does"


def tampering_of_create(change: LeaseChange) -> str | None:
    """Return what the managedFields of a CREATE, which are not empty, hold that no API server writes, or None."""
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
            return f"creates the object with an entry {_describe_entry(entry)}, which is later than this write"
    return None


def last_renewal(entries: Iterable[Entry]) -> str:
    """Return the last renewal according to an entry, as text."""
    owners = [(entry.stamp, entry.manager or "") for entry in entries if entry.owns_renew_time]
    stamp, manager = min(((at, who) for at, who in owners if at is not None), default=(None, ""))
    if stamp is None:
        return "what the API server saw of the lease"
    return f"the time of the last renewal ({_clock(stamp)} by manager {quote(truncate(manager, 40))})"


def _structure(new: Sequence[Entry], old: Sequence[Entry]) -> str | None:
    is_deep, below = False, None
    for entry in new:
        owned = entry.owned
        is_deep = is_deep or owned.is_deep
        if owned.below and below is None:
            below = entry
    if is_deep and not nest_too_deeply(old):
        return f"brings an entry that nests deeper than {MAX_LEVELS} levels"
    if below is None or any(one.owned.below for one in old):
        return None
    place = f"below {quote(truncate(below.owned.below[0], 40))} of spec"
    return f"brings an owner of something {place} ({_manager(below)}), where nothing can be"


def _check_additions(change: LeaseChange, mine: Sequence[Entry]) -> str | None:
    new, old = change.new_entries, change.old_entries
    if len(new) > len(old) + 1:
        return f"adds {len(new) - len(old)} entries at once"
    stamps = {entry.stamp for entry in old}
    fresh = [entry for entry in new if entry.stamp not in stamps]
    if len(fresh) > 1:
        return (
            f"brings {len(fresh)} entries with new times, {_describe_entry(fresh[0])} and {_describe_entry(fresh[1])}"
        )
    if len(mine) == len(new):
        return None
    known = {(entry.key, entry.stamp) for entry in old}
    foldable: set[int | None] | None = None
    for entry in new:
        if entry.operation == APPLY or (entry.key, entry.stamp) in known or change.was_set.any_owned_by(entry):
            continue
        if foldable is None:
            # Only Update entries are folded. An invented Apply entry may have any time; its fold would fold renewals.
            foldable = {one.stamp for one in old if one.operation != APPLY}
        if not (entry.is_fold and entry.stamp in foldable):
            return f"brings an entry {_describe_entry(entry)}, which owns nothing that this write sets"
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
    seen = date_last_renewal(change.new_entries)
    if seen is None:
        return False
    if stamp_of_writer(mine) is not None:
        return seen >= at - MAX_TOLERANCE
    renewed_to = instant(change.new_renew_time)
    claimed = change.now if renewed_to is None else min(change.now, renewed_to)
    return seen >= max(at - BOUND, whole_seconds(claimed) - MAX_TOLERANCE)


def _renewal(change: LeaseChange, mine: Sequence[Entry]) -> str | None:
    """Return what the write does to the stamp of the last renewal that neither a renewal nor a clock does."""
    if change.new_spec.renew_time is None:
        return None
    after, before = date_last_renewal(change.new_entries), date_last_renewal(change.old_entries)
    if change.renews and after is None:
        return "renews the lease and leaves no stamp of it"
    if before is None or after == before:
        return None
    if after is None:
        return f"removes {last_renewal(change.old_entries)}"
    if after in [entry.stamp for entry in mine if entry.owns_renew_time and not entry.is_fold]:
        return None
    if after < before:
        # A writer that calls itself ancient-changes is dated by the entries that are folded into its own.
        if change.renews and after >= whole_seconds(change.now) - MAX_TOLERANCE:
            return None
        return f"moves {last_renewal(change.old_entries)} back to {_clock(after)}"
    if change.renews:
        return None
    known = any(entry.stamp == after for entry in change.old_entries)
    if after > date_write(mine, change.now) + (AHEAD if known else MAX_TOLERANCE):
        return f"moves {last_renewal(change.old_entries)} ahead to {_clock(after)}"
    return None


def _describe_entry(entry: Entry) -> str:
    stamp = entry.stamp
    return f"of {_manager(entry)} at {canonical_seconds(stamp) if stamp is not None else 'no time'}"


def _manager(entry: Entry) -> str:
    return f"manager {quote(truncate(entry.manager or '', 40))}"


def _clock(stamp: int) -> str:
    return canonical_seconds(stamp)[11:]
