"""A lease that no one holds, and that was free before, too: a lock that is used only at times."""

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import FakeServer
from tests.history.observing import View, advise, follow_both, follow_watch
from webhook.analysis.claims.presentation.urgency import advise_with_urgency


def use_at_times(before: float = 160, after: float = 130) -> FakeServer:
    """A lock that was released before the input begins, is taken for a while, and released again by its holder."""
    server = FakeServer()
    first = server.elector("backup-1", "shop/db")
    first.take()
    server.wait(20)
    first.release()
    del server.events[:-1]
    server.log.clear()
    server.wait(before)
    second = server.elector("backup-2", "shop/db")
    second.lead(40)
    server.wait(1)
    second.release()
    server.wait(after)
    server.elector("cart-0", "shop/cart").lead(4)
    return server


@pytest.mark.parametrize("view", [follow_watch, follow_both], ids=["watch", "watch and log"])
def test_what_was_as_free_before_is_nothing_to_act_on(view: View) -> None:
    server = use_at_times()
    answer = account(view(server), server.now)
    said = advise_with_urgency(answer).sentence
    assert said == (
        "It was free before, too, from 11:07:00Z to 11:09:40Z, as one is that is used only at times. To see what uses "
        "it:"
    )
    assert advise(answer).endswith("kubectl -n shop get pods,jobs")


@pytest.mark.parametrize("server", [use_at_times(before=20), use_at_times(after=600)], ids=["before", "now"])
def test_what_was_free_for_a_shorter_time_may_be_needed(server: FakeServer) -> None:
    assert advise_with_urgency(account(follow_watch(server), server.now)).sentence.startswith("Act now if a program")


def test_what_removed_the_holder_is_no_renewal() -> None:
    server = use_at_times()
    assert "\nLast written: 11:10:21Z" in text(account(follow_watch(server), server.now))


def test_who_renewed_once_or_twice_released_it_as_far_as_its_field_manager_shows() -> None:
    server = FakeServer()
    db = server.elector("db-0", "shop/db")
    server.write("shop/db", {"leaseTransitions": 0}, "operator", db.user, "")
    server.wait(2)
    db.take()
    for _ in range(2):
        server.wait(45)
        db.renew()
    server.wait(20)
    db.release()
    server.wait(9)
    output = text(account(follow_watch(server), server.now))
    assert "db-0_1 released it (as far as field managers show)" in output
