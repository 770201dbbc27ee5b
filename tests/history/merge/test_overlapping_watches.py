"""Two watches of which the second begins before the first one ends: together they show every change."""

import json

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import FakeServer
from tests.history.observing import follow_watch, observe_all
from tests.inputs.reading import read
from webhook.analysis.history.follow import ClusterHistory


def play() -> FakeServer:
    """The lease has a holder, which another one follows when the first watch has ended."""
    server = FakeServer()
    first, second = (server.elector(f"db-{number}", "shop/db") for number in range(2))
    first.lead(40)
    server.wait(20)
    second.lead(20)
    return server


def list_changes(server: FakeServer) -> list[bytes]:
    changes = ((kind, shown) for _, kind, shown in server.events)
    return [json.dumps({"type": kind, "object": shown}).encode() + b"\n" for kind, shown in changes]


def follow(server: FakeServer, *, last: int, begin: int, is_second_first: bool = False) -> ClusterHistory:
    """The history that two watches show: of the first changes, and of those from a number on."""
    lines = list_changes(server)
    state = lines[begin].replace(b"MODIFIED", b"ADDED")
    parts = [("one", lines[: last + 1]), ("two", [state, *lines[begin + 1 :]])]
    histories = ClusterHistory()
    ordered = reversed(parts) if is_second_first else parts
    observe_all(histories, *(read(name, [b"".join(part)]) for name, part in ordered))
    return histories


@pytest.mark.parametrize("is_second_first", [False, True], ids=["in order", "the second one first"])
@pytest.mark.parametrize("begin", [10, 20], ids=["an overlap", "the last state alone"])
def test_watches_that_overlap_are_read_as_a_single_one(begin: int, *, is_second_first: bool) -> None:
    server = play()
    histories = follow(server, last=20, begin=begin, is_second_first=is_second_first)
    assert text(account(histories, server.now)) == text(account(follow_watch(server), server.now))


def test_between_watches_that_do_not_overlap_something_may_have_been_written() -> None:
    server = play()
    assert "it was not recorded when" in text(account(follow(server, last=19, begin=21), server.now))


def test_a_log_beside_watches_that_overlap_leaves_no_gap() -> None:
    server = play()
    lines = list_changes(server)
    state = lines[10].replace(b"MODIFIED", b"ADDED")
    histories = ClusterHistory()
    early = b"".join(server.audit_log().splitlines(keepends=True)[:18])
    parts = [("one", b"".join(lines[:21])), ("two", b"".join([state, *lines[11:]])), ("log", early)]
    observe_all(histories, *(read(name, [part]) for name, part in parts))
    assert histories.leases["shop", "db"].is_partial is False
