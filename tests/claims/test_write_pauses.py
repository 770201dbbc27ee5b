"""A pause in the writes of a lease that a log without objects shows."""

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import FakeServer, together
from tests.history.observing import follow_log, follow_metadata

UNREACHED = 'failed calling webhook "w.example.com": context deadline exceeded'


def pause(
    seconds: float,
    *,
    others: int = 3,
    together_with: int = 0,
    successor: str = "",
    failure: str = "",
    failures: int = 1,
) -> FakeServer:
    """A holder that does not write for a while, beside others, of which some pause as well.

    `failure` is the message of its `failures` writes that fail at the end of that.
    """
    server = FakeServer()
    db, *mails = (server.elector(f"{name}-0", f"shop/{name}") for name in ("db", "a", "b", "c")[: others + 1])
    together(40, db, *mails)
    if others > together_with:
        together(seconds, *mails[together_with:])
    else:
        server.wait(seconds)
    for _ in range(failures if failure else 0):
        server.wait(0.01)
        db.fail(500, failure)
    if successor:
        server.elector(successor, "shop/db").lead(20)
    together(20, db, *mails)
    return server


def test_a_pause_is_told_of_with_those_that_paused_too() -> None:
    server = pause(90, together_with=1)
    said = text(account(follow_metadata(server), server.now))
    assert (
        "Pause: the log has no accepted write of it for 1 min 32 s, from 11:07:20Z until 11:08:52Z; "
        "late at the same time: shop/a\n" in said
    )


def test_a_pause_of_one_alone_is_told_of() -> None:
    server = pause(40)
    said = text(account(follow_metadata(server), server.now))
    assert "Pause: the log has no accepted write of it for 42 s, from 11:07:20Z until 11:08:02Z\n" in said


@pytest.mark.parametrize(
    "server",
    [
        pause(20),
        pause(90, others=0),
        pause(90, successor="db-1"),
        pause(90, failure="etcdserver: request timed out"),
        pause(90, failure=UNREACHED, failures=109),
        FakeServer(),
    ],
    ids=[
        "a short one",
        "nothing shows that the log goes on",
        "another one wrote after it",
        "a write may have been stored",
        "more failed than are remembered",
        "no write",
    ],
)
def test_a_pause_that_may_be_none_is_not_told_of(server: FakeServer) -> None:
    if not server.log:
        server.elector("db-0", "shop/db").lead(2)
    assert "Pause" not in text(account(follow_metadata(server), server.now))


def test_writes_that_surely_failed_are_none() -> None:
    server = pause(40, failure=UNREACHED)
    assert "Pause: the log has no accepted write of it for 42 s" in text(account(follow_metadata(server), server.now))


def test_a_holder_that_is_known_was_late() -> None:
    server = pause(90)
    assert "Pause" not in text(account(follow_log(server), server.now))
