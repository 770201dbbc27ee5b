"""Timelines of recorded incidents on a real API server, against what was done and what electors reported."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.history.observing import observe_all
from webhook.analysis.history.merge.merged import Merged
from webhook.analysis.inputs.files import find_inputs
from webhook.analysis.timeline.lanes import TimelineBuilder
from webhook.analysis.timeline.model import Lane, MarkKind, SpanKind, Timeline
from webhook.analysis.timeline.page import encode_page_data
from webhook.kubernetes.times import SECOND, parse

FOLDER = Path("tests/data/incidents")
LATEST = parse("2100-01-01T00:00:00.000000Z")
NEAR = 3 * SECOND // 2
"""A stamp has whole seconds, and a candidate learns that it was chosen when it next asks."""

INPUTS = [("leases.json.gz",), ("audit.log.gz",), ("leases.json.gz", "audit.log.gz")]
VIEWS = pytest.mark.parametrize("files", INPUTS, ids=["watch", "audit log", "both"])
WITH_LOG = pytest.mark.parametrize("files", INPUTS[1:], ids=["audit log", "both"])
INCIDENTS = pytest.mark.parametrize("incident", sorted(one.name for one in FOLDER.iterdir() if one.is_dir()))

MARKED = {
    "clock-behind": {MarkKind.STEAL},
    "coordinated": {MarkKind.TAKEOVER_BY_EXPIRY},
    "etcd-stalled": {MarkKind.FAILED, MarkKind.LATE},
    "fenced": {MarkKind.TAKEOVER_BY_EXPIRY, MarkKind.FENCED},
    "leader-cut-off": {MarkKind.TAKEOVER_BY_EXPIRY},
    "leader-killed": {MarkKind.TAKEOVER_BY_EXPIRY},
    "leader-paused": {MarkKind.TAKEOVER_BY_EXPIRY},
    "leader-released": {MarkKind.RELEASE, MarkKind.TAKEOVER_BY_RELEASE},
    "lease-deleted": {MarkKind.DELETED},
    "lease-stolen": {MarkKind.STEAL},
    "load-balancer-cut": {MarkKind.LATE},
    "one-identity": {MarkKind.IDENTITY_SHARED},
    "rights-removed": {MarkKind.DENIED, MarkKind.LATE},
    "steal-denied": {MarkKind.DENIED},
    "steal-warned": {MarkKind.STEAL, MarkKind.WARNED},
    "two-applications": {MarkKind.TAKEOVER_BY_RELEASE},
}
"""What a page about each of them must show."""


@cache
def timeline_of(incident: str, files: tuple[str, ...]) -> Timeline:
    builder = TimelineBuilder(LATEST)
    items = Merged(find_inputs([str(FOLDER / incident / file) for file in files]), LATEST)
    observe_all(builder, items)
    assert builder.histories.bounds.until is not None
    return builder.timeline(builder.histories.bounds.until)


def truth_of(incident: str) -> dict[str, Any]:
    truth: dict[str, Any] = json.loads((FOLDER / incident / "truth.json").read_text())
    return truth


def lane_of(incident: str, files: tuple[str, ...]) -> Lane:
    truth = truth_of(incident)
    lanes = timeline_of(incident, files).lanes
    return next(lane for lane in lanes if (lane.namespace, lane.name) == (truth["namespace"], truth["name"]))


def holder_at(lane: Lane, at: int) -> str:
    return next((one.holder for one in lane.spans if one.begins <= at and (one.ends is None or at < one.ends)), "")


@VIEWS
@INCIDENTS
def test_the_holder_is_the_one_that_had_begun_to_lead(incident: str, files: tuple[str, ...]) -> None:
    lane, seen = lane_of(incident, files), set()
    for led in truth_of(incident)["led"]:
        if led["holder"] not in seen:  # the second time it only goes on without knowing that it was replaced
            assert holder_at(lane, parse(led["from"])) == led["holder"]
        seen.add(led["holder"])
    assert {span.holder for span in lane.spans if span.kind is SpanKind.HELD} == seen


@VIEWS
@INCIDENTS
def test_a_time_without_a_leader_is_a_gap_that_ends_with_the_next_leader(incident: str, files: tuple[str, ...]) -> None:
    timeline = timeline_of(incident, files)
    gaps = lane_of(incident, files).list_gaps(timeline.ends)
    for truth in truth_of(incident)["leaderless"]:
        begins, ends = parse(truth["from"]), parse(truth["until"])
        near = [gap for gap in gaps if abs(gap.ends - ends) < NEAR]
        assert len(near) == 1, (gaps, truth)
        # It begins with the last renewal, after which the leader may have worked for a moment.
        assert near[0].begins <= begins + NEAR


@WITH_LOG
@INCIDENTS
def test_what_happened_is_marked(incident: str, files: tuple[str, ...]) -> None:
    assert MARKED[incident] <= {mark.kind for mark in lane_of(incident, files).marks}


@VIEWS
@INCIDENTS
def test_nothing_is_marked_as_forged(incident: str, files: tuple[str, ...]) -> None:
    marks = [mark for lane in timeline_of(incident, files).lanes for mark in lane.marks]
    assert [mark.text for mark in marks if mark.kind is MarkKind.FORGED_STAMPS] == []


@VIEWS
@INCIDENTS
def test_leases_that_went_on_have_one_span(incident: str, files: tuple[str, ...]) -> None:
    truth = truth_of(incident)
    stood_still_for_all = {"etcd-stalled", "load-balancer-cut"}
    for lane in timeline_of(incident, files).lanes:
        if lane.namespace != truth["namespace"] and incident not in stood_still_for_all:
            assert [span.kind for span in lane.spans] == [SpanKind.HELD]


def test_the_writers_of_a_shared_identity_are_named() -> None:
    lane = lane_of("one-identity", ("audit.log.gz",))
    (mark,) = [mark for mark in lane.marks if mark.kind is MarkKind.IDENTITY_SHARED]
    assert mark.text.startswith("exporter/exporter from pod exporter-54d6c9-")
    assert mark.text.endswith(" renew in turn under one identity, as if each led")


@INCIDENTS
def test_the_page_data_has_all_of_it(incident: str) -> None:
    timeline = timeline_of(incident, INPUTS[2])
    data = json.loads(encode_page_data(timeline))
    assert len(data["lanes"]) == len(timeline.lanes)
    assert sum(len(lane["marks"]) for lane in data["lanes"]) == sum(len(lane.marks) for lane in timeline.lanes)
