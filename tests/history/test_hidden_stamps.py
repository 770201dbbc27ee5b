"""Inputs without managedFields: only an audit log still dates the renewals."""

import json

from tests.history.fake_server import FakeServer, strip_stamps
from tests.history.observing import cluster_of, follow_log


def lead() -> FakeServer:
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(20)
    return server


def strip_log(data: bytes) -> bytes:
    """Return an audit log whose policy has omitManagedFields."""
    events = [json.loads(line) for line in data.splitlines()]
    for event in events:
        if (event.get("responseObject") or {}).get("metadata"):
            event["responseObject"] = strip_stamps(event["responseObject"])
    return "".join(f"{json.dumps(event)}\n" for event in events).encode()


def test_a_watch_without_managed_fields_hides_the_stamps() -> None:
    assert cluster_of(lead().watch(managed_fields=False)).hides_stamps


def test_an_audit_log_dates_each_write_without_managed_fields() -> None:
    assert not cluster_of(strip_log(lead().audit_log())).hides_stamps


def test_nothing_is_hidden_where_managed_fields_are_shown() -> None:
    server = lead()
    assert not cluster_of(server.watch()).hides_stamps
    assert not follow_log(server).hides_stamps
