"""Whole inputs, observed."""

from collections.abc import Iterable, Iterator

from webhook.analysis.claims.account import Account
from webhook.analysis.history.follow import Follower
from webhook.analysis.history.merge import Merged
from webhook.analysis.inputs.items import ElectionEvent, Fenced, Input, Item, LogEnd, Observation
from webhook.analysis.timeline.lanes import TimelineBuilder

LATEST = 2**62


def input_of(items: Iterable[Item], path: str = "in") -> Input:
    """Items as an input, which can be read again and again."""
    kept = list(items)
    return Input(path, lambda: iter(kept))


def merged(*inputs: Iterable[Item], latest: int = LATEST) -> Iterator[Item]:
    """Give the items of several inputs as one history."""
    return iter(Merged([input_of(items, f"in-{number}") for number, items in enumerate(inputs)], latest))


def observe_all(target: Follower | TimelineBuilder, *inputs: Iterable[Item]) -> None:
    """Have every item observed; none of them may be anything else than an observation."""
    for item in merged(*inputs):
        assert isinstance(item, Observation | LogEnd | Fenced | ElectionEvent)
        (target.feed if isinstance(target, Follower) else target.observe)(item)


def advised(account: Account) -> str:
    """What a person on call is told to do, and to run."""
    return f"{account.advice.sentence} {account.advice.command}".rstrip()
