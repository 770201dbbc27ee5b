"""The evidence for a suggestion: how many requests from when to when, and what the input cannot show."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct, field

from webhook.api.micro_time import canonical_seconds
from webhook.observations.observation import Item, LogEnd, Observation, Origin, Unreadable
from webhook.rules.times import DAY, span

LONG: Final = 7 * DAY
"""Microseconds; less may not contain an upgrade, a failover and a repair."""

_IN: Final = {
    Origin.DUMP: "a list of objects",
    Origin.WATCH: "a watch",
    Origin.AUDIT_LOG: "an audit log",
    Origin.REVIEW: "reviews",
}
_BLIND_SPOTS: Final = {
    Origin.DUMP: "anything but the present, in a list of objects",
    Origin.WATCH: "who wrote, in a watch: it names field managers only",
    Origin.REVIEW: "reads, and most renewals, in reviews: the API server sends neither to the webhook",
}


class Evidence(Struct):
    """Some of the observations; `first` and `last` in microseconds since 1970, None if the input has no times."""

    count: int = 0
    first: int | None = None
    last: int | None = None
    origins: set[Origin] = field(default_factory=set)

    def add(self, seen: Observation) -> None:
        """Count one more."""
        self.count += 1
        self.origins.add(seen.origin)
        self.reach(seen.at)

    def include(self, other: "Evidence") -> None:
        """Count those of another one, too."""
        self.count += other.count
        self.origins |= other.origins
        self.reach(other.first)
        self.reach(other.last)

    def reach(self, at: int | None) -> None:
        """Extend the period to a moment."""
        if at is not None:
            self.first = at if self.first is None else min(self.first, at)
            self.last = at if self.last is None else max(self.last, at)

    @property
    def length(self) -> int:
        """Microseconds from the first to the last."""
        return 0 if self.first is None or self.last is None else self.last - self.first

    def text(self, noun: str) -> str:
        """`3 writes from 2026-01-31T12:00:00Z to 2026-01-31T12:01:00Z (1 min 0 s), in an audit log`."""
        number = f"{self.count} {noun}{'' if self.count == 1 else 's'}"
        where = f", in {' and '.join(_IN[one] for one in Origin if one in self.origins)}" if self.origins else ""
        if self.first is None or self.last is None:
            return f"{number}{where}"
        first, last = canonical_seconds(self.first), canonical_seconds(self.last)
        period = f"at {first}" if first == last else f"from {first} to {last} ({span(self.length)})"
        return f"{number} {period}{where}"


class Extent(Struct):
    """The period that the whole input covers."""

    all: Evidence = field(default_factory=Evidence)
    unreadable: int = 0

    def observe(self, item: Item) -> None:
        """Take in one item of the input."""
        if isinstance(item, Observation):
            self.all.add(item)
        elif isinstance(item, LogEnd):
            self.all.reach(item.at)
        elif isinstance(item, Unreadable):
            self.unreadable += 1

    def blind_spots(self) -> Iterator[str]:
        """What such an input cannot show, or this one does not."""
        for origin, text in _BLIND_SPOTS.items():
            if origin in self.all.origins:
                yield text
        if self.all.first is None or self.all.last is None:
            yield "when it happened: the input has no times"
        elif self.all.length < LONG:
            first, last = canonical_seconds(self.all.first), canonical_seconds(self.all.last)
            period = f"at {first}" if first == last else f"in {span(self.all.length)}, from {first} to {last}"
            yield f"anything but what happened {period}: upgrades, failovers and repairs may need more"
        if self.unreadable:
            yield f"{self.unreadable} {'part' if self.unreadable == 1 else 'parts'} of the input that could not be read"
