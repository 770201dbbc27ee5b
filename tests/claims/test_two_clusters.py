"""The audit log of two clusters that have a lease of the same name, as a log service with one index shows them."""

from collections.abc import Callable
from copy import deepcopy
from functools import partial

import pytest

from tests.claims.accounts import account, text
from tests.factories import Tweak, changed, drop, put
from tests.history.fake_server import FakeServer
from tests.history.observing import cluster_of, follow_log, observe_all
from tests.inputs.reading import read
from webhook.analysis.claims.account import Account
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.status import LeaseState


def mix(*, revision: int, later: float = 0, lasts: float = 60) -> Account:
    """Two clusters, each with a healthy leader, the second one `later`: by resourceVersions it follows the first."""
    first, second = FakeServer(), FakeServer(revision=revision)
    first.elector("db-0", "shop/db").lead(lasts)
    second.wait(later)
    second.elector("db-5", "shop/db").lead(60)
    first.log = sorted((*first.log, *second.log), key=lambda event: str(event["stageTimestamp"]))
    return account(cluster_of(first.audit_log()), max(first.now, second.now))


@pytest.mark.parametrize("later", [1, 40], ids=["created together", "created later"])
def test_a_lease_that_is_written_after_another_of_its_name_was_created_is_of_another_cluster(later: float) -> None:
    found = mix(revision=900_000, later=later)
    said = text(found)
    assert said.startswith("the input shows leases of several clusters under this name, or the clocks of API servers")
    assert found.state is LeaseState.UNKNOWN
    assert [one.check for one in found.findings] == ["clusters-mixed"]
    written = {1: "57 s", 40: "18 s"}[int(later)]
    assert f"one lease of this name was written until {written} after another one had been created" in said
    assert "or the clocks of its API servers differ by as much, so nothing can be concluded" in said
    assert "ADVICE Give the input of one cluster alone: lease-webhook why shop/db" in said


def test_what_was_written_last_a_moment_before_another_one_was_created_was_deleted() -> None:
    """Clocks of API servers need not agree by a few seconds."""
    found = mix(revision=900_000, later=36, lasts=40)
    assert [one.check for one in found.findings][:1] == ["lease-deleted"]


def test_uids_in_turns_in_a_log_ask_for_the_log_of_one_cluster() -> None:
    said = text(mix(revision=110))
    assert "its UID changes back and forth: the input is of several clusters" in said
    assert "ADVICE Give the input of one cluster alone: lease-webhook why shop/db" in said


def test_a_lease_that_was_deleted_and_created_again_is_of_one_cluster() -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(60)
    server.delete("shop/db")
    server.elector("db-1", "shop/db").lead(30)
    found = account(follow_log(server), server.now)
    assert [one.check for one in found.findings][:1] == ["lease-deleted"]


def fork(*, waits: float = 20, lasts: float = 60, are_linked: bool = True, is_patched: bool = False) -> Account:
    """Two logs of API servers whose stores were one until a moment: in each a leader goes on, or takes the lease.

    `waits`: after how long the second leader takes it; `are_linked`: requests name the state that they replace;
    `is_patched`: someone patches it in vain every 20 s.
    """
    first = FakeServer()
    db = first.elector("db-0", "shop/db")
    db.lead(20)
    second = deepcopy(first)
    second.log, second.revision = [], second.revision + 3
    db.lead(waits + lasts)
    second.wait(waits)
    elector = second.elector("db-5", "shop/db")
    for _ in range(int(lasts // 20)):
        elector.lead(20)
        if is_patched:
            second.log_request("shop/db", "patch", "alice", "", deepcopy(second.leases["shop/db"]))
    for event in [] if are_linked else second.log:
        event["objectRef"].pop("resourceVersion", None)
    return read_both(first, second)


def read_both(first: FakeServer, second: FakeServer) -> Account:
    histories = ClusterHistory()
    logs = (read(f"{name}/audit.log", [one.audit_log()]) for name, one in (("cp-1", first), ("cp-2", second)))
    observe_all(histories, *logs)
    return account(histories, max(first.now, second.now))


def test_logs_of_api_servers_that_share_no_store_are_read_alone() -> None:
    found = fork()
    said = text(found)
    assert said.startswith("two logs show different writes to it at the same time, as of API servers that share no ")
    assert [one.check for one in found.findings] == ["clusters-mixed"]
    assert "every write since 11:07:20Z replaced the one before it in that log" in said
    assert "its holder is db-0_1 in cp-1/audit.log and db-5_1 in cp-2/audit.log. " in said
    assert "Not shown" not in said
    assert "ADVICE Compare the lease at each API server's own address. To read one log at a time: lease-webhook" in said


def test_who_patches_a_lease_without_a_change_hides_no_separate_store() -> None:
    assert [one.check for one in fork(is_patched=True).findings] == ["clusters-mixed"]


def create_by_update(*tweaks: Tweak) -> Account:
    """One store: the second leader deletes the lease, and names the last state of the first log as it creates it."""
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(60)
    first, second = deepcopy(server), server
    second.log = []
    thief = second.elector("db-5", "shop/db")
    thief.lead(60)
    second.delete("shop/db")
    start = len(second.log)
    thief.lead(60)
    tail, second.log = second.log[start:], second.log[:start]
    named = put("objectRef.resourceVersion", first.leases["shop/db"]["metadata"]["resourceVersion"])
    first.log += [changed(tail[0], put("verb", "update"), named, *tweaks), *tail[1:]]
    return read_both(first, second)


@pytest.mark.parametrize(
    "tweaks",
    [(put("responseStatus.code", 201), drop("responseObject.metadata.uid")), ()],
    ids=["the answer says so", "it has another UID"],
)
def test_an_update_that_creates_replaces_nothing(tweaks: tuple[Tweak, ...]) -> None:
    assert "clusters-mixed" not in [one.check for one in create_by_update(*tweaks).findings]


def hand_over(*, behind: float) -> Account:
    """One store: the second leader writes through another API server, whose clock is behind."""
    first = FakeServer()
    first.elector("db-0", "shop/db").lead(60)
    second = deepcopy(first)
    second.log = []
    second.wait(20 - behind)
    second.elector("db-5", "shop/db").lead(60)
    return read_both(first, second)


@pytest.mark.parametrize(
    "make_account",
    [
        partial(fork, lasts=20),
        partial(fork, are_linked=False),
        partial(hand_over, behind=0),
        partial(hand_over, behind=70),
    ],
    ids=[
        "both are of one time for less than clocks may differ",
        "requests do not name what they replace",
        "one log goes on where the other ends",
        "a clock is behind",
    ],
)
def test_logs_that_may_be_of_one_store_are_read_together(make_account: Callable[[], Account]) -> None:
    assert "clusters-mixed" not in [one.check for one in make_account().findings]
