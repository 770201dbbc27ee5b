"""A log beside a watch: the states whose requests it has, and those whose requests it lacks."""

import json
from typing import Any

import pytest

from tests.claims.accounts import account, text
from tests.factories import Document
from tests.history.fake_server import SECOND, FakeServer
from tests.history.observing import follow_watch, observe_all
from tests.inputs.reading import read
from webhook.analysis.claims.presentation.happened import list_events
from webhook.analysis.history.follow import ClusterHistory


def follow(server: FakeServer, log: list[Document]) -> ClusterHistory:
    histories = ClusterHistory()
    lines = b"".join(json.dumps(one).encode() + b"\n" for one in log)
    observe_all(histories, read("watch", [server.watch()]), read("log", [lines]))
    return histories


def lacks_requests(server: FakeServer, log: list[Document]) -> bool:
    histories = follow(server, log)
    return histories.lacks_shown_requests(histories.leases["shop", "db"])


def patch_with(event: Document, fields: tuple[str, ...], level: str = "Request") -> None:
    spec = event.pop("responseObject")["spec"]
    event["verb"], event["level"] = "patch", level
    event["objectRef"].pop("resourceVersion", None)
    if level == "Request":
        event["requestObject"] = {"spec": {key: spec[key] for key in fields}}


def write_often(server: FakeServer) -> list[Document]:
    """Have a user patch the lease sixty times in three seconds, and return what the log has of that."""
    spec = server.leases["shop/db"]["spec"]
    for number in range(60):
        server.wait(0.05)
        server.write("shop/db", spec | {"leaseTransitions": number}, "curl", "alice", "")
        patch_with(server.log[-1], (), "Metadata")
    return server.log[-60:]


def hand_over() -> tuple[FakeServer, list[Document]]:
    """Scripts that patch: one renews the lease, empties it within the second, and the next one takes it."""
    server = FakeServer()
    first, second = (
        server.elector("db-0", "shop/db", manager="kubectl"),
        server.elector("db-1", "shop/db", manager="kubectl"),
    )
    first.lead(20)
    server.wait(0.2)
    spec: dict[str, Any] = server.leases["shop/db"]["spec"]
    server.write("shop/db", spec | {"holderIdentity": ""}, "kubectl", first.user, first.pod)
    server.wait(0.08)
    second.renew()
    for event in server.log[1:-2]:
        patch_with(event, ("holderIdentity", "renewTime"))
    patch_with(server.log[-2], ("holderIdentity",))
    patch_with(server.log[-1], ("holderIdentity", "renewTime"))
    return server, server.log


def test_a_patch_that_left_renew_time_is_known_by_what_it_set() -> None:
    server, log = hand_over()
    said = text(account(follow(server, log), server.now))
    assert "took it (shop/db from pod db-1) after db-0_1 released it; the lease was free for 0.1 s" in said
    assert not lacks_requests(server, log)


def test_a_patch_that_set_something_else_did_not_make_the_state() -> None:
    server, log = hand_over()
    log[-2]["requestObject"]["spec"]["holderIdentity"] = "db-7_1"
    assert "after db-0_1 released it;" not in text(account(follow(server, log), server.now))


@pytest.mark.parametrize(("count", "is_lacking"), [(0, False), (2, True)], ids=["all are logged", "some are missing"])
def test_of_many_writes_in_a_second_the_log_has_as_many_or_not(count: int, is_lacking: bool) -> None:
    server = FakeServer()
    db = server.elector("db-0", "shop/db")
    db.lead(20)
    write_often(server)
    server.wait(2)
    db.renew()
    assert lacks_requests(server, server.log[:40] + server.log[40 + 10 * count :]) is is_lacking


def test_a_write_after_the_end_of_the_log_is_not_lacking_in_it() -> None:
    server = FakeServer()
    db, mail = server.elector("db-0", "shop/db"), server.elector("mail-0", "shop/mail")
    db.lead(20)
    mail.take()
    server.wait(0.5)
    mail.renew()
    server.wait(0.2)
    db.renew()
    log = [one for one in server.log if one is not server.log[-1]]
    assert not lacks_requests(server, log)
    server.wait(2)
    mail.renew()
    assert lacks_requests(server, [*log, server.log[-1]])


def test_a_write_that_failed_and_was_stored_is_in_the_log() -> None:
    server = FakeServer()
    db = server.elector("db-0", "shop/db")
    db.lead(20)
    server.wait(2)
    db.renew()
    stored = server.log[-1]
    stored["requestObject"] = stored["responseObject"]
    stored["responseObject"] = {"message": "request timed out"}
    stored["responseStatus"] = {"code": 504, "message": "request timed out"}
    server.wait(2)
    server.elector("mail-0", "shop/mail").take()
    assert not lacks_requests(server, server.log)
    assert server.now % SECOND == 0


def test_who_took_it_and_was_removed_in_one_second_is_listed_in_this_order() -> None:
    server = FakeServer()
    first, second = (server.elector(f"db-{number}", "shop/db") for number in range(2))
    first.lead(20)
    server.wait(0.5)
    second.take()
    server.wait(0.01)
    spec = server.leases["shop/db"]["spec"]
    server.write("shop/db", spec | {"holderIdentity": ""}, "operator", second.user, second.pod)
    server.wait(0.2)
    first.take()
    lines = [line.text for line in list_events(account(follow_watch(server), server.now))]
    assert [one.split(" ")[0] for one in lines][-3:] == ["db-1_1", "db-1_1", "db-0_1"]
    assert ["in place of" in one for one in lines][-3:] == [True, False, False]


def test_a_write_that_a_watch_and_a_log_show_counts_once() -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(20)
    for number, patch in enumerate(write_often(server)):
        patch |= {"level": "Request", "requestObject": {"metadata": {"annotations": {"a": str(number)}}}}
    histories = follow(server, server.log)
    assert len(histories.leases["shop", "db"].idle_writes) == 60
