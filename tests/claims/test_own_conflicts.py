"""A holder that renews twice at once, and takes its own conflict for another leader."""

import pytest

from tests.claims.accounts import account, shop
from tests.history.fake_server import Elector, FakeServer, together
from tests.history.observing import follow_log
from webhook.analysis.claims.claim import Claim, make_claim_json

OWN = "it had sent its last renewal and another update at once, of which the other one was answered with 409"


def lose(renew_last: str, *, seconds_between: float) -> Claim:
    """Have db-0 renew and conflict so soon after each other, and then stop; return what is said of its loss."""
    server, (db, *others) = shop()
    together(40, db, *others)
    server.wait(2)
    renew_twice(server, db, renew_last, seconds_between)
    together(20, *others)
    server.elector("db-1", "shop/db").take()
    (lost,) = (one for one in account(follow_log(server), server.now).findings if one.check == "leader-lost")
    assert isinstance(lost, Claim)
    return lost


def renew_twice(server: FakeServer, elector: Elector, last: str, seconds_between: float) -> None:
    """Renew and conflict; a request takes 4 ms."""
    for number, code in enumerate(("200", "409") if last == "409" else ("409", "200")):
        server.wait(number * seconds_between)
        if code == "409":
            elector.fail(409)
        else:
            elector.renew()


@pytest.mark.parametrize("last", ["409", "200"])
def test_of_two_updates_at_once_the_one_that_conflicted_may_be_why_the_holder_stopped(last: str) -> None:
    lost = lose(last, seconds_between=0.001)
    assert OWN in lost.message
    assert "conflict" in make_claim_json(lost)["causes"]


@pytest.mark.parametrize("last", ["409", "200"])
def test_who_tries_again_after_a_conflict_has_not_sent_both_at_once(last: str) -> None:
    assert OWN not in lose(last, seconds_between=0.02).message
