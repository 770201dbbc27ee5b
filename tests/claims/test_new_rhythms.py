"""A lease whose holder renews it more rarely than before, after its settings were changed."""

from collections.abc import Callable

import pytest

from tests.claims.accounts import account
from tests.history.fake_server import FakeServer
from tests.history.observing import advise, follow_both, follow_log, follow_watch
from webhook.analysis.history.follow import ClusterHistory

FOLLOWS = pytest.mark.parametrize("follow", [follow_log, follow_watch, follow_both], ids=["log", "watch", "both"])


@FOLLOWS
@pytest.mark.parametrize(
    ("silent", "words"),
    [
        (9, "It is held and renewed; a lease does not show whether its holder works."),
        (29, "More time has passed since its last renewal than between most renewals. Check whether db-0_1"),
    ],
    ids=["for less than the latest renewals are apart", "for longer"],
)
def test_a_lease_that_was_renewed_often_does_not_lack_renewals(
    follow: Callable[[FakeServer], ClusterHistory], silent: int, words: str
) -> None:
    server = FakeServer()
    holder = server.elector("db-0", "shop/db")
    holder.lead(40)
    server.wait(2)
    holder.renew(leaseDurationSeconds=90)
    for _ in range(3):
        server.wait(25)
        holder.renew(leaseDurationSeconds=90)
    server.wait(silent)
    assert advise(account(follow(server), server.now)).startswith(words)


@FOLLOWS
def test_a_lease_that_was_renewed_once_may_not_be_renewed(follow: Callable[[FakeServer], ClusterHistory]) -> None:
    server = FakeServer()
    holder = server.elector("db-0", "shop/db")
    holder.take()
    server.wait(9)
    assert advise(account(follow(server), server.now)).startswith("The input does not show two renewals")
