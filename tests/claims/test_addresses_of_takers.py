"""A taker whose token names no pod is distinguished by its address from the holder of the same user."""

import pytest

from tests.claims.accounts import account, shop
from tests.factories import put
from tests.history.fake_server import Elector, FakeServer, together
from tests.history.observing import follow_log
from webhook.analysis.claims.claim import Claim
from webhook.analysis.claims.facts import find_claims

NAMELESS = "its requests name no pod, so the log does not show which process asked for the lease, and which ran"
FIRST = "the log has no request for it from 10.0.0.2, from where it was taken, until 11:08:"


class Play:
    """Two processes of one user, at two addresses."""

    def __init__(self) -> None:
        self.server, (self.db, *self.others) = shop()
        self.follower = self.server.elector("db-1", "shop/db")
        self.db.pod = self.follower.pod = ""

    def do(self, elector: Elector, address: str, *, is_write: bool = True, verb: str = "") -> None:
        elector.renew() if elector is self.db and is_write else elector.take() if is_write else elector.ask()
        put("sourceIPs", [address])(self.server.log[-1])
        if verb:
            put("verb", verb)(self.server.log[-1])

    def lead(self) -> None:
        self.db.take()
        put("sourceIPs", ["10.0.0.1"])(self.server.log[-1])
        for _ in range(10):
            together(2, *self.others)
            self.do(self.db, "10.0.0.1")

    def wait(self, seconds: int) -> None:
        together(seconds, *self.others)

    def ask(self, address: str = "10.0.0.2", verb: str = "") -> None:
        self.do(self.follower, address, is_write=False, verb=verb)

    def fail(self, *addresses: str, verb: str = "get") -> None:
        """Ask with credentials that have ended, from each address."""
        for address in addresses:
            self.server.wait(0.1)
            self.db.fail_unauthenticated(verb)
            put("sourceIPs", [address])(self.server.log[-1])

    def take(self) -> str:
        self.do(self.follower, "10.0.0.2")
        return find_lateness(self.server).message


def find_lateness(server: FakeServer) -> Claim:
    return next(one for one in find_claims(account(follow_log(server), server.now)) if one.check == "taken-late")


@pytest.mark.parametrize("asks_before", [True, False], ids=["it had asked before", "never"])
def test_a_taker_from_whose_address_nobody_asked_for_most_of_the_time(*, asks_before: bool) -> None:
    play = Play()
    if asks_before:
        play.ask()
    play.lead()
    play.wait(70)
    play.ask()
    play.wait(4)
    assert FIRST in play.take()


def test_from_which_address_it_asked_soon_says_nothing() -> None:
    play = Play()
    play.lead()
    play.wait(30)
    play.ask()
    play.wait(50)
    assert play.take().endswith(NAMELESS)


def test_who_asked_all_the_time_has_no_pause() -> None:
    play = Play()
    play.ask()
    play.lead()
    for _ in range(20):
        play.ask()
        play.wait(4)
    assert play.take().endswith(NAMELESS)


def test_who_watches_need_not_ask() -> None:
    play = Play()
    play.ask(verb="watch")
    play.lead()
    play.wait(70)
    assert play.take().endswith(NAMELESS)


def test_an_address_from_which_the_lease_was_written_before_may_be_of_either() -> None:
    play = Play()
    play.lead()
    play.do(play.db, "10.0.0.2")
    play.wait(70)
    assert play.take().endswith(NAMELESS)


def test_addresses_of_pods_are_not_remembered_beside_their_names() -> None:
    server, (db, *others) = shop()
    together(20, db, *others)
    asking = follow_log(server).leases["shop", "db"].requests.asking_addresses
    assert not asking._asked


def test_who_asked_with_credentials_that_were_not_accepted_was_there() -> None:
    play = Play()
    play.lead()
    for _ in range(15):
        play.wait(4)
        play.fail("10.0.0.1", "10.0.0.2", "10.0.0.3")
    play.ask()
    play.wait(4)
    message = play.take()
    assert FIRST not in message
    assert "requests from 10.0.0.2, from where it was taken, had no accepted credentials (401) before" in message
