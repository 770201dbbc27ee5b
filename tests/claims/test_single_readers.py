"""Jobs that read a lock once, find it held, and end."""

import pytest

from tests.claims.accounts import account, shop, text
from tests.history.fake_server import FakeServer, together
from tests.history.observing import follow_both, follow_log
from webhook.analysis.claims.findings.single_readers import find_single_readers
from webhook.analysis.claims.presentation.happened import list_latest

OWN = "system:serviceaccount:shop:db"
SAID = "11:07:10Z: 2 other pods of shop/db read it once each, the last, db-2, at 11:07:40Z: it was held"


def play(*, pods: int = 2, reads: int = 1, rest: int = 30, user: str = OWN, is_refused: bool = False) -> FakeServer:
    """Have pods ask for shop/db one after another, while db-0 holds it."""
    server, electors = shop()
    together(30, *electors)
    for number in range(1, pods + 1):
        asker = server.elector(f"db-{number}", "shop/db", user=user)
        for _ in range(reads):
            server.wait(0.1)
            asker.ask()
        if is_refused:
            asker.fail(409)
        together(rest, *electors)
    return server


def say(server: FakeServer) -> str:
    return text(account(follow_log(server), server.now))


def test_pods_that_read_it_once_are_said() -> None:
    server = play()
    assert SAID in say(server)
    assert any(SAID.endswith(one.text) for one in list_latest(account(follow_log(server), server.now)))


@pytest.mark.parametrize(
    "server",
    [
        play(pods=1),
        play(reads=2),
        play(rest=6),
        play(user="system:serviceaccount:shop:monitor"),
        play(is_refused=True),
    ],
    ids=["one of them", "which ask again", "which have just begun", "of another account", "which also wrote"],
)
def test_others_are_not_said(server: FakeServer) -> None:
    assert "read it once each" not in say(server)


def test_reads_before_it_was_held_or_after_the_question_do_not_count() -> None:
    server = play()
    assert "read it once each" not in text(account(follow_log(server), server.now - 40_000_000))
    server, (db, *others) = shop()
    for number in range(1, 3):
        server.elector(f"db-{number}", "shop/db").ask()
    together(30, db, *others)
    assert "read it once each" not in say(server)


def test_the_former_holder_and_a_log_that_lacks_requests_are_not_counted() -> None:
    server = play()
    late = [one for one in server.log if one["objectRef"].get("name") == "db" and one["verb"] == "update"][-4]
    server.log.remove(late)
    assert find_single_readers(account(follow_both(server), server.now)) is None


def test_nobody_holds_it() -> None:
    server, (db, *others) = shop()
    together(30, db, *others)
    db.release()
    assert find_single_readers(account(follow_log(server), server.now)) is None
