"""What the API server makes of a write where the mutating policy of deploy/stamp is in force."""

from typing import Final

from msgspec.structs import replace

from tests.model.api_server import STAMP_TIME, Lease, Spec, User
from tests.model.managed_fields import ANCIENT_CHANGES, UPDATE, Entry

CONSTANT: Final = Entry(
    "lease-webhook-stamp", UPDATE, STAMP_TIME, frozenset({"f:metadata > f:annotations > f:lease-webhook/stamp"})
)
_FIELDS: Final = ("renewed", "holder", "duration", "acquired", "transitions")


def stamped(old: Lease | None, new: Lease, user: User) -> Lease:
    """The write with its stamps and one constant entry; nobody here is exempt, and every lease fits."""
    before = Lease(Spec()) if old is None else old
    if old is not None and old.spec == new.spec:
        writer, written = old.writer, old.written
    else:
        writer = user.requester
        written = _time_of_this_write(new, before.spec) or (before.written if writer == before.writer else None)
    same_holder = old is not None and (old.spec.holder or "") == (new.spec.holder or "")
    is_inherited = old is not None and (not same_holder or (old.writer not in ("", writer)))
    owners = () if is_inherited and new.owners == before.owners else new.owners
    return replace(new, writer=writer, written=written, owners=owners, entries=(CONSTANT,))


def _time_of_this_write(new: Lease, old: Spec) -> int | None:
    """The time of the one owner of the first field that this write sets."""
    changed = (name for name in _FIELDS if getattr(new.spec, name) not in (None, getattr(old, name)))
    field = next(changed, None)
    owners = [entry for entry in new.entries if field in entry.fields]
    return owners[0].time if len(owners) == 1 and owners[0].manager != ANCIENT_CHANGES else None
