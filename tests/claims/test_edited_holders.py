"""Holders that an edit wrote into the lease: it leaves what an elector writes then, and no renewal follows."""

from typing import Any

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import FakeServer
from tests.history.observing import advise, cluster_of
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.presentation.happened import list_latest
from webhook.kubernetes.times import format_micro_time

TAKEN = "db-9_1 took it from db-0_1, by its writer's clock: whether it had expired is not known"
WRITTEN = (
    "db-9_1 was written into it in place of db-0_1, {}, not as electors do: {} stayed, and no "
    "renewal followed; whether the lease had expired is not known"
)


def play(*, is_renewed: bool = False, is_dated: bool = True, **changes: Any) -> Account:
    """Have someone edit the holder of shop/db, which db-1 takes once it has expired; the watch has no stamps.

    `is_renewed`: the name that was written in renews the lease. Without `is_dated` renewTime stays as it was.
    """
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(20)
    server.wait(1)
    now = {"renewTime": format_micro_time(server.now)} if is_dated else {}
    spec = {**server.leases["shop/db"]["spec"], "holderIdentity": "db-9_1", **now, **changes}
    server.write("shop/db", spec, "kubectl-edit", "system:admin", "")
    if is_renewed:
        server.elector("db-9", "shop/db").lead(6)
    server.wait(16)
    server.elector("db-1", "shop/db").lead(20)
    return account(cluster_of(server.watch(managed_fields=False)), server.now)


def list_lines(found: Account) -> list[str]:
    return [line.text for line in list_latest(found)]


@pytest.mark.parametrize(
    ("found", "when", "left"),
    [
        (play(), "by its writer's clock", "acquireTime and leaseTransitions"),
        (play(is_dated=False, leaseTransitions=7), "then or later", "renewTime"),
    ],
    ids=["renewTime is written", "renewTime stays"],
)
def test_a_holder_that_an_edit_wrote_in_did_not_take_the_lease(found: Account, when: str, left: str) -> None:
    assert WRITTEN.format(when, left) in list_lines(found)
    assert TAKEN not in text(found)


@pytest.mark.parametrize(
    "found",
    [play(leaseTransitions=7), play(acquireTime="2026-11-18T11:06:59.000000Z")],
    ids=["leaseTransitions", "acquireTime"],
)
def test_who_writes_what_an_elector_writes_takes_the_lease(found: Account) -> None:
    assert TAKEN in text(found)


def test_a_name_that_renews_takes_the_lease() -> None:
    assert TAKEN in text(play(is_renewed=True))


def test_the_audit_log_shows_who_edited_the_lease() -> None:
    assert advise(play()) == (
        "It is held and renewed, but at 11:07:01Z a text was written into it that no renewal followed. The audit log "
        "shows by whom: lease-webhook why shop/db --input AUDIT-LOG"
    )
