"""Deletions of the pods of holders: listed if they are known to be of that pod, and advice if each change had one."""

import pytest

from tests.claims.accounts import account, text
from tests.factories import put
from tests.history.fake_server import SECOND, FakeServer, together
from tests.history.observing import advise, follow_log, follow_metadata
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.claim import Claim
from webhook.analysis.claims.facts import find_claims
from webhook.analysis.claims.presentation.happened import list_latest
from webhook.analysis.claims.words import UNLESS_DRY_RUN

DESCHEDULER = put("user", {"username": "system:serviceaccount:kube-system:descheduler"})


def lead_in_turns(number: int, *, evicted: bool = True, by: tuple[object, ...] = ()) -> FakeServer:
    """A lease that several replicas hold for a minute each, and release; the pod of each is evicted just before."""
    server = FakeServer(uids={f"db-{one}": f"u-{one}" for one in range(number)})
    for turn in range(number):
        elector = server.elector(f"db-{turn}", "shop/db")
        elector.lead(60)
        if turn == number - 1:
            break
        if evicted:
            server.delete_pod(elector.pod, by[turn] if by else DESCHEDULER, uid=f"u-{turn}", is_eviction=True)  # type: ignore[arg-type]
        server.wait(0.1)
        elector.release()
    return server


def facts_of(account: Account) -> list[Claim]:
    return [found for found in find_claims(account) if found.check == "holder-pod-deleted"]


def test_an_eviction_before_a_release_is_listed() -> None:
    server = lead_in_turns(2)
    answer = account(follow_log(server), server.now)
    (fact,) = facts_of(answer)
    assert fact.message == "pod db-0, which held it, was evicted by kube-system/descheduler"
    assert fact.arguments["identity"] == "db-0_1"
    assert "pod db-0, which held it, was evicted by kube-system/descheduler" in text(answer)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "was deleted by force by alice"),
        (60, "was deleted by alice"),
        (300, "was deleted by alice, with 300 s to end"),
    ],
)
def test_for_how_long_a_pod_may_go_on_after_its_deletion_is_said(seconds: int, words: str) -> None:
    server = FakeServer(uids={"db-0": "u-0"})
    db = server.elector("db-0", "shop/db")
    db.lead(60)
    options = put("requestObject", {"gracePeriodSeconds": seconds})
    server.delete_pod("db-0", put("user", {"username": "alice"}), options, uid="u-0")
    db.lead(10)
    (fact,) = facts_of(account(follow_log(server), server.now))
    assert fact.message == f"pod db-0, which held it, {words}, and went on renewing it for 10 s"


@pytest.mark.parametrize("is_replaced", [False, True], ids=["of the holder", "of the next pod of its name"])
def test_a_deletion_without_a_uid_is_of_the_pod_that_was_heard_last(*, is_replaced: bool) -> None:
    server = FakeServer(uids={"db-0": "u-0"})
    db = server.elector("db-0", "shop/db")
    db.lead(60)
    if is_replaced:
        server.uids["db-0"] = "u-1"
        server.wait(0.5)
        db.ask()
    server.wait(0.5)
    server.delete_pod("db-0")
    assert len(facts_of(account(follow_log(server), server.now))) == (0 if is_replaced else 1)


def test_by_clocks_that_differ_it_is_not_known_whether_a_pod_went_on_after_its_deletion() -> None:
    server = FakeServer(uids={"db-0": "u-0"})
    db = server.elector("db-0", "shop/db")
    db.lead(60)
    server.delete_pod("db-0", uid="u-0")
    db.lead(10)
    histories = follow_log(server)
    histories.bounds.skew = 20 * SECOND
    (fact,) = facts_of(account(histories, server.now))
    assert "went on" not in fact.message
    (written,) = facts_of(account(follow_metadata(server), server.now))
    assert written.message.endswith(", and went on writing it for 10 s")


def test_the_latest_deletion_of_a_pod_is_shown_without_verbose() -> None:
    server = lead_in_turns(3)
    latest = [line.text for line in list_latest(account(follow_log(server), server.now))]
    assert "pod db-1, which held it, was evicted by kube-system/descheduler" in latest
    assert "pod db-0, which held it, was evicted by kube-system/descheduler" not in latest


def test_who_deleted_the_pod_of_each_holder_is_the_advice_about_frequent_changes() -> None:
    server = lead_in_turns(6)
    assert "each time after kube-system/descheduler had asked to delete its pod" in advise(
        account(follow_log(server), server.now)
    )


@pytest.mark.parametrize(
    "server",
    [
        lead_in_turns(6, evicted=False),
        lead_in_turns(6, by=tuple(put("user", {"username": f"user-{one}"}) for one in range(6))),
    ],
    ids=["without deletions", "by different users"],
)
def test_frequent_changes_without_one_who_deletes_say_where_to_look(server: FakeServer) -> None:
    assert "Its log may say why" in advise(account(follow_log(server), server.now))


def test_a_live_lease_whose_pod_was_deleted_needs_a_look() -> None:
    server = FakeServer(uids={"db-0": "u-0"})
    server.elector("db-0", "shop/db").lead(60)
    server.wait(0.5)
    server.delete_pod("db-0", uid="u-0")
    answer = account(follow_log(server), server.now)
    assert advise(answer).startswith(
        "It is held and was renewed, but its pod has been deleted. See which pods run now:"
    )


def test_a_holder_that_renews_on_after_its_pod_was_to_be_deleted_is_as_any() -> None:
    server = FakeServer(uids={"db-0": "u-0"})
    elector = server.elector("db-0", "shop/db")
    elector.lead(60)
    server.delete_pod("db-0", uid="u-0")
    elector.lead(10)
    assert advise(account(follow_log(server), server.now)).startswith("It is held and renewed; a lease does not show")


@pytest.mark.parametrize("uid", ["u-7", "u-1"], ids=["of another pod of its name", "of another replica"])
def test_a_deletion_of_another_pod_is_not_listed(uid: str) -> None:
    server = FakeServer(uids={"db-0": "u-0"})
    server.elector("db-0", "shop/db").lead(60)
    server.delete_pod("db-0" if uid == "u-7" else "db-1", uid=uid)
    assert facts_of(account(follow_log(server), server.now)) == []


def test_a_deletion_before_it_held_the_lease_is_not_listed() -> None:
    server = FakeServer(uids={"db-0": "u-0"})
    server.delete_pod("db-0", uid="u-0")
    server.wait(5)
    server.elector("db-0", "shop/db").lead(60)
    assert facts_of(account(follow_log(server), server.now)) == []


def test_a_log_without_bodies_leaves_the_doubt_of_a_dry_run() -> None:
    server = FakeServer(uids={"db-0": "u-0"})
    server.elector("db-0", "shop/db").lead(60)
    server.delete_pod("db-0", put("user", {"username": "alice"}))
    (fact,) = facts_of(account(follow_metadata(server), server.now))
    assert fact.message == f"pod db-0, which wrote it, was deleted by alice, {UNLESS_DRY_RUN}"
    assert fact.arguments["how"] == "unknown"
    assert "identity" not in fact.arguments


KUBELET = put("user", {"username": "system:node:worker-1"})


@pytest.mark.parametrize(
    ("deletions", "is_surely_not_dry_run"),
    [
        (("alice",), False),
        (("alice", "kubelet"), True),
        (("kubelet", "alice"), False),
        (("alice", "bob", "kubelet"), False),
    ],
    ids=["alone", "confirmed", "after it was confirmed", "of two, which one was confirmed"],
)
def test_a_deletion_that_a_kubelet_confirms_was_no_dry_run(
    *, deletions: tuple[str, ...], is_surely_not_dry_run: bool
) -> None:
    server = FakeServer(uids={"db-0": "u-0"})
    server.elector("db-0", "shop/db").lead(60)
    for who in deletions:
        server.wait(0.2)
        server.delete_pod("db-0", KUBELET if who == "kubelet" else put("user", {"username": who}))
    facts = facts_of(account(follow_metadata(server), server.now))
    assert [one.message.endswith(UNLESS_DRY_RUN) for one in facts] == [not is_surely_not_dry_run]


def play_writers(*, is_deleted_before: bool) -> Account:
    """A log without objects in which a pod writes, and then another one, which the first one's deletion precedes."""
    server = FakeServer(uids={"db-0": "u-0", "db-1": "u-1"})
    server.elector("db-0", "shop/db").lead(60)
    server.wait(0.3)
    if is_deleted_before:
        server.delete_pod("db-0", uid="u-0")
    server.wait(17.7)
    server.elector("db-1", "shop/db").lead(10)
    if not is_deleted_before:
        server.delete_pod("db-0", uid="u-0")
    return account(follow_metadata(server), server.now)


def test_a_writer_whose_pod_is_deleted_after_its_last_write_is_named_in_both_lines() -> None:
    answer = play_writers(is_deleted_before=True)
    latest = [line.text for line in list_latest(answer)]
    assert "neither it nor db-0 wrote it for 18 s" in text(answer)
    assert any("pod db-0, which wrote it, was deleted by kube-system/replicaset-controller" in one for one in latest)


def test_the_deletion_of_a_pod_after_another_one_wrote_is_not_listed() -> None:
    assert "pod db-0, which wrote it" not in text(play_writers(is_deleted_before=False))


def test_the_deletion_of_a_pod_after_its_lease_was_deleted_is_not_listed() -> None:
    server = FakeServer(uids={"db-0": "u-0"})
    server.elector("db-0", "shop/db").lead(60)
    server.delete("shop/db")
    server.wait(4)
    server.delete_pod("db-0", uid="u-0")
    server.wait(4)
    server.elector("db-1", "shop/db").lead(10)
    assert "pod db-0, which wrote it" not in text(account(follow_metadata(server), server.now))


def test_a_writer_that_creates_the_lease_again_is_compared_with_no_other() -> None:
    server = FakeServer()
    db = server.elector("db-0", "shop/db")
    db.lead(60)
    server.delete("shop/db")
    server.wait(18)
    db.lead(10)
    output = text(account(follow_metadata(server), server.now))
    assert "after it was deleted; it had not written it for 1" in output
    assert "neither" not in output


def delete_at_metadata(server: FakeServer, user: str) -> None:
    """A deletion of which the log shows neither the options nor the uid."""
    server.delete_pod("db-0", put("user", {"username": user}), put("level", "Metadata"))
    del server.log[-1]["responseObject"]


@pytest.mark.parametrize(
    ("uid", "requests", "is_doubted"),
    [("u-1", 1, False), ("u-1", 2, True), ("", 1, True)],
    ids=["one request", "two requests", "no uid"],
)
def test_a_pod_that_another_one_of_its_name_follows_was_deleted_indeed(
    uid: str, requests: int, *, is_doubted: bool
) -> None:
    server = FakeServer(uids={"db-0": "u-0"})
    db = server.elector("db-0", "shop/db")
    db.lead(60)
    for number in range(requests):
        server.wait(1)
        delete_at_metadata(server, f"alice{number}")
    server.uids["db-0"] = uid
    server.wait(1)
    server.elector("db-0", "shop/db").lead(20)
    (fact,) = facts_of(account(follow_log(server), server.now))
    assert (UNLESS_DRY_RUN in fact.message) is is_doubted
    assert (fact.arguments.get("how") == "unknown") is is_doubted


def fall_silent(*, is_deleted_later: bool = False, has_hole: bool = False, is_leaky: bool = False) -> Claim:
    """Return the fact of a deletion before a silence, after which a pod of the same name takes the expired lease."""
    server = FakeServer(uids={"db-0": "u-0"})
    db, mail = server.elector("db-0", "shop/db"), server.elector("mail-0", "shop/mail")
    together(20, db, mail)
    delete_at_metadata(server, "alice")
    together(4, db, mail)
    known = len(server.log)
    together(26, mail)
    if has_hole:
        del server.log[known:]
    if is_deleted_later:
        delete_at_metadata(server, "bob")
    together(4, mail)
    server.uids["db-0"] = "u-1"
    successor = server.elector("db-0", "shop/db")
    successor.identity = "db-0_2"
    successor.take()
    together(4, successor, mail)
    histories = follow_log(server)
    histories.bounds.is_log_leaky = is_leaky
    (fact,) = facts_of(account(histories, server.now))
    return fact


@pytest.mark.parametrize(
    ("fact", "is_doubted"),
    [
        (fall_silent(), False),
        (fall_silent(is_deleted_later=True), True),
        (fall_silent(has_hole=True), True),
        (fall_silent(is_leaky=True), True),
    ],
    ids=["nothing else", "another request after the last renewal", "the log has a hole", "the log lacks writes"],
)
def test_a_pod_that_something_else_may_have_deleted_since_was_perhaps_not_deleted_then(
    fact: Claim, *, is_doubted: bool
) -> None:
    assert "was deleted by alice" in fact.message
    assert (UNLESS_DRY_RUN in fact.message) is is_doubted
    assert (fact.arguments.get("how") == "unknown") is is_doubted
