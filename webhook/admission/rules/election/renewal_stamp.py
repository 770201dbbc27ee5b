"""Writes that remove or forge the API server's stamps, the first step of a two-step steal, and the size of a lease.

Where etcd refuses an update as too large, the API server removes managedFields and tries once more (isTooLargeError in
`pkg/endpoints/handlers` of apiserver). It is the API server's own way out, and a denial would close it to an honest
holder and to its successor permanently: it is a warning in a write that renews. `lease-too-large` keeps leases from
getting there.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from webhook.admission.rules.change import LeaseChange, SetFields, find_set_fields
from webhook.admission.rules.expiry import BOUND
from webhook.admission.rules.finding import NO_FINDINGS, Finding, Statement, escape_braces
from webhook.admission.rules.in_cel import RuleInCel
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.occasions import ALL_EVENTS, LEASES, WRITES
from webhook.admission.rules.rule import Rule
from webhook.admission.rules.tampering import (
    find_tampering_in_create,
    find_tampering_in_update,
    has_usual_entries,
    is_stamped,
)
from webhook.admission.rules.texts import DeniedRenewal, Texts
from webhook.kubernetes.field import forbidden
from webhook.kubernetes.managed_fields import (
    APPLY,
    Key,
    OwnedFields,
    is_nested_too_deeply,
)
from webhook.kubernetes.objects import NO_METADATA, LeaseSpec, ObjectMeta
from webhook.kubernetes.times import parse_stamp
from webhook.text.quoting import quote, truncate

_FIELD: Final = "metadata.managedFields"
MAX_VERSION_DIGITS: Final = 19
"""Digits of a resourceVersion, which is a revision of etcd: a positive signed number of 64 bits."""
_REMOVE: Final = "remove metadata.managedFields from the file or patch and send it again"
_RESTORE: Final = "`kubectl apply --server-side` of apiVersion, kind, name and namespace only brings a stamp back"


def renewal_stamp_tampered(change: LeaseChange) -> Iterable[Finding]:
    """A write may not bring managedFields that no API server would make of it.

    They hold the time of the last renewal, which a write may neither remove nor move. What an earlier write stored is
    never held against a later one. Renaming and merging entries is allowed. `kubectl` moving a manifest with renewTime
    from client-side to server-side apply is refused as well, and kubectl itself calls that refusal non-fatal. Where the
    API server stamps writers, its one entry is accepted if the write sets something. So is the
    entry of a write of which the API server dropped `strategy` and `preferredHolder`, as it does while the feature gate
    CoordinatedLeaderElection is off.
    """
    if has_usual_entries(change) or is_stamped(change):
        return NO_FINDINGS
    problem = _check_create(change) if change.is_create else _check_update(change)
    if problem is None:
        return NO_FINDINGS
    happened = Statement(f"this write {escape_braces(problem)}")
    if _may_lose_entries(change):
        detail = f"this write {problem}, as the API server does if etcd refuses the object as too large; {_RESTORE}"
        return (Finding(forbidden(_FIELD, detail), tier=Mode.WARN, happened=happened),)
    return (Finding(forbidden(_FIELD, f"this write {problem}; {_REMOVE}"), happened=happened),)


RENEWAL_STAMP_TAMPERED: Final = Rule(
    check=renewal_stamp_tampered,
    resources=LEASES,
    operations=WRITES,
    events=ALL_EVENTS,
    standard=Mode.DENY,
    strict=Mode.DENY,
    texts=Texts(
        source="ours: a client may send any managedFields, and apimachinery's field manager keeps invented entries",
        why="The stamps in managedFields are the only evidence of when a lease was renewed. Without them a live lease "
        "looks expired, or an expired one live.",
        who="Clients that send back an object whose `metadata.managedFields` was edited or comes from an older copy: "
        "Velero restoring over an existing Lease, `kubectl replace` of a saved file, kubectl's migration of a manifest "
        "with `renewTime` to server-side apply.",
        fix="Delete `metadata.managedFields` from the file or the request; the API server then keeps its own.",
        attack="forged the record of the last renewal",
    ),
    denied_renewal=DeniedRenewal(
        reason="removed or forged stamps (of a lease of 1 MiB or more, removed ones are a warning: the API server "
        "removes them itself from what is too large for etcd)"
    ),
    reads=("metadata.managedFields",),
    in_cel=RuleInCel(
        lacks="""
        It compares the entries of two lists, and dates entries without a stamp by a clock; an expression has no clock.
        With [stamps](stamp.md), managedFields are not used as evidence.
        """,
    ),
)


def _check_update(change: LeaseChange) -> str | None:
    if not change.renews and change.new_metadata.managed_fields == change.old_metadata.managed_fields:
        return None
    return find_tampering_in_update(change) or _owns_what_is_not_there(change)


def _check_create(change: LeaseChange) -> str | None:
    if change.request.user is None and _was_stored(change.new_metadata):
        return None  # a manifest of a stored object, which is checked as if it were created
    if change.new_entries:
        return find_tampering_in_create(change) or _owns_what_is_not_there(change)
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
            there = find_set_fields(spec, change.new_metadata, NO_METADATA)
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
    created = parse_stamp(metadata.creation_timestamp)
    if not change.set_fields or not metadata.uid or created is None or abs(change.now - created) > BOUND:
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


LEASE_TOO_LARGE: Final = Rule(
    check=lease_too_large,
    resources=LEASES,
    operations=WRITES,
    events=ALL_EVENTS,
    standard=Mode.DENY,
    strict=Mode.DENY,
    texts=Texts(
        source="ours: kube-apiserver drops managedFields of what etcd refuses as too large, and with them all stamps",
        why="Where etcd refuses an object as too large, the API server removes its managedFields, and with them all "
        "that proves when the lease was renewed. Whoever may update a lease can fill it up to that limit.",
        who="Attackers. Leases of known clients have a few thousand bytes.",
        fix="Write fewer or shorter labels, owners, finalizers and entries of managedFields. A lease that is larger "
        "than 256 KiB already can be renewed, taken over and made smaller.",
        attack="filled a lease so that etcd would refuse its next write",
    ),
    denied_renewal=DeniedRenewal(reason="growth by more than 256 KiB in one write, to more than 256 KiB"),
    reads=("metadata.labels", "metadata.annotations", "metadata.finalizers", "metadata.managedFields"),
    in_cel=RuleInCel(
        lacks="""
        An expression cannot measure an object. With [stamps](stamp.md), `lease-webhook-stamp-bounds` limits what a
        write adds.
        """,
    ),
)


def _may_lose_entries(change: LeaseChange) -> bool:
    """True if the API server itself may have removed managedFields from this write, which renews the lease.

    Only a write that moves renewTime: it leaves a holder's own time, by which the next one is still warned of, and an
    identity binding covers it. Any other can be repeated after the next renewal, or can remove the large entry alone.
    The size of a list that nests too deeply is not known.
    """
    if not change.renews or change.new_entries:
        return False
    is_deep = is_nested_too_deeply(change.old_entries)
    return is_deep or change.request.sizes[1] >= _MIN_BYTES_OF_FALLBACK
