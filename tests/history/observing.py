"""Whole inputs, observed."""

from collections.abc import Callable, Iterable, Iterator

from tests.history.fake_server import FakeServer
from tests.inputs.reading import read
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.presentation.advise import advise as find_advice
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.merge.merged import Merged
from webhook.analysis.inputs.items import (
    ClockSkew,
    ElectionEvent,
    FenceReport,
    Input,
    Item,
    LogEnd,
    ObjectAbsence,
    Observation,
    PodActivity,
    PodDeletion,
    PodRequest,
    RelatedWrite,
)
from webhook.analysis.timeline.lanes import TimelineBuilder

LEASE = ("shop", "db")
LATEST = 2**62
View = Callable[[FakeServer], ClusterHistory]


def input_of(items: Iterable[Item], path: str = "in") -> Input:
    """Items as an input, which can be read again and again."""
    kept = list(items)
    return Input(path, lambda: iter(kept))


def merge_inputs(*inputs: Iterable[Item], latest: int = LATEST) -> Iterator[Item]:
    """Give the items of several inputs as one history."""
    return iter(Merged([input_of(items, f"in-{number}") for number, items in enumerate(inputs)], latest))


def observe_all(target: ClusterHistory | TimelineBuilder, *inputs: Iterable[Item]) -> None:
    """Have every item observed, and each lease of a list asked for at once; no item may be unreadable, or foreign."""
    for item in merge_inputs(*inputs):
        assert isinstance(
            item,
            Observation
            | LogEnd
            | FenceReport
            | ElectionEvent
            | PodDeletion
            | PodRequest
            | PodActivity
            | RelatedWrite
            | ObjectAbsence
            | ClockSkew,
        )
        if isinstance(target, ClusterHistory):
            target.add(item)
            if isinstance(item, Observation) and (item.namespace, item.name) in target.stored.numbers:
                target.find_or_begin_history((item.namespace, item.name))
        else:
            target.observe(item)


def advise(account: Account) -> str:
    """What a person on call is told to do, and to run."""
    advice = find_advice(account)
    return f"{advice.sentence} {advice.command}".rstrip()


def cluster_of(data: bytes) -> ClusterHistory:
    """The history of one input."""
    histories = ClusterHistory()
    observe_all(histories, read("in", [data]))
    return histories


def follow_watch(server: FakeServer) -> ClusterHistory:
    """The history that a watch of a server shows."""
    return cluster_of(server.watch())


def follow_log(server: FakeServer) -> ClusterHistory:
    """The history that the audit log of a server shows."""
    return cluster_of(server.audit_log())


def follow_both(server: FakeServer) -> ClusterHistory:
    """The history that a watch and the audit log of a server show together."""
    histories = ClusterHistory()
    observe_all(histories, read("watch", [server.watch()]), read("log", [server.audit_log()]))
    return histories


def follow_metadata(server: FakeServer) -> ClusterHistory:
    """The history that an audit log at level Metadata shows."""
    return cluster_of(server.audit_log(metadata_only=True))
