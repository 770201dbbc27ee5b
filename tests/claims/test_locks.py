"""A lease that jobs take as a lock, never renew, and delete by its name when they end, whoever has it."""

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import FakeServer
from tests.history.observing import follow_log

ASKS = "pod job-0, the holder before, asks for it"


def lock(*, waits: float, deleter: int = 0) -> FakeServer:
    """The first job is heard again while the second one has the lock, which is deleted some time later."""
    server = FakeServer()
    jobs = [server.elector(f"job-{number}", "shop/db", duration=3600) for number in range(2)]
    jobs[0].take()
    server.wait(10)
    server.delete("shop/db")
    server.wait(5)
    jobs[1].take()
    server.wait(10)
    jobs[0].ask()
    server.wait(waits)
    server.delete("shop/db", jobs[deleter].user, jobs[deleter].pod)
    return server


def test_who_reads_a_lock_only_to_delete_it_does_not_ask_for_it() -> None:
    server = lock(waits=0.01)
    output = text(account(follow_log(server), server.now))
    assert "shop/db from pod job-0 deleted the lease while job-1_1 held it" in output
    assert ASKS not in output


@pytest.mark.parametrize(
    ("waits", "deleter"), [(5, 0), (0.01, 1)], ids=["it deletes it long after", "its holder deletes it"]
)
def test_who_reads_a_lock_for_another_reason_asks_for_it(waits: float, deleter: int) -> None:
    server = lock(waits=waits, deleter=deleter)
    assert ASKS in text(account(follow_log(server), server.now))
