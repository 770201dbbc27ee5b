"""A lease that jobs take as a lock, never renew, and delete by its name when they end, whoever has it."""

from collections.abc import Callable

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import START, FakeServer
from tests.history.observing import LEASE, cluster_of, follow_log, follow_watch
from webhook.analysis.claims.claim import Claim
from webhook.analysis.history.follow import ClusterHistory
from webhook.findings import Severity

ASKS = "pod job-0, the previous holder,"


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


def run_tasks(*held: float, pause: float = 42, count: int = 3, is_renewing: bool = True) -> FakeServer:
    """Tasks that are started from time to time, and hold a lock as they run."""
    server = FakeServer()
    for number in range(count):
        task = server.elector(f"task-{number}", "shop/db", pod=f"task-{number}")
        seconds = held[number % len(held)]
        task.lead(seconds) if is_renewing else task.take()
        task.release()
        server.wait(pause)
    return server


@pytest.mark.parametrize("follow", [follow_log, follow_watch], ids=["audit log", "watch"])
@pytest.mark.parametrize(
    ("server", "is_late"),
    [
        (run_tasks(16), False),
        (run_tasks(16, count=2), True),
        (run_tasks(16, 60), True),
        (run_tasks(16, count=1), False),
    ],
    ids=["each time", "twice, which may be by chance", "not always free for longer", "once"],
)
def test_nobody_is_late_for_a_lock_that_is_mostly_free(
    follow: Callable[[FakeServer], ClusterHistory], server: FakeServer, *, is_late: bool
) -> None:
    checks = {found.check for found in account(follow(server), server.now).findings}
    assert ("taken-late" in checks) is is_late


def test_a_task_that_another_one_removed_may_have_been_followed_late() -> None:
    server = run_tasks(16)
    server.elector("task-8", "shop/db", pod="task-8").lead(16)
    release = server.leases["shop/db"]["spec"] | {"holderIdentity": "", "leaseDurationSeconds": 1}
    server.write("shop/db", release, "kubectl", "alice", "")
    server.wait(40)
    server.elector("task-9", "shop/db", pod="task-9").lead(4)
    assert "taken-late" in {found.check for found in account(follow_log(server), server.now).findings}


def mutex(*, at_rest: float = 60, asks_for: float = 0, manager: str = "plugin") -> FakeServer:
    """A plugin takes a lease for single tasks of its pods, under one account, and releases it within a second."""
    server = FakeServer(now=START + 100_000)
    for number in range(8):
        plugin = server.elector(f"task-{number}", "shop/db", duration=1, manager="plugin")
        plugin.pod = ""
        if number == 7:
            server.wait(at_rest - asks_for)
            while asks_for > 0:
                plugin.ask()
                server.wait(2)
                asks_for -= 2
        plugin.ask()
        server.wait(0.01)
        plugin.take()
        server.wait(0.4)
        plugin.manager = manager
        plugin.release()
        server.wait(1.59)
    server.wait(10)
    return server


@pytest.mark.parametrize("follow", [follow_log, follow_watch], ids=["log", "watch"])
def test_a_lock_that_no_one_asked_for_was_not_taken_late(follow: Callable[[FakeServer], ClusterHistory]) -> None:
    output = text(account(follow(mutex()), mutex().now))
    assert "taken-late" not in output
    assert "taken and given up again and again (at least 8 times, each time held for up to" in output


def test_a_lock_is_taken_late_by_who_asked_for_it_for_long() -> None:
    server = mutex(asks_for=40)
    assert "taken-late" in text(account(follow_log(server), server.now))


def test_in_a_watch_who_takes_and_releases_within_a_second_may_have_done_both() -> None:
    output = text(account(follow_watch(mutex()), mutex().now))
    assert "task-3_1 released it, or was removed" in output
    assert "was removed from it" not in output


def test_a_log_says_that_the_account_that_wrote_a_holder_in_wrote_it_out() -> None:
    output = text(account(follow_log(mutex()), mutex().now))
    assert "shop/db wrote task-3_1 out of it" in output


USER = "system:serviceaccount:shop:db"


def create_only() -> FakeServer:
    """A job creates the lease with nothing but its name, and deletes it; another one does not get to that."""
    server = FakeServer()
    for number in range(2):
        if number:
            server.wait(15)
            server.delete("shop/db", USER, f"job-{number - 1}")
            server.wait(15)
        server.write("shop/db", {"holderIdentity": f"job-{number}"}, "kubectl-create", USER, f"job-{number}")
    return server


def test_a_lock_that_a_watch_shows_without_any_time_is_there_since_its_creation() -> None:
    server = create_only()
    server.wait(60)
    histories = cluster_of(server.watch(managed_fields=False))
    output = text(account(histories, server.now))
    assert "the lease was deleted between 11:06:40Z and 11:07:10Z while job-0 held it" in output
    assert "1970" not in output
    assert not histories.leases[LEASE].is_ever_renewed


def test_a_lease_that_its_holder_renewed_before_it_was_cleared_is_renewed_at_times() -> None:
    server = FakeServer()
    server.elector("job-0", "shop/db").lead(10)
    server.write("shop/db", {"holderIdentity": "job-1"}, "kubectl", "alice", "")
    assert follow_watch(server).leases[LEASE].is_ever_renewed


EXISTS = 'leases.coordination.k8s.io "db" already exists'


def left_behind(*, message: str = EXISTS, tries: int = 4, hole: float = 0) -> FakeServer:
    """The second job does not delete the lease, and two others try to create it in turn."""
    server = create_only()
    mail = server.elector("mail-0", "shop/mail")
    mail.lead(40)
    server.wait(hole)
    for number in range(tries):
        server.log_request("shop/db", "create", USER, f"job-{2 + number % 2}", {"message": message}, code=409)
        mail.lead(4)
    return server


def test_who_is_refused_to_create_a_lock_is_told() -> None:
    server = left_behind()
    output = text(account(follow_log(server), server.now))
    said = "job-2 and job-3 tried to create it, 4 times until 11:08:02Z, and were refused (409), as it existed"
    assert said in output
    assert "job-1 holds it; it has no duration and no renewTime, so it does not run out by itself" in output
    assert "See whether the pod of its holder still runs, and delete the lease only if it has ended:" in output


def test_a_single_creation_that_is_refused_is_told_of_a_lock() -> None:
    server = left_behind(tries=1)
    said = "job-2 tried to create it and was refused (409), as it existed"
    assert said in text(account(follow_log(server), server.now))


def test_a_creation_that_a_quota_refused_says_nothing_of_the_lease() -> None:
    message = 'Operation cannot be fulfilled on resourcequotas "shop": the object has been modified'
    server = left_behind(message=message)
    assert "tried to create it" not in text(account(follow_log(server), server.now))


@pytest.mark.parametrize(("tries", "is_told"), [(2, False), (3, True)], ids=["a race", "again and again"])
def test_of_a_lease_that_is_renewed_a_few_creations_may_be_of_a_race(tries: int, *, is_told: bool) -> None:
    server = FakeServer()
    holder = server.elector("db-0", "shop/db")
    holder.lead(4)
    for _ in range(tries):
        server.log_request("shop/db", "create", USER, "db-1", {"message": EXISTS}, code=409)
        holder.lead(4)
    assert ("db-1 tried to create it" in text(account(follow_log(server), server.now))) is is_told


@pytest.mark.parametrize("is_read", [False, True], ids=["only refused creations", "a read of the same state"])
def test_a_lock_was_there_after_a_hole_in_a_log_if_a_later_answer_shows_it(*, is_read: bool) -> None:
    server = left_behind(hole=60)
    if is_read:
        server.log_request("shop/db", "get", "alice", "", server.leases["shop/db"])
    output = text(account(follow_log(server), server.now))
    there = (
        "job-1 held it at 11:07:50Z, and it was there at 11:09:02Z, as refused creations show; the log may lack what"
    )
    assert (there in output) is not is_read
    assert ("job-1 holds it; it has no duration" in output) is is_read
