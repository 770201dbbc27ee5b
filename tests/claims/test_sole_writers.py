"""One client writes a lease under several names that no one renews, and deletes it, as a test of the API does."""

import pytest

from tests.claims.accounts import account, text
from tests.claims.test_patches_beside_the_spec import patch
from tests.factories import Document
from tests.history.fake_server import START, Elector, FakeServer, hide_responses
from tests.history.observing import View, follow_both, follow_log, follow_watch

NO_LEADER = "no holder renewed it: as by a test, or as a lock, and not by a leader."
BY_ONE = "Only shop/tester wrote it, and no one else asked for it"
DURATION: Document = {"spec": {"leaseDurationSeconds": 50}}


def write_and_delete(*, asker: str = "", is_renewed: bool = False, patched: Document | None = None) -> FakeServer:
    """A client creates the lease, replaces its holder, and deletes it, all within a second, and once more later."""
    server = FakeServer(now=START + 100_000)
    tester = server.elector("a", "shop/db", user="system:serviceaccount:shop:tester", pod="", manager="e2e.test")
    if asker:
        server.elector(asker, "shop/db").ask()
    for _ in range(2):
        tester.identity = "a"
        tester.ask()
        tester.take()
        server.wait(0.01)
        tester.identity = "b"
        tester.take()
        if is_renewed:
            renew_for_a_while(tester)
        if patched is not None:
            patch(server, 1, patched)
        server.wait(0.01)
        server.delete("shop/db", user=tester.user)
        server.wait(40)
    return server


def renew_for_a_while(elector: Elector) -> None:
    for _ in elector.ticks(10):
        elector.renew()


@pytest.mark.parametrize("follow", [follow_log, follow_both], ids=["log", "both"])
def test_who_replaces_what_it_wrote_itself_takes_nothing(follow: View) -> None:
    output = text(account(follow(write_and_delete()), write_and_delete().now))
    assert f"ADVICE The lease was deleted. {BY_ONE}; {NO_LEADER}" in output
    assert "lease-stolen" not in output
    assert "lease-deleted" not in output


@pytest.mark.parametrize(
    "server",
    [write_and_delete(asker="db-0"), write_and_delete(is_renewed=True)],
    ids=["a replica asks for it", "it is renewed"],
)
def test_a_lease_that_another_asks_for_or_that_is_renewed_is_no_test(server: FakeServer) -> None:
    output = text(account(follow_log(server), server.now))
    assert NO_LEADER not in output
    assert "lease-deleted" in output


def test_a_watch_names_the_one_field_manager_of_all_holders() -> None:
    output = text(account(follow_watch(write_and_delete()), write_and_delete().now))
    assert "all its holders were written under the field manager e2e.test, and none renewed it" in output
    assert f"It was written under one field manager, e2e.test; {NO_LEADER}" in output


def test_a_patch_that_left_the_holder_hides_neither_that_nor_the_deletion() -> None:
    server = hide_updates(write_and_delete(patched=DURATION))
    output = text(account(follow_log(server), server.now))
    assert "leaseDurationSeconds 15 -> 50 by reports/exporter" in output
    assert "shop/tester wrote b into it" in output
    assert "shop/tester deleted the lease while b held it" in output
    assert "a time that was not recorded" not in output


@pytest.mark.parametrize(
    "body",
    [{"spec": {"holderIdentity": "c"}}, {"kind": "Lease", **DURATION}],
    ids=["the holder", "what an apply takes away"],
)
def test_what_a_patch_left_is_not_known_if_it_may_have_changed_the_holder(body: Document) -> None:
    server = hide_updates(write_and_delete(patched=body))
    output = text(account(follow_log(server), server.now))
    assert "leaseDurationSeconds 15 -> 50" not in output
    assert "deleted the lease while b held it" not in output


def hide_updates(server: FakeServer) -> FakeServer:
    """Leave what was stored out of the log."""
    hide_responses(FakeServer(log=[event for event in server.log if event["verb"] in {"create", "update"}]))
    return server
