"""A holder that takes the lease with another duration than the one before: others may wait longer for it."""

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import FakeServer
from tests.history.observing import View, follow_log, follow_watch
from webhook.analysis.claims.presentation.happened import list_latest

VIEWS = pytest.mark.parametrize("view", [follow_log, follow_watch], ids=["log", "watch"])
CHANGED = "db-1_1 took it after db-0_1, with a duration of 30 s (before: 15 s)"


def follow(view: View, *, release: bool = False, again: int = 0) -> list[str]:
    """Return the events shown by default after a second holder took the lease, and a third one for `again` seconds."""
    server = FakeServer()
    first, second = server.elector("db-0", "shop/db"), server.elector("db-1", "shop/db", duration=30)
    first.lead(40)
    if release:
        first.release()
    server.wait(20)
    second.lead(40)
    if again:
        server.wait(32)
        server.elector("db-2", "shop/db", duration=again).lead(20)
    found = account(view(server), server.now)
    assert [one for one in text(found).splitlines() if "with a duration of" in one]
    return [one.text for one in list_latest(found)]


@VIEWS
def test_a_new_holder_with_another_duration_is_told(view: View) -> None:
    assert CHANGED in follow(view, release=True)


@VIEWS
def test_how_long_it_had_lasted_is_told_once_of_a_holder_that_lost_it(view: View) -> None:
    assert CHANGED not in follow(view)


@VIEWS
@pytest.mark.parametrize("again", [30, 10])
def test_a_change_of_the_duration_is_told_after_a_later_loss(view: View, again: int) -> None:
    assert [one for one in follow(view, again=again) if "with a duration of" in one] == [CHANGED]


@VIEWS
@pytest.mark.parametrize(("silent", "duration"), [(20, 15), (20, 1), (5, 30)], ids=["the same", "a second", "stolen"])
def test_other_holders_do_not_change_the_duration(view: View, silent: int, duration: int) -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(40)
    server.wait(silent)
    server.elector("db-1", "shop/db", duration=duration).lead(20)
    assert "with a duration of" not in text(account(view(server), server.now))
