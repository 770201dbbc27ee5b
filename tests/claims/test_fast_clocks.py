"""A new holder whose clock is ahead takes a lease that looks expired to it: a log of requests shows that, too."""

from collections.abc import Callable

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import FakeServer, hide_responses, together
from tests.history.observing import View, advise, follow_both, follow_log, follow_watch
from webhook.analysis.claims.account import Account

AHEAD = 47.3
ASKED = "at 11:07:41Z db-1_1 asked for the lease, 1 s after the last renewal by db-0_1, and was not refused."
FAST = (
    "Its renewTimes are 47.3 s ahead of the API server's clock: if it compares renewTime with its own clock, the "
    "lease looked expired to it"
)


def play(ahead: float = AHEAD, *, user: str = "", of_first: float = 0) -> FakeServer:
    """Have db-1 take the lease from db-0 a second after that has renewed it."""
    server = FakeServer()
    db, mail = server.elector("db-0", "shop/db", ahead=of_first), server.elector("mail-0", "shop/mail")
    together(60, db, mail)
    server.wait(1)
    second = server.elector("db-1", "shop/db", ahead=ahead, **({"user": user} if user else {}))
    second.take()
    together(20, second, mail)
    return server


def hide(server: FakeServer) -> FakeServer:
    """Make the log one at level Request, without the versions by which a takeover could be told from a gap."""
    for event in hide_responses(server).log:
        event["objectRef"].pop("resourceVersion", None)
        event["requestObject"]["metadata"].pop("resourceVersion", None)
    return server


def explain(server: FakeServer, view: View = follow_log) -> Account:
    return account(view(server), server.now)


def test_who_asks_for_a_lease_by_a_clock_that_is_ahead_has_taken_it_as_asked() -> None:
    found = explain(hide(play()))
    said = text(found)
    assert f"lease-stolen: {ASKED} {FAST}. The log does not show what was stored" in said
    assert "if that is what was asked for, two may have led at once" in said
    assert "holder-clock: renewTime is at least 47 s ahead of" in said
    assert advise(found).startswith("First check the clock of the node of db-1_1; db-1_1 should wait until the lease")


@pytest.mark.parametrize(
    "server",
    [
        play(0),
        play(10),
        play(user="system:serviceaccount:ci:runner"),
        play(of_first=AHEAD),
    ],
    ids=[
        "its clock is right",
        "it is ahead by less than the lease lasts",
        "another account may write any times",
        "the holder before was ahead as much",
    ],
)
def test_that_a_lease_looked_expired_is_not_said_without_a_clock_that_shows_it(server: FakeServer) -> None:
    said = text(explain(hide(server)))
    assert "lease-stolen" not in said
    assert "the lease looked expired to it" not in said


def test_a_webhook_may_have_changed_the_time() -> None:
    server = hide(play())
    for event in server.log:
        annotation = {"mutation.webhook.admission.k8s.io/round_0_index_0": '{"configuration":"c","mutated":true}'}
        event["annotations"] = {**event.get("annotations", {}), **annotation}
    assert "the lease looked expired to it" not in text(explain(server))


@pytest.mark.parametrize(
    ("view", "fast"),
    [(follow_log, FAST), (follow_both, FAST), (follow_watch, FAST.replace("47.3 s", "46.3 s"))],
    ids=["log", "both", "watch"],
)
def test_a_theft_is_linked_with_the_clock_of_who_took_it(view: View, fast: str) -> None:
    found = explain(play(), view)
    said = text(found)
    assert f"two may have led at once. {fast}" in said
    assert ("looked expired to it. The input does not show who wrote it" in said) is (view is follow_watch)
    assert advise(found).startswith("First check the clock of the node of db-1_1; db-1_1 should wait until the lease")


@pytest.mark.parametrize(
    ("view", "is_said"),
    [(follow_log, False), (follow_watch, True)],
    ids=["a log shows which API server that was", "a watch does not"],
)
def test_the_clock_of_the_api_server_is_right_if_that_of_another_holder_agrees_with_it(
    view: Callable[[FakeServer], object], *, is_said: bool
) -> None:
    said = text(explain(play(), view))  # type: ignore[arg-type]
    assert "the holder's clock is off" in said
    assert ("or that of the API server" in said) is is_said


def test_a_client_that_compares_times_may_wait_longer_than_until_the_lease_expires() -> None:
    expires = "Expires: 11:08:16Z (in 16 s) unless renewed"
    said = text(explain(play()))
    assert f"{expires}; a client that compares renewTime with its own clock may wait until 11:09:03Z" in said
    assert "may wait until" not in text(explain(play(0)))
