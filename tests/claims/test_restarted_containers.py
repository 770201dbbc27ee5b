"""A container that restarts in the pod of a holder under another name: its answers are not those of the holder."""

import json
from typing import Any

import pytest

from tests.claims.accounts import account, shop, text
from tests.history.fake_server import Elector, FakeServer, together
from tests.history.observing import advise, follow_log
from webhook.analysis.claims.presentation.account_json import make_account_json
from webhook.cli.lease_table import make_row

RIGHTS = 'leases.coordination.k8s.io "db" is forbidden: User "x" cannot update resource "leases" in API group'
WEBHOOK = 'Internal error occurred: failed calling webhook "guard.example.com": connection refused'
RACE = "the object has been modified"
NOT_KNOWN = "Can be taken: not known: it expired at 11:07:15Z, 15 s after the last renewal, and every write since then "
UNDER_OTHER_NAME = {"db-0_1": False, "db-0_2": True, "": False}
"""Whether a write that asks for this holder is not db-0_1's own; "" stands for a release."""


def stop() -> tuple[FakeServer, Elector, list[Elector]]:
    """A holder that has not renewed its lease for 18 s, and holders of other leases."""
    server, (db, *others) = shop()
    together(20, db, *others)
    together(18, *others)
    return server, db, others


def explain(server: FakeServer) -> str:
    return text(account(follow_log(server), server.now))


def explain_cause(server: FakeServer) -> str:
    return next(line for line in explain(server).splitlines() if line.startswith("Why"))


@pytest.mark.parametrize("name", UNDER_OTHER_NAME)
def test_a_write_under_another_name_is_not_the_holders(name: str) -> None:
    server, db, others = stop()
    db.fail_as(name, 500, WEBHOOK)
    together(10, *others)
    assert ("was answered with 500" in explain_cause(server)) == (not UNDER_OTHER_NAME[name])


def test_refusals_of_a_process_under_another_name_did_not_stop_the_holder() -> None:
    server, db, others = stop()
    db.fail_as("db-0_2", 403, RIGHTS)
    together(10, *others)
    assert "were refused" not in explain(server)
    assert "1 write by shop/db from pod db-0 refused with 403" in explain(server)
    assert advise(account(follow_log(server), server.now)).startswith("No other can take the lease while its writes")


def test_a_holder_that_a_webhook_names_otherwise_asks_for_its_own_name() -> None:
    server, (db, *others) = shop()
    together(20, db, *others)
    asked = server.leases["shop/db"]["spec"] | {"holderIdentity": "db-0_asked"}
    for event in server.log:
        if event["objectRef"]["name"] == "db" and event["verb"] == "update":
            event["requestObject"] = event["responseObject"] | {"spec": event["responseObject"]["spec"] | asked}
            event["requestObject"]["spec"]["renewTime"] = event["responseObject"]["spec"]["renewTime"]
    together(2, *others)
    db.fail_as("db-0_asked", 403, RIGHTS)
    together(16, *others)
    assert "Its writes were refused: 1 write answered with 403" in explain(server)


@pytest.mark.parametrize(("has_body", "whose"), [(True, "a write by the holder"), (False, "a write from its pod")])
def test_whose_last_answer_it_was_is_said(has_body: bool, whose: str) -> None:
    server, db, others = stop()
    db.fail_as(db.identity, 500, "no")
    if not has_body:
        del server.log[-1]["requestObject"]
    together(10, *others)
    assert f"; {whose} was answered with 500" in explain_cause(server)


def test_a_last_answer_to_a_read_is_none_to_a_write() -> None:
    server, db, others = stop()
    db.fail(500, "no", verb="get")
    together(10, *others)
    assert "; a read from its pod was answered with 500" in explain_cause(server)


def test_of_a_holder_before_with_that_name_another_name_is_another_process() -> None:
    server, (db, *others) = shop()
    together(20, db, *others)
    server.elector("db-1", "shop/db").lead(20)
    db.take()
    together(20, db, *others)
    together(18, *others)
    db.fail_as("db-0_2", 500, "no")
    together(10, *others)
    assert explain_cause(server).startswith(
        "Why: Its pod made at least 1 request for the lease, to hold it as db-0_2: a later process there; "
    )


def show(server: FakeServer) -> tuple[str, str, Any]:
    """Return what the text, the table and the JSON say of when a lease can be taken."""
    found = account(follow_log(server), server.now)
    line = next((one for one in text(found).splitlines() if one.startswith("Can be taken")), "")
    return line, make_row(found).cells[4].text, json.loads(json.dumps(make_account_json(found)))["takeable_at"]


@pytest.mark.parametrize(
    "answers",
    [[(500, WEBHOOK)], [(403, RIGHTS)], [(500, WEBHOOK), (403, RIGHTS)]],
    ids=["they failed", "they were refused", "both"],
)
def test_a_lease_that_no_replica_can_write_is_not_said_to_be_free(answers: list[tuple[int, str]]) -> None:
    server, _, others = stop()
    for code, message in answers:
        server.elector("db-1", "shop/db").fail(code, message)
        together(2, *others)
    line, cell, at = show(server)
    assert line.startswith(NOT_KNOWN)
    assert line.endswith(f"with {answers[-1][0]}")
    assert (cell, at) == ("-", None)


def test_a_restarted_process_that_cannot_write_is_a_replica_too() -> None:
    server, db, others = stop()
    db.fail_as("db-0_2", 500, WEBHOOK)
    together(2, *others)
    assert show(server)[0].startswith(NOT_KNOWN)


@pytest.mark.parametrize(
    ("pod", "user", "code", "verb"),
    [
        ("db-1", "system:serviceaccount:shop:db", 409, "update"),
        ("db-1", "system:serviceaccount:shop:db", 403, "get"),
        ("x", "system:serviceaccount:shop:mallory", 403, "update"),
        ("db-0", "system:serviceaccount:shop:db", 500, "update"),
    ],
    ids=["another write came first", "a read", "by a stranger", "by the holder"],
)
def test_other_answers_do_not_keep_a_lease_from_being_free(pod: str, user: str, code: int, verb: str) -> None:
    server, _, others = stop()
    server.elector("db-1", "shop/db").fail(409, RACE)
    server.elector(pod, "shop/db", user=user).fail(code, RACE, verb=verb)
    together(2, *others)
    line, cell, at = show(server)
    assert line.startswith("Can be taken: now, since 11:07:15Z")
    assert (cell, at is not None) == ("now", True)
