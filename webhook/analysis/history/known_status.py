"""The status of a lease by its history: a state alone says less, and whoever may write it can make it say more.

In: the latest state, and the tenures. Out: a status.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from webhook.admission.rules.stamps import is_constant
from webhook.analysis.heartbeats import is_nameless_heartbeat
from webhook.analysis.history.holders.nameless_renewals import NamelessRenewals
from webhook.analysis.history.holders.succession import Succession
from webhook.analysis.history.holders.tenure import Handover, Tenure
from webhook.analysis.history.status import LeaseState, LeaseStatus, find_state_of_lease, has_expired
from webhook.kubernetes.managed_fields import Entry
from webhook.kubernetes.objects import Lease
from webhook.kubernetes.times import SECOND, normalize


def find_status(
    lease: Lease,
    entries: Sequence[Entry],
    succession: Succession,
    now: int,
    *,
    logged: int | None,
    is_seen_created: bool,
    is_list_only: bool,
) -> LeaseStatus:
    """Return the status at `now` of a lease whose latest state is known.

    `logged` is a renewal after that, which a log shows. `is_seen_created`: the input shows how the lease was created.
    `is_list_only`: it shows one moment only.
    """
    holder = succession.holder
    of_state = find_state_of_lease(lease, entries, now, logged)
    heartbeat = _find_state_of_heartbeat(lease, succession, is_seen_created=is_seen_created)
    if heartbeat is not None:
        return replace(of_state, state=heartbeat, takeable_at=of_state.last_renewal)
    known = date_known_renewal(holder, is_list_only=is_list_only)
    status = _correct_renewal(of_state, lease, entries, holder, now, known)
    status = replace(status, state=_correct_state(status, lease, entries, succession, is_seen_created=is_seen_created))
    return status if is_list_only else replace(status, ahead=_find_clock(status, holder))


def _find_state_of_heartbeat(lease: Lease, succession: Succession, *, is_seen_created: bool) -> LeaseState | None:
    """Return the state of a lease that has no holder as a heartbeat has none, but is of an election; else None."""
    if not is_nameless_heartbeat(lease.spec):
        return None
    if succession.has_named_holder:
        return LeaseState.RELEASED
    holder = succession.holder
    # A client that creates a lease for an election may write all but the holder.
    return LeaseState.NEVER_HELD if is_seen_created and not (holder and holder.processes.renewals) else None


def _correct_renewal(
    status: LeaseStatus, lease: Lease, entries: Sequence[Entry], holder: Tenure | None, now: int, known: int | None
) -> LeaseStatus:
    """Return the status by the last renewal that an API server dates, if one is known."""
    if known is None:
        return status
    if abs((status.last_renewal or known) - known) <= SECOND:
        if status.state is LeaseState.EXPIRED and not has_expired(known, status.duration, now):
            # The fraction of a stamp is that of the holder's clock, and a log has that of the API server.
            status = find_state_of_lease(lease, entries, now, known, is_last=True)
        return replace(status, is_disputed=False)
    # Whoever may write it can date it back, or ahead; and an API server that asks a holder to step down stamps it.
    status = find_state_of_lease(lease, entries, now, known, is_last=True)
    if holder and status.state is LeaseState.EXPIRED and not has_expired(known, holder.duration, now):
        return replace(status, state=LeaseState.UNKNOWN)  # its holder does not know a shorter duration
    return status


def _correct_state(
    status: LeaseStatus, lease: Lease, entries: Sequence[Entry], succession: Succession, *, is_seen_created: bool
) -> LeaseState:
    """Return the state by what is known of the holders before."""
    if status.state is LeaseState.EXPIRED and is_constant(entries) and not status.from_stamps:
        return LeaseState.UNKNOWN  # its holder's clock alone does not say that
    if status.state is LeaseState.NEVER_HELD and succession.tenures:
        return LeaseState.RELEASED  # someone removed all that its holders wrote
    is_blank = normalize(lease.spec.acquire_time) is None and not lease.spec.lease_transitions
    if status.state is LeaseState.RELEASED and is_seen_created and not succession.tenures and is_blank:
        # A client that creates a lease for a coordinated election writes renewTime, and no holder.
        return LeaseState.NEVER_HELD
    return status.state


def _find_clock(status: LeaseStatus, holder: Tenure | None) -> int | None:
    """Return by how much the holder's clock is ahead; None if it is not known."""
    # Several processes that take turns to renew have a clock each.
    ahead = holder.clock.ahead if holder and not holder.processes.has_several_writers else None
    is_over = status.ahead == 0  # by the present state; what renewals before a gap showed need not last
    return 0 if ahead and is_over else ahead


def doubt_expiry(status: LeaseStatus, now: int, skew: int) -> LeaseStatus:
    """Return the status at `now`, by clocks that differ by `skew` microseconds: by one of them it may be live."""
    if skew and status.state is LeaseState.EXPIRED and now - skew < (status.takeable_at or 0):
        return replace(status, state=LeaseState.UNKNOWN, is_within_skew=True)
    return status


def doubt_release(status: LeaseStatus, nameless: NamelessRenewals | None, now: int) -> LeaseStatus:
    """Return the status at `now` of a lease that is renewed without a holder: whether anyone leads is not known."""
    if status.state not in {LeaseState.RELEASED, LeaseState.NEVER_HELD} or nameless is None:
        return status
    is_ongoing = nameless.is_ongoing(now, status.duration)
    return replace(status, state=LeaseState.UNKNOWN, takeable_at=None) if is_ongoing else status


def date_known_renewal(holder: Tenure | None, *, is_list_only: bool) -> int | None:
    """Return the last renewal under the present holder that an API server dates; None if there is none.

    Who was seen to take the lease renewed it with that, unless another one's renewal was left as it was. So did who
    held it when the input begins, if the first state dates its renewal; what a list shows of one moment does not.
    """
    if holder is None or holder.is_last_unseen:
        return None
    is_shown = not (is_list_only if holder.began is Handover.SEEN else holder.beginning.is_unseen)
    renewal = holder.last_extension if holder.last_renewal_write is None and is_shown else holder.last_renewal_write
    return holder.kept_until if renewal is not None and renewal.is_dated_by_a_server else None
