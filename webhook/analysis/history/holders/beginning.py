"""How a tenure began: the write that put the holder there, and what an input leaves open about it."""

from typing import Final

from msgspec import Struct

from webhook.analysis.history.audit_log.waiting import MAX_TIMES
from webhook.analysis.history.write import Write
from webhook.kubernetes.objects import LeaseSpec
from webhook.kubernetes.times import SECOND, get_readable_instant, normalize

_MUCH_EARLIER: Final = 5 * SECOND
"""Longer than from one attempt of an elector to the next one."""


class Beginning(Struct, frozen=True):
    """What is known of how a tenure began; each doubt is none unless something in the input raises it."""

    write: Write = Write()
    """The write that put the holder there, or first showed it."""
    manager: str = ""
    """The field manager of that write: a hint."""
    asked_manager: str = ""
    """The field manager for which the request asked that created the lease with it, as a log shows: a hint."""
    is_dated: bool = True
    """False if the input does not say when it began: then it began at `since` of its tenure or later."""
    is_since_own: bool = False
    """Its holder wrote `since` itself, as field managers show, though the lease was held when the input begins."""
    renew_time: int | None = None
    """renewTime of the state that first showed it, in microseconds since 1970: a later write under the same field
    manager moves the stamp."""
    written_renew_time: int | None = None
    """renewTime that was written with the holder, in microseconds since 1970; None if there was none."""
    free_since: int | None = None
    """Since when the lease had been as it was then, without a holder, by a stamp of an API server; None if not known.

    Of a lease that was free when the input begins."""
    claimed_silence: int | None = None
    """By how much its first renewTime is later than the last one of the holder before, which it replaced."""
    claimed_since: int | None = None
    """Its acquireTime, if that is long before its first renewTime, and after the last one of the holder before: by its
    own clock it had taken the lease before anything of that was stored."""
    created: int | None = None
    """When the lease was created with it as the holder, by an API server's clock in whole seconds; None if it was not,
    or the input does not show that."""
    is_renaming: bool = False
    """The write renewed the lease, and left acquireTime and leaseTransitions, as no elector does."""
    may_have_been_expired: bool = False
    """The lease may have expired by then: by clocks that may differ, or as the write before may have failed."""
    is_over_unshown: bool = False
    """The lease was live then by the requests of a log, which does not show what was stored."""
    is_after_turns: bool = False
    """It had written the lease in turn with the one before: a log without objects does not show who held it then."""
    is_written_between: bool = False
    """A log without objects shows a write by another process of its account after the previous holder's last one."""
    is_unseen: bool = False
    """The input has a gap between this tenure and the one before: when and how this one began is unknown."""
    is_after_restore: bool = False
    """The store had been put back to an earlier state just before: no write of then put the holder there."""
    may_go_on: bool = False
    """After what was not seen, nothing shows that another one had the lease since the tenure before, of its name."""


class RequestsBefore(Struct, frozen=True):
    """The requests of a process for a lease before it took it, as far as an audit log shows them."""

    times: tuple[int, ...] = ()
    """From the previous write up to and including the one that took it; microseconds since 1970."""
    since: int | None = None
    """When the previous write was made: who asked before is not known. None if no request of the process was heard."""
    has_asked_earlier: bool = False
    """The process was heard before the previous write, too."""

    @property
    def is_cut(self) -> bool:
        """Whether there may have been more, and earlier ones: the latest are kept."""
        return len(self.times) >= MAX_TIMES

    def list_after(self, since: int) -> list[int]:
        """Return when it asked after an instant, in order, without the last request: by that it took the lease."""
        return [one for one in sorted(self.times)[:-1] if one > since]


def find_claimed_times(old: LeaseSpec, new: LeaseSpec) -> tuple[int | None, int | None]:
    """Return `claimed_silence` and `claimed_since` of who replaced another holder.

    An elector that takes a lease writes acquireTime and renewTime at once, and then leaves acquireTime.
    """
    before, renewed, acquired = (
        get_readable_instant(normalize(one)) for one in (old.renew_time, new.renew_time, new.acquire_time)
    )
    if before is None or renewed is None:
        return None, None
    is_earlier = acquired is not None and before < acquired <= renewed - _MUCH_EARLIER
    return renewed - before, acquired if is_earlier else None


def is_renaming(old: LeaseSpec, new: LeaseSpec) -> bool:
    """Return whether a renewal that changed the holder left the other fields that an elector writes then."""
    is_same = (old.acquire_time, old.lease_transitions) == (new.acquire_time, new.lease_transitions)
    return is_same and new.acquire_time is not None
