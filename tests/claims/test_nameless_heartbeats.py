"""A lease that is renewed, and never names a holder, is a heartbeat: no one elects by it, and no one takes it."""

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import FakeServer
from tests.history.observing import LEASE, View, cluster_of, follow_both, follow_log, follow_watch, observe_all
from tests.inputs.reading import read
from webhook.analysis.audit.leases import Subject, check_stored_object
from webhook.analysis.claims.facts import find_claims
from webhook.analysis.claims.findings.headline import make_headline
from webhook.analysis.claims.presentation.urgency import advise_with_urgency
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.status import LeaseState
from webhook.analysis.timeline.lanes import TimelineBuilder
from webhook.analysis.timeline.model import Timeline
from webhook.cli.lease_table import make_row
from webhook.kubernetes.times import format_micro_time

AGENT = "system:open-cluster-management:shop:agent"
VIEWS = pytest.mark.parametrize("follow", [follow_watch, follow_log, follow_both])


def beat(server: FakeServer, times: int = 1, user: str = AGENT, pod: str = "", manager: str = "agent") -> None:
    """Renew shop/db every 10 s without a holder."""
    for _ in range(times):
        spec = {"leaseDurationSeconds": 10, "renewTime": format_micro_time(server.now - 3000)}
        server.write("shop/db", spec, manager, user, pod)
        server.wait(10)


def silent_for_82_seconds() -> FakeServer:
    server = FakeServer()
    beat(server, 5)
    server.wait(72)
    beat(server, 3)
    server.wait(-5)
    return server


def draw(server: FakeServer) -> Timeline:
    builder = TimelineBuilder(clock=server.now)
    observe_all(builder, read("in", [server.watch()]))
    return builder.timeline(server.now)


@VIEWS
def test_it_is_no_lease_that_is_free(follow: View) -> None:
    server = silent_for_82_seconds()
    found = account(follow(server), server.now)
    said = text(found)
    assert found.state is LeaseState.LIVE
    assert make_headline(found) == "heartbeat without a holder (by its fields), seen 5 s ago"
    assert found.takeable_at is None
    assert make_row(found).cells[4].text == "-"
    for wrong in ("released", "taken", "took", "any replica", "leader", '""', "the holder"):
        assert wrong not in said.lower(), wrong


@VIEWS
def test_a_renewal_that_came_late_is_told(follow: View) -> None:
    server = silent_for_82_seconds()
    found = account(follow(server), server.now)
    assert "it was not renewed for 1 min 22 s" in text(found)
    late = [one for one in found.findings if one.check == "renewal-late"]
    assert "its writer did not renew for" in late[0].message
    assert "The lease is a heartbeat, which lasts 10 s: no one else takes it." in late[0].message
    assert advise_with_urgency(found).sentence.startswith("Renewed now. Check whether its writer")


def test_a_late_renewal_is_told_as_soon_as_it_is_known_what_is_usual() -> None:
    server = FakeServer()
    beat(server)
    server.wait(72)
    beat(server, 3)
    server.wait(-5)
    assert [one.check for one in account(follow_log(server), server.now).findings] == ["renewal-late"]


@VIEWS
def test_a_silence_that_goes_on_is_told_without_a_failover(follow: View) -> None:
    server = FakeServer()
    beat(server, 6)
    for _ in range(14):
        server.wait(5)
        server.log_request("shop/cart", "get", "someone", "", {})
    found = account(follow(server), server.now)
    assert make_headline(found).startswith("heartbeat without a holder (by its fields) silent for 1 min 20 s")
    assert "Check whether its writer" in text(found)
    assert advise_with_urgency(found).sentence == advise_with_urgency(found).sentence.removeprefix("Act now")
    assert not {one.check for one in find_claims(found)} & {
        "expired",
        "free",
        "holder",
        "expires",
        "no-candidate",
        "taken",
    }


def test_a_silence_within_a_long_duration_is_told_without_who_waits() -> None:
    server = FakeServer()
    for _ in range(8):
        spec = {"leaseDurationSeconds": 300, "renewTime": format_micro_time(server.now - 3000)}
        server.write("shop/db", spec, "agent", AGENT, "")
        server.wait(5)
    mail = server.elector("mail-0", "shop/mail")
    mail.lead(60)
    found = account(follow_watch(server), server.now)
    late = [one.message for one in found.findings if one.check == "renewal-late"]
    assert late[0].startswith("its writer has not renewed since")
    assert "can take the lease" not in late[0]


def test_a_log_that_ends_hides_whether_it_is_renewed() -> None:
    server = FakeServer()
    beat(server, 6)
    server.log_request("shop/cart", "get", "someone", "", {})
    server.wait(70)
    server.log_request("shop/cart", "get", "someone", "", {})
    headline = make_headline(account(follow_log(server), server.now))
    assert headline.startswith("it was renewed without a holder at 11:07:40Z, and the log may lack")


def test_one_that_is_renewed_as_usual_is_well() -> None:
    server = FakeServer()
    beat(server, 8)
    server.wait(-5)
    found = account(follow_watch(server), server.now)
    assert found.worst is None
    assert (
        advise_with_urgency(found).sentence
        == "It is renewed; a lease does not show whether the process behind it works."
    )


def test_its_writer_may_change_without_a_takeover() -> None:
    server = FakeServer()
    beat(server, 8, "system:serviceaccount:shop:agent", "agent-1")
    beat(server, 8, "system:serviceaccount:shop:agent", "agent-2")
    beat(server, 8, "system:serviceaccount:shop:agent-of-next-release", "agent-3")
    server.wait(-5)
    found = account(follow_log(server), server.now)
    assert not found.findings
    assert found.renewer is not None
    assert found.renewer.pod == "agent-3"


def test_writers_under_several_field_managers_are_not_named_as_a_holder() -> None:
    server = FakeServer()
    beat(server, 4)
    server.wait(60)
    beat(server, 4, manager="agent-of-next-release")
    server.wait(60)
    said = text(account(follow_watch(server), server.now))
    assert '""' not in said
    assert "in its name" not in said


def test_one_that_is_created_and_not_renewed_is_no_heartbeat_yet() -> None:
    server = FakeServer()
    beat(server)
    server.wait(50)
    assert account(follow_log(server), server.now).state is LeaseState.NEVER_HELD


def test_one_list_tells_it_by_its_fields() -> None:
    server = FakeServer()
    beat(server)
    server.wait(50)
    histories = cluster_of(server.dump())
    found = account(histories, server.now)
    assert make_headline(found) == "heartbeat without a holder (by its fields) silent for 1 min 0 s"
    assert "Check whether its writer runs" in text(found)
    lease = histories.leases[LEASE].lease
    assert lease is not None
    checks = list(check_stored_object(Subject(lease, "shop", "db", server.now)))
    assert [one.check for one in checks] == ["heartbeat-silent"]
    assert checks[0].message.startswith("a heartbeat without a holder (by its fields) has been silent for 1 min 0 s")


def test_a_duration_as_short_as_its_interval_ends_nothing() -> None:
    server = FakeServer()
    beat(server, 8)
    server.wait(-5)
    lease = follow_watch(server).leases[LEASE].lease
    assert lease is not None
    assert not list(check_stored_object(Subject(lease, "shop", "db", server.now, interval=10.2)))


def test_a_lease_whose_holder_was_removed_is_free_whatever_it_has_left() -> None:
    server = FakeServer()
    for holder in ({"holderIdentity": "db-0"}, {"holderIdentity": "db-0"}, {}):
        time = format_micro_time(server.now)
        server.write("shop/db", {**holder, "leaseDurationSeconds": 10, "renewTime": time}, "db", AGENT, "")
        server.wait(2)
    found = account(follow_watch(server), server.now)
    assert found.state is LeaseState.RELEASED
    assert not found.is_heartbeat
    assert make_headline(found).startswith("no one holds it")


def test_a_holder_that_takes_it_makes_it_an_election() -> None:
    server = FakeServer()
    beat(server, 4)
    elector = server.elector("db-0", "shop/db")
    time = format_micro_time(server.now)
    spec = {"holderIdentity": "db-0_1", "leaseDurationSeconds": 15, "acquireTime": time, "renewTime": time}
    server.write("shop/db", {**spec, "leaseTransitions": 0}, "operator", elector.user, "db-0")
    elector.lead(20)
    found = account(follow_watch(server), server.now)
    assert not found.is_heartbeat
    assert [one.holder for one in found.history.tenures] == ["db-0_1"]
    assert make_headline(found).startswith("db-0_1 holds it since")
    assert '""' not in text(found)


def test_a_heartbeat_that_goes_on_after_a_hole_is_no_lease_that_is_free() -> None:
    server = FakeServer()
    beat(server, 4)
    del server.events[-2:]
    beat(server, 4)
    server.wait(-5)
    histories = cluster_of(server.watch() + server.dump())
    assert make_headline(account(histories, server.now)).startswith("heartbeat without a holder")


def test_a_writer_of_a_log_without_objects_stands_in_for_no_holder() -> None:
    server = FakeServer()
    beat(server, 6)
    server.wait(-5)
    histories = ClusterHistory()
    observe_all(histories, read("log", [server.audit_log(metadata_only=True)]), read("list", [server.dump()]))
    found = account(histories, server.now)
    assert make_headline(found).startswith("heartbeat without a holder")
    assert [one.holder for one in found.history.tenures] == [""]


def test_its_timeline_shows_missing_heartbeats_and_no_missing_leader() -> None:
    server = silent_for_82_seconds()
    timeline = draw(server)
    lane = timeline.lanes[0]
    gaps = lane.list_gaps(timeline.ends)
    texts = [span.describe(gaps, timeline.ends) for span in lane.spans]
    assert texts[0].startswith("held by a holder that the input does not name")
    assert any(one.startswith("overdue: held by a holder that the input does not name, no heartbeat") for one in texts)
    late = [mark.text for mark in lane.marks if mark.kind == "late"]
    assert late[0].startswith("its writer did not renew for")
