"""A lease that expired as a new release elects by another name: who renews that one, and who asks for the old one."""

from typing import Any

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import FakeServer, hide_responses, together
from tests.history.observing import View, advise, follow_both, follow_log, follow_metadata, follow_watch
from webhook.admission.rules.change import NODE_LEASES
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.assemble import make_account

DB = "system:serviceaccount:shop:db"


def roll_out(
    *,
    user: str = DB,
    new: str = "shop/db-v4",
    pod: str = "db-v4-0",
    asks: str = "",
    has_reads: bool = True,
    is_older: bool = False,
    is_renewed: bool = True,
    wait: float = 40,
    **settings: Any,
) -> FakeServer:
    """A release whose first pod leads by a new lease 20 s before the pod of the old release ends."""
    server = FakeServer()
    old, other = server.elector("db-0", "shop/db", user=DB), server.elector("mail-0", "mail/mail")
    newer = server.elector(pod, new, user=user, **settings)
    if is_older:
        newer.take()
    together(20, old, other)
    if has_reads:
        server.elector("db-1", "shop/db", user=DB).ask()
    newer.take()
    together(20, old, other, newer)
    rest = [other, newer] if is_renewed else [other]
    asker = server.elector("any-1", "shop/db", user=asks)
    for _ in range(int(wait / 4)):
        together(4, *rest)
        if asks:
            asker.ask()
    return server


def invent_creation(server: FakeServer) -> FakeServer:
    """Have clients send the time of the creation, which an API server would not store."""
    for event in server.log:
        event["requestObject"]["metadata"]["creationTimestamp"] = "2026-11-18T11:07:00Z"
    return server


def lose_request(server: FakeServer) -> FakeServer:
    """Have the log lack a renewal of the old lease that a watch shows."""
    renewals = [one for one in server.log if one["objectRef"]["name"] == "db" and one["verb"] == "update"]
    server.log.remove(renewals[4])
    return server


def explain(server: FakeServer, view: View = follow_log) -> Account:
    return account(view(server), server.now)


@pytest.mark.parametrize("view", [follow_log, follow_both], ids=["a log", "a log and a watch"])
def test_the_pod_of_the_same_account_that_renews_a_newer_lease_is_said(view: View) -> None:
    answer = explain(roll_out(), view)
    assert (
        "Newer lease: shop/db-v4 was created at 11:07:00Z, and pod db-v4-0 of shop/db renews it; the log has no "
        "request for this one by a pod of that account since it expired\n"
    ) in text(answer)
    assert advise(answer).startswith("This lease may be left over: a new release may elect by lease shop/db-v4. ")


def test_a_log_without_reads_shows_only_that_no_one_wrote_the_old_lease() -> None:
    assert "the log has no write to this one by a pod of that account since it expired" in text(
        explain(roll_out(has_reads=False))
    )


def test_a_person_who_looks_at_the_old_lease_does_not_ask_for_it() -> None:
    assert "Newer lease" in text(explain(roll_out(asks="alice")))


def test_a_watch_shows_a_newer_lease_as_a_lead_and_no_account() -> None:
    answer = explain(roll_out(user="system:serviceaccount:shop:mail"), follow_watch)
    assert (
        "Newer lease: shop/db-v4, of the same namespace, was created at 11:07:00Z, before the last renewal of this "
        "one, and is renewed\n"
    ) in text(answer)
    assert advise(answer).startswith(
        "This lease may be left over, if its workload elects by lease shop/db-v4 now. Check whether db-0_1"
    )


@pytest.mark.parametrize(
    ("server", "view"),
    [
        (roll_out(user="system:serviceaccount:shop:mail"), follow_log),
        (roll_out(asks=DB), follow_log),
        (roll_out(pod="db-0"), follow_log),
        (roll_out(new="other/db-v4"), follow_log),
        (roll_out(new="other/db-v4"), follow_watch),
        (roll_out(is_older=True), follow_log),
        (roll_out(is_older=True), follow_watch),
        (roll_out(is_renewed=False), follow_log),
        (roll_out(is_renewed=False), follow_watch),
        (roll_out(wait=20), follow_log),
        (roll_out(wait=12), follow_log),
        (invent_creation(hide_responses(roll_out(has_reads=False))), follow_log),
        (roll_out(), follow_metadata),
        (lose_request(roll_out()), follow_both),
    ],
    ids=[
        "of another account",
        "while a replica asks for the old one",
        "of the holder itself, which has two",
        "of another namespace",
        "of another namespace of a watch",
        "that is older",
        "that is older, in a watch",
        "that is renewed no more",
        "that is renewed no more, in a watch",
        "just after the old one expired",
        "before the old one expired",
        "of which only requests are known",
        "of a log without objects",
        "of a log that lacks requests",
    ],
)
def test_a_lease_that_need_not_have_come_in_its_place_is_not_said(server: FakeServer, view: View) -> None:
    output = text(explain(server, view))
    assert "Newer lease" not in output
    assert "left over" not in output


def test_the_lease_of_a_person_has_no_newer_one() -> None:
    server = FakeServer()
    old, newer = server.elector("a", "shop/db", user="alice"), server.elector("b", "shop/new", user="alice")
    old.lead(20)
    newer.lead(40)
    assert "Newer lease" not in text(explain(server))


def test_a_lease_of_a_node_has_no_newer_one() -> None:
    server = FakeServer()
    old, newer = server.elector("a", f"{NODE_LEASES}/a"), server.elector("b", f"{NODE_LEASES}/b")
    old.lead(20)
    newer.take()
    together(10, old, newer)
    newer.lead(60)
    histories = follow_watch(server)
    assert make_account(histories, histories.leases[NODE_LEASES, "a"], server.now).surroundings.newer is None


def test_every_lease_of_a_namespace_is_compared_with_the_same_leases() -> None:
    server = FakeServer()
    for name in ("db", "mail"):
        server.elector(f"{name}-0", f"shop/{name}").take()
    histories = follow_log(server)
    assert [one.name for one in histories.index.list_of_namespace("shop")] == ["db", "mail"]
    assert histories.index.list_of_namespace("shop") == histories.index.list_of_namespace("shop")
    assert histories.index.list_of_namespace("other") == ()
