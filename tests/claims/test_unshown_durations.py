"""Leases that may last longer than was asked for: a log of requests does not show what was stored."""

import pytest

from tests.claims.accounts import account, shop, text
from tests.claims.test_related_writes import ADMISSION, log_write
from tests.factories import put
from tests.history.fake_server import FakeServer, hide_responses, together
from tests.history.observing import advise, follow_log
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.presentation.account_json import make_account_json
from webhook.analysis.claims.presentation.happened import list_latest
from webhook.analysis.history.audit_log.waiting import MAX_TIMES

DOUBT = (
    "15 s, which were asked for, had passed since the last renewal by db-0_1; shop/db from pod db-1 asked for the "
    "lease 22 times from then on, and took it at 11:08:00Z: the log does not show what was stored, and a mutating "
    "webhook or policy may have made the lease last longer"
)


def play(*, is_shown: bool = False, waits: int = 60, **attempt: int) -> tuple[FakeServer, Account]:
    """Have db-1 ask for shop/db every two seconds, and take it `waits` seconds after the last renewal by db-0."""
    server, (db, *others) = shop()
    follower = server.elector("db-1", "shop/db")
    follower.ask()
    log_write(
        server,
        "mutatingadmissionpolicies",
        ADMISSION,
        put("verb", "create"),
        put("objectRef.name", "calm"),
        put("objectRef.namespace", ""),
    )
    together(20, db, *others)
    follower.ask()
    for second in range(0, waits, 2):
        together(2, *others)
        follower.ask()
        if second == attempt.get("fails_at"):
            follower.fail(attempt["code"])
    follower.take()
    together(10, follower, *others)
    found = account(follow_log(server if is_shown else hide(server)), server.now)
    return server, found


def hide(server: FakeServer) -> FakeServer:
    """Leave what was stored out of the log."""
    hide_responses(
        FakeServer(log=[one for one in server.log if "spec" in one.get("responseObject", {}) and one["verb"] != "get"])
    )
    return server


def list_claims(found: Account) -> set[str]:
    return {one["claim"] for one in make_account_json(found)["claims"]}


def test_more_requests_than_are_remembered_are_at_least_so_many() -> None:
    _, found = play(waits=200)
    assert f"asked for the lease at least {MAX_TIMES - 1} times from then on" in text(found)


def test_who_asked_all_the_while_casts_doubt_on_the_duration_that_was_asked_for() -> None:
    _, found = play()
    assert DOUBT in [line.text for line in list_latest(found)]
    assert "the lease expired" not in text(found)
    assert not {"taken-late", "expires"} & list_claims(found)
    assert "The lease may last longer than is asked for." in advise(found)


def test_what_was_stored_says_how_long_it_lasts() -> None:
    _, found = play(is_shown=True)
    assert {"taken-late", "expires"} <= list_claims(found)
    assert found.unshown_duration is None


def test_who_takes_it_soon_casts_no_doubt() -> None:
    _, found = play(waits=18)
    assert found.unshown_duration is None
    assert "expires" in list_claims(found)


@pytest.mark.parametrize("code", [403, 409, 500])
def test_who_could_not_take_it_casts_no_doubt(code: int) -> None:
    _, found = play(fails_at=30, code=code)
    assert found.unshown_duration is None


def test_what_may_change_writes_is_listed_with_the_doubt() -> None:
    _, found = play()
    assert "MutatingAdmissionPolicy calm was created by alice@example.org" in text(found)
    assert "calm" not in text(play(waits=18)[1])
