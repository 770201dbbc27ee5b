"""What records keep of leases, observation by observation, where inputs are odd."""

import json
from typing import Any

import pytest
from msgspec import Raw

from tests.factories import make_lease, put
from tests.history.fake_server import SECOND, START, FakeServer, together
from tests.history.observing import observe_all
from tests.inputs.reading import read
from webhook.analysis.history.events import describe_changed_fields
from webhook.analysis.history.holders.processes import HolderProcesses
from webhook.analysis.history.holders.tenure import Handover, Tenure
from webhook.analysis.history.visibility.forged_stamps import is_renewal_dated_again
from webhook.analysis.inputs.items import Act, FenceReport, InputKind, LogEnd, Observation, Place, Writer
from webhook.analysis.timeline import lanes
from webhook.analysis.timeline.downsampling import SpanRecord, merge
from webhook.analysis.timeline.lanes import TimelineBuilder
from webhook.analysis.timeline.model import Bucket, Lane, MarkKind, Span, SpanKind, Timeline
from webhook.kubernetes.managed_fields import Entry, list_entries
from webhook.kubernetes.objects import LeaseSpec
from webhook.kubernetes.times import format_micro_time, format_time

LATEST = START + 3600 * SECOND


def at(seconds: float) -> int:
    return START + int(seconds * SECOND)


def built(*values: dict[str, Any]) -> Timeline:
    builder = TimelineBuilder(LATEST)
    text = b"".join(json.dumps(value, separators=(",", ":")).encode() + b"\n" for value in values)
    observe_all(builder, read("in", [text]))
    return builder.timeline(builder.histories.bounds.until or LATEST)


def kinds(lane: Lane) -> list[MarkKind]:
    return [mark.kind for mark in lane.marks]


def test_leases_beyond_the_most_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "MAX_LANES", 1)
    builder = TimelineBuilder(LATEST)
    server = FakeServer()
    for name in "abc":
        server.elector(name, f"shop/{name}").take()
    observe_all(builder, read("in", [server.watch()]))
    timeline = builder.timeline(LATEST)
    assert [lane.name for lane in timeline.lanes] == ["a"]
    assert timeline.thinned == ("2 observations of leases beyond the first 1 are left out",)


def test_leases_without_a_lane_are_counted_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "MAX_LANES", 1)
    monkeypatch.setattr(lanes, "MAX_OTHERS", 1)
    builder = TimelineBuilder(LATEST)
    server = FakeServer()
    for name in "abc":
        server.elector(name, f"shop/{name}").take()
    observe_all(builder, read("in", [server.watch()]))
    assert builder.timeline(LATEST).left_out == 1


def test_leases_that_were_only_asked_for_have_no_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    """Anyone may ask for any name: names that no lease has would take the place of real ones."""
    monkeypatch.setattr(lanes, "MAX_LANES", 1)
    builder = TimelineBuilder(LATEST)
    for name in ("typo", "guess"):
        builder.observe(
            Observation(
                place=Place("in", 1),
                input_kind=InputKind.AUDIT_LOG,
                act=Act.READ,
                kind="Lease",
                namespace="shop",
                name=name,
            )
        )
    assert builder.timeline(LATEST).lanes == ()
    server = FakeServer()
    server.elector("a", "shop/db").lead(4)
    for item in read("in", [server.audit_log()]):
        builder.observe(item)
    assert [lane.name for lane in builder.timeline(LATEST).lanes] == ["db"]


def test_a_log_without_leases_that_ends_reaches_its_end() -> None:
    builder = TimelineBuilder(LATEST)
    builder.observe(LogEnd(at(5)))
    builder.observe(LogEnd(LATEST + SECOND))
    assert builder.histories.bounds.until == LATEST
    assert builder.timeline(LATEST).lanes == ()


def test_a_request_for_many_leases_says_nothing_of_one() -> None:
    builder = TimelineBuilder(LATEST)
    builder.observe(
        Observation(
            place=Place("in", 1),
            input_kind=InputKind.AUDIT_LOG,
            act=Act.COLLECTION,
            kind="Lease",
            namespace="shop",
            name="",
        )
    )
    assert builder.timeline(LATEST).lanes == ()


def test_fences_of_many_leases_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "MAX_LANES", 3)
    builder = TimelineBuilder(LATEST)
    for number in range(5):
        builder.observe(
            FenceReport(
                place=Place("in", number),
                at=at(number),
                fence=f"fence-{number}",
                namespace="shop",
                name=f"lease-{number}",
                writer=Writer("admin"),
                target="patch deployments.apps shop/web",
                message="",
                is_refused=True,
            )
        )
    timeline = builder.timeline(LATEST)
    assert [lane.name for lane in timeline.lanes] == ["lease-0", "lease-1", "lease-2"]
    assert timeline.thinned == ("2 observations of leases beyond the first 3 are left out",)


EDITS = [
    pytest.param({"holder_identity": "b"}, "", id="another holder"),
    pytest.param({}, "", id="nothing"),
    pytest.param({"renew_time": "2026-01-01T00:00:02.000000Z"}, "", id="a renewal"),
    pytest.param({"acquire_time": "2026-01-01T00:00:02.000000Z"}, "acquireTime was changed", id="acquireTime alone"),
    pytest.param({"renew_time": None}, "renewTime was removed", id="no renewTime"),
    pytest.param({"preferred_holder": "b"}, 'preferredHolder absent -> "b"', id="a preferred holder"),
    pytest.param({"lease_duration_seconds": 1}, "leaseDurationSeconds 15 -> 1", id="a shorter duration"),
    pytest.param({"lease_transitions": None}, "leaseTransitions 0 -> absent", id="a removed count"),
]


@pytest.mark.parametrize(("change", "text"), EDITS)
def test_what_counts_as_an_edit(change: dict[str, Any], text: str) -> None:
    fields: dict[str, Any] = {
        "holder_identity": "a",
        "lease_duration_seconds": 15,
        "acquire_time": "2026-01-01T00:00:00.000000Z",
        "renew_time": "2026-01-01T00:00:00.000000Z",
        "lease_transitions": 0,
    }
    assert describe_changed_fields(LeaseSpec(**fields), LeaseSpec(**{**fields, **change})) == text


def test_a_slow_answer_is_marked() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(4)
    server.log[-1]["requestReceivedTimestamp"] = format_micro_time(server.now - 3 * SECOND)
    (lane,) = built(*server.log).lanes
    (slow,) = [mark for mark in lane.marks if mark.kind is MarkKind.SLOW]
    assert slow.text == "the API server took 3 s to answer a write by shop/db from pod a"


def test_every_late_renewal_is_marked_and_the_latest_have_a_cause() -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db")
    a.lead(10)
    for _ in range(15):
        server.wait(12)
        a.lead(8)
    (lane,) = built(*server.log).lanes
    late = [mark for mark in lane.marks if mark.kind is MarkKind.LATE]
    assert len(late) == 15
    assert late[0].text == "a_1 did not renew for 14 s, and kept the lease"
    assert "no other lease in the input shows whether" in late[-1].text


def test_a_lease_that_another_one_of_its_identity_renews_is_not_late() -> None:
    server = FakeServer()
    a, twin = (server.elector(pod, "shop/db") for pod in ("a", "twin"))
    a.identity = twin.identity = "leader"
    for is_late in (False,) * 6 + (True,) * 4 + (False,) * 2:
        together(2, a)
        server.wait(0.3)
        if not is_late:
            twin.renew()
    (lane,) = built(*server.log).lanes
    assert MarkKind.LATE not in {mark.kind for mark in lane.marks}


def test_a_lease_that_another_releases_was_taken_from_its_holder() -> None:
    server = FakeServer()
    a, b = server.elector("a", "shop/db"), server.elector("b", "shop/db")
    a.lead(4)
    b.release()
    (lane,) = built(*server.log).lanes
    assert lane.marks[-1].kind is MarkKind.RELEASE
    assert lane.marks[-1].text == "shop/db from pod b removed a_1 as the holder"


def test_a_lease_without_a_duration_expires_at_no_moment() -> None:
    server = FakeServer()
    a, b = server.elector("a", "shop/db"), server.elector("b", "shop/db")
    a.take(leaseDurationSeconds=None)
    server.wait(60)
    b.take()
    (lane,) = built(*server.log).lanes
    assert [span.kind for span in lane.spans] == [SpanKind.HELD, SpanKind.HELD]
    assert kinds(lane) == [MarkKind.CREATED, MarkKind.TAKEOVER]


def test_a_lease_without_a_holder_has_no_leader() -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db")
    a.take(holderIdentity="")
    server.wait(2)
    a.take()
    (lane,) = built(*server.log).lanes
    assert [span.kind for span in lane.spans] == [SpanKind.LEADERLESS, SpanKind.HELD]
    assert kinds(lane) == [MarkKind.CREATED, MarkKind.CLAIM]
    assert lane.marks[0].text == "it was created without a holder by shop/db from pod a"


def test_a_lease_with_a_stamp_of_the_future_is_dated_when_it_was_last_seen() -> None:
    lease = make_lease(put("metadata.creationTimestamp", format_time(at(9000))))
    assert built({"type": "ADDED", "object": lease}).lanes


def test_many_inputs_about_one_lease_are_remembered_one_by_one() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(30)
    builder = TimelineBuilder(LATEST)
    for number, item in enumerate(read("in", [server.watch()])):
        assert isinstance(item, Observation)
        renamed = {name: getattr(item, name) for name in item.__struct_fields__}
        builder.observe(Observation(**{**renamed, "place": Place(f"file-{number}", 1)}))
    (lane,) = builder.timeline(at(30)).lanes
    assert lane.ticks.count == 15


def test_spans_that_do_not_exist_cannot_be_late() -> None:
    record = SpanRecord()
    record.turn(SpanKind.OVERDUE, 1)
    assert record.spans(None, 2, is_gone=False) == ()
    record.begin(SpanKind.LEADERLESS, 1)
    record.turn(SpanKind.OVERDUE, 2)
    record.turn(SpanKind.HELD, 2)
    assert [span.kind for span in record.spans(None, 3, is_gone=False)] == [SpanKind.LEADERLESS]
    record.begin(SpanKind.HELD, 1, Tenure(HolderProcesses("a"), 1, Handover.CREATED, 1), "")
    assert record.spans(1, 3, is_gone=False)[0].kind is SpanKind.OVERDUE


def test_few_spans_and_few_renewals_stay_as_they_are() -> None:
    spans = [Span(SpanKind.HELD, 0, 1), Span(SpanKind.HELD, 1, 2)]
    assert merge(spans, 2) == spans
    assert merge([Bucket(1, 1), Bucket(2, 2)], 2) == [Bucket(1, 1), Bucket(2, 2)]


OWNED: dict[str, Any] = {"f:spec": {"f:renewTime": {}, "f:holderIdentity": {}}}
OTHER: dict[str, Any] = {"f:metadata": {"f:labels": {"f:a": {}}}}


def entry(manager: str, second: int, fields: dict[str, Any] = OWNED) -> Entry:
    document = {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "coordination.k8s.io/v1",
        "time": f"2026-01-01T00:00:{second:02d}Z",
        "fieldsV1": fields,
    }
    return list_entries(Raw(json.dumps([document]).encode()))[0]


OLD = [entry("operator", 1), entry("kubectl", 1, OTHER)]
PLAIN = [
    pytest.param([entry("operator", 2), OLD[1]], True, id="a later stamp of the owner"),
    pytest.param([entry("operator", 0), OLD[1]], False, id="an earlier stamp"),
    pytest.param([entry("thief", 2), OLD[1]], False, id="another manager"),
    pytest.param([OLD[0], entry("kubectl", 2, OTHER)], False, id="a stamp of another entry"),
    pytest.param([entry("operator", 2), entry("kubectl", 2, OTHER)], False, id="two stamps"),
    pytest.param([entry("operator", 2)], False, id="an entry less"),
    pytest.param(OLD, False, id="the same list"),
    pytest.param([entry("operator", 2, {"f:spec": {"f:renewTime": {}}}), OLD[1]], False, id="other fields"),
]


@pytest.mark.parametrize(("new", "is_plain"), PLAIN)
def test_a_plain_renewal_dates_one_owner_again(new: list[Entry], is_plain: bool) -> None:
    assert is_renewal_dated_again(new, OLD) is is_plain
