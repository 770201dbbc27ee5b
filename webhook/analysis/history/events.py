"""The events of a lease: what happened to it and to its holders, and when; the fields that an edit changed, as text.

All instants are microseconds since 1970 by the clocks of API servers, as far as the input shows those.
"""

from enum import StrEnum
from typing import Final

from msgspec import Struct

from webhook.admission.rules.change import has_only_renewal_changes, is_rest_of_spec_untouched
from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.inputs.items import Writer
from webhook.kubernetes.objects import LeaseSpec
from webhook.kubernetes.times import normalize
from webhook.text.quoting import quote, truncate

_MAX_FIELD: Final = 60
_OTHER_FIELDS: Final = ("lease_duration_seconds", "lease_transitions", "strategy", "preferred_holder")
"""Fields of a Lease other than its times and its holder."""
_IN_JSON: Final = dict(zip(LeaseSpec.__struct_fields__, LeaseSpec.__struct_encode_fields__, strict=True))
_NOTHING: Final[tuple[object, ...]] = (None, "", [])
"""An API server stores all of them as nothing."""


class EventKind(StrEnum):
    """Something that happened to a lease at one moment."""

    CREATED = "created"
    """It exists without a holder; one that is created with a holder is ACQUIRED."""
    ACQUIRED = "acquired"
    """A holder began, as its tenure says: it created the lease, took a released or expired one, or stole it."""
    RENEWED = "renewed"
    RESUMED = "resumed"
    """Its holder still has it after writes that were not seen, without a renewal since the last one that was seen."""
    MISSED = "missed"
    """Writes from then on were not seen, up to the next event."""
    EXPIRED = "expired"
    RELEASED = "released"
    DELETED = "deleted"
    EDITED = "edited"
    """Fields that no renewal writes were changed; `text` says which."""
    OWNED = "owned"
    """Owners were added: `LeaseHistory.added_owners` ends with them."""
    FORGED = "forged"
    """The write put managedFields there that no API server makes; `text` says which."""
    SHARED = "shared"
    """Several processes renew in turns under one identity."""


class LeaseEvent(Struct, frozen=True, gc=False):
    """One event; `tenure` is the holder that it is about, None if there is none.

    `silence` is how long the holder had not renewed before, in microseconds, if that was longer than usual.
    `is_dated` is false if the input does not say when it happened: then it was at `at` or later. `is_claimed`: only the
    writer's own clock says so.
    """

    kind: EventKind
    at: int
    tenure: Tenure | None = None
    writer: Writer | None = None
    text: str = ""
    silence: int | None = None
    is_dated: bool = True
    is_claimed: bool = False
    candidate: str = ""
    """The LeaseCandidate that was deleted."""
    asked: str = ""
    """What the request of `asker` asked for, in place of which something else was stored: `writer` is then None."""
    asker: Writer | None = None
    manager: str = ""
    """The field manager of an edit, if stamps alone show who made it; any client may choose it."""


def describe_changed_fields(old: LeaseSpec, new: LeaseSpec) -> str:
    """Return what was edited, as `leaseTransitions 3 -> 2147483647`; "" if nothing was, or if the holder changed.

    If the holder changed, only a change of the strategy counts: an API server that chooses a holder also writes the
    fields by which it chose.
    """
    if (old.holder_identity or "") != (new.holder_identity or ""):
        is_other = bool(old.strategy and new.strategy) and old.strategy != new.strategy
        changed = f"strategy {_format_value(old.strategy)} -> {_format_value(new.strategy)}"
        return f"{changed} together with the holder" if is_other else ""
    before, after = normalize(old.renew_time), normalize(new.renew_time)
    if before == after and is_rest_of_spec_untouched(old, new):
        return ""
    is_kept = after is not None or before is None
    if is_kept and has_only_renewal_changes(old, new) and old.lease_duration_seconds == new.lease_duration_seconds:
        if before != after:
            return ""
        if old.acquire_time != new.acquire_time:
            return "acquireTime was changed"
    pairs = ((field, getattr(old, field), getattr(new, field)) for field in _OTHER_FIELDS)
    parts = [
        f"{_IN_JSON[field]} {_format_value(before)} -> {_format_value(after)}"
        for field, before, after in pairs
        if before != after and not (before in _NOTHING and after in _NOTHING)
    ]
    return ", ".join(parts if is_kept else [*parts, "renewTime was removed"])


def list_changed_fields(old: LeaseSpec, new: LeaseSpec) -> frozenset[str]:
    """Return the fields, other than times and the holder, that an edit set, named as in managedFields."""
    changed = (one for one in _OTHER_FIELDS if getattr(old, one) != getattr(new, one) and getattr(new, one) is not None)
    return frozenset(f"f:{_IN_JSON[one]}" for one in changed)


def _format_value(value: object) -> str:
    return "absent" if value is None else truncate(quote(value), _MAX_FIELD)
