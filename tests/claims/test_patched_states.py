"""Patches of which a log has the body, and not what was stored: they are taken for stored, as updates are.

Sources: the recorded incidents of a stolen token that cut the duration again and again, and of a preferredHolder that
named no candidate.
"""

from typing import Any

import pytest

from tests.claims.accounts import account, text
from tests.factories import Document
from tests.history.fake_server import FakeServer, hide_responses
from tests.history.observing import View, follow_both, follow_log, follow_metadata, follow_watch

UNSHOWN = "does not show what was stored"
CUT: Document = {"leaseDurationSeconds": 1}


def patch(server: FakeServer, changes: Document, *, user: str = "ci", manager: str = "curl", sent: Any = None) -> None:
    """Patch the spec of shop/db: what changes nothing makes no state."""
    stored = server.leases["shop/db"]
    spec = {**stored["spec"], **changes}
    if spec == stored["spec"]:
        server.log_request("shop/db", "patch", user, "", stored)
    else:
        server.write("shop/db", spec, manager, user, "")
        server.log[-1]["verb"] = "patch"
        del server.log[-1]["objectRef"]["resourceVersion"]
    server.log[-1]["sent"] = {"spec": changes} if sent is None else sent


def hide(server: FakeServer) -> FakeServer:
    """Make the log one at level Request."""
    hide_responses(server)
    for event in server.log:
        if (sent := event.pop("sent", None)) is not None:
            event["requestObject"] = sent
    return server


def play(**kwargs: Any) -> FakeServer:
    """Have someone cut the duration before each of four renewals, and once more right after the first two cuts."""
    server = FakeServer()
    holder = server.elector("db-0", "shop/db")
    holder.lead(40)
    for number in range(4):
        for pause in (0.8, 0.2) if number < 2 else (1,):
            server.wait(pause)
            patch(server, CUT, **kwargs)
        server.wait(2.5)
        holder.renew()
    holder.lead(20)
    return hide(server)


def said_of(server: FakeServer, view: View) -> str:
    return text(account(view(server), server.now))


@pytest.mark.parametrize("view", [follow_log, follow_both], ids=["log", "both"])
def test_what_a_patch_asked_for_is_said_and_how_often(view: View) -> None:
    said = said_of(play(), view)
    assert UNSHOWN not in said
    assert "leaseDurationSeconds 15 -> 1 by ci, 4 times until 11:07:31Z" in said
    assert "6 writes by ci within 10.7 s left the holder and its renewals as they were" in said
    assert "ADVICE Find out why ci wrote it again and again." in said


def test_a_watch_shows_under_which_field_manager_a_lease_was_edited_again_and_again() -> None:
    said = said_of(play(), follow_watch)
    assert "leaseDurationSeconds 15 -> 1, under field manager curl, 4 times until 11:07:31Z" in said
    assert "but was edited again and again under field manager curl, which its writer chose. The audit log" in said


def test_the_field_manager_of_the_holder_is_no_other_one() -> None:
    assert "under field manager" not in said_of(play(manager="operator"), follow_watch)


@pytest.mark.parametrize(
    "sent",
    [{"spec": CUT, "status": {}}, {"spec": {"leaseDurationSeconds": "1"}}],
    ids=["with a status", "of another type"],
)
def test_a_patch_that_cannot_be_read_is_not_known_to_be_stored(sent: Document) -> None:
    assert UNSHOWN in said_of(play(sent=sent), follow_log)


def test_a_log_without_bodies_does_not_show_what_was_stored() -> None:
    server = play()
    for event in server.log:
        del event["requestObject"]
    assert "15 -> 1" not in said_of(server, follow_metadata)


def elect(view: View, *, strategy: str = "OldestEmulationVersion", tries: int = 0) -> str:
    """Have someone ask the holder of a coordinated election to step down for no candidate; it stops."""
    server = FakeServer()
    holder = server.elector("db-0", "shop/db")
    settings = {"strategy": strategy} if strategy else {}
    holder.take(**settings)
    for _ in holder.ticks(40):
        holder.renew(**settings)
    server.wait(1)
    patch(server, {"preferredHolder": "maintenance"}, user="jane", manager="python-requests")
    for _ in range(tries):
        server.wait(20)
        message = 'leases.coordination.k8s.io "db" already exists'
        server.log_request("shop/db", "create", "system:apiserver", "", {"message": message}, 409)
        server.log[-1]["requestObject"] = server.leases["shop/db"]
    server.wait(60)
    server.elector("mail-0", "shop/mail").lead(4)
    return said_of(hide(server), view)


@pytest.mark.parametrize("view", [follow_log, follow_both], ids=["log", "both"])
def test_a_value_of_preferred_holder_that_a_patch_set_is_quoted(view: View) -> None:
    said = elect(view)
    assert 'db-0_1 was asked to step down for "maintenance" (preferredHolder) by jane' in said
    assert "preferred-holder-foreign: at 11:07:21Z jane changed preferredHolder" in said
    assert "ADVICE Clear preferredHolder" in said


def test_a_watch_shows_under_which_field_manager_preferred_holder_was_set() -> None:
    said = elect(follow_watch)
    asked = 'was asked to step down for "maintenance" (preferredHolder), under field manager python-requests'
    assert f"{asked} (API servers write under kube-apiserver by default)" in said


def test_an_api_server_without_elections_may_drop_preferred_holder() -> None:
    assert UNSHOWN in elect(follow_log, strategy="")


@pytest.mark.parametrize(("tries", "is_said"), [(2, False), (3, True)])
def test_an_api_server_that_names_a_holder_in_vain_is_said(tries: int, is_said: bool) -> None:
    said = elect(follow_log, tries=tries)
    assert (f"{tries} creations by an API server, to name a holder, were answered with 409 until" in said) is is_said
    assert ("Can be taken: now" in said) is not is_said


def hand_over(name: str, *, is_deleted: bool = False, asks: bool = False) -> FakeServer:
    """Have a person write another name into the lease that db-0 renews, whose next renewal then conflicts.

    `is_deleted`: the person deletes the lease before it expires. `asks`: a pod of that name reads the lease.
    """
    server = FakeServer()
    db, successor, named = (server.elector(f"db-{number}", "shop/db", pod=f"db-{number}") for number in range(3))
    db.lead(40)
    server.wait(1)
    patch(server, {"holderIdentity": name}, user="jane", manager="kubectl-edit")
    server.wait(1)
    db.fail_as(db.identity, 409, "the object has been modified")
    for _ in range(4 if is_deleted else 8):
        server.wait(2)
        for elector in [successor, *[named] * asks]:
            elector.ask()
    if is_deleted:
        server.delete("shop/db", user="jane")
        server.wait(1)
    successor.lead(20)
    return hide(server)


def test_a_patch_that_asks_for_another_holder_is_taken_for_stored() -> None:
    said = said_of(hand_over("db-2"), follow_log)
    assert UNSHOWN not in said.partition("lease-stolen")[0]
    assert "jane wrote db-2 into it after db-0_1, which may still have held it: the log shows what was asked" in said
    assert "lease-stolen: at 11:07:21Z jane asked for the lease as db-2, 1 s after the last renewal by db-0_1" in said


def test_a_patch_that_asks_for_no_holder_is_not_taken_for_stored() -> None:
    assert f"1 write by jane was accepted; the log {UNSHOWN}" in said_of(hand_over(""), follow_log)


@pytest.mark.parametrize("asks", [False, True])
def test_two_may_have_led_if_a_pod_of_the_name_that_a_patch_asked_for_asks(asks: bool) -> None:
    said = said_of(hand_over("db-2", asks=asks), follow_log)
    assert ("if that is what was asked for, two may have led at once" in said) is asks
    assert ("The log does not show what was stored; it has no request of a pod named as db-2" in said) is not asks


@pytest.mark.parametrize("view", [follow_log, follow_both], ids=["log", "both"])
def test_who_edits_a_lease_and_deletes_it_is_not_its_holder(view: View) -> None:
    said = said_of(hand_over("db-2", is_deleted=True), view)
    deleted = "lease-deleted: jane deleted the lease at 11:07:30Z while db-2 was named in it, which did not renew it in"
    assert f"{deleted} the 9 s since it was written in; db-1_1 created it again 1 s later\n" in said
    assert "if the holder did not delete it itself" not in said
