"""A lease whose holder renews it more rarely than before, after its settings were changed."""

from collections.abc import Callable

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import FakeServer, together
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


def follow_file(server: FakeServer, follow: Callable[[FakeServer], ClusterHistory]) -> ClusterHistory:
    """Return the history of a file, which nothing follows."""
    histories = follow(server)
    histories.bounds.is_over = True
    return histories


@FOLLOWS
def test_the_time_after_the_end_of_an_input_is_no_evidence(follow: Callable[[FakeServer], ClusterHistory]) -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(40)
    server.wait(9)
    said = advise(account(follow_file(server, follow), server.now))
    assert said.startswith("The input ends at 11:07:20Z: until then it was renewed as usual, and what followed is not")
    assert said.endswith("To see whether it still is: kubectl -n shop get lease db --watch")


@FOLLOWS
def test_a_lease_is_overdue_while_another_one_is_renewed_until_the_input_ends(
    follow: Callable[[FakeServer], ClusterHistory],
) -> None:
    server = FakeServer()
    holder, other = server.elector("db-0", "shop/db"), server.elector("mail-0", "shop/mail")
    together(40, holder, other)
    together(10, other)
    server.wait(1)
    said = advise(account(follow_file(server, follow), server.now))
    assert said.startswith("More time has passed since its last renewal than between most renewals.")


@FOLLOWS
def test_the_end_of_an_unusual_gap_between_renewals_is_said(follow: Callable[[FakeServer], ClusterHistory]) -> None:
    server = FakeServer()
    holder = server.elector("db-0", "shop/db")
    holder.lead(40)
    server.wait(7)
    holder.lead(20)
    said = text(account(follow(server), server.now))
    assert "longest gap between two by the same holder: 9 s, until 11:07:29Z" in said


@FOLLOWS
def test_a_lease_that_was_renewed_once_may_not_be_renewed(follow: Callable[[FakeServer], ClusterHistory]) -> None:
    server = FakeServer()
    holder = server.elector("db-0", "shop/db")
    holder.take()
    server.wait(9)
    assert advise(account(follow(server), server.now)).startswith("The input does not show two renewals")
