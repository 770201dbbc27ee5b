"""Claims about several processes of one name, user or pod, and about renewals in the place of a holder."""

from typing import Any

import pytest

from tests.claims.accounts import account, shop, text
from tests.history.fake_server import Elector, FakeServer, together
from tests.history.observing import follow_log, follow_watch
from tests.history.test_refusal import RIGHTS
from webhook.analysis.claims.claim import Claim
from webhook.analysis.claims.facts import find_claims
from webhook.analysis.claims.presentation.account_json import make_account_json
from webhook.analysis.claims.presentation.happened import list_latest
from webhook.analysis.history.visibility.bounds import MAX_LISTED
from webhook.kubernetes.times import format_time


def claim(server: FakeServer, kind: str, follow: Any = follow_log) -> dict[str, Any]:
    claims = [one for one in make_account_json(account(follow(server), server.now))["claims"] if one["claim"] == kind]
    assert claims, kind
    return dict(claims[-1])


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
    words = "a process that begins under another name waits until the lease of its old one expires, as does another"
    assert (words in lost) == (not is_refused)


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
    assert ("could not store the writes of db-0_1" in lost) == is_own


def test_a_lease_that_another_process_kept_did_not_expire_earlier() -> None:
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
    output = text(account(follow_log(server), server.now))
    assert "after db-0_1 let it expire; db-0_1 itself had not renewed it for up to 36 s" in output
    assert "(shop/toolbox from pod toolbox went on in the name of db-0_1 until 11:07:20Z)" in output
    assert "from 11:07:02Z to 11:07:20Z shop/toolbox from pod toolbox renewed it as db-0_1" in output


def act_as(server: FakeServer) -> None:
    """Have alice make the latest request, who acted as the one that made it."""
    event = server.log[-1]
    event["user"], event["impersonatedUser"] = {"username": "alice"}, event["user"]


def renew_as_db(server: FakeServer, times: int, *, pod: str, is_impersonated: bool = True) -> None:
    """Renew as db-0_1 with the account of db-0, and maybe its pod, again and again."""
    stranger = server.elector("db-0", "shop/db", pod=pod)
    for _ in range(times):
        server.wait(2)
        stranger.renew()
        if is_impersonated:
            act_as(server)


def find_shared_identity(server: FakeServer) -> Claim:
    (claim,) = (one for one in find_claims(account(follow_log(server), server.now)) if one.check == "identity-shared")
    return claim


def test_who_acts_as_an_account_is_no_replica_of_it() -> None:
    server, (db, *others) = shop()
    together(30, db, *others)
    renew_as_db(server, 10, pod="db-0")
    claim = find_shared_identity(server)
    assert claim.advice.startswith("Find out why shop/db (impersonated by alice) renewed it as db-0_1.")
    assert claim.fix == "kubectl auth can-i impersonate serviceaccounts/db -n shop --as=alice"


def test_who_acted_as_a_pod_when_the_log_begins_is_not_seen_since() -> None:
    server, (db, *others) = shop()
    together(20, db, *others)
    server.log.clear()
    renew_as_db(server, 4, pod="db-0")
    together(20, db, *others)
    claim = find_shared_identity(server)
    assert claim.message.startswith("until 11:07:08Z shop/db (impersonated by alice) from pod db-0 renewed it as")
    assert format_time(claim.over_since or 0) == "2026-11-18T11:07:08Z"


@pytest.mark.parametrize(("seconds", "end"), [(6, "11:07:22Z"), (60, "11:07:14Z")], ids=["both stop", "one goes on"])
def test_an_identity_is_shared_until_one_process_has_it_alone(seconds: float, end: str) -> None:
    server, (db, *others) = shop()
    together(20, db, *others)
    for _ in range(4):
        renew_as_db(server, 1, pod="db-0")
        together(2, db, *others)
    together(seconds, db, *others)
    together(20, *others)
    claim = find_shared_identity(server)
    assert "by several processes that renewed in turn" in claim.message
    assert format_time(claim.over_since or 0) == f"2026-11-18T{end}"


def test_who_acts_as_an_account_in_a_text_without_a_pod_is_named_and_not_the_account() -> None:
    server, (db, *others) = shop()
    db.identity = "leader"
    server.write("shop/db", {"holderIdentity": "leader", "leaseDurationSeconds": 15}, "x", db.user, "")
    act_as(server)
    stranger = server.elector("db-0", "shop/db", pod="")
    stranger.identity = "leader"
    server.leases["shop/db"]["spec"] |= {"acquireTime": None, "leaseTransitions": 0}
    for _ in range(4):
        server.wait(2)
        stranger.renew()
        act_as(server)
    together(20, db, *others)
    output = text(account(follow_log(server), server.now))
    assert "ADVICE Find out why shop/db (impersonated by alice) renewed it as leader." in output


def test_a_pod_that_its_text_names_displaces_who_acts_as_its_account() -> None:
    server, (db, *others) = shop()
    db.take()
    act_as(server)
    renew_as_db(server, 4, pod="db-0")
    together(20, db, *others)
    output = text(account(follow_log(server), server.now))
    assert "db-0_1 holds it since 11:06:40Z, renewed 0 s ago" in output
    assert "shop/db (impersonated by alice) from pod db-0 renewed it as db-0_1, 4 times" in output
    assert "ADVICE Find out why shop/db (impersonated by alice)" in output


@pytest.mark.parametrize("is_impersonated", [True, False], ids=["acts as its account", "a token without a pod"])
def test_a_holder_renewed_last_when_its_own_pod_did(is_impersonated: bool) -> None:
    server, (db, *others) = shop()
    together(20, db, *others)
    renew_as_db(server, 1, pod="", is_impersonated=is_impersonated)
    together(20, *others)
    follower = server.elector("db-1", "shop/db")
    follower.take()
    together(4, follower, *others)
    lost = claim(server, "leader-lost")
    assert "db-0_1 last renewed at 11:07:00Z, 22 s before " in lost["text"]
    assert "went on in the name of db-0_1 until 11:07:02Z)" in lost["text"]
    assert lost["from"].startswith("2026-11-18T11:07:00")


@pytest.mark.parametrize("follow", [follow_log, follow_watch], ids=["audit log", "watch"])
def test_who_was_written_in_and_never_renewed_did_not_let_it_expire(follow: Any) -> None:
    server, (db, *others) = shop()
    together(20, db, *others)
    server.write("shop/db", {**server.leases["shop/db"]["spec"], "holderIdentity": "ghost"}, "x", "alice", "")
    together(20, *others)
    follower = server.elector("db-1", "shop/db")
    follower.take()
    together(4, follower, *others)
    output = text(account(follow(server), server.now))
    assert "ghost let it expire" not in output
    assert "once it had expired with ghost in it, which did not renew it for " in output


def test_conflicts_of_a_process_that_does_not_hold_it_are_shown() -> None:
    server, (db, *others) = shop()
    second = server.elector("db-1", "shop/db")
    for _ in range(6):
        together(2, db, *others)
        second.fail(409)
    answer = account(follow_log(server), server.now)
    lines = [line.text for line in list_latest(answer)]
    assert lines == [
        "6 updates by shop/db from pod db-1 conflicted (409) until 11:06:52Z; the lease had the holder db-0_1 then"
    ]
    db.fail(409)
    assert [line.text for line in list_latest(account(follow_log(server), server.now))] == lines


def test_deletions_that_name_another_state_are_no_updates() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    alice = server.elector("alice", "shop/db", user="alice", pod="")
    for _ in db.ticks(12):
        db.renew()
        alice.fail(409, verb="delete")
    output = text(account(follow_log(server), server.now))
    assert "6 deletions by alice conflicted (409) until 11:07:12Z; the lease had the holder db-0_1 then" in output


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
    answer = account(follow_log(server), server.now)
    assert [line.text for line in list_latest(answer)][-1].startswith("at least 108 updates by shop/db from pod db-1")
    assert any(refusal.code == 403 for refusal in answer.history.requests.refusals)
    assert answer.history.requests.has_forgotten_since(0)


def test_a_lease_with_finalizers_was_deleted_by_who_asked_for_that() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.delete_with_finalizer("shop/db")
    server.wait(2)
    db.lead(10)
    output = text(account(follow_log(server), server.now))
    assert "the lease, which admin had asked to delete before, was gone with its last finalizer while db-0_1" in output
    assert "the lease was gone with its last finalizer" in text(account(follow_watch(server), server.now))


@pytest.mark.parametrize(
    ("is_edited", "is_shared"),
    [(False, False), (True, False), (False, True)],
    ids=["alone", "beside another writer", "beside another pod of its name"],
)
def test_a_holder_that_conflicts_with_itself_may_run_several_electors(*, is_edited: bool, is_shared: bool) -> None:
    server, (db, mail, cart) = shop()
    other = server.elector("db-1", "shop/db")
    other.identity = db.identity
    together(20, db, mail, cart)
    for number in range(8):
        together(2, db, mail, cart)
        server.wait(0.2)
        db.fail(409)
        if is_edited and number == 4:
            server.write("shop/db", server.leases["shop/db"]["spec"], "kubectl-annotate", "nina", "")
        if is_shared:
            server.wait(0.2)
            other.renew()
    output = text(account(follow_log(server), server.now))
    words = (
        "all are from its holder's own pod, and the log shows no other writer, as with lost answers or several "
        "electors in it"
    )
    assert (words in output) is not (is_edited or is_shared)


def fail_with_conflicts(pause: float, *, pod: str = "db-0", number: int = 6) -> FakeServer:
    """A holder of which each so many seconds an update conflicts, and the next one is stored."""
    server = FakeServer()
    db = server.elector("db-0", "shop/db", pod=pod)
    db.lead(30)
    for _ in range(number):
        server.wait(1)
        db.fail(409)
        server.wait(0.02)
        db.renew()
        db.lead(pause - 1)
    return server


@pytest.mark.parametrize(("pause", "is_shown"), [(3, True), (14, True), (17, False), (900, False)])
def test_answers_that_are_lost_now_and_then_are_no_second_elector(pause: float, is_shown: bool) -> None:
    server = fail_with_conflicts(pause)
    output = text(account(follow_log(server), server.now))
    assert ("as with lost answers or several electors in it" in output) is is_shown
    assert ("6 updates by shop/db from pod db-0 conflicted (409) until" in output) is is_shown


def test_conflicts_of_a_holder_without_a_pod_are_of_its_user() -> None:
    server = fail_with_conflicts(3, pod="")
    assert "all are from its holder's own user" in text(account(follow_log(server), server.now))


@pytest.mark.parametrize("is_edited", [True, False], ids=["someone whose writes the log lacks", "no one"])
def test_a_log_that_lacks_writes_does_not_say_that_no_one_else_wrote(is_edited: bool) -> None:
    server, (db, *_) = shop()
    db.lead(30)
    for _ in range(6):
        if is_edited:
            server.wait(0.5)
            server.write("shop/db", server.leases["shop/db"]["spec"], "kubectl-edit", "nina", "")
            del server.log[-1]
        server.wait(0.5)
        db.fail(409)
        server.wait(0.02)
        db.lead(4)
    output = text(account(follow_log(server), server.now))
    assert "6 updates by shop/db from pod db-0 conflicted (409) until 11:07:" in output
    assert ("and the log may lack the writes of others" in output) is is_edited
    assert ("and the log shows no other writer" in output) is not is_edited


def test_of_many_conflicts_the_first_ones_are_remembered() -> None:
    server = fail_with_conflicts(2, number=150)
    (line,) = (each for each in text(account(follow_log(server), server.now)).splitlines() if "conflicted" in each)
    assert "at least 108 updates by shop/db from pod db-0 conflicted (409) until" in line


@pytest.mark.parametrize(("crowd", "is_cut"), [(0, False), (MAX_LISTED, True)])
def test_refusals_of_which_the_first_are_forgotten_began_then_or_earlier(crowd: int, *, is_cut: bool) -> None:
    server, (db, *_) = shop()
    db.lead(30)
    for number in range(crowd):
        server.elector(f"db-{number + 2}", "shop/db").fail(403, "no", verb="get")
    for _ in range(150):
        server.elector("db-1", "shop/db").fail(403, "no")
        db.lead(2)
    (line,) = (each for each in text(account(follow_log(server), server.now)).splitlines() if "were refused" in each)
    assert line.endswith(", then or earlier") is is_cut


def share_a_name() -> tuple[FakeServer, Elector, Elector, list[Elector]]:
    """Two pods that renewed a lease in turn under one name, and electors of other leases."""
    server, (db, *others) = shop()
    second = server.elector("db-1", "shop/db")
    second.identity = db.identity = "settlement"
    together(20, db, *others)
    for _ in range(8):
        together(2, db, *others)
        server.wait(0.1)
        second.renew()
    return server, db, second, others


@pytest.mark.parametrize("seconds", [10, 30], ids=["within the duration", "longer than the duration"])
def test_one_that_shared_a_name_is_gone_once_it_did_not_renew_for_the_duration(seconds: int) -> None:
    server, db, second, others = share_a_name()
    db.release()
    second.take()
    together(seconds, second, *others)
    shared = claim(server, "identity-shared")
    assert ("since 11:07:16Z only shop/db from pod db-1" in shared["text"]) is (seconds > 15)
    assert shared.get("ongoing") is (False if seconds > 15 else None)


@pytest.mark.parametrize("is_back", [False, True], ids=["one goes on", "both go on"])
def test_who_goes_on_alone_after_two_shared_a_name_is_named(is_back: bool) -> None:
    """The first run of a job releases the lease under a name that the second run has as well, and that takes it."""
    server, db, second, others = share_a_name()
    db.release()
    server.wait(0.5)
    second.take()
    for _ in range(15):
        together(2, second, *others)
        if is_back:
            server.wait(0.1)
            db.renew()
    shared = claim(server, "identity-shared")
    alone = "since 11:07:17Z only shop/db from pod db-1 has renewed it as that"
    assert (alone in shared["text"]) is not is_back
    assert ("was used until 11:07:16Z by several processes" in shared["text"]) is not is_back
    output = text(account(follow_log(server), server.now))
    assert "settlement released it, or was removed (shop/db from pod db-0 wrote that)" in output
