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


def pause(view: View, *, beside: int, others: int = 0, is_back: bool = False) -> Account:
    """A process falls silent about a lease for 20 s, and renews a second one for so long, or towards the end."""
    server = FakeServer()
    silent = server.elector("shop-0", "shop/db")
    second = server.elector("shop-0", "shop/shard", duration=60, user="system:serviceaccount:shop:db")
    late = [server.elector(f"late-{number}", f"shop/late-{number}") for number in range(others)]
    kept = [server.elector(f"kept-{number}", f"shop/kept-{number}") for number in range(6)]
    lead(server, [silent, second, *late, *kept], 60)
    follower = server.elector("shop-9", "shop/db")
    for number in range(10):
        lead(server, kept, 2)
        if 2 * number < beside or (is_back and number > 7):
            second.renew()
    follower.take()
    lead(server, [follower, second, *late, *kept], 20)
    return account(view(server), server.now)


def test_a_process_did_not_renew_another_lease_while_it_was_silent_for_that_one_too() -> None:
    assert "it renewed shard meanwhile" not in text(pause(follow_log, beside=2))
    assert "it renewed shard meanwhile" in text(pause(follow_log, beside=8))
    assert "it renewed shard meanwhile" in text(pause(follow_log, beside=0, is_back=True))


@pytest.mark.parametrize("view", [follow_log, follow_watch])
@pytest.mark.parametrize(
    ("others", "words"),
    [
        (0, "shop/shard was late at the same time, under the same holder"),
        (1, "shop/shard and shop/late-0 were late at the same time, the first one under the same holder"),
    ],
    ids=["no other was", "another one was"],
)
def test_a_late_lease_of_the_same_holder_is_told_from_others(view: View, others: int, words: str) -> None:
    said = text(pause(view, beside=0, others=others))
    assert f", and {words}" in said


@pytest.mark.parametrize("view", [follow_log, follow_watch])
def test_several_late_leases_of_the_same_holder_are_counted(view: View) -> None:
    server = FakeServer()
    mine = [server.elector("shop-0", f"shop/{name}", duration=60) for name in ("db", "shard-0", "shard-1")]
    mine[0].duration = 15
    late = server.elector("late-0", "shop/late")
    kept = [server.elector(f"kept-{number}", f"shop/kept-{number}") for number in range(4)]
    lead(server, [*mine, late, *kept], 60)
    lead(server, kept, 20)
    follower = server.elector("shop-9", "shop/db")
    follower.take()
    lead(server, [follower, *mine[1:], late, *kept], 20)
    said = text(account(view(server), server.now))
    assert "shop/shard-0, shop/shard-1 and 1 more were late at the same time, 2 of them under the same holder" in said
