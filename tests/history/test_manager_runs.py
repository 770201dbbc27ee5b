"""Renewals under another field manager than before: the latest run of them, and whether it is over."""

import pytest

from tests.history.fake_server import START, FakeServer
from tests.history.observing import LEASE, View, follow_log, follow_watch
from webhook.analysis.history.holders.manager_run import ManagerRun, follow_manager

SECOND = 1_000_000


def follow(*managers: str) -> ManagerRun | None:
    """Return the run after renewals under these field managers, one each second."""
    run, before = None, ""
    for at, manager in enumerate(managers):
        run = follow_manager(run, before, manager, at)
        before = manager or before
    return run


@pytest.mark.parametrize(
    ("managers", "expected"),
    [
        ("aaa", None),
        ("aabb", ManagerRun("b", "a", 2, 3, count=2)),
        ("abba", ManagerRun("b", "a", 1, 2, count=2, is_over=True)),
        ("abaa", ManagerRun("b", "a", 1, 1, is_over=True)),
        ("abab", ManagerRun("b", "a", 3, 3)),
        ("abc", ManagerRun("c", "b", 2, 2)),
        ("abac", ManagerRun("c", "a", 3, 3)),
    ],
)
def test_the_latest_run_of_another_manager_is_known(managers: str, expected: ManagerRun | None) -> None:
    assert follow(*managers) == expected


def test_a_renewal_without_a_known_manager_ends_no_run() -> None:
    assert follow("a", "b", "", "b") == ManagerRun("b", "a", 1, 3, count=2)
    assert follow("", "a", "", "a") is None


@pytest.mark.parametrize(("view", "is_known"), [(follow_watch, True), (follow_log, False)], ids=["a watch", "a log"])
def test_where_a_log_names_the_writer_its_field_manager_says_nothing(view: View, is_known: bool) -> None:
    server = FakeServer()
    db = server.elector("db-0", "shop/db")
    db.lead(20)
    db.manager = "curl"
    db.lead(4)
    run = view(server).leases[LEASE].tenures[-1].manager_run
    first, last = START + 22 * SECOND, START + 24 * SECOND
    assert run == (ManagerRun("curl", "operator", first, last, count=2) if is_known else None)
