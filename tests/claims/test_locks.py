"""A lease that jobs take as a lock, never renew, and delete by its name when they end, whoever has it."""

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import FakeServer
from tests.history.observing import follow_log, follow_watch
from webhook.analysis.claims.claim import Claim
from webhook.findings import Severity

ASKS = "pod job-0, the holder before,"


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


@pytest.mark.parametrize("is_renewed", [False, True], ids=["a lock", "renewed by a leader"])
def test_who_deletes_a_lease_that_a_watch_shows_may_be_its_holder(is_renewed: bool) -> None:
    """Jobs that create the lease as a lock and delete it when they end: no one else led meanwhile."""
    server = FakeServer()
    for number in range(3):
        job = server.elector(f"job-{number}", "shop/db", duration=300)
        job.take()
        if is_renewed:
            for _ in job.ticks(14):
                job.renew()
        server.wait(15)
        server.delete("shop/db", user=job.user, pod=job.pod)
        server.wait(2)
    server.elector("job-9", "shop/db", duration=300).take()
    found = [one for one in account(follow_watch(server), server.now).findings if isinstance(one, Claim)]
    found = [one for one in found if one.check == "lease-deleted"]
    itself = "if the holder did not delete it itself, as some do, two may have led at once"
    assert len(found) == 3
    assert all(itself in one.message for one in found)
    assert all(one.severity is Severity.WARNING for one in found)
