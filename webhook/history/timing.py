"""What an elector survives, from how long its lease lasts and how often it is renewed.

The arithmetic is OpenShift's, the only published one. Source: openshift/library-go
`pkg/config/leaderelection/leaderelection.go`, whose 137/107/26 s it gives for an outage of 78 s. How long a client
tries to renew before it gives up (its deadline) cannot be seen from outside; that of client-go's defaults is assumed:
it begins with the first try after the last renewal, one retry period later (client-go `tools/leaderelection`, `renew`).
"""

from typing import Final

from msgspec import Struct

from webhook.api.times import SECOND

DEFAULT_RETRY: Final = 2.0
"""client-go's retry period in seconds, if no renewals were seen."""
DEFAULT_DURATION: Final = 15
_KNOWN_DEADLINES: Final = {15: 10.0, 60: 40.0, 137: 107.0, 270: 240.0}
"""By duration: client-go and controller-runtime; cert-manager; OpenShift, and OpenShift on a single node."""
_SKEW: Final = 30
"""Seconds of skew that OpenShift allows for."""
_SLACK: Final = 3


class Timing(Struct, frozen=True):
    """Seconds throughout. `retry` was seen, or is client-go's default if `is_seen` is false; `deadline` is assumed."""

    duration: float
    retry: float
    deadline: float
    is_seen: bool

    @property
    def survives(self) -> float:
        """How long an API server may be away without costing the leader its lease.

        The last try before the deadline must succeed, and the outage may begin just after a renewal.
        """
        last_try = self.deadline // self.retry * self.retry
        return max(0.0, last_try - self.retry)

    @property
    def skew(self) -> float:
        """How far clocks may drift apart within one duration."""
        return max(0.0, self.duration - self.deadline)

    @property
    def longest_without_leader(self) -> float:
        """How long no one leads after a crash, at worst."""
        return self.duration + self.retry

    @property
    def writes_per_hour(self) -> float:
        """What the lease costs the API server."""
        return 3600 / self.retry

    @property
    def missed_renewals(self) -> int:
        """How many renewals in a row may fail before the lease has expired."""
        return max(0, int(self.duration / self.retry) - 1)


def timing_of(duration: int, interval: float | None) -> Timing:
    """What a lease survives.

    Args:
        duration: leaseDurationSeconds, above 0.
        interval: seconds between renewals, as seen; None if they were not seen.

    """
    retry = DEFAULT_RETRY if interval is None else _as_set(max(interval, 0.05))
    deadline = _KNOWN_DEADLINES.get(duration, duration * 2 / 3)
    return Timing(float(duration), min(retry, float(duration)), deadline, interval is not None)


def _as_set(interval: float) -> float:
    """The retry period that makes such intervals: each has the time of a request in it as well."""
    half_seconds = round(interval * 2) / 2
    return half_seconds if half_seconds >= 1 and abs(interval - half_seconds) <= 0.15 else interval


class Proposal(Struct, frozen=True):
    """Numbers for an elector, in whole seconds."""

    duration: int
    deadline: int
    retry: int

    @property
    def timing(self) -> Timing:
        """What they survive."""
        return Timing(float(self.duration), float(self.retry), float(self.deadline), is_seen=True)


def proposal_for(outage: int) -> Proposal:
    """Numbers that survive an outage of so many seconds, derived as OpenShift's are.

    Three retries fit into the outage, a fourth before the deadline; what is left to the duration is for skewed clocks.
    """
    retry = -(-outage // 3)
    deadline = 4 * retry + _SLACK
    return Proposal(deadline + _SKEW, deadline, retry)


def deadline_of(duration: int | None) -> int:
    """Microseconds after the last renewal before which no client stops; `duration` is that of the lease in seconds."""
    return int(timing_of(_known(duration), None).deadline * SECOND)


def goes_on_for(duration: int | None) -> int:
    """Microseconds after the last renewal for which most clients lead at most."""
    found = timing_of(_known(duration), None)
    return int((found.deadline + found.retry) * SECOND)


def least_unled(gap: int, duration: int | None) -> int:
    """Microseconds without a leader at least, in `gap` microseconds after a last renewal until another took the lease.

    A process that ended led until its last renewal only; one that was cut off went on, as most clients do.
    """
    return max(0, gap - goes_on_for(duration))


def _known(duration: int | None) -> int:
    return duration if duration and duration > 1 else DEFAULT_DURATION
