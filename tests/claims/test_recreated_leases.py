"""A held lease that is deleted and created again without a holder, as by each upgrade of a chart that contains it."""

import pytest
from msgspec import Struct

from tests.claims.accounts import account, text
from tests.history.fake_server import FakeServer
from tests.history.observing import View, advise, follow_log, follow_watch
from webhook.findings import ReportFinding, Severity

EMPTY = {"leaseTransitions": 0}


class Upgrade(Struct, frozen=True):
    """Delete the lease, create it again, and have it taken; `before` holds it until then."""

    deleter: str = "ci-deployer"
    creator: str = "ci-deployer"
    taker: str = "db-1"
    pause: float = 1

    def play(self) -> FakeServer:
        server = FakeServer()
        server.elector("db-0", "shop/db").lead(20)
        server.wait(0.5)
        server.delete("shop/db", self.deleter)
        server.wait(0.1)
        server.write("shop/db", EMPTY, "helm", self.creator, "")
        server.wait(self.pause)
        self.take(server)
        return server

    def take(self, server: FakeServer) -> None:
        successor = server.elector(self.taker, "shop/db")
        successor.take()
        for _ in successor.ticks(10):
            successor.renew()


def find_deletion(server: FakeServer, view: View = follow_log) -> ReportFinding:
    (found,) = (one for one in account(view(server), server.now).findings if one.check == "lease-deleted")
    return found


def test_who_deletes_a_held_lease_and_creates_it_again_without_a_holder_is_said_and_that_two_may_lead() -> None:
    server = Upgrade().play()
    found = find_deletion(server)
    assert found.severity is Severity.ERROR
    assert found.message == (
        "ci-deployer deleted the lease at 11:07:00Z while db-0_1 held it; ci-deployer created it again without a "
        "holder, and db-1_1 took it 1.1 s later: two may have led at once, as most clients lead for up to 12 s after "
        "their last renewal"
    )
    assert "leave the Lease out of what it deploys, such as a chart" in advise(account(follow_log(server), server.now))


def test_a_watch_shows_neither_who_deleted_nor_who_created_it() -> None:
    found = find_deletion(Upgrade().play(), follow_watch)
    assert found.severity is Severity.WARNING
    assert "it was created again without a holder, and db-1_1 took it" in found.message


@pytest.mark.parametrize(
    "upgrade", [Upgrade(taker="db-0"), Upgrade(pause=30)], ids=["its holder takes it", "it would have expired"]
)
def test_no_two_lead_after_a_deletion_that_costs_no_one_the_lease(upgrade: Upgrade) -> None:
    found = find_deletion(upgrade.play())
    assert found.severity is Severity.WARNING
    assert "two may have led" not in found.message


def test_who_only_deletes_a_lease_that_another_one_creates_again_deploys_nothing() -> None:
    server = Upgrade(creator="operator").play()
    assert "operator created it again without a holder" in find_deletion(server).message
    assert "Decide whether ci-deployer should delete leases" in advise(account(follow_log(server), server.now))


def test_a_lease_that_is_created_without_a_holder_at_first_was_not_deleted() -> None:
    server = FakeServer()
    server.write("shop/db", EMPTY, "helm", "ci-deployer", "")
    Upgrade().take(server)
    assert "lease-deleted" not in text(account(follow_log(server), server.now))
