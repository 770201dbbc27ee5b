"""A name that someone writes into a lease, for years, and that never renews: whoever deletes the lease then repairs it.

Source: the recorded incident of a contractor who wrote the name of a pod that did not exist, for 2^31 - 1 seconds.
"""

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import FakeServer
from tests.history.observing import View, advise, follow_both, follow_log, follow_watch

VIEWS = pytest.mark.parametrize("view", [follow_log, follow_watch, follow_both], ids=["log", "watch", "both"])
LONGEST = 2**31 - 1


def play(*, seconds: float = 100, duration: int = LONGEST) -> FakeServer:
    """Write db-9 over db-0 for `duration`, delete the lease `seconds` later, and have db-1 create it again."""
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(40)
    server.wait(1)
    server.elector("db-9", "shop/db", user="jane", pod="", manager="curl").take(leaseDurationSeconds=duration)
    server.wait(seconds)
    server.delete("shop/db", "mei")
    server.wait(1.5)
    server.elector("db-1", "shop/db").lead(20)
    return server


def said_of(server: FakeServer, view: View) -> str:
    return text(account(view(server), server.now))


@VIEWS
def test_no_one_is_said_to_lead_for_the_duration_that_a_stranger_wrote(view: View) -> None:
    said = said_of(play(), view)
    assert "years after their last renewal" not in said
    assert "the lease had no holder for" not in said


@pytest.mark.parametrize("view", [follow_log, follow_both], ids=["log", "both"])
def test_a_name_that_never_renewed_did_not_lead_until_the_lease_was_deleted(view: View) -> None:
    said = said_of(play(), view)
    assert "while db-9_1 was named in it, which did not renew it in the 1 min 40 s since it was written in" in said


@VIEWS
def test_the_duration_that_keeps_others_from_a_lease_is_said(view: View) -> None:
    assert "it lasted 15 s before, and 2147483647 s (68 years) then" in said_of(play(), view)


@VIEWS
def test_a_duration_that_is_somewhat_longer_is_not_said(view: View) -> None:
    assert "it lasted 15 s before" not in said_of(play(duration=60), view)


def test_the_advice_is_about_who_wrote_the_name_and_not_about_who_deleted_it() -> None:
    said = advise(account(follow_log(play()), play().now))
    assert said.startswith("Find out why jane wrote the holder.")
    assert "mei" not in said


def test_who_is_deleted_soon_after_it_was_written_in_may_lead() -> None:
    said = said_of(play(seconds=5, duration=15), follow_log)
    assert "while db-9_1 held it" in said
    assert "two may have led at once, as most clients lead for up to 12 s" in said


def test_a_duration_that_another_one_stored_does_not_bound_for_how_long_a_holder_leads() -> None:
    server = FakeServer()
    holder = server.elector("db-0", "shop/db")
    holder.lead(40)
    server.wait(1)
    spec = {**server.leases["shop/db"]["spec"], "leaseDurationSeconds": LONGEST}
    server.write("shop/db", spec, "curl", "jane", "")
    server.wait(1)
    server.delete("shop/db", "mei")
    server.wait(1)
    server.elector("db-1", "shop/db").lead(20)
    said = said_of(server, follow_log)
    assert "two may have led at once" in said
    assert "years after their last renewal" not in said


def test_of_a_lease_that_had_expired_only_that_is_said() -> None:
    said = said_of(play(duration=15), follow_log)
    assert "while db-9_1 held it, which had not renewed it for 1 min 40 s: it had expired" in said
    assert "since it was written in" not in said
