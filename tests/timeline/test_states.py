"""States that need no history: what a list or the start of a watch shows is what `why` says of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.factories import make_lease, put
from tests.history.fake_server import SECOND, START, FakeServer
from tests.inputs.reading import read
from webhook.analysis.live.server import Feed
from webhook.analysis.timeline.lanes import TimelineBuilder
from webhook.analysis.timeline.model import Lane, SpanKind, Timeline
from webhook.cli import reading
from webhook.cli.main import main
from webhook.kubernetes.times import format_micro_time, format_time, parse

NOW = "2026-11-22T12:00:00Z"


def stored(name: str, **spec: Any) -> dict[str, Any]:
    """A stored lease that was acquired at 09:00 and last renewed at 11:20, by the API server's stamps."""
    fields = {
        "holderIdentity": f"{name}-x2x8p_1",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-11-22T09:00:00.000000Z",
        "renewTime": "2026-11-22T11:20:00.250000Z",
        "leaseTransitions": 0,
    } | spec
    fields = {key: value for key, value in fields.items() if value is not None}
    entry = {
        "manager": "checkout",
        "operation": "Update",
        "apiVersion": "coordination.k8s.io/v1",
        "time": "2026-11-22T11:20:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {f"f:{key}": {} for key in fields}},
    }
    created = "2026-11-22T08:00:00Z"
    metadata = {"name": name, "namespace": "shop", "creationTimestamp": created, "managedFields": [entry]}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": fields}


def written(tmp_path: Path, *leases: dict[str, Any]) -> str:
    path = tmp_path / "leases.json"
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": list(leases)}))
    return str(path)


def timeline_of(path: str, now: str = NOW) -> Timeline:
    builder = TimelineBuilder(parse(now.replace("Z", ".000000Z")))
    for item in reading.read_for_history([path]):
        builder.observe(item)
    return builder.timeline(builder.clock)


def lane_of(path: str) -> Lane:
    (lane,) = timeline_of(path).lanes
    return lane


LISTS = [
    pytest.param([stored("expired")], id="renewed long after it was acquired"),
    pytest.param([stored("ahead", renewTime="2026-11-22T20:20:00.250000Z")], id="a holder with a fast clock"),
    pytest.param([stored("never-renewed", acquireTime="2026-11-22T11:20:00.250000Z")], id="acquired and never renewed"),
    pytest.param([stored("no-acquire", acquireTime=None)], id="no acquireTime"),
    pytest.param([stored("later", acquireTime="2026-11-22T11:40:00.000000Z")], id="an acquireTime after the renewal"),
]


def last_renewals(capsys: pytest.CaptureFixture[str], path: str) -> dict[str, str]:
    """The last renewal of each expired lease, as `why` says it."""
    assert main(["why", "--input", path, "--now", NOW, "--format", "json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return {row["name"]: row["last_renewal"] for row in rows if row["state"] == "expired"}


def since(path: str) -> dict[str, str]:
    """Since when no one leads, of each lease of which the page says so."""
    timeline = timeline_of(path)
    gaps = {lane.name: lane.list_gaps(timeline.ends) for lane in timeline.lanes}
    return {name: format_micro_time(found[-1].begins) for name, found in gaps.items() if found and found[-1].is_open}


@pytest.mark.parametrize("leases", LISTS)
def test_no_one_leads_since_the_last_renewal_that_why_names(
    leases: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, *leases)
    expected = last_renewals(capsys, path)
    assert len(expected) == len(leases)
    assert since(path) == expected


def test_of_a_list_of_every_kind_of_lease_the_page_says_what_why_says(capsys: pytest.CaptureFixture[str]) -> None:
    path = "tests/data/leases/seeded.json"
    assert since(path) == last_renewals(capsys, path)


def test_the_live_page_says_the_same_of_a_lease_that_had_expired_when_it_began(tmp_path: Path) -> None:
    feed = Feed("kubectl get leases --watch")
    feed.read(reading.read_for_history([written(tmp_path, stored("expired"))]))
    (lane,) = feed.get_changes(0).timeline.lanes
    (gap,) = lane.list_gaps(feed.get_changes(0).timeline.ends)
    assert format_micro_time(gap.begins) == "2026-11-22T11:20:00.250000Z"


FROZEN = [
    pytest.param({"renewTime": "9999-12-31T23:59:59.999999Z"}, "renewTime is ", id="a renewTime of the year 9999"),
    pytest.param({"leaseDurationSeconds": 2**31 - 1}, "leaseDurationSeconds is 2147483647", id="an endless duration"),
    pytest.param({"leaseTransitions": 2**31 - 1}, "leaseTransitions is 2147483647", id="the last transition"),
]


@pytest.mark.parametrize(("change", "reason"), FROZEN)
def test_a_lease_that_no_one_can_take_is_frozen_and_not_overdue(
    change: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    lane = lane_of(written(tmp_path, stored("ledger", **change)))
    assert lane.spans[-1].kind is SpanKind.FROZEN
    assert SpanKind.OVERDUE not in {span.kind for span in lane.spans}
    assert lane.list_gaps(parse(NOW.replace("Z", ".000000Z"))) == ()
    words = lane.spans[-1].describe((), 0)
    assert words.startswith("frozen: held by ledger-x2x8p_1, and no other replica can take it")
    assert reason in words


def test_a_lease_is_frozen_from_the_write_that_froze_it_to_the_one_that_repaired_it(tmp_path: Path) -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db")
    a.lead(10)
    spec = server.leases["shop/db"]["spec"]
    server.write("shop/db", {**spec, "renewTime": "9999-12-31T23:59:59.999999Z"}, "kubectl-edit", "admin", "")
    server.wait(60)
    server.write("shop/db", {**spec, "renewTime": format_micro_time(server.now)}, "kubectl-edit", "admin", "")
    a.lead(10)
    path = tmp_path / "audit.log"
    path.write_bytes(server.audit_log())
    builder = TimelineBuilder(START + 3600 * SECOND)
    for item in reading.read_for_history([str(path)]):
        builder.observe(item)
    (lane,) = builder.timeline(builder.histories.bounds.until or 0).lanes
    kinds = [(span.kind, round((span.begins - START) / SECOND)) for span in lane.spans]
    assert kinds == [(SpanKind.HELD, 0), (SpanKind.FROZEN, 10), (SpanKind.HELD, 70)]


def test_a_lease_that_was_never_held_has_had_no_leader_to_lose(tmp_path: Path) -> None:
    lane = lane_of(written(tmp_path, stored("ready", **dict.fromkeys(
        ("holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime", "leaseTransitions")
    ))))  # fmt: skip
    (span,) = lane.spans
    assert (span.kind, format_micro_time(span.begins)) == (SpanKind.NEVER_HELD, "2026-11-22T11:20:00.000000Z")
    assert lane.list_gaps(parse(NOW.replace("Z", ".000000Z"))) == ()
    assert lane.handovers == 0


def test_a_lease_that_nothing_was_written_to_since_its_creation_was_never_held(tmp_path: Path) -> None:
    empty = stored("ready", **dict.fromkeys(
        ("holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime", "leaseTransitions")
    ))  # fmt: skip
    empty["metadata"]["managedFields"][0]["time"] = "2026-11-22T08:00:00Z"
    (span,) = lane_of(written(tmp_path, empty)).spans
    assert (span.kind, format_micro_time(span.begins)) == (SpanKind.NEVER_HELD, "2026-11-22T08:00:00.000000Z")


def test_an_empty_lease_without_any_time_begins_with_the_timeline() -> None:
    empty = make_lease(put("spec", {}), put("metadata.creationTimestamp", None), put("metadata.managedFields", []))
    builder = TimelineBuilder(START)
    for item in read("in", [json.dumps(empty).encode()]):
        builder.observe(item)
    (lane,) = builder.timeline(START).lanes
    assert [(span.kind, span.begins) for span in lane.spans] == [(SpanKind.NEVER_HELD, START)]


def test_a_list_does_not_show_whether_the_latest_write_was_a_renewal(tmp_path: Path) -> None:
    lease = stored("checkout", renewTime="2026-11-22T11:19:50.000000Z")
    (entry,) = lease["metadata"]["managedFields"]
    named: dict[str, Any] = {"f:spec": {"f:holderIdentity": {}, "f:acquireTime": {}}}
    lease["metadata"]["managedFields"] = [
        entry | {"time": "2026-11-22T09:00:00Z", "fieldsV1": named},
        entry | {"manager": "kubectl", "fieldsV1": {"f:spec": {"f:renewTime": {}}}},
    ]
    lane = lane_of(written(tmp_path, lease))
    assert [(span.kind, format_time(span.begins)) for span in lane.spans] == [
        (SpanKind.UNRECORDED, "2026-11-22T11:20:00Z"),
        (SpanKind.OVERDUE, "2026-11-22T11:20:15Z"),
    ]
