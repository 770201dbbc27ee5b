"""Writes of several processes in one second, of a log at level Metadata: stamps do not say which made which state."""

import json
from collections.abc import Callable

import pytest

from tests.factories import Document
from tests.history.fake_server import FakeServer
from tests.history.merge.logs import shift
from tests.history.observing import observe_all
from tests.inputs.reading import read
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.lease import LeaseHistory

Change = Callable[[list[Document]], None]


def hand_over() -> FakeServer:
    """A server whose lease one process releases, and another one takes in the same second, by patches."""
    server = FakeServer()
    first, second = (server.elector(f"uuid-{number}", "shop/db", pod=f"db-{number}") for number in range(2))
    first.lead(20)
    server.wait(0.2)
    first.release()
    server.wait(0.5)
    second.take()
    second.lead(10)
    for event in server.log:
        event["verb"] = "patch" if event["verb"] == "update" else event["verb"]
        event["objectRef"].pop("resourceVersion", None)
    return server


def follow(server: FakeServer, change: Change | None = None, *, logs: int = 1) -> LeaseHistory:
    log = [json.loads(line) for line in server.audit_log(metadata_only=True).splitlines()]
    if change is not None:
        change(log)
    parts = [b"".join(json.dumps(one).encode() + b"\n" for one in log[number::logs]) for number in range(logs)]
    histories = ClusterHistory()
    inputs = [read(f"log-{number}", [part]) for number, part in enumerate(parts)]
    observe_all(histories, read("watch", [server.watch()]), *inputs)
    return histories.leases["shop", "db"]


def is_joined(history: LeaseHistory) -> bool:
    """Return whether a log shows who released the lease, and who took it."""
    first, second = history.tenures
    pods = [
        first.removal.writer and first.removal.writer.pod,
        second.beginning.write.writer and second.beginning.write.writer.pod,
    ]
    assert pods in ([None, None], ["db-0", "db-1"])
    return pods == ["db-0", "db-1"]


def test_as_many_writes_as_states_are_joined_in_the_order_of_one_log() -> None:
    history = follow(hand_over())
    assert is_joined(history)
    assert history.unlogged is None
    assert history.tenures[0].removal.is_own is True


def lose(log: list[Document]) -> None:
    """Lack the request by which the lease was taken."""
    log.remove(next(one for one in log if one["user"]["extra"]["authentication.kubernetes.io/pod-name"] == ["db-1"]))


def patch_without_a_change(log: list[Document]) -> None:
    """Have another patch, which may have changed nothing, between both."""
    number = next(
        number
        for number, one in enumerate(log)
        if one["user"]["extra"]["authentication.kubernetes.io/pod-name"] == ["db-1"]
    )
    log.insert(number, shift(log[number], -0.25))


def overlap(log: list[Document]) -> None:
    """Have the later one of both be received before the earlier one was answered."""
    number = next(
        number
        for number, one in enumerate(log)
        if one["user"]["extra"]["authentication.kubernetes.io/pod-name"] == ["db-1"]
    )
    log[number]["requestReceivedTimestamp"] = log[number - 1]["requestReceivedTimestamp"]


@pytest.mark.parametrize(
    "change",
    [lose, patch_without_a_change, overlap],
    ids=["one of which is lacking", "beside another one", "that overlap"],
)
def test_writes_are_not_joined_if_it_is_not_sure_which_made_which_state(change: Change) -> None:
    assert not is_joined(follow(hand_over(), change))


def test_clocks_of_two_logs_do_not_order_writes_of_one_second() -> None:
    assert not is_joined(follow(hand_over(), logs=2))


def test_states_at_the_end_of_a_watch_are_joined_with_the_last_requests() -> None:
    server = hand_over()
    server.log, server.events = server.log[:13], server.events[:13]
    assert is_joined(follow(server))


def test_what_the_stamps_exclude_is_not_joined() -> None:
    server = hand_over()
    for _, _, document in server.events[12:13]:
        for entry in document["metadata"]["managedFields"]:
            entry["time"] = "2026-11-18T11:07:07Z"
    history = follow(server)
    assert history.tenures[1].beginning.write.writer is None
