"""Two applications that use one lease: the second one waits, and never leads."""

import pytest

from tests.claims.accounts import account, shop, text
from tests.history.fake_server import FakeServer, together
from tests.history.observing import follow_log

BACKUP = "system:serviceaccount:shop:backup"


def play(
    *, user: str = BACKUP, times: int = 10, pods: int = 1, rest: float = 0, holder: str = "", has_led: bool = False
) -> FakeServer:
    """Have pods of an account ask for shop/db every 2 s, while db-0 holds it."""
    server, (db, *others) = shop()
    db.user = holder or db.user
    askers = [server.elector(f"backup-{number}", "shop/db", user=user) for number in range(pods)]
    if has_led:
        askers[0].take()
        together(4, askers[0], *others)
        askers[0].release()
        server.wait(0.1)
        db.take()
    for _ in range(times):
        together(2, db, *others)
        for one in askers:
            one.ask()
    if rest:
        together(rest, db, *others)
    return server


def say(server: FakeServer) -> str:
    return text(account(follow_log(server), server.now))


def test_another_workload_that_asks_for_a_lease_is_said() -> None:
    said = say(play())
    assert "Also asks: shop/backup from pod backup-0 reads it again and again; its holder is shop/db" in said
    assert (
        "ADVICE It is held and renewed. If shop/backup and shop/db are two applications that elect, only one of "
        "them leads: give each a lease name (election ID) of its own. To see what runs there: kubectl -n shop get pods"
    ) in said


def test_several_pods_of_it_are_counted() -> None:
    assert "Also asks: shop/backup from pod backup-2, and 2 more, read it again and again" in say(play(pods=3))


@pytest.mark.parametrize(
    "server",
    [
        play(user="system:serviceaccount:shop:db"),
        play(user="system:serviceaccount:monitoring:exporter"),
        play(user="alice"),
        play(times=4),
        play(rest=16),
        play(has_led=True),
        play(holder="alice"),
    ],
    ids=[
        "another replica",
        "of another namespace",
        "a person",
        "which looked some times",
        "which asks no more",
        "which has held it",
        "beside a person",
    ],
)
def test_who_need_not_be_another_application_is_not_said(server: FakeServer) -> None:
    assert "Also asks" not in say(server)
