"""Whole inputs, observed."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from webhook.history.follow import Follower
from webhook.history.merge import Merged
from webhook.inputs.items import Fenced, Item, LogEnd, Observation
from webhook.timeline.lanes import TimelineBuilder

LATEST = 2**62


class Items(Struct):
    """Items as an input, which can be read again and again."""

    items: list[Item]
    path: str = "in"

    def read(self) -> Iterator[Item]:
        yield from self.items


def merged(*inputs: Iterable[Item], latest: int = LATEST) -> Iterator[Item]:
    """Give the items of several inputs as one history."""
    return iter(Merged([Items(list(items), f"in-{number}") for number, items in enumerate(inputs)], latest))


def observe_all(target: Follower | TimelineBuilder, *inputs: Iterable[Item]) -> None:
    """Have every item observed; none of them may be anything else than an observation."""
    for item in merged(*inputs):
        assert isinstance(item, Observation | LogEnd | Fenced)
        (target.feed if isinstance(target, Follower) else target.observe)(item)
