"""Claims about several processes of one name, user or pod, and about renewals in the place of a holder."""

from typing import Any

import pytest

from tests.claims.accounts import account, shop, text
from tests.history.fake_server import FakeServer, together
from tests.history.observing import follow_log, follow_watch
from tests.history.test_refusal import RIGHTS
from webhook.analysis.claims.account import as_json
from webhook.analysis.claims.happened import list_latest


def claim(server: FakeServer, kind: str, follow: Any = follow_log) -> dict[str, Any]:
    found = [one for one in as_json(account(follow(server), server.now))["claims"] if one["claim"] == kind]
    assert found, kind
    return dict(found[-1])


@pytest.mark.parametrize("is_refused", [False, True], ids=["silent before", "refused before"])
def test_a_pod_that_takes_a_lease_under_another_name_waited_for_itself(is_refused: bool) -> None:
    server, (db, *others) = shop()
    server.uids["db-0"] = "u0"
    together(20, db, *others)
    for _ in range(8):
        together(2, *others)
        if is_refused:
            db.fail(403, RIGHTS)
    renamed = server.elector("db-0", "shop/db")
    renamed.identity = "db-renamed"
    renamed.take()
    together(4, renamed, *others)
    lost = claim(server, "leader-lost")["text"]
    shown = "both names were written from pod db-0: a process that begins under another name waits" in lost
    assert shown == (not is_refused)


def test_answers_to_another_process_of_a_name_are_possible_causes() -> None:
    server, (db, *others) = shop()
    second = server.elector("db-1", "shop/db")
    second.identity = db.identity
    together(20, db, *others)
    server.wait(0.5)
    second.renew()
    server.wait(0.5)
    db.renew()
    for _ in range(8):
        together(2, *others)
        db.fail(403, 'leases is forbidden: User "x" cannot update')
    follower = server.elector("db-2", "shop/db")
    follower.take()
    together(4, follower, *others)
    lost = claim(server, "leader-lost")
    assert "from pod db-0, which may be the holder or another process, was answered with 403 meanwhile" in lost["text"]
    assert "refused-rights" in lost["causes"]


@pytest.mark.parametrize(("verb", "after", "is_own"), [("update", 2, True), ("update", 18, False), ("get", 2, False)])
def test_of_a_user_of_several_replicas_only_the_holder_writes_before_the_expiry(
    verb: str, after: int, is_own: bool
) -> None:
    server, (db, *others) = shop()
    follower = server.elector("db-1", "shop/db")
    db.pod = follower.pod = ""
    together(20, db, *others)
    together(after, *others)
    for _ in range(4):
        together(2, *others)
        db.fail(500, "etcdserver: request timed out", verb=verb)
    together(24 - after, *others)
    follower.take()
    together(4, follower, *others)
    lost = claim(server, "leader-lost")["text"]
    assert ("which may be the holder or another process, was answered with 500" in lost) == (not is_own)
    assert ("could not store its writes" in lost) == is_own


def test_a_lease_that_another_one_held_on_is_not_said_to_have_expired_earlier() -> None:
    server, (db, *others) = shop()
    together(20, db, *others)
    other = server.elector("toolbox", "shop/db", user="system:serviceaccount:shop:toolbox")
    other.identity = db.identity
    for _ in range(10):
        together(2, *others)
        other.renew()
    together(16, *others)
    follower = server.elector("db-1", "shop/db")
    follower.take()
    together(4, follower, *others)
    said = text(account(follow_log(server), server.now))
    assert "after db-0_1 let it expire; db-0_1 itself had not renewed it for up to 36 s" in said
    assert "(shop/toolbox from pod toolbox went on in its name until 11:07:20Z); db-1_1 took the expired lease" in said
    assert "from 11:07:02Z to 11:07:20Z shop/toolbox from pod toolbox renewed it as db-0_1" in said


@pytest.mark.parametrize("follow", [follow_log, follow_watch], ids=["audit log", "watch"])
def test_who_was_written_in_and_never_renewed_did_not_let_it_expire(follow: Any) -> None:
    server, (db, *others) = shop()
    together(20, db, *others)
    server.write("shop/db", {**server.leases["shop/db"]["spec"], "holderIdentity": "ghost"}, "x", "alice", "")
    together(20, *others)
    follower = server.elector("db-1", "shop/db")
    follower.take()
    together(4, follower, *others)
    said = text(account(follow(server), server.now))
    assert "ghost let it expire" not in said
    assert "once it had expired with ghost in it, which did not renew it" in said


def test_conflicts_of_a_process_that_does_not_hold_it_are_shown() -> None:
    server, (db, *others) = shop()
    second = server.elector("db-1", "shop/db")
    for _ in range(6):
        together(2, db, *others)
        second.fail(409)
    one = account(follow_log(server), server.now)
    shown = [line.text for line in list_latest(one)]
    assert shown == [
        "6 updates by shop/db from pod db-1 conflicted (409) until 11:06:52Z; the lease had the holder db-0_1 then"
    ]
    db.fail(409)
    assert [line.text for line in list_latest(account(follow_log(server), server.now))] == shown


def test_of_many_conflicts_the_latest_are_counted_and_what_was_refused_is_kept() -> None:
    server, (db, *others) = shop()
    second = server.elector("db-1", "shop/db")
    db.fail(403, "no", verb="update")
    together(2, db, *others)
    second.fail(403, "no")
    for _ in range(120):
        second.fail(409)
        server.wait(0.1)
        db.renew()
    one = account(follow_log(server), server.now)
    assert [line.text for line in list_latest(one)][-1].startswith("at least 100 updates by shop/db from pod db-1")
    assert any(refusal.code == 403 for refusal in one.history.requests.refusals)
    assert one.history.requests.has_forgotten_since(0)


def test_a_lease_with_finalizers_was_deleted_by_who_asked_for_that() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.delete_with_finalizer("shop/db")
    server.wait(2)
    db.lead(10)
    said = text(account(follow_log(server), server.now))
    assert "the lease, which admin had asked to delete before, was gone with its last finalizer while db-0_1" in said
    assert "the lease was gone with its last finalizer" in text(account(follow_watch(server), server.now))
