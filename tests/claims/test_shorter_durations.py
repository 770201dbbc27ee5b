"""A process that takes a live lease, which then lasts for less: its elector may wait for its own duration only."""

import pytest

from tests.claims.accounts import account
from tests.history.fake_server import FakeServer
from tests.history.observing import View, follow_log, follow_watch
from webhook.analysis.claims.facts import find_claims

SET = "two may have led at once; it lasted 60 s and lasts 5 s since: some electors wait for their own only"


def steal(duration: int, follow: View = follow_log, *, pod: str = "db-1", before: int = 60) -> str:
    """Have another one take a live lease, and return what is said of that."""
    server = FakeServer()
    server.elector("db-0", "shop/db", duration=before).lead(60)
    server.wait(5)
    taker = server.elector("db-1", "shop/db", duration=duration)
    taker.pod = pod
    taker.lead(4)
    return next(one.message for one in find_claims(account(follow(server), server.now)) if one.check == "lease-stolen")


def test_a_shorter_duration_of_who_took_a_live_lease_is_said() -> None:
    assert steal(5).endswith(SET)


@pytest.mark.parametrize("duration", [60, 90], ids=["the same", "a longer one"])
def test_another_duration_does_not_explain_that_it_was_taken_early(duration: int) -> None:
    assert steal(duration).endswith("two may have led at once")


def test_a_watch_does_not_show_whose_duration_it_is() -> None:
    assert "it lasted" not in steal(5, follow_watch)


def test_of_a_holder_that_another_one_wrote_in_the_duration_is_not_its_own() -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db", duration=60).lead(60)
    server.wait(5)
    other = server.elector("db-9", "shop/db", duration=5)
    other.identity = "db-1_1"
    other.take()
    server.wait(1)
    server.elector("db-1", "shop/db", duration=5).renew()
    claims = find_claims(account(follow_log(server), server.now))
    assert not [one for one in claims if "it lasted" in one.message]
