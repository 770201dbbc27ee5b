"""A process that holds several leases and ends: they are one witness of what happened, and not several."""

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import Elector, FakeServer
from tests.history.observing import View, follow_log, follow_watch
from webhook.analysis.claims.account import Account


def lead(server: FakeServer, electors: list[Elector], seconds: int) -> None:
    """Let some leases be renewed, and begin with those that do not exist."""
    for one in electors:
        if one.lease not in server.leases:
            one.take()
    for _ in electors[0].ticks(seconds):
        for one in electors:
            one.renew()


def end_process(view: View, holder: str, *, others: int = 2) -> Account:
    """Stop the renewals of five leases, four of them held by `holder`, while other leases are renewed."""
    server = FakeServer()
    mine = [server.elector("shop-0", "shop/db")]
    mine += [server.elector(holder.format(number), f"shop/shard-{number}") for number in range(4)]
    kept = [server.elector(f"kept-{number}", f"shop/kept-{number}") for number in range(others)]
    lead(server, [*mine, *kept], 60)
    lead(server, kept, 20)
    server.elector("shop-9", "shop/db").lead(2)
    lead(server, kept, 20)
    return account(view(server), server.now)


@pytest.mark.parametrize("view", [follow_log, follow_watch])
def test_the_other_leases_of_a_process_that_ends_show_no_outage(view: View) -> None:
    said = text(end_process(view, "shop-0"))
    assert "2 other leases were renewed on time" in said
    assert "slow or unavailable" not in said
    assert "slow, unavailable or not reached" not in said
    assert "readyz" not in said


def test_the_leases_of_another_process_are_one_witness() -> None:
    said = text(end_process(follow_watch, "queue-0"))
    assert "2 other leases were renewed on time" in said
    assert "readyz" not in said


def test_leases_of_several_processes_are_late_together() -> None:
    """Several processes that stop together share the API server, unless a rollout stopped them."""
    said = text(end_process(follow_watch, "shard-{}"))
    assert "4 of the 6 other leases due at least twice were late at the same time" in said
    assert "or the holder's process stopped by itself, or with the others as in a rollout" in said


def test_too_few_other_processes_tell_no_outage() -> None:
    said = text(end_process(follow_watch, "queue-0", others=1))
    assert "slow, unavailable or not reached" not in said


@pytest.mark.parametrize("view", [follow_log, follow_watch])
def test_if_all_stop_for_good_the_advice_looks_at_the_pod_as_well(view: View) -> None:
    """They may all have been scaled to zero, and the API server answers."""
    server = FakeServer()
    lead(server, [server.elector(f"{name}-0", f"shop/{name}") for name in ("db", "mail", "cart", "pay")], 60)
    server.wait(600)
    said = text(account(view(server), server.now))
    assert (
        "or the holder's process stopped by itself, or with the others as in a rollout: 3 other leases stopped" in said
    )
    assert "may have stopped by itself: kubectl get --raw '/readyz?verbose'; kubectl -n shop describe pod db-0" in said


@pytest.mark.parametrize(
    ("name", "namespace", "is_said"), [("shop-0", "shop", True), ("queue-0", "shop", False), ("shop-0", "bill", False)]
)
def test_leases_that_the_same_text_went_on_to_hold_are_said(name: str, namespace: str, is_said: bool) -> None:
    server = FakeServer()
    silent = server.elector("shop-0", "shop/db")
    kept = [server.elector(name, f"{namespace}/kept-{number}") for number in range(2)]
    others = [server.elector("other-0", "shop/other")]
    lead(server, [silent, *kept, *others], 60)
    lead(server, [*kept, *others], 20)
    server.elector("shop-9", "shop/db").lead(2)
    lead(server, [*kept, *others], 20)
    said = text(account(follow_watch(server), server.now))
    assert ("3 other leases were renewed on time, 2 of them under the same holder" in said) is is_said
