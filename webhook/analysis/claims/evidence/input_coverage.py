"""The time that an input covers, and its gaps."""

from typing import Final

from msgspec import Struct

from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.visibility.clock_steps import ClockStep
from webhook.analysis.inputs.items import RecordingGap
from webhook.kubernetes.times import SECOND


class QuietTime(Struct, frozen=True):
    """A time in which a log has no answer about any lease, in microseconds since 1970.

    `lacks_writes`: something else in the input shows writes of that time.
    """

    start: int
    end: int
    lacks_writes: bool = False


class InputCoverage(Struct, frozen=True):
    """The time for which an input shows a lease; no log and no watch by default."""

    logged_until: int = 0
    """The last moment that an audit log shows, in microseconds since 1970."""
    shown_until: int = 0
    """The last moment that the input shows by an API server's clock, 0 if that is not known."""
    ended: int = 0
    """The end of an input that nothing follows, such as a file; 0 if it goes on, or if that is not known."""
    unrecorded: tuple[RecordingGap, ...] = ()
    """The times for which `record` did not watch."""
    lacks_requests: bool = False
    """A watch shows writes to it that a log of the same time lacks."""
    quiet: tuple[QuietTime, ...] = ()
    """The latest times in which a log of several leases has no answer about any of them."""
    clock_step: ClockStep | None = None
    """When the clock of an API server was set, as several leases show."""


_MIN_QUIET: Final = 10 * SECOND
"""Leases are renewed every few seconds; an API server that starts again takes some."""
_MIN_LEASES: Final = 3
NO_INPUT_COVERAGE: Final = InputCoverage()
"""Shared by all leases of a list."""


def find_input_coverage(histories: ClusterHistory, history: LeaseHistory, now: int) -> InputCoverage:
    """Return what the input shows in time until `now`, in microseconds since 1970."""
    bounds = histories.bounds
    quiet = bounds.list_quiet_times() if len(histories.leases) >= _MIN_LEASES else ()
    found = InputCoverage(
        logged_until=bounds.logged_until,
        shown_until=bounds.until or 0,
        ended=bounds.ended or 0,
        unrecorded=tuple(bounds.unrecorded),
        lacks_requests=histories.lacks_shown_requests(history),
        quiet=tuple(
            QuietTime(start, end, histories.index.has_unlogged_write(start, end))
            for start, end in quiet
            if end - start >= _MIN_QUIET and end <= now
        ),
        clock_step=histories.index.find_server_clock_step(history, 0, now),
    )
    return found if found != NO_INPUT_COVERAGE else NO_INPUT_COVERAGE
