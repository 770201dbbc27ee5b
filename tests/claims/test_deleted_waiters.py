"""The only pod that waits for a lease is deleted, and later its holder lets it expire: no one was there to take it."""

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import FakeServer, together
from tests.history.observing import follow_log

SAID = "pod db-1, which waited for it, was deleted by kube-system/replicaset-controller; no other one waited then"
ALSO = "was deleted by kube-system/replicaset-controller; no other one waited then"


def play(*, other: bool = False, is_waiting: bool = True, is_lost: bool = True) -> str:
    """Have db-1 wait and be deleted; db-0 falls silent half a minute later, and takes the lease again."""
    server = FakeServer()
    server.uids |= {f"db-{number}": f"uid-{number}" for number in range(3)}
    holder, waiter, third = (server.elector(f"db-{number}", "shop/db") for number in range(3))
    mail = server.elector("mail-0", "shop/mail")
    for _ in range(20):
        together(2, holder, mail)
        (waiter.ask if is_waiting else mail.ask)()
        if other:
            third.ask()
    server.delete_pod("db-1", uid="uid-1")
    for _ in range(15):
        together(2, holder, mail)
        if other:
            third.ask()
    if is_lost:
        together(60, mail)
        holder.identity = "db-0_2"
        holder.take()
    together(20, holder, mail)
    return text(account(follow_log(server), server.now))


def test_the_deletion_of_the_only_pod_that_waited_is_said() -> None:
    assert SAID in play()


@pytest.mark.parametrize(
    ("other", "is_waiting", "is_lost"),
    [(True, True, True), (False, False, True), (False, True, False)],
    ids=["another one waits", "it did not wait", "the lease is not lost"],
)
def test_the_deletion_of_another_pod_is_not(other: bool, is_waiting: bool, is_lost: bool) -> None:
    assert ALSO not in play(other=other, is_waiting=is_waiting, is_lost=is_lost)
