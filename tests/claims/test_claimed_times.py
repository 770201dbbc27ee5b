"""Watches that were saved without managedFields: what only the clocks of holders say of how one followed another."""

import pytest

from tests.claims.accounts import account, shop, text
from tests.history.fake_server import FakeServer
from tests.history.observing import advise, cluster_of
from webhook.analysis.claims.account import Account
from webhook.analysis.history.status import LeaseState

WELL = "It is held and renewed; a lease does not show whether its holder works."


def explain(server: FakeServer) -> Account:
    return account(cluster_of(server.watch(managed_fields=False)), server.now)


def taken_after(seconds: float, *, is_released: bool = False, ahead: float = 0, name: str = "db-1") -> Account:
    """The account of a lease that was taken so long after its holder stopped; `ahead` is the clock of the taker."""
    server, (db, *_) = shop()
    db.lead(20)
    if is_released:
        server.wait(1)
        db.release()
    server.wait(seconds)
    server.elector(name, "shop/db", ahead=ahead).lead(20)
    return explain(server)


def test_a_silence_that_a_takeover_ended_is_told_by_the_clocks_of_both() -> None:
    answer = taken_after(17)
    assert "if the clocks of both are right, it had expired: it had not been renewed for 17 s, and lasts 15 s" in text(
        answer
    )
    assert advise(answer) == (
        "It is held and renewed. By the clocks of both holders, the one before had not renewed it for 17 s when it was "
        "taken. See whether its pod ran, or restarted: kubectl -n shop describe pod db-0"
    )


@pytest.mark.parametrize("answer", [taken_after(14), taken_after(17, ahead=-3), taken_after(5, ahead=-10)])
def test_a_silence_for_less_than_the_duration_by_their_clocks_is_not_told(answer: Account) -> None:
    assert "by the clocks of both" not in text(answer)
    assert "restarted" not in advise(answer)


def test_names_that_begin_with_one_pod_hint_at_a_restart() -> None:
    server, _ = shop()
    for number in range(3):
        server.wait(17)
        one = server.elector("db-0", "shop/db")
        one.identity = f"db-0_{number}"
        one.lead(20)
    assert advise(explain(server)) == (
        "It is held and renewed. By the clocks of its holders, it was not renewed for 17 s before it was taken last. "
        "Both names begin with db-0, as when a container starts again. See its last state: "
        "kubectl -n shop describe pod db-0"
    )


def test_how_long_a_lease_was_free_is_told_by_the_clocks_of_both() -> None:
    answer = taken_after(50, is_released=True)
    assert "or was removed, by its writer's clock; it was free for 50 s by the clocks of both" in text(answer)
    assert advise(answer) == (
        "It is held and renewed. By the clocks of its writers no one held it for 50 s before, and anyone could have "
        "taken it. The pod of db-1_1 may show why: kubectl -n shop describe pod db-1"
    )


def test_a_lease_that_was_free_for_a_moment_needs_no_look() -> None:
    answer = taken_after(1, is_released=True)
    assert "; it was free for 1 s by the clocks of both" in text(answer)
    assert advise(answer) == WELL


def test_a_lease_that_was_free_for_no_time_is_not_said_to_have_been() -> None:
    answer = taken_after(0.01, is_released=True)
    assert "it was free" not in text(answer)


def test_a_release_that_leaves_renew_time_does_not_say_since_when_the_lease_was_free() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    db.release()
    server.wait(50)
    server.elector("db-1", "shop/db").lead(20)
    assert "released it, or was removed, then or later" in text(explain(server))
    assert "it was free" not in text(explain(server))


def test_no_time_is_told_by_a_clock_that_was_set_back() -> None:
    server, (db, *_) = shop()
    db.lead(20)
    db.ahead = -40
    db.renew()
    db.release()
    server.wait(1)
    server.elector("db-1", "shop/db").lead(20)
    assert "by the clocks of both" not in text(explain(server))


def test_when_a_holder_whose_spec_was_wiped_renewed_last_is_not_known() -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db", ahead=-20.0).lead(10)
    server.write("shop/db", {}, "operator", "mallory", "")
    wiped = explain(server)
    assert (wiped.state, wiped.last_renewal) == (LeaseState.RELEASED, None)
