"""The longest pause in the writes of a lease, from a log without objects.

Such a log does not show the duration of the lease, and so not whether it expired.
"""

from typing import Final

from msgspec import Struct

from webhook.analysis.claims.evidence.writers.failed_writes import may_have_stored
from webhook.analysis.claims.words import format_clock, format_leases
from webhook.analysis.history.audit_log.refusal import Refusal
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.renewals import Silence
from webhook.kubernetes.times import SECOND, format_length

_SHORTEST: Final = 30 * SECOND
_TIMES: Final = 3
"""A pause is at least this many usual intervals: one or two missing writes do not count."""


class WritePause(Struct, frozen=True):
    """A time without an accepted write, by the same writer before and after it; `others` are leases that paused too.

    Another API server, whose log is not in the input, may have accepted some.
    """

    start: int
    end: int
    others: str = ""

    def describe(self, now: int) -> str:
        """`the log has no accepted write of it for 40 s, from 12:00:02Z until 12:00:42Z`, and who was late too."""
        length = format_length(self.end - self.start)
        when = f"from {format_clock(self.start, now)} until {format_clock(self.end, now)}"
        others = f"; late at the same time: {self.others}" if self.others else ""
        return f"the log has no accepted write of it for {length}, {when}{others}"


def find_write_pause(histories: ClusterHistory, history: LeaseHistory) -> WritePause | None:
    """Return the longest pause; None if there was none, if the log shows the lease itself, or if it has a hole then.

    A write that failed in it may have been stored: then there may have been no pause.
    """
    usual, tenure = history.renewals.usual, history.current_tenure
    if history.lease is not None or tenure is None or not tenure.is_stand_in or usual is None:
        return None
    pause = max(history.renewals.silences, key=lambda one: one.length, default=None)
    if pause is None or pause.length < max(_SHORTEST, _TIMES * usual):
        return None
    if pause.start < tenure.since or histories.bounds.has_hole(pause.start, pause.end):
        return None
    if history.requests.has_forgotten_since(pause.start) or may_have_stored(_list_failed(history, pause)):
        return None
    compared = histories.index.compare_with_others(history, pause.start, pause.end)
    return WritePause(pause.start, pause.end, format_leases(compared.named_late, compared.late))


def _list_failed(history: LeaseHistory, pause: Silence) -> list[Refusal]:
    """Return the requests that were refused or failed meanwhile."""
    return [one for one in history.requests.refusals if pause.start <= one.at and one.received <= pause.end]
