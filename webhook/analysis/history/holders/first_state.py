"""The state with which an input begins: since when its holder has the lease, and when it renewed it last.

In: the state, and what dates its write. Out: a frozen value.
"""

from collections.abc import Sequence

from msgspec import Struct

from webhook.admission.rules.expiry import MAX_TOLERANCE
from webhook.admission.rules.stamps import is_constant
from webhook.analysis.history.status import (
    date_holding,
    date_renewal,
    is_acquired_by_holder,
    is_renewal_dated,
    is_renewal_logged,
    is_renewed_by_holder,
)
from webhook.analysis.history.write import Write
from webhook.analysis.inputs.items import InputKind
from webhook.kubernetes.managed_fields import HOLDER, Entry
from webhook.kubernetes.objects import Lease
from webhook.kubernetes.times import parse_stamp


class FirstState(Struct, frozen=True):
    """Instants are microseconds since 1970.

    `is_unseen`: the state does not show when the holder renewed it last. `is_since_own`: the holder wrote `since`.
    `is_as_chosen`: it is as an API server writes it that chooses a holder, which has not renewed it by then.
    """

    since: int
    last_renewal: int | None
    is_unseen: bool
    is_since_own: bool
    is_as_chosen: bool


def read_first_state(
    lease: Lease, entries: Sequence[Entry], write: Write, moment: int | None, kind: InputKind
) -> FirstState:
    """Read a state with a holder, that was written at `moment`, None if nothing dates it."""
    spec = lease.spec
    renewed = date_renewal(spec, entries)
    since = next((at for at in (date_holding(spec, entries), renewed, moment) if at is not None), 0)
    is_stamped = bool(entries) and not is_constant(entries) and kind is not InputKind.DUMP
    is_written_in = is_stamped and not is_renewed_by_holder(entries)
    is_logged = is_renewal_logged(spec, entries, write)
    is_dated = is_logged or (is_renewal_dated(spec, entries) and not is_written_in)
    is_unseen = not is_dated and (write.is_logged or is_stamped)
    if is_unseen and (write.is_logged or is_written_in):
        # Who renewed it last, and when, is not known; only that it was written then.
        renewed = moment
    if renewed is not None and write.is_logged and write.latest is not None:
        renewed = min(renewed, write.latest)  # its holder's clock, which says the fraction, may be ahead
    is_since_own = is_acquired_by_holder(spec, entries) and not spec.strategy
    created = parse_stamp(lease.metadata.creation_timestamp)
    if created is not None and since + MAX_TOLERANCE < created <= (renewed or created):
        # It was put back, from a copy of an earlier one: no one can have held it before it was there.
        since, is_since_own = created, False
    return FirstState(
        since=since,
        last_renewal=renewed,
        is_unseen=is_unseen,
        is_since_own=is_since_own,
        is_as_chosen=bool(spec.strategy) and any(HOLDER in one.owned.spec and one.owns_renew_time for one in entries),
    )
