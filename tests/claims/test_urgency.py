"""Whether something is to be done now: said first, and only where the end of the input shows it."""

import pytest

from tests.claims.accounts import account, shop, text
from tests.history.fake_server import FakeServer, together
from tests.history.observing import cluster_of, follow_log, follow_watch
from tests.history.test_refusal import POLICY
from webhook.analysis.claims.handovers import FREQUENT
from webhook.analysis.claims.presentation.account_json import make_account_json
from webhook.analysis.claims.presentation.urgency import advise_with_urgency
from webhook.findings import Severity


def begin(server: FakeServer) -> str:
    return advise_with_urgency(account(follow_log(server), server.now)).sentence


def lost() -> FakeServer:
    """A leader dies, and another one follows it."""
    server, (db, *others) = shop()
    together(40, db, *others)
    together(16, *others)
    together(20, server.elector("db-1", "shop/db"), *others)
    return server


def test_after_a_loss_nothing_is_to_be_done_once_another_renews() -> None:
    assert begin(lost()) == "Held and renewed now. See the pod of db-0_1, which lost the lease:"


def test_a_lease_that_is_well_needs_nothing() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    assert begin(server) == "It is held and renewed; a lease does not show whether its holder works."


def test_holders_that_die_one_after_another_need_something() -> None:
    server, (_, *others) = shop()
    for number in range(FREQUENT + 1):
        together(6, server.elector(f"db-{number}", "shop/db"), *others)
        together(16, *others)
    together(6, server.elector("db-9", "shop/db"), *others)
    assert begin(server).startswith("Held and renewed now. ")


def test_after_a_theft_it_is_held_and_its_thief_is_to_be_found() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.elector("mallory-0", "shop/db", user="system:serviceaccount:shop:mallory").lead(20)
    assert begin(server).startswith("Held and renewed now. Find out why shop/mallory took the lease")


def test_an_expired_lease_needs_a_holder_if_it_is_used() -> None:
    server, (db, *others) = shop()
    together(40, db, *others)
    together(30, *others)
    assert begin(server).startswith(
        "Act now if a program still uses this lease. No other replica tries to take it: see whether any runs,"
    )


def test_two_processes_of_one_identity_need_something_now() -> None:
    server, (db, *_) = shop()
    twin = server.elector("db-0", "shop/db", pod="db-1")
    db.take()
    for _ in db.ticks(20):
        db.renew()
        server.wait(1)
        twin.renew()
    assert begin(server).startswith("Act now. Give each replica an identity of its own")


def test_of_a_lease_that_is_gone_or_free_it_is_not_known() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    db.release()
    assert begin(server).startswith("A replica that runs, and may write it, can take the lease at once")
    server.delete("shop/db")
    assert not begin(server).startswith(("Act", "Nothing", "Held"))


@pytest.mark.parametrize(
    ("renewed", "free", "words"),
    [
        (20, 61, "Act now if a program still uses this lease. A replica that runs"),
        (20, 50, "A replica that runs"),
        (0, 61, "A replica that runs"),
    ],
    ids=["for a minute", "for less", "as a lock"],
)
def test_a_lease_that_no_one_takes_for_long_after_a_leader_needs_something(renewed: int, free: int, words: str) -> None:
    server, (db, *_) = shop()
    db.lead(renewed)
    server.wait(1)
    db.release()
    server.wait(free)
    assert begin(server).startswith(words)


def test_a_list_does_not_show_that_it_is_renewed() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    assert (
        advise_with_urgency(account(cluster_of(server.dump()), server.now)).sentence
        == "It is held; a lease does not show whether its holder works."
    )


def test_of_many_writers_those_that_are_named_are_not_all() -> None:
    server = FakeServer()
    for number in range(6):
        elector = server.elector(f"app-{number}", "shop/db", user=f"system:serviceaccount:shop:app-{number}")
        elector.lead(10)
        elector.release()
    output = text(account(follow_log(server), server.now))
    assert (
        "at least 6 service accounts have held this lease: shop/app-0, shop/app-1, shop/app-2, shop/app-3 and 2 more"
        in output
    )


def test_an_account_for_each_replica_may_be_one_application() -> None:
    server = FakeServer()
    for number in (0, 1, 0):
        elector = server.elector(f"app-{number}", "shop/db", user=f"system:serviceaccount:shop:app-{number}")
        elector.lead(10)
        elector.release()
    answer = account(follow_log(server), server.now)
    (shared,) = (one for one in answer.findings if one.check == "lease-shared")
    assert shared.severity is Severity.INFO
    assert "one application of which each replica has its own, or several applications" in shared.message


def test_how_often_others_wrote_is_a_bound() -> None:
    server, (db, mail, cart) = shop()
    together(40, db, mail, cart)
    held = server.leases["shop/db"]["spec"]
    for number in range(40):
        server.write("shop/db", held | {"strategy": f"example.com/{number}"}, "labeler", "", "")
    together(18, mail, cart)
    together(10, server.elector("db-1", "shop/db"), mail, cart)
    output = text(account(follow_watch(server), server.now))
    assert "others wrote it at least 39 times in that time, so its updates may have conflicted" in output


@pytest.mark.parametrize(
    ("managers", "said"),
    [(["labeler"], "by field manager labeler"), (["labeler", "tagger"], "by field managers labeler and tagger")],
    ids=["one manager", "two managers"],
)
def test_a_watch_has_field_managers_and_not_who_wrote(managers: list[str], said: str) -> None:
    server, (db, mail, cart) = shop()
    together(40, db, mail, cart)
    for number in range(12):
        for manager in managers:
            held = server.leases["shop/db"]["spec"]
            server.write("shop/db", held | {"strategy": f"example.com/{manager}-{number}"}, manager, "alice", "")
        together(2, mail, cart)
    together(10, server.elector("db-1", "shop/db"), mail, cart)
    output = text(account(follow_watch(server), server.now))
    assert f" times in that time, {said}, so" in output
    assert "Find out who else writes the lease, and from the audit log whether that conflicted:" in output
    assert "field manager" not in "".join(
        line for line in text(account(follow_log(server), server.now)).splitlines() if "others wrote it" in line
    )


def test_a_watch_shows_writes_without_renewal_by_the_manager_of_the_holder() -> None:
    server, (db, mail, cart) = shop()
    together(40, db, mail, cart)
    for number in range(9):
        held = server.leases["shop/db"]["spec"]
        server.write("shop/db", held | {"strategy": f"example.com/{number}"}, db.manager, db.user, db.pod)
        together(2, mail, cart)
    together(10, server.elector("db-1", "shop/db"), mail, cart)
    answer = account(follow_watch(server), server.now)
    assert "its process may have written the lease without renewing it, or another client uses that name" in text(
        answer
    )
    (lost,) = (one for one in make_account_json(answer)["claims"] if one["claim"] == "leader-lost")
    assert {"not-renewing", "conflict", "stopped"} <= {*lost["causes"]}


def test_more_than_three_pods_of_one_identity_are_at_least_three() -> None:
    server = FakeServer()
    pods = [server.elector("db-0", "shop/db", pod=f"db-{number}") for number in range(5)]
    pods[0].take()
    for _ in pods[0].ticks(20):
        for elector in pods:
            server.wait(0.5)
            elector.renew()
    output = text(account(follow_log(server), server.now))
    assert output.startswith("at least 3 pods renew it as db-0_1: ")
    assert " and others, as if each led" in output


def test_a_text_that_nobody_ever_renewed_as_did_not_lead_beside_another() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    held = dict(server.leases["shop/db"]["spec"])
    server.write("shop/db", held | {"holderIdentity": "alice-debug"}, "kubectl-edit", "alice", "")
    server.wait(1)
    server.write("shop/db", held | {"holderIdentity": "db-0_1"}, "kubectl-edit", "alice", "")
    db.lead(10)
    stolen = [one for one in account(follow_log(server), server.now).findings if one.check == "lease-stolen"]
    assert [one.message.rpartition(": ")[2] for one in stolen] == [
        "two may have led at once",
        "no process is known to have renewed it as alice-debug since alice wrote that in at 11:07:00Z",
    ]


def test_refusals_of_who_renews_again_have_ended() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.wait(1)
    db.fail(422, POLICY)
    db.lead(4)
    assert "ended" not in begin(server)  # within the duration, they may go on
    db.lead(20)
    advice = "The refusals have ended. See why the policy refused the writes of shop/db:"
    assert begin(server) == f"Held and renewed now. {advice}"
    db.fail(422, POLICY)
    server.wait(1)
    assert "See why the policy refuses the writes of shop/db:" in begin(server)


def test_refusals_of_another_process_than_the_holder_may_come_again() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    server.elector("db-1", "shop/db").fail(422, POLICY)
    db.lead(40)
    assert begin(server) == "Held and renewed now. See why the policy refuses the writes of pod db-1:"
