"""A holder that lost its lease, and whose pod was deleted later: nobody is sent to its log, which is gone with it."""

import pytest

from tests.claims.accounts import account, shop, text
from tests.claims.test_deleted_pods import Deed, by, find_loss, kubelet, play
from tests.claims.test_late_takers import bind
from tests.factories import drop, put
from tests.history.fake_server import FakeServer, together
from tests.history.observing import advise, follow_log
from webhook.analysis.claims.assemble import make_account
from webhook.analysis.claims.claim import Claim
from webhook.analysis.claims.facts import find_claims
from webhook.findings import Severity

HIDDEN = (put("level", "Metadata"), drop("responseObject"))
GONE = "its log is gone with it, unless logs are collected. See which pods run now, and their events:"
FORCE = put("requestObject", {"gracePeriodSeconds": 0})
COLLECTOR = "system:serviceaccount:kube-system:pod-garbage-collector"


def lose(*deeds: tuple[float, Deed]) -> Claim:
    return find_loss(play(*deeds)[0])


def test_who_deleted_the_pod_is_said_and_its_log_is_not_asked_for() -> None:
    loss = lose((8, by("alice", *HIDDEN)), (10, kubelet(uid="u-1")))
    assert loss.advice == f"The pod of db-0_1, which lost the lease, was deleted at 11:08:48Z by alice; {GONE}"
    assert loss.fix == "kubectl -n shop get pods,events"


def test_of_a_pod_that_took_long_to_end_it_is_said_when_it_was_gone() -> None:
    loss = lose((4, by("alice", uid="u-1", is_eviction=True)), (17, kubelet(uid="u-1")))
    assert "was evicted at 11:08:44Z by alice, and gone by 11:08:57Z; " in loss.advice


def test_a_pod_whose_node_does_not_answer_is_taken_away_by_the_pod_garbage_collector() -> None:
    advice = lose((10, by(COLLECTOR))).advice
    assert (
        "was deleted at 11:08:50Z by kube-system/pod-garbage-collector, and no kubelet confirmed that it ended; "
        in (advice)
    )


def test_a_pod_that_was_deleted_by_force_may_run_on() -> None:
    advice = lose((10, by("alice", FORCE, uid="u-1"))).advice
    assert "was deleted by force at 11:08:50Z by alice, and no kubelet confirmed that it ended; " in advice


@pytest.mark.parametrize(
    "deeds",
    [((10, kubelet(uid="u-1")),), ((8, by("alice", *HIDDEN)), (9, by("bob", *HIDDEN)), (10, kubelet(uid="u-1")))],
    ids=["nobody is shown", "each may have been a dry run"],
)
def test_who_wanted_that_may_not_be_known(deeds: tuple[tuple[float, Deed], ...]) -> None:
    assert "which lost the lease, was gone by 11:08:50Z; " in lose(*deeds).advice


@pytest.mark.parametrize(
    "deed",
    [
        by("alice", uid="u-1"),
        by("alice", put("impersonatedUser", {"username": COLLECTOR}), uid="u-1"),
        by("alice", FORCE, uid="u-1", is_eviction=True),
        kubelet(uid="u-2"),
    ],
    ids=["it may not have ended", "somebody acts as the collector", "evicted", "another pod of its name"],
)
def test_a_pod_that_may_be_there_is_described(deed: Deed) -> None:
    loss = lose((10, deed))
    assert loss.advice == "See the pod of db-0_1, which lost the lease:"
    assert loss.fix.startswith("kubectl -n shop describe pod db-0 || ")


def test_a_pod_that_is_heard_later_is_not_gone() -> None:
    server, db = play((10, kubelet(uid="u-1")))
    server.now += 2_000_000
    db.ask()
    assert find_loss(server).advice.startswith("A request for the lease by the pod of db-0_1")


def test_without_a_uid_the_first_pod_of_its_name_that_is_taken_away_is_its_own() -> None:
    server, _ = play((10, by("alice")), (11, kubelet()), (17, by("bob")), (18, kubelet()), uid="")
    assert "was deleted at 11:08:50Z by alice; " in find_loss(server).advice


@pytest.mark.parametrize(
    ("verb", "words"),
    [
        ("watch", ". Check whether another replica runs that can take over: kubectl -n shop get pods,events"),
        ("get", ", and no other replica asks for it: see whether any runs: kubectl -n shop get pods,events"),
    ],
    ids=["who waits is not known", "nobody waits"],
)
def test_the_pod_of_a_holder_that_let_its_lease_expire_may_be_gone(verb: str, words: str) -> None:
    server = FakeServer(uids={"db-0": "u-1"})
    db, *others = (server.elector(f"{one}-0", f"shop/{one}") for one in ("db", "mail", "cart"))
    server.elector("db-1", "shop/db").ask()
    put("verb", verb)(server.log[-1])
    together(60, db, *others)
    together(10, *others)
    by("alice", uid="u-1")(server)
    kubelet(uid="u-1")(server)
    together(40, *others)
    answer = account(follow_log(server), server.now)
    advice = advise(answer)
    assert [one.fix for one in answer.findings if one.check == "expired"] == [""]
    assert f"Its pod was deleted at 11:07:50Z by alice{words}" in advice


def test_a_pod_whose_name_holds_the_lease_again_is_not_said_to_have_lost_it() -> None:
    server, _ = play((8, by("alice", uid="u-1")), (10, kubelet(uid="u-1")), name="db-1_1")
    assert find_loss(server).advice == f"The pod of db-1_1 was deleted at 11:08:48Z by alice; {GONE}"


@pytest.mark.parametrize("asks", [False, True], ids=["it never asks", "it asks"])
def test_the_next_pod_of_its_name_that_got_a_node_and_never_asked_is_named(asks: bool) -> None:
    server, (db, *others) = shop()
    server.uids["db-0"] = "u-1"
    db.ask()
    together(60, db, *others)
    together(20, *others)
    server.delete_pod("db-0", FORCE, put("user.username", "alice"), uid="u-1")
    together(4, *others)
    bind("db-0")(server, db)
    together(20, *others)
    if asks:
        server.uids["db-0"] = "u-2"
        db.ask()
        together(8, *others)
    found = account(follow_log(server), server.now)
    advice = advise(found)
    bound = "the next pod of its name got a node at 11:08:04Z, and has not asked for it, nor has any other"
    assert (bound in advice) is not asks
    assert ("kubectl -n shop describe pod db-0; kubectl -n shop get pods,events" in advice) is not asks


ENDED = "pod db-0 was deleted at 11:07:40Z by alice, and had ended by 11:07:4{}Z, as its kubelet confirmed"


def delete_lease_after(*deeds: Deed, deleter: str = "carol", silent: float = 20) -> FakeServer:
    """A server on which a lease of ten minutes was deleted after deeds and some seconds, and created again by db-1."""
    server = FakeServer(uids={"db-0": "u-1"})
    db, *others = (server.elector(f"{one}-0", f"shop/{one}") for one in ("db", "mail", "cart"))
    db.duration = 600
    together(60, db, *others)
    for deed in deeds:
        deed(server)
        together(2, *others)
    together(silent, *others)
    server.delete("shop/db", deleter)
    together(4, *others)
    second = server.elector("db-1", "shop/db")
    second.duration = 600
    together(20, second, *others)
    return server


def renew(server: FakeServer) -> None:
    """Let db-0 renew a last time while its pod ends."""
    db = server.elector("db-0", "shop/db")
    db.duration = 600
    db.renew()


@pytest.mark.parametrize(
    ("deeds", "second"),
    [
        ((by("alice", uid="u-1"), kubelet(uid="u-1")), 2),
        ((by("alice", uid="u-1"), renew, kubelet(uid="u-1")), 4),
    ],
    ids=["at once", "after a last renewal"],
)
def test_nobody_led_by_a_lease_whose_pod_had_ended_before_it_was_deleted(deeds: tuple[Deed, ...], second: int) -> None:
    server = delete_lease_after(*deeds)
    (claim,) = (one for one in find_claims(account(follow_log(server), server.now)) if one.check == "lease-deleted")
    assert claim.severity is Severity.WARNING
    assert "while db-0_1 was named in it; db-1_1 created it again" in claim.message
    assert claim.message.endswith(f"later: {ENDED.format(second)}, so no one led by it any more")
    assert claim.advice == (
        "db-0_1 ended without releasing the lease, and others wait up to 10 min 0 s until it expires: "
        "its deletion spared them that. See which pods run now, and their events:"
    )


def test_who_wanted_the_end_of_the_pod_need_not_be_known() -> None:
    server = delete_lease_after(kubelet(uid="u-1"))
    assert ": pod db-0 had ended by 11:07:40Z, as its kubelet confirmed, so no one led" in (
        text(account(follow_log(server), server.now))
    )


@pytest.mark.parametrize(
    "deeds",
    [
        (by("alice", uid="u-1"),),
        (by("alice", FORCE, uid="u-1"),),
        (by(COLLECTOR),),
        (by("alice", uid="u-1"), kubelet(uid="u-2")),
        (by("alice", uid="u-1"), kubelet(uid="u-1"), renew),
    ],
    ids=["asked only", "by force", "by the collector", "another pod", "renewed after it"],
)
def test_a_pod_that_may_have_run_on_may_have_led(deeds: tuple[Deed, ...]) -> None:
    server = delete_lease_after(*deeds)
    output = text(account(follow_log(server), server.now))
    assert "two may have led at once, as most clients lead for up to 6 min" in output
    assert "so no one led" not in output


def test_who_deletes_the_lease_before_the_pod_ended_may_have_let_two_lead() -> None:
    server = delete_lease_after(by("alice", uid="u-1"))
    kubelet(uid="u-1")(server)
    assert "two may have led at once" in text(account(follow_log(server), server.now))


def test_a_lease_that_had_expired_was_nobodys_in_any_case() -> None:
    server = delete_lease_after(by("alice", uid="u-1"), kubelet(uid="u-1"), silent=700)
    output = text(account(follow_log(server), server.now))
    assert "it had expired" in output
    assert "so no one led" not in output


def test_a_heartbeat_that_is_deleted_says_nothing_of_who_leads() -> None:
    server = FakeServer(uids={"db-0": "u-1"})
    holder = server.elector("db-0", "kube-node-lease/db", user="system:serviceaccount:shop:db")
    holder.lead(60)
    by("alice", uid="u-1")(server)
    kubelet(uid="u-1")(server)
    server.wait(5)
    server.delete("kube-node-lease/db", "carol")
    server.wait(5)
    histories = follow_log(server)
    history = histories.leases["kube-node-lease", "db"]
    found = [one for one in find_claims(make_account(histories, history, server.now)) if one.check == "lease-deleted"]
    assert [one.severity for one in found] == [Severity.INFO]
    assert "so no one led" not in found[0].message


def take_after(*deeds: Deed, taking: str) -> list[Claim]:
    """Explain a live lease that another one took after other writes, or that carol emptied."""
    server = FakeServer(uids={"db-0": "u-1", "db-1": "u-2"})
    db, *others = (server.elector(f"{one}-0", f"shop/{one}") for one in ("db", "mail", "cart"))
    second = server.elector("db-1", "shop/db")
    db.duration = second.duration = 600
    together(60, db, *others)
    for deed in deeds:
        deed(server)
        together(2, *others)
    if taking == "foreign-release":
        server.elector("carol", "shop/db", user="carol", pod="").release()
        together(4, *others)
    elif taking == "stranger":
        second.user = "system:serviceaccount:shop:other"
    second.lead(20)
    together(20, second, *others)
    found = find_claims(account(follow_log(server), server.now))
    return [one for one in found if one.check in {"lease-stolen", "foreign-release"}]


@pytest.mark.parametrize(
    ("taking", "severity"),
    [("lease-stolen", Severity.WARNING), ("stranger", Severity.ERROR), ("foreign-release", Severity.WARNING)],
)
def test_of_a_holder_whose_pod_had_ended_no_two_led(taking: str, severity: Severity) -> None:
    (claim,) = take_after(by("alice", uid="u-1"), kubelet(uid="u-1"), taking=taking)
    assert f": {ENDED.format(2)}, so no one led by it any more" in claim.message
    assert "two may have led" not in claim.message
    assert claim.severity is severity


@pytest.mark.parametrize("taking", ["lease-stolen", "foreign-release"])
def test_of_a_holder_whose_pod_may_run_on_two_may_have_led(taking: str) -> None:
    (claim,) = take_after(by("alice", uid="u-1"), taking=taking)
    assert "two may have led" in claim.message


def test_a_holder_that_is_removed_from_a_lease_and_not_followed_had_ended() -> None:
    server = FakeServer(uids={"db-0": "u-1"})
    db, *others = (server.elector(f"{one}-0", f"shop/{one}") for one in ("db", "mail", "cart"))
    db.duration = 600
    together(60, db, *others)
    by("alice", uid="u-1")(server)
    together(2, *others)
    kubelet(uid="u-1")(server)
    together(20, *others)
    server.elector("carol", "shop/db", user="carol", pod="").release()
    together(10, *others)
    (claim,) = (one for one in find_claims(account(follow_log(server), server.now)) if one.check == "foreign-release")
    assert claim.message.endswith("so no one led by it any more")
