"""Patches of annotations in a log at level Request: they renew nothing, hold nothing, and take nothing."""

import pytest

from tests.claims.accounts import account, text
from tests.factories import Document
from tests.history.fake_server import Elector, FakeServer, hide_responses
from tests.history.observing import LEASE, follow_log
from webhook.analysis.claims.findings.headline import make_headline

EXPORTER = "system:serviceaccount:reports:exporter"
ANNOTATION: Document = {"metadata": {"annotations": {"seq": "1"}}}
OWNED: Document = {"metadata": {"ownerReferences": [{"kind": "ReplicaSet", "name": "db-7f9c", "uid": "1"}]}}
MUTATED = {"mutation.webhook.admission.k8s.io/round_0_index_0": '{"configuration":"a","webhook":"b","mutated":true}'}


def patch(server: FakeServer, times: int, body: Document = ANNOTATION) -> None:
    """Patch the lease 20 times a second; the log has the patch, and not what was stored."""
    for _ in range(times):
        server.wait(0.05)
        server.log_request("shop/db", "patch", EXPORTER, "", {})
        server.log[-1] |= {"requestObject": body, "level": "Request"}
        del server.log[-1]["responseObject"]


def hide(server: FakeServer) -> FakeServer:
    """Leave what was stored out of the log."""
    hide_responses(FakeServer(log=[event for event in server.log if event["verb"] in {"create", "update"}]))
    return server


def in_a_storm() -> tuple[FakeServer, Elector]:
    """A log that begins in the storm; then another replica takes the lease, and renews it."""
    server = FakeServer()
    server.elector("db-0", "shop/db").take()
    server.log.clear()
    patch(server, 401)
    server.wait(1)
    db = server.elector("db-1", "shop/db")
    db.lead(30)
    return hide(server), db


def test_they_are_no_renewals() -> None:
    server, _ = in_a_storm()
    found = account(follow_log(server), server.now)
    assert found.history.interval == pytest.approx(2, abs=0.1)
    assert [one.holder for one in found.history.tenures] == ["db-1_1"]
    said = text(found)
    assert "401 writes by reports/exporter within 20 s left the holder and its renewals as they were" in said
    assert "lease-shared" not in said


def test_a_patch_of_owners_leaves_the_holder_that_created_the_lease() -> None:
    server = FakeServer()
    db = server.elector("db-0", "shop/db")
    db.take()
    patch(server, 1, OWNED)
    at = server.now
    server.wait(2)
    db.renew()
    server.leases["shop/db"]["metadata"]["ownerReferences"] = OWNED["metadata"]["ownerReferences"]
    db.lead(20)
    found = account(follow_log(hide(server)), server.now)
    assert [one.holder for one in found.history.tenures] == ["db-0_1"]
    assert [one.at for one in found.history.added_owners] == [at]
    assert "the input does not show what all writes" not in text(found)


def test_they_do_not_hide_who_holds_it() -> None:
    server = FakeServer()
    db = server.elector("db-0", "shop/db")
    db.lead(20)
    patch(server, 8)
    found = account(follow_log(hide(server)), server.now)
    assert make_headline(found).startswith("db-0_1 holds it")
    assert not found.is_partial


def test_they_do_not_begin_the_wait_of_an_elector_anew() -> None:
    server = FakeServer()
    db = server.elector("db-0", "shop/db")
    db.lead(20)
    server.elector("db-1", "shop/db").ask()
    patch(server, 8)
    assert follow_log(hide(server)).leases[LEASE].requests.waiting.asking


def test_by_the_holder_itself_they_are_told_as_those_of_no_one_else() -> None:
    server = FakeServer()
    db = server.elector("db-0", "shop/db", user=EXPORTER, pod="")
    db.lead(20)
    patch(server, 8)
    said = text(account(follow_log(hide(server)), server.now))
    assert "left the holder" not in said


def test_alone_they_show_no_holder() -> None:
    server = FakeServer()
    patch(server, 8)
    found = account(follow_log(server), server.now)
    assert make_headline(found) == "the log has no write of its spec"
    assert found.holder == ""


@pytest.mark.parametrize("is_mutated", [False, True])
def test_a_patch_that_a_webhook_changed_may_be_a_renewal(*, is_mutated: bool) -> None:
    server = FakeServer()
    patch(server, 8)
    for event in server.log:
        event["annotations"] = MUTATED if is_mutated else {}
    assert bool(account(follow_log(server), server.now).holder) is is_mutated
