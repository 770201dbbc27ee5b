"""The arithmetic of a fence's clock, with the lag of a watch and the clocks of API servers as parameters. No I/O.

Times are milliseconds since the lease was taken. Stamps have whole seconds, each by the clock of its API server.
"""

from collections.abc import Iterator

from msgspec import Struct

SECOND = 1000


class Case(Struct, frozen=True):
    """A write at `at` by an API server that is `lag` behind and whose clock is `ahead` of the one that saw renewals.

    The holder renews each `interval` until `last`, and not afterwards.
    """

    duration: int
    interval: int
    lag: int
    ahead: int
    at: int
    last: int

    @property
    def known(self) -> int:
        """The last renewal that the API server of the write knows."""
        return min(self.last, max(0, self.at - self.lag)) // self.interval * self.interval

    @property
    def age(self) -> int:
        """Milliseconds since the last renewal, in truth."""
        return self.at - min(self.last, self.at) // self.interval * self.interval

    @property
    def is_refused(self) -> bool:
        """True if `webhook/api_server/fence/token.yaml` refuses the write."""
        now, renewed = (self.at + self.ahead) // SECOND, self.known // SECOND
        return now > renewed and 5 * (now - renewed) > 5 * self.duration + min(10, self.duration)


def cases(duration: int, interval: int, lag: int, ahead: int, last: int) -> Iterator[Case]:
    """Writes at every quarter of a second until long after the lease has expired, off the whole seconds."""
    end = last + 3 * duration * SECOND
    yield from (Case(duration, interval, lag, ahead, at, last) for at in range(130, end, 250))
