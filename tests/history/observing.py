"""Whole inputs, observed."""

from collections.abc import Callable, Iterable, Iterator

from tests.history.fake_server import FakeServer
from tests.inputs.reading import read
from webhook.analysis.claims.account import Account
from webhook.analysis.history.follow import Follower
from webhook.analysis.history.merge import Merged
from webhook.analysis.inputs.items import ElectionEvent, Fenced, Input, Item, LogEnd, Observation
from webhook.analysis.timeline.lanes import TimelineBuilder

LEASE = ("shop", "db")
LATEST = 2**62
View = Callable[[FakeServer], Follower]


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


def cluster_of(data: bytes) -> Follower:
    """The history of one input."""
    cluster = Follower()
    observe_all(cluster, read("in", [data]))
    return cluster


def of_watch(server: FakeServer) -> Follower:
    """The history that a watch of a server shows."""
    return cluster_of(server.watch())


def of_log(server: FakeServer) -> Follower:
    """The history that the audit log of a server shows."""
    return cluster_of(server.audit_log())


def of_metadata(server: FakeServer) -> Follower:
    """The history that an audit log at level Metadata shows."""
    return cluster_of(server.audit_log(metadata_only=True))
