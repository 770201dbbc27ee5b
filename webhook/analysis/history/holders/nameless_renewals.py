"""Renewals of a lease that names no holder, as by processes that do not know their own name.

An elector that releases a lease empties the holder and writes renewTime once. Whoever goes on to write renewTime then
renews the lease for an empty name: one that compares the holder with its own name, which is empty, may find itself.
"""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.history.holders.transition import NextState
from webhook.analysis.history.renewals import DEFAULT_DURATION
from webhook.analysis.history.status import is_release
from webhook.analysis.inputs.items import Act, Writer
from webhook.kubernetes.managed_fields import RENEW_TIME
from webhook.kubernetes.times import SECOND, normalize

MAX_WRITERS: Final = 10
MAX_PAST_RUNS: Final = 8
_MIN_COUNT: Final = 3
"""Fewer may be a release that was written again."""


class NamelessRenewals(Struct, frozen=True):
    """So many renewals in a row without a holder, from `since` to `last`, in microseconds since 1970.

    `writers` are the processes that made them, as a log shows them, and `managers` their field managers otherwise.
    """

    since: int
    last: int
    count: int = 0
    writers: tuple[Writer, ...] = ()
    managers: tuple[str, ...] = ()

    @property
    def is_run(self) -> bool:
        """Whether they are too many to be one release."""
        return self.count >= _MIN_COUNT

    @property
    def are_writers_cut(self) -> bool:
        """Whether there were more processes than are kept."""
        return len(self.writers) >= MAX_WRITERS

    def is_ongoing(self, now: int, duration: int | None) -> bool:
        """Return whether they go on, by the `duration` of the lease in seconds: no longer than that ago was the last.

        A clock that is ahead says nothing of that.
        """
        return self.is_run and 0 <= now - self.last < (duration or DEFAULT_DURATION) * SECOND

    def follow(self, at: int, writer: Writer | None, manager: str) -> "NamelessRenewals":
        """Return these with another one, by a process or under a field manager."""
        is_known = writer is not None and bool(writer.user)
        writers, managers = self.writers, self.managers
        if is_known and writer is not None and not any(writer.is_same(one) for one in writers):
            writers = (*writers, writer.process)[:MAX_WRITERS]
        if not is_known and manager and manager not in managers:
            managers = (*managers, manager)[:MAX_WRITERS]
        return replace(self, last=max(at, self.last), count=self.count + 1, writers=writers, managers=managers)


def follow_nameless_renewals(
    known: NamelessRenewals | None, state: NextState, tenure: Tenure | None
) -> NamelessRenewals | None:
    """Return the renewals without a holder until a state; None if it names one, or may follow one that was not seen.

    `tenure` is the latest one. What empties the holder is the first of them, unless that looks like a release.
    """
    if state.is_held or state.before is None or state.is_gap or state.act is Act.STORED:
        return None
    if not state.has_other_renew_time or normalize(state.new.renew_time) is None:
        return known
    if state.old.holder_identity:
        removed = tenure.removal if tenure is not None else None
        is_own = removed is None or (removed.is_own is True and removed.writer is not None)
        if is_own or is_release(state.new):
            return None
    begun = known or NamelessRenewals(state.at, state.at)
    return begun.follow(state.at, state.writer, state.find_manager_of({RENEW_TIME}))
