"""The axis of a picture: where an instant is drawn, and where the axis has labels."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from webhook.api.micro_time import canonical_seconds
from webhook.rules.times import DAY, HOUR, MINUTE, SECOND

WIDTH: Final = 960
"""Pixels."""
_MOST_LABELS: Final = 9
_STEPS: Final = (
    *(SECOND * step for step in (1, 2, 5, 10, 15, 30)),
    *(MINUTE * step for step in (1, 2, 5, 10, 15, 30)),
    *(HOUR * step for step in (1, 2, 3, 6, 12)),
    *(DAY * step for step in (1, 2, 7, 30, 90, 365, 3650)),
)


class Axis(Struct, frozen=True):
    """From `begins` to `ends` in microseconds since 1970, with margins of `left` pixels on both sides."""

    begins: int
    ends: int
    left: int

    @classmethod
    def of(cls, begins: int, ends: int, left: int) -> "Axis":
        """An axis of at least one second."""
        return cls(begins, max(ends, begins + SECOND), left)

    def x(self, at: int) -> float:
        """Where an instant is drawn; one outside the axis is drawn at its edge."""
        share = (min(max(at, self.begins), self.ends) - self.begins) / (self.ends - self.begins)
        return self.left + share * (WIDTH - 2 * self.left)

    def between(self, begins: int, ends: int | None) -> tuple[float, float]:
        """The left edge and the width of a stretch of time; without an end, up to the end of the axis."""
        x = self.x(begins)
        return x, self.x(self.ends if ends is None else ends) - x

    def labels(self) -> Iterator[tuple[int, str]]:
        """Instants that are round, and their texts: the time of day, or the date."""
        length = self.ends - self.begins
        step = next((step for step in _STEPS if length // step <= _MOST_LABELS), length)
        at = -(-self.begins // step) * step
        while at <= self.ends:
            text = canonical_seconds(at)
            yield at, text[:10] if step >= DAY else text[11:16] if step >= MINUTE else text[11:19]
            at += step
