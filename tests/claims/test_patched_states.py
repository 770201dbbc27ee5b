"""Patches in a log at level Request: with the state before, what each of them set is the next state."""

import json
from typing import Any

import pytest

from tests.claims.accounts import account, text
from tests.factories import Document
from tests.history.fake_server import SECOND, Elector, FakeServer
from tests.history.observing import follow_log, observe_all
from tests.inputs.reading import read
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Handover
from webhook.analysis.history.lease import LeaseHistory
from webhook.kubernetes.times import format_micro_time

SET = ("holderIdentity", "renewTime")
LATE = 0.1


def make_patch(event: Document, body: Any) -> None:
    """Make a write of a log a patch, of which the log does not show what was stored."""
    event["verb"], event["level"], event["requestObject"] = "patch", "Request", body
    event["objectRef"].pop("resourceVersion", None)
    event.pop("responseObject", None)


def patch_all(server: FakeServer, *, first: int = 1, fields: tuple[str, ...] = SET) -> FakeServer:
    """Have all writes but the first ones be merge patches of some fields."""
    for event in server.log[first:]:
        if event["verb"] == "update" and "spec" in event["responseObject"]:
            spec = event["responseObject"]["spec"]
            make_patch(event, {"spec": {key: spec[key] for key in fields}})
    return server


def play_in_turn() -> tuple[FakeServer, Elector, Elector]:
    """Two scripts that each write their own name every 8 s, one just after the other."""
    server = FakeServer(uids={name: f"uid-of-{name}" for name in ("db-0", "db-1")})
    first, second = server.elector("db-0", "shop/db"), server.elector("db-1", "shop/db")
    first.take()
    for _ in range(4):
        server.wait(LATE)
        second.renew()
        server.wait(8 - LATE)
        first.renew()
    return server, first, second


def history_of(server: FakeServer) -> LeaseHistory:
    return follow_log(server).leases["shop", "db"]


def test_two_that_patch_in_turn_are_said_to_hold_it_in_turn() -> None:
    server, *_ = play_in_turn()
    said = text(account(follow_log(patch_all(server)), server.now))
    assert "db-0_1 holds it" in said
    assert (
        "lease-contended: db-1_1 and db-0_1 took the lease from each other 6 times between 11:06:48Z and 11:07:12Z, "
        "each time while it was live by what the log shows of their requests: both may lead"
    ) in said
    assert "were accepted" not in said


def test_who_emptied_the_holder_is_said_to_have_released_it() -> None:
    server, first, second = play_in_turn()
    server.wait(LATE)
    first.release()
    patch_all(server)
    server.log[-1]["requestObject"] = {"spec": {"holderIdentity": ""}}
    assert account(follow_log(server), server.now).state == "released"
    server.wait(0.3)
    second.renew()
    make_patch(server.log[-1], {"spec": {"holderIdentity": second.identity, "renewTime": second._time()}})
    said = text(account(follow_log(server), server.now))
    assert "took it (shop/db from pod db-1) after db-0_1 released it; the lease was free for 0.3 s" in said


def test_a_first_patch_that_sets_all_is_a_state_of_which_the_rest_is_not_known() -> None:
    server = FakeServer()
    db = server.elector("db-0", "shop/db")
    db.take()
    server.wait(2)
    db.renew()
    server.wait(2)
    db.renew()
    del server.log[0]
    patch_all(server, first=0, fields=("holderIdentity", "renewTime", "leaseDurationSeconds"))
    assert account(follow_log(server), server.now).state == "live"
    server.wait(2)
    db.renew()
    server.wait(2)
    db.renew(leaseTransitions=3)
    history = history_of(server)
    # That the first whole state has transitions and an acquireTime is no edit; that the next one has others, is.
    assert [one.text for one in history.edits] == ["leaseTransitions 0 -> 3"]


def test_a_first_patch_that_leaves_the_duration_shows_no_state() -> None:
    server, *_ = play_in_turn()
    del server.log[0]
    assert history_of(patch_all(server, first=0)).lease is None


def test_a_patch_that_may_have_been_stored_before_another_one_hides_the_holder() -> None:
    server, *_ = play_in_turn()
    patch_all(server)
    server.log[-2]["requestReceivedTimestamp"] = format_micro_time(server.now - 9 * SECOND)
    server.log[-1]["requestReceivedTimestamp"] = format_micro_time(server.now - 8 * SECOND)
    assert account(follow_log(server), server.now).state == "unknown"
    # The next one, which came alone, shows it again, and for how long it holds.
    server.wait(2)
    server.elector("db-0", "shop/db").renew()
    make_patch(server.log[-1], {"spec": {"holderIdentity": "db-0_1", "renewTime": format_micro_time(server.now)}})
    answer = account(follow_log(server), server.now)
    assert (answer.state, answer.holder, answer.history.duration) == ("live", "db-0_1", 15)


@pytest.mark.parametrize(
    ("names", "state"), [(("a", "a"), "live"), (("a", "b"), "unknown")], ids=["one log", "two logs"]
)
def test_the_clocks_of_two_api_servers_do_not_say_which_of_two_patches_came_last(
    names: tuple[str, str], state: str
) -> None:
    server = FakeServer()
    first, second = server.elector("db-0", "shop/db"), server.elector("db-1", "shop/db")
    first.lead(6)
    server.wait(LATE)
    second.renew()
    patch_all(server)
    histories = ClusterHistory()
    parts = zip(names, (server.log[:-1], server.log[-1:]), strict=True)
    observe_all(histories, *(read(f"{name}.log", [write_lines(part)]) for name, part in parts))
    assert account(histories, server.now).state == state


def write_lines(events: list[Document]) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in events)


def test_an_update_just_after_a_patch_need_not_follow_it() -> None:
    server, first, second = play_in_turn()
    server.wait(LATE)
    second.renew()
    patch_all(server)
    make_patch(server.log[-1], {"spec": {"holderIdentity": "", "renewTime": None}})
    server.wait(LATE)
    first.renew()
    assert history_of(server).tenures[-1].began is Handover.UNKNOWN


def test_a_patch_that_changes_nothing_leaves_a_state_with_stamps_as_it_was() -> None:
    server = FakeServer()
    first = server.elector("db-0", "shop/db")
    first.lead(6)
    spec = server.leases["shop/db"]["spec"]
    server.wait(1)
    server.log_request("shop/db", "patch", "alice", "", {})
    make_patch(server.log[-1], {"spec": {key: spec[key] for key in SET}})
    assert not history_of(server).edits
    assert [one.holder for one in history_of(server).tenures] == ["db-0_1"]
    assert not history_of(server).tenures[0].processes.others


def test_a_patch_after_a_write_that_may_have_failed_shows_no_duration() -> None:
    server = FakeServer()
    db = server.elector("db-0", "shop/db")
    db.lead(6)
    server.wait(2)
    db.fail(504)
    server.wait(2)
    db.renew()
    patch_all(server)
    assert account(follow_log(server), server.now).state == "unknown"


def test_reads_dry_runs_and_marks_leave_what_the_next_patch_changes() -> None:
    server = FakeServer()
    db = server.elector("db-0", "shop/db")
    db.lead(6)
    server.wait(1)
    db.ask()
    server.log_request("shop/db", "patch", "alice", "", {})
    make_patch(server.log[-1], {"metadata": {"labels": {"a": "b"}}})
    server.log_request("shop/db", "patch", "alice", "", {})
    make_patch(server.log[-1], {"spec": {"leaseDurationSeconds": 1}})
    server.log[-1]["requestURI"] += "?dryRun=All"
    server.wait(1)
    db.renew()
    patch_all(server)
    assert account(follow_log(server), server.now).state == "live"
    assert history_of(server).duration == 15


def test_a_patch_after_a_deletion_says_nothing_of_the_duration() -> None:
    server = FakeServer()
    db = server.elector("db-0", "shop/db")
    db.lead(6)
    server.delete("shop/db")
    server.wait(3)
    db.take(leaseDurationSeconds=30)
    server.wait(3)
    db.renew()
    patch_all(server)
    created = next(event for event in server.log[1:] if event["verb"] == "create")
    created["level"] = "Metadata"
    del created["responseObject"]
    assert account(follow_log(server), server.now).state == "unknown"
