"""Writes that an audit log lacks: what it costs to note one, where there are many leases."""

import pytest

from tests.history.fake_server import FakeServer, together
from tests.history.observing import follow_log
from webhook.analysis.history.lease import LeaseHistory


@pytest.mark.parametrize("number", [3, 30])
def test_a_log_that_lacks_every_other_write_changes_no_other_lease(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed: list[str] = []
    miss_write = LeaseHistory.miss_write

    def note(lease: LeaseHistory) -> None:
        changed.append(lease.name)
        miss_write(lease)

    monkeypatch.setattr(LeaseHistory, "miss_write", note)
    server = FakeServer()
    together(20, *[server.elector(f"db-{one}", f"shop/db-{one}") for one in range(number)])
    by_lease: dict[str, int] = {}
    for event in server.log[:]:
        name = event["objectRef"]["name"]
        by_lease[name] = by_lease.get(name, 0) + 1
        if by_lease[name] % 2:
            server.log.remove(event)
    histories = follow_log(server)
    assert histories.bounds.is_log_leaky
    assert len(histories.leases) == number
    assert not changed
