"""Laws: spans follow one another without overlap, thinning keeps every count, moments stay within the input."""

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.history.fake_server import SECOND, START, FakeServer
from tests.history.observing import observe_all
from tests.inputs.reading import read
from webhook.analysis.history.holders.processes import HolderProcesses
from webhook.analysis.history.holders.tenure import Handover, Tenure
from webhook.analysis.timeline import downsampling
from webhook.analysis.timeline.downsampling import (
    MAX_BUCKETS,
    SpanRecord,
    TickRecord,
    cut_lane,
    fit_into,
    merge,
    shorten,
)
from webhook.analysis.timeline.lanes import TimelineBuilder
from webhook.analysis.timeline.model import Bucket, Lane, Mark, MarkKind, Span, SpanKind, Ticks, Timeline
from webhook.analysis.timeline.page import encode_page_data

LATEST = START + 365 * 24 * 3600 * SECOND

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("lead"), st.sampled_from("abc"), st.integers(0, 30)),
        st.tuples(st.just("take"), st.sampled_from("abc"), st.integers(0, 3)),
        st.tuples(st.just("wait"), st.just(""), st.integers(0, 40)),
        st.tuples(st.sampled_from(["release", "delete", "fail", "edit"]), st.sampled_from("abc"), st.integers(0, 3)),
    ),
    max_size=12,
)


def played(steps: list[tuple[str, str, int]]) -> FakeServer:
    server = FakeServer()
    server.elector("a", "shop/db").take()
    for what, who, seconds in steps:
        elector = server.elector(who or "a", "shop/db")
        stored = server.leases.get("shop/db")
        if what == "lead":
            elector.lead(seconds)
        elif what == "take":
            elector.take()
        elif what == "fail":
            elector.fail(403, "no")
        elif stored and what == "release":
            elector.release()
        elif stored and what == "delete":
            server.delete("shop/db")
        elif stored and what == "edit":
            spec = {**stored["spec"], "leaseDurationSeconds": stored["spec"]["leaseDurationSeconds"] + 1}
            server.write("shop/db", spec, "kubectl-edit", "admin", "")
        server.wait(seconds)
    return server


def timeline_of(text: bytes) -> Timeline:
    builder = TimelineBuilder(LATEST)
    observe_all(builder, read("in", [text]))
    assert builder.histories.bounds.until is not None
    return builder.timeline(builder.histories.bounds.until)


def assert_lawful(spans: tuple[Span, ...]) -> None:
    for before, after in pairwise(spans):
        assert before.ends is not None
        assert before.begins < before.ends <= after.begins


@settings(max_examples=25)
@given(STEPS)
def test_spans_of_a_watch_and_of_a_log_are_in_order_and_do_not_overlap(steps: list[tuple[str, str, int]]) -> None:
    server = played(steps)
    for text in (server.watch(), server.audit_log(), server.audit_log(metadata_only=True)):
        timeline = timeline_of(text)
        (lane,) = timeline.lanes
        assert_lawful(lane.spans)
        assert all(span.begins <= timeline.ends for span in lane.spans)
        assert all(timeline.begins <= mark.begins <= timeline.ends for mark in lane.marks)
        assert list(lane.ticks.moments) == sorted(lane.ticks.moments)


@settings(max_examples=25)
@given(STEPS)
def test_only_a_deleted_lease_leaves_a_gap_between_spans(steps: list[tuple[str, str, int]]) -> None:
    (lane,) = timeline_of(played(steps).audit_log()).lanes
    assert all(before.ends == after.begins for before, after in pairwise(lane.spans))


MOMENTS = st.lists(st.integers(0, 10**9), max_size=200).map(sorted)


@given(MOMENTS, st.integers(1, 50), st.integers(1, 20))
def test_folding_keeps_the_count_the_order_and_the_ends(moments: list[int], most: int, earlier: int) -> None:
    buckets = [Bucket(-10 * number, -10 * number + 5, number) for number in range(earlier, 0, -1)]
    merged = merge([*buckets, *(Bucket(at, at) for at in moments)], most)
    assert len(merged) <= 2 * most + 2
    assert sum(one.count for one in merged) == sum(one.count for one in buckets) + len(moments)
    assert all(before.ends <= after.begins for before, after in pairwise(merged))
    assert (merged[0].begins, merged[-1].ends) == (buckets[0].begins, moments[-1] if moments else buckets[-1].ends)


@given(st.lists(st.integers(0, 10**7), max_size=300), st.integers(2, 40))
def test_renewals_are_all_counted_however_few_are_kept(moments: list[int], most: int) -> None:
    record = TickRecord()
    for at in moments:
        record.add(at, most)
    assert record.count == len(moments)
    assert len(record.moments) <= most
    assert len(record.buckets) <= 2 * MAX_BUCKETS


KINDS = st.sampled_from([MarkKind.STEAL, MarkKind.DENIED, MarkKind.EDIT])
MARKS = st.lists(st.builds(Mark, KINDS, st.integers(0, 10**6), st.text(max_size=3)), max_size=100)


@given(MARKS, st.integers(1, 30))
def test_merged_marks_count_what_they_stand_for_kind_by_kind(marks: list[Mark], most: int) -> None:
    merged = merge(sorted(marks, key=lambda mark: mark.begins), most)
    for kind in MarkKind:
        of_kind = [mark for mark in merged if mark.kind is kind]
        assert sum(mark.count for mark in of_kind) == sum(1 for mark in marks if mark.kind is kind)
    assert all(mark.count == 1 or (mark.ends or 0) >= mark.begins for mark in merged)
    assert [mark.begins for mark in merged] == sorted(mark.begins for mark in merged)
    assert len(merged) <= most + len(MarkKind)


def test_steals_that_are_one_mark_are_contested_as_long_as_the_last_of_them() -> None:
    early, late = (Mark(MarkKind.STEAL, at, "took it", contested_until=at + 15) for at in (10, 20))
    unknown = Mark(MarkKind.STEAL, 30, "took it")
    assert early.join(late).contested_until == late.join(early).join(unknown).contested_until == 35
    assert unknown.join(unknown).contested_until is None


def test_a_list_of_marks_is_bounded_and_keeps_the_latest_one_by_one() -> None:
    marks: list[Mark] = []
    for number in range(10_000):
        marks.append(Mark(MarkKind.DENIED, number, f"number {number}"))
        shorten(marks, 100, 12)
    assert len(marks) <= 100
    assert sum(mark.count for mark in marks) == 10_000
    assert [mark.text for mark in marks[-40:]] == [f"number {number}" for number in range(9960, 10_000)]


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=200), st.integers(1, 40))
def test_merged_spans_cover_the_same_time_and_count_what_they_stand_for(lengths: list[int], most: int) -> None:
    spans, at = [], 0
    for number, length in enumerate(lengths):
        spans.append(Span(SpanKind.HELD, at, at + length, f"holder {number}"))
        at += length
    merged = merge(spans, most)
    assert sum(span.count for span in merged) == len(spans)
    assert (merged[0].begins, merged[-1].ends) == (0, at)
    assert merge(spans, len(spans)) == spans
    assert all(before.ends == after.begins for before, after in pairwise(merged))
    assert len(merged) <= max(most, 2 * most + 2)


def test_a_record_of_spans_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downsampling, "MAX_SPANS", 100)
    record = SpanRecord()
    for number in range(10_000):
        record.begin(SpanKind.HELD, number, Tenure(HolderProcesses(str(number)), number, Handover.STOLEN, number), "")
    spans = record.spans(None, 10_000, is_gone=False)
    assert len(spans) <= 101
    assert sum(span.count for span in spans) == 10_000
    assert_lawful(spans)


def large(leases: int, renewals: int, denials: int) -> Timeline:
    lanes = []
    for number in range(leases):
        marks = tuple(
            Mark(MarkKind.DENIED, START + at * SECOND, f"a write was denied at {at}: {'x' * 300}", "holder", f"w{at}")
            for at in range(denials)
        )
        ticks = Ticks(tuple(START + at * 2 * SECOND + number for at in range(renewals)))
        spans = tuple(
            Span(SpanKind.HELD, START + at * SECOND, START + (at + 1) * SECOND, f"holder {at % 3}")
            for at in range(max(1, denials))
        )
        lanes.append(Lane("shop", f"lease-{number}", 15, spans, ticks, marks))
    return Timeline(START, START + 2 * SECOND * max(renewals, denials, 1), tuple(lanes))


def counts(timeline: Timeline) -> tuple[int, int, int]:
    lanes = timeline.lanes
    return (
        sum(lane.ticks.count for lane in lanes),
        sum(mark.count for lane in lanes for mark in lane.marks),
        sum(span.count for lane in lanes for span in lane.spans),
    )


def test_renewals_of_500_leases_fit_as_they_are() -> None:
    timeline = large(500, 200, 0)
    assert fit_into(timeline) is timeline


def test_a_thinned_timeline_names_what_was_thinned_and_keeps_the_counts() -> None:
    timeline = large(20, 300, 250)
    thin = fit_into(timeline, 150_000)
    assert len(encode_page_data(thin)) <= 150_000
    assert counts(thin) == counts(timeline)
    assert len(thin.lanes) == 20
    text = " ".join(thin.thinned)
    assert "marks are drawn as" in text
    assert json.loads(encode_page_data(thin))["thinned"] == list(thin.thinned)


def test_if_nothing_else_helps_the_leases_with_the_fewest_changes_are_left_out() -> None:
    thin = fit_into(large(100, 50, 3), 10_000)
    assert len(encode_page_data(thin)) <= 10_000
    assert 0 < len(thin.lanes) < 100
    assert f"{100 - len(thin.lanes)} leases with the fewest changes are left out" in " ".join(thin.thinned)


@settings(max_examples=30)
@given(STEPS, st.integers(0, 200), st.integers(1, 100))
def test_a_window_has_only_what_lies_within(steps: list[tuple[str, str, int]], since: int, length: int) -> None:
    timeline = timeline_of(played(steps).audit_log())
    begins, ends = START + since * SECOND, START + (since + length) * SECOND
    for lane in (cut_lane(one, begins, ends) for one in timeline.lanes):
        assert_lawful(lane.spans)
        assert all(span.begins <= ends and (span.ends is None or begins < span.ends <= ends) for span in lane.spans)
        assert all(begins <= mark.begins <= ends for mark in lane.marks)
        assert all(begins <= at <= ends for at in lane.ticks.moments)
