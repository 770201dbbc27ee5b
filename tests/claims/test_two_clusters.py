"""The audit log of two clusters that have a lease of the same name, as a log service with one index shows them."""

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import FakeServer
from tests.history.observing import cluster_of, follow_log
from webhook.analysis.claims.account import Account
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
