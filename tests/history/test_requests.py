"""What an audit log shows of a holder besides its renewals: its other requests, and who deleted its lease."""

import pytest

from tests.history.fake_server import SECOND, START, FakeServer
from tests.history.observing import LEASE, follow_log, follow_metadata, follow_watch, observe_all
from tests.inputs.reading import read
from webhook.analysis.history.audit_log.kept_refusals import MAX_FIRST, MAX_REFUSALS
from webhook.analysis.history.audit_log.requests import Requests
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.processes import MAX_REQUESTS_AFTER_LOSS
from webhook.analysis.history.visibility.bounds import MAX_LISTED
from webhook.analysis.inputs.items import Writer


def lost() -> FakeServer:
    """`a` leads, tries twice in vain to renew, and `b` takes the lease 16 s after the last renewal."""
    server = FakeServer()
    a = server.elector("a", "shop/db")
    a.lead(20)
    for seconds in (2, 2):
        server.wait(seconds)
        a.fail(504)
    server.wait(12)
    server.elector("b", "shop/db").lead(10)
    return server


def test_requests_of_the_holder_are_counted() -> None:
    server = lost()
    before, after = follow_log(server).leases[LEASE].tenures
    assert before.last_renewal is not None
    assert before.processes.count_requests(before.last_renewal, after.since) == 2
    assert not before.processes.requests_after_loss


def test_a_holder_that_comes_back_is_heard() -> None:
    server = lost()
    a = server.elector("a", "shop/db")
    a.ask()
    at = server.now - 4000
    server.wait(2)
    a.ask()
    assert follow_log(server).leases[LEASE].tenures[0].processes.requests_after_loss == [at, at + 2 * SECOND]
    for _ in range(20):
        server.wait(2)
        a.ask()
    assert len(follow_log(server).leases[LEASE].tenures[0].processes.requests_after_loss) == MAX_REQUESTS_AFTER_LOSS


@pytest.mark.parametrize("is_known", [True, False], ids=["that wrote regularly", "of elsewhere, that wrote once"])
def test_a_writer_is_heard_again_from_its_first_request_after_another_one_wrote(is_known: bool) -> None:
    server = FakeServer()
    user = f"system:serviceaccount:{'shop' if is_known else 'ops'}:db"
    a, b = server.elector("a", "shop/db", user=user), server.elector("b", "shop/db")
    a.lead(20 if is_known else 0)
    server.wait(2)
    b.take()
    server.wait(1)
    a.ask()
    at = server.now - 4000
    b.lead(20)
    before, after = follow_metadata(server).leases[LEASE].tenures
    assert after.since < at
    assert (before.processes.is_process_known, before.processes.requests_after_loss) == (
        is_known,
        [at] if is_known else [],
    )


def test_a_watch_knows_no_requests() -> None:
    before, after = follow_watch(lost()).leases[LEASE].tenures
    assert before.processes.count_requests(0, after.since) is None


def test_a_lease_that_nobody_holds_has_no_one_to_hear() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").ask()
    assert follow_log(server).leases[LEASE].requests.readers["a"][0] == 1


def test_who_deleted_the_lease_is_remembered() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(10)
    server.delete("shop/db", "jane")
    (tenure,) = follow_log(server).leases[LEASE].tenures
    assert tenure.is_deleted
    assert tenure.deletion.by is not None
    assert tenure.deletion.by.name == "jane"


def test_of_very_many_logs_the_first_ones_are_remembered() -> None:
    histories = ClusterHistory()
    for number in range(MAX_LISTED + 1):
        server = FakeServer(now=START + number * 60 * SECOND)
        server.elector("a", "shop/db").ask()
        observe_all(histories, read(f"log-{number:02}", [server.audit_log()]))
    requests = histories.leases[LEASE].requests
    assert sorted(requests.logs) == [f"log-{number:02}" for number in range(MAX_LISTED)]
    assert set().union(*requests.authenticating.values()) == requests.logs


def flood(*users: str, number: int = MAX_REFUSALS + MAX_FIRST + 1) -> Requests:
    """The requests of a lease whose holder a webhook refused, before users ask for it often, and may not."""
    server = FakeServer()
    db = server.elector("db-0", "shop/db")
    db.lead(20)
    db.fail(403, "no")
    for user in users:
        asking = server.elector("x-0", "shop/db", user=user)
        for _ in range(number):
            server.wait(0.01)
            asking.fail(403, "forbidden", verb="get")
    return follow_log(server).leases[LEASE].requests


def is_write_kept(requests: Requests) -> bool:
    return any(not one.is_read for one in requests.refusals)


def test_refused_reads_of_who_never_held_it_displace_no_other_refusal() -> None:
    requests = flood("evil", "mallory")
    assert is_write_kept(requests)
    assert len(requests.refusals) == 2 * (MAX_REFUSALS + MAX_FIRST) + 1
    assert not requests.has_forgotten_since(0)
    assert not requests.has_forgotten_of(Writer("alice", "x-0"))
    assert all(requests.has_forgotten_since(0, user) for user in ("evil", "mallory"))
    assert all(requests.has_forgotten_of(one.writer) for one in requests.refusals if one.is_read)


def test_refused_reads_of_who_held_it_are_among_its_refusals() -> None:
    requests = flood("system:serviceaccount:shop:db")
    assert is_write_kept(requests)  # as the first one of its process
    assert requests.has_forgotten_since(0)
    forgotten = {one.writer: requests.has_forgotten_of(one.writer) for one in requests.refusals}
    assert sorted((who.pod, is_forgotten) for who, is_forgotten in forgotten.items()) == [
        ("db-0", False),
        ("x-0", True),
    ]


def test_refused_reads_of_very_many_users_are_kept_together() -> None:
    requests = flood(*(f"user-{number:02}" for number in range(MAX_LISTED + 2)), number=60)
    assert len([one for one in requests.refusals if one.is_read]) == MAX_LISTED * 60 + MAX_REFUSALS + MAX_FIRST
    assert not requests.has_forgotten_of(Writer("user-00", "x-0"))
    assert requests.has_forgotten_since(0, "user-17")
