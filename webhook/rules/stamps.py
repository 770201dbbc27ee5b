"""Writes that remove or forge the API server's stamps, the first step of a two-step steal."""

from collections.abc import Iterable
from typing import Final

from msgspec import Raw
from msgspec.structs import asdict

from webhook.api import micro_time
from webhook.api.field import forbidden
from webhook.api.objects import NO_ENTRIES
from webhook.api.text import cut, quote
from webhook.rules.change import LeaseChange
from webhook.rules.events import Event
from webhook.rules.evidence import LARGEST_TOLERANCE, latest_renewal, latest_stamp
from webhook.rules.instants import HOUR
from webhook.rules.rule import LEASES, NOTHING, UPDATE, Finding, Rule

_FIELD: Final = "metadata.managedFields"
_EMPTY: Final = frozenset({b"null", b"[]"})
CURE: Final = (
    "`kubectl apply --server-side` of apiVersion, kind, name and namespace only brings one back "
    "(it stamps now, so a takeover waits one duration)"
)


def renewal_stamp_is_kept(change: LeaseChange) -> Iterable[Finding]:
    """An update may not empty metadata.managedFields, nor change or remove the time of the last renewal.

    Stamps are compared, not entries: renaming and merging entries is honest. A stamp may fall where an API server's
    clock stepped back, which shows by this write's own stamp. `kubectl` moving a manifest with renewTime from
    client-side to server-side apply is refused as well, and kubectl itself calls that refusal non-fatal.
    """
    if change.new_metadata.managed_fields == change.old_metadata.managed_fields:
        return NOTHING
    if _has_entries(change.old_metadata.managed_fields) and not _has_entries(change.new_metadata.managed_fields):
        return (
            Finding(
                forbidden(_FIELD, f"this write empties managedFields and with it {_last_renewal(change)}; {_LEAVE}")
            ),
        )
    if change.new_renew_time is None or change.new_renew_time != change.old_renew_time:
        return NOTHING
    before = latest_renewal(change.old_entries)
    if before is None:
        return NOTHING
    after = latest_renewal(change.new_entries)
    if after is not None and not _moved(change, before, after):
        return NOTHING
    return (Finding(forbidden(_FIELD, f"this write removes or changes {_last_renewal(change)}; {_LEAVE}")),)


_LEAVE: Final = "leave managedFields out of the request"


def _has_entries(managed_fields: Raw) -> bool:
    return managed_fields is not NO_ENTRIES and bytes(managed_fields).strip() not in _EMPTY


def _moved(change: LeaseChange, before: int, after: int) -> bool:
    if after > before:
        return after > change.now + HOUR
    # The clocks of API servers differ as much for a short lease, such as a released one, which lasts a second.
    if after >= before - LARGEST_TOLERANCE:
        return False
    latest = latest_stamp(change.new_entries)
    stamped_by_this_write = latest is not None and after + LARGEST_TOLERANCE >= latest
    return not (stamped_by_this_write and _sets_something(change))


def _sets_something(change: LeaseChange) -> bool:
    """Whether the write sets a value, and so bears a stamp of its own.

    The API server does not stamp an update that only removes: a removed label could carry forged times for every entry.
    """
    old, new = change.old_metadata, change.new_metadata
    return (
        any(value is not None and value != getattr(change.old, name) for name, value in asdict(change.new).items())
        or bool((new.labels or {}).items() - (old.labels or {}).items())
        or bool((new.annotations or {}).items() - (old.annotations or {}).items())
        or bool(set(new.owner_references or ()) - set(old.owner_references or ()))
        or bool(set(new.finalizers or ()) - set(old.finalizers or ()))
    )


def _last_renewal(change: LeaseChange) -> str:
    owners = [(entry.stamp, entry.manager or "") for entry in change.old_entries if entry.owns_renew_time]
    stamp, manager = max(((at, who) for at, who in owners if at is not None), default=(None, ""))
    if stamp is None:
        return "what the API server saw of the lease"
    clock = micro_time.canonical_seconds(stamp)[11:]
    return f"the time of the last renewal ({clock} by manager {quote(cut(manager, 40))})"


def takeover_rests_on_stamps(change: LeaseChange) -> Iterable[Finding]:
    """A lease that changes hands must carry the API server's stamp of its last renewal."""
    if change.event not in (Event.TAKEOVER, Event.STEAL) or change.expiry.from_stamps:
        return NOTHING
    return (Finding(forbidden(_FIELD, f"the lease has no usable API server stamp of its last renewal; {CURE}")),)


RULES = (
    Rule(
        id="renewal-stamp-tampered",
        check=renewal_stamp_is_kept,
        resources=LEASES,
        operations=UPDATE,
        source="ours: forged entry times are stored together with any other change, measured on kube-apiserver 1.36.3",
    ),
    Rule(
        id="lease-without-stamps",
        check=takeover_rests_on_stamps,
        resources=LEASES,
        operations=UPDATE,
        events=frozenset({Event.TAKEOVER, Event.STEAL}),
        source="ours: without stamps only the holder's own clock tells of expiry, and a denial weakens to a warning",
    ),
)
