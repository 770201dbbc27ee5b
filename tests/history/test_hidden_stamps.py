"""Inputs without managedFields: only an audit log still dates the renewals."""

import json

import pytest

from tests.claims.accounts import account
from tests.history.fake_server import FakeServer, strip_stamps, together
from tests.history.observing import LEASE, View, cluster_of, follow_both, follow_log, follow_watch, observe_all
from tests.inputs.reading import read
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.inputs.items import InputKind


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


def observe_stripped_watch(server: FakeServer, log: bytes) -> ClusterHistory:
    """Observe a watch that was saved without managedFields, and a log."""
    histories = ClusterHistory()
    observe_all(histories, read("watch", [server.watch(managed_fields=False)]), read("log", [log]))
    return histories


def checks(histories: ClusterHistory, now: int) -> set[str]:
    return {one.check for one in account(histories, now).findings}


def test_a_lease_has_the_stamps_that_the_log_shows_although_its_watch_was_saved_without() -> None:
    server = lead()
    histories = observe_stripped_watch(server, server.audit_log())
    status = histories.leases[LEASE].find_status(server.now)
    assert status is not None
    assert status.from_stamps
    assert "lease-without-stamps" not in checks(histories, server.now)


def test_what_only_a_watch_without_managed_fields_shows_need_not_lack_them() -> None:
    server = FakeServer()
    db = server.elector("db-0", "shop/db")
    db.lead(20)
    log = server.audit_log()
    db.lead(4)
    histories = observe_stripped_watch(server, log)
    assert histories.leases[LEASE].kind is InputKind.WATCH
    assert "lease-without-stamps" not in checks(histories, server.now)


@pytest.mark.parametrize("follow", [follow_watch, follow_both, follow_log])
def test_a_lease_without_managed_fields_lacks_them_if_others_of_the_input_have_them(follow: View) -> None:
    server = FakeServer()
    together(20, server.elector("db-0", "shop/db"), server.elector("mail-0", "shop/mail"))
    server.events = [
        (at, kind, strip_stamps(one) if one["metadata"]["name"] == "db" else one) for at, kind, one in server.events
    ]
    for event in server.log:
        if event["objectRef"]["name"] == "db":
            event["responseObject"] = strip_stamps(event["responseObject"])
    assert "lease-without-stamps" in checks(follow(server), server.now)
