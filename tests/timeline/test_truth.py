"""Spans, renewals and marks of elections whose truth is known, from a watch, from an audit log, and from both."""

import json
import re
from collections.abc import Callable
from functools import partial

import pytest

from tests.factories import make_entry
from tests.history.fake_server import SECOND, START, FakeServer, together
from tests.history.observing import observe_all
from tests.history.test_refusal import APPLY_CONFLICT, UNAPPLIED
from tests.inputs.reading import read
from webhook.admission.rules.registry import RULES
from webhook.analysis.history.merge.merged import Merged
from webhook.analysis.inputs.items import Input
from webhook.analysis.timeline.downsampling import MAX_MARKS
from webhook.analysis.timeline.lanes import TimelineBuilder
from webhook.analysis.timeline.model import Lane, Mark, MarkKind, SpanKind, Timeline, make_timeline_json
from webhook.kubernetes.times import format_time

LATEST = START + 365 * 24 * 3600 * SECOND
MARGIN = SECOND // 50
"""A watch dates a write by the holder's renewTime, an audit log by the answer some milliseconds later."""


def timeline_of(*texts: bytes) -> Timeline:
    names = [f"in-{number}" for number in range(len(texts))]
    inputs = [Input(name, partial(read, name, [text])) for name, text in zip(names, texts, strict=True)]
    builder = TimelineBuilder(LATEST)
    observe_all(builder, Merged(inputs, LATEST))
    assert builder.histories.bounds.until is not None
    return builder.timeline(builder.histories.bounds.until)


def read_watch(server: FakeServer) -> Timeline:
    return timeline_of(server.watch())


def read_log(server: FakeServer) -> Timeline:
    return timeline_of(server.audit_log())


def read_both(server: FakeServer) -> Timeline:
    return timeline_of(server.watch(), server.audit_log())


def read_watch_and_metadata(server: FakeServer) -> Timeline:
    return timeline_of(server.watch(), server.audit_log(metadata_only=True))


View = Callable[[FakeServer], Timeline]
ANY = pytest.mark.parametrize(
    "view",
    [read_watch, read_log, read_both, read_watch_and_metadata],
    ids=["watch", "audit log", "both", "watch and metadata"],
)
LOGGED = pytest.mark.parametrize("view", [read_log, read_both], ids=["audit log", "both"])


def seconds(at: int | None) -> float | None:
    """Since the start of the script, to a tenth of a second."""
    return None if at is None else round((at - START) / SECOND, 1)


def spans(lane: Lane) -> list[tuple[str, str, float | None, float | None]]:
    return [(span.kind.value, span.holder, seconds(span.begins), seconds(span.ends)) for span in lane.spans]


def marks(lane: Lane) -> list[tuple[str, float | None]]:
    return [(mark.kind.value, seconds(mark.begins)) for mark in lane.marks]


def mark_of(lane: Lane, kind: MarkKind) -> Mark:
    (only,) = [mark for mark in lane.marks if mark.kind is kind]
    return only


@ANY
def test_a_crash_is_overdue_until_another_takes_it(view: View) -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(20)
    server.wait(18)
    server.elector("b", "shop/db").lead(10)
    (lane,) = view(server).lanes
    assert spans(lane) == [
        ("held", "a_1", 0.0, 35.0),
        ("overdue", "a_1", 35.0, 38.0),
        ("held", "b_1", 38.0, None),
    ]
    assert marks(lane) == [("created", 0.0), ("takeover-by-expiry", 38.0)]
    taken = mark_of(lane, MarkKind.TAKEOVER_BY_EXPIRY)
    assert taken.holder == "b_1"
    assert re.search(r"b_1 took it( \(\S+ from pod b\))? after a_1 let it expire", taken.text)
    assert f"not renewed for up to {19 if view is read_watch else 18} s" in taken.text
    assert (lane.namespace, lane.name, lane.duration_seconds) == ("shop", "db", 15)


@ANY
def test_a_release_leaves_nobody_until_the_next_one_comes(view: View) -> None:
    server = FakeServer()
    a, b = server.elector("a", "shop/db"), server.elector("b", "shop/db")
    a.lead(10)
    a.release()
    server.wait(1.5)
    b.lead(10)
    (lane,) = view(server).lanes
    assert spans(lane) == [
        ("held", "a_1", 0.0, 10.0),
        ("leaderless", "", 10.0, 11.5),
        ("held", "b_1", 11.5, None),
    ]
    assert marks(lane) == [("created", 0.0), ("release", 10.0), ("takeover-by-release", 11.5)]
    assert mark_of(lane, MarkKind.RELEASE).text.startswith("a_1 released it")


@LOGGED
def test_a_holder_that_another_user_removed_neither_holds_the_lease_nor_stopped_leading(view: View) -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db")
    a.lead(10)
    spec = {**server.leases["shop/db"]["spec"], "holderIdentity": ""}
    server.write("shop/db", spec, "kubectl-edit", "admin", "")
    server.wait(2)
    a.take()
    (lane,) = view(server).lanes
    assert spans(lane) == [("held", "a_1", 0.0, 10.0), ("removed", "", 10.0, 12.0), ("held", "a_1", 12.0, None)]
    assert lane.list_gaps(server.now) == ()
    assert lane.handovers == 0


def test_a_holder_that_was_removed_long_after_it_expired_led_no_more() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(10)
    server.wait(30)
    spec = {**server.leases["shop/db"]["spec"], "holderIdentity": ""}
    server.write("shop/db", spec, "kubectl-edit", "admin", "")
    server.wait(1)
    (lane,) = read_log(server).lanes
    assert [kind for kind, *_ in spans(lane)] == ["held", "overdue", "leaderless"]


def test_a_log_without_objects_shows_who_writes_and_not_who_holds() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(10)
    (lane,) = timeline_of(server.audit_log(metadata_only=True)).lanes
    assert spans(lane) == [("written", "a", 0.0, None)]


@pytest.mark.parametrize(("ahead", "managed_fields"), [(0, True), (30, True), (30, False)])
def test_a_list_after_a_log_without_objects_shows_who_holds(ahead: float, managed_fields: bool) -> None:
    """Without managedFields it says by the holder's own clock when that renewed."""
    server = FakeServer()
    server.elector("a", "shop/db", ahead=ahead).lead(10)
    del server.log[0]
    shown = server.dump(managed_fields=managed_fields)
    (lane,) = timeline_of(server.audit_log(metadata_only=True), shown).lanes
    assert spans(lane) == [("written", "a", 2.0, 10.0), ("held", "a_1", 10.0, None)]


def test_where_a_log_may_lack_what_was_written_nothing_is_shown() -> None:
    server = FakeServer()
    a, m, n = (server.elector(name, f"shop/{name}") for name in ("a", "m", "n"))
    together(30, a, m, n)
    server.wait(60)
    together(4, m)
    a_lane, m_lane, _ = read_log(server).lanes
    assert [kind for kind, *_ in spans(a_lane)] == ["held", "unrecorded"]
    assert a_lane.spans[-1].describe((), server.now) == "not recorded: the input does not show who held it"
    assert m_lane.spans[-1].kind is SpanKind.HELD


def test_a_lease_that_had_expired_before_the_log_may_lack_writes_is_overdue_until_then() -> None:
    server = FakeServer()
    a, m, n = (server.elector(name, f"shop/{name}") for name in ("a", "m", "n"))
    together(30, a, m, n)
    together(30, m, n)
    server.wait(60)
    together(4, m)
    a_lane, *_ = read_log(server).lanes
    assert [kind for kind, *_ in spans(a_lane)] == ["held", "overdue", "unrecorded"]


def test_times_by_a_writers_clock_are_marked_as_such() -> None:
    server = FakeServer()
    server.elector("a", "shop/db", ahead=60).lead(10)
    server.wait(17)
    server.elector("b", "shop/db").lead(4)
    for _, _, lease in server.events:
        del lease["metadata"]["managedFields"]
    timeline = read_watch(server)
    (lane,) = timeline.lanes
    assert lane.is_claimed
    assert make_timeline_json(timeline)["leases"][0]["is_by_writers_clock"]
    assert ", by its writer's clock" in lane.marks[-1].text


def test_a_holder_by_a_writer_s_clock_that_is_behind_ends_no_earlier_holder_before_its_last_renewal() -> None:
    server = FakeServer()
    mail = server.elector("mail-0", "shop/mail")
    together(30, server.elector("a", "shop/db"), mail)
    together(4, mail)
    server.elector("b", "shop/db", ahead=-3600).take()
    together(4, mail)
    for _, _, lease in server.events:
        if lease["metadata"]["name"] == "db":
            del lease["metadata"]["managedFields"]
    lane, _ = read_watch(server).lanes
    assert [(one.holder, seconds(one.begins), seconds(one.ends)) for one in lane.spans] == [
        ("a_1", 0, 30),
        ("b_1", 30, None),
    ]


def test_fields_that_are_gone_with_all_others_are_no_forged_stamps() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(10)
    server.write("shop/db", {}, "kubectl-replace", "admin", "")
    server.leases["shop/db"]["metadata"]["managedFields"] = []
    (lane,) = read_log(server).lanes
    assert MarkKind.FORGED_STAMPS not in {one.kind for one in lane.marks}


@ANY
def test_a_steal_has_no_gap(view: View) -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(10)
    server.wait(1)
    server.elector("b", "shop/db", user="system:serviceaccount:other:intruder").lead(4)
    (lane,) = view(server).lanes
    assert spans(lane) == [("held", "a_1", 0.0, 11.0), ("held", "b_1", 11.0, None)]
    assert marks(lane) == [("created", 0.0), ("steal", 11.0)]
    took = r"b_1 (took it \(\S+ from pod b\) from|was written into it in place of) a_1"
    assert re.match(took, mark_of(lane, MarkKind.STEAL).text)


@pytest.mark.parametrize("view", [read_watch, read_log, read_both])
def test_two_may_lead_until_the_lease_of_the_one_before_would_have_expired(view: View) -> None:
    server = FakeServer()
    server.elector("a", "shop/db", duration=600, retry=60.0).lead(180)
    server.wait(10)
    server.elector("b", "shop/db", user="system:serviceaccount:other:intruder").lead(30)
    (lane,) = (shown := view(server)).lanes
    ((doubt, _),) = [one for one in lane.list_doubts((), shown.ends) if one[0].kind is SpanKind.CONTESTED]
    assert (seconds(doubt.begins), seconds(doubt.ends)) == (190.0, 780.0)
    assert "contested_until" not in json.dumps(make_timeline_json(shown))


@pytest.mark.parametrize("name", ["a_2", "b_1"], ids=["its own next name", "another pod"])
def test_what_the_pod_of_a_holder_wrote_in_is_no_steal(name: str) -> None:
    server = FakeServer(uids={"a": "u-a", "b": "u-b"})
    a = server.elector("a", "shop/db")
    a.lead(10)
    server.write("shop/db", {**server.leases["shop/db"]["spec"], "holderIdentity": name}, "operator", a.user, "a")
    next_one = server.elector(name[0], "shop/db")
    next_one.identity = name
    next_one.lead(10)
    (lane,) = read_log(server).lanes
    assert marks(lane) == [("created", 0.0), ("takeover", 10.0)]
    assert lane.list_doubts((), server.now) == []


@ANY
def test_a_pause_beyond_the_duration_is_overdue_and_ends_with_the_renewal(view: View) -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db")
    a.lead(10)
    server.wait(20)
    a.lead(10)
    (lane,) = view(server).lanes
    assert spans(lane) == [
        ("held", "a_1", 0.0, 25.0),
        ("overdue", "a_1", 25.0, 32.0),
        ("held", "a_1", 32.0, None),
    ]
    assert ("late", 32.0) in marks(lane)
    assert "no one took it" in mark_of(lane, MarkKind.LATE).text


@ANY
def test_every_renewal_is_a_tick(view: View) -> None:
    server = FakeServer()
    together(60, server.elector("a", "shop/db"), server.elector("m", "shop/mail"))
    for lane in view(server).lanes:
        assert lane.ticks.count == 30
        assert all(abs(at - START - 2 * SECOND * number) <= MARGIN for number, at in enumerate(lane.ticks.moments, 1))


@ANY
def test_a_lease_that_is_renewed_no_longer_ends_overdue(view: View) -> None:
    server = FakeServer()
    a, m = server.elector("a", "shop/db"), server.elector("m", "shop/mail")
    together(20, a, m)
    together(40, m)
    db, mail = view(server).lanes
    assert spans(db)[-1] == ("overdue", "a_1", 35.0, None)
    assert spans(mail) == [("held", "m_1", 0.0, None)]


@LOGGED
def test_the_writer_is_that_of_the_log(view: View) -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(10)
    (lane,) = view(server).lanes
    (span,) = lane.spans
    assert (span.writer, span.manager) == ("shop/db from pod a", "operator")


@LOGGED
def test_an_edit_says_what_it_changed_and_who_did_it(view: View) -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db")
    a.lead(10)
    server.wait(1)
    spec = {**server.leases["shop/db"]["spec"], "leaseTransitions": 2**31 - 1}
    server.write("shop/db", spec, "kubectl-edit", "admin", "")
    (lane,) = view(server).lanes
    edit = mark_of(lane, MarkKind.EDIT)
    assert edit.text == "leaseTransitions 0 -> 2147483647 by admin"
    assert (edit.holder, seconds(edit.begins)) == ("a_1", 11.0)
    assert spans(lane) == [("held", "a_1", 0.0, 11.0), ("frozen", "a_1", 11.0, None)]
    assert lane.spans[1].reason.startswith("no other replica can take it: leaseTransitions is 2147483647")


@LOGGED
def test_a_deletion_leaves_nothing_until_the_lease_is_created_again(view: View) -> None:
    server = FakeServer()
    a, b = server.elector("a", "shop/db"), server.elector("b", "shop/db")
    a.lead(10)
    server.delete("shop/db")
    server.wait(5)
    b.lead(10)
    (lane,) = view(server).lanes
    assert spans(lane) == [
        ("held", "a_1", 0.0, 10.0),
        ("leaderless", "", 10.0, 15.0),
        ("held", "b_1", 15.0, None),
    ]
    assert marks(lane) == [("created", 0.0), ("deleted", 10.0), ("created", 15.0)]
    assert mark_of(lane, MarkKind.DELETED).text == "admin deleted the lease while a_1 held it"


@LOGGED
def test_a_lease_that_stays_deleted_has_no_span(view: View) -> None:
    server = FakeServer()
    a, m = server.elector("a", "shop/db"), server.elector("m", "shop/mail")
    together(10, a, m)
    server.delete("shop/db")
    together(10, m)
    db, _ = view(server).lanes
    assert spans(db) == [("held", "a_1", 0.0, 10.0)]


ANSWERS = [
    pytest.param(403, 0.004, "denied", id="a denial"),
    pytest.param(422, 0.004, "denied", id="an invalid write"),
    pytest.param(503, 0.004, "failed", id="a failure"),
    pytest.param(429, 0.004, "failed", id="too many requests"),
    pytest.param(504, 34.0, "failed", id="a timeout"),
]


@pytest.mark.parametrize(("code", "took", "kind"), ANSWERS)
@LOGGED
def test_an_answer_that_was_not_a_success_is_marked_with_its_message(
    view: View, code: int, took: float, kind: str
) -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db")
    a.lead(10)
    server.wait(1)
    a.fail(code, "the whole message", took)
    (lane,) = view(server).lanes
    mark = mark_of(lane, MarkKind(kind))
    assert f"a write by shop/db from pod a was answered with {code}" in mark.text
    assert mark.text.endswith(": the whole message")
    assert (mark.holder, mark.writer, seconds(mark.begins)) == ("a_1", "shop/db from pod a", 11.0)


@pytest.mark.parametrize(
    ("elector", "verb", "code", "message"),
    [
        ("a", "update", 409, "the object has been modified"),
        ("b", "update", 409, "the object has been modified"),
        ("b", "patch", 422, UNAPPLIED),
    ],
    ids=["an update of the holder", "an update of another", "a JSON patch of another"],
)
def test_a_conflict_is_how_electors_race_and_has_no_mark(elector: str, verb: str, code: int, message: str) -> None:
    server = FakeServer()
    electors = {pod: server.elector(pod, "shop/db") for pod in ("a", "b")}
    electors["a"].lead(10)
    electors[elector].fail(code, message, verb=verb)
    (lane,) = read_log(server).lanes
    assert marks(lane) == [("created", 0.0)]


def test_an_apply_that_others_keep_from_its_fields_has_a_mark() -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db")
    a.lead(10)
    a.fail(409, APPLY_CONFLICT, verb="patch")
    (lane,) = read_log(server).lanes
    assert mark_of(lane, MarkKind.DENIED).text == (
        f"a write by shop/db from pod a was answered with 409: {APPLY_CONFLICT}"
    )


def said(rule: str) -> str:
    return RULES[rule].summary.rstrip(".")


ANNOTATIONS = [
    pytest.param(
        {"rules": "takeover-before-expiry=warn", "event": "steal"},
        "warned",
        "lease-webhook warned about this steal by shop/db from pod a: takeover-before-expiry "
        f"({said('takeover-before-expiry')})",
        id="a warning",
    ),
    pytest.param(
        {"rules": "duration-too-long=warn", "event": "edit", "would-deny": "duration-too-long"},
        "would-deny",
        "lease-webhook admitted this edit by shop/db from pod a, and would deny it by "
        f"duration-too-long ({said('duration-too-long')})",
        id="a denial that a cap lifts",
    ),
]


@pytest.mark.parametrize(("annotations", "kind", "text"), ANNOTATIONS)
@LOGGED
def test_annotations_of_the_webhook_are_marks(view: View, annotations: dict[str, str], kind: str, text: str) -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(10)
    prefix = "leases.lease-webhook.svc"
    server.log[-1]["annotations"] = {f"{prefix}/{key}": value for key, value in annotations.items()}
    (lane,) = view(server).lanes
    mark = mark_of(lane, MarkKind(kind))
    assert (mark.text, mark.writer, seconds(mark.begins)) == (text, "shop/db from pod a", 10.0)


@pytest.mark.parametrize(
    "annotations",
    [
        pytest.param({"other.example/rules": "whatever it says"}, id="another webhook's"),
        pytest.param(
            {"leases.lease-webhook.svc/rules": "renew-time-in-future=audit"}, id="one that no one was warned of"
        ),
    ],
)
def test_other_annotations_are_no_marks(annotations: dict[str, str]) -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(10)
    server.log[-1]["annotations"] = annotations
    (lane,) = read_log(server).lanes
    assert marks(lane) == [("created", 0.0)]


def write_nothing_and_own_strategy(server: FakeServer, ahead: int = 0) -> None:
    """A patch of strategy, which the API server dropped, dated so many seconds ahead."""
    server.write("shop/db", server.leases["shop/db"]["spec"], "kubectl-patch", "admin", "")
    entry = make_entry("strategy", manager="kubectl-patch", time=format_time(server.now + ahead * SECOND))
    metadata = server.leases["shop/db"]["metadata"]
    metadata["managedFields"] = [one for one in metadata["managedFields"] if one["manager"] != "kubectl-patch"] + [
        entry
    ]


@ANY
@pytest.mark.parametrize("seconds", [1, 9, 90])
def test_a_field_that_the_api_server_dropped_is_no_forged_stamp(view: View, seconds: int) -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(10)
    server.wait(seconds)
    write_nothing_and_own_strategy(server)
    (lane,) = view(server).lanes
    assert MarkKind.FORGED_STAMPS not in {one.kind for one in lane.marks}


@LOGGED
def test_an_owner_of_a_dropped_field_that_is_dated_ahead_is_a_forged_stamp(view: View) -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(10)
    server.wait(1)
    write_nothing_and_own_strategy(server, ahead=30)
    (lane,) = view(server).lanes
    assert "which owns nothing that this write sets" in mark_of(lane, MarkKind.FORGED_STAMPS).text


@ANY
def test_forged_stamps_are_marked(view: View) -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db")
    a.lead(10)
    server.wait(1)
    spec = {**server.leases["shop/db"]["spec"], "leaseDurationSeconds": 30}
    server.write("shop/db", spec, "kubectl-edit", "admin", "")
    entries = server.leases["shop/db"]["metadata"]["managedFields"]
    owner = next(entry for entry in entries if "f:renewTime" in entry["fieldsV1"]["f:spec"])
    owner["time"] = "2026-11-18T09:00:00Z"
    (lane,) = view(server).lanes
    assert "brings 2 entries with new times" in mark_of(lane, MarkKind.FORGED_STAMPS).text


def fence_event(server: FakeServer, message: str, **event: object) -> None:
    server.log_request("shop/db", "patch", "system:serviceaccount:shop:db", "b", {"message": message}, 403)
    server.log[-1] |= {
        "objectRef": {"resource": "deployments", "namespace": "shop", "name": "web", "apiGroup": "apps"},
        "requestURI": "/apis/apps/v1/namespaces/shop/deployments/web",
        **event,
    }


DENIED = "ValidatingAdmissionPolicy 'fence-db' with binding 'fence-db' denied request: "
HELD = (
    "lease shop/db is held by a_1 since transition 3, and this write comes from pod b; only the holder may write: "
    "stop this work, or acquire the lease first (fence db)"
)


@LOGGED
def test_a_fenced_write_stands_at_its_lease(view: View) -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(10)
    fence_event(server, f'deployments.apps "web" is forbidden: {DENIED}{HELD}')
    (lane,) = view(server).lanes
    mark = mark_of(lane, MarkKind.FENCED)
    assert mark.text.startswith("fence db refused patch deployments.apps shop/web by shop/db from pod b: ")
    assert mark.text.endswith(HELD)
    assert (mark.holder, mark.writer) == ("a_1", "shop/db from pod b")


def test_a_fence_that_only_notes_is_marked_by_its_annotation() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(10)
    failures = json.dumps([{"message": HELD, "policy": "fence-db", "validationActions": ["Audit"]}])
    annotations = {"validation.policy.admission.k8s.io/validation_failure": failures}
    fence_event(server, "", responseStatus={"code": 200}, annotations=annotations)
    (lane,) = read_log(server).lanes
    assert mark_of(lane, MarkKind.FENCED).text.startswith("fence db noted, and did not refuse, patch deployments.apps")


@pytest.mark.parametrize("order", [1, -1], ids=["in order", "last file first"])
def test_rotated_logs_are_read_in_the_order_of_time(order: int) -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(20)
    server.wait(18)
    server.elector("b", "shop/db").lead(10)
    lines = server.audit_log().splitlines(keepends=True)
    parts = [b"".join(lines[:5]), b"".join(lines[5:11]), b"".join(lines[11:])]
    (lane,) = timeline_of(*parts[::order]).lanes
    assert spans(lane) == spans(read_log(server).lanes[0])
    assert lane.ticks.count == 15


def test_a_watch_that_begins_while_it_is_held_begins_there() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(600)
    events = server.events[-10:]
    server.events = [(events[0][0], "ADDED", events[0][2]), *events[1:]]
    timeline = read_watch(server)
    (lane,) = timeline.lanes
    assert seconds(timeline.begins) == 582.0
    assert spans(lane) == [("held", "a_1", 0.0, None)]
    assert marks(lane) == []


def test_a_dump_shows_what_is_held_and_what_is_overdue() -> None:
    server = FakeServer()
    a, m = server.elector("a", "shop/db"), server.elector("m", "shop/mail")
    together(20, a, m)
    together(40, m)
    builder = TimelineBuilder(LATEST)
    observe_all(builder, read("dump", [server.dump()]))
    assert builder.histories.bounds.until is None
    db, mail = builder.timeline(server.now).lanes
    assert spans(db) == [("held", "a_1", 0.0, 35.0), ("overdue", "a_1", 35.0, None)]
    assert spans(mail) == [("held", "m_1", 0.0, None)]


def test_a_stamp_of_the_future_moves_nothing_beyond_the_present() -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db")
    a.lead(10)
    a.renew(renewTime="2093-01-01T00:00:00.000000Z")
    for entry in server.leases["shop/db"]["metadata"]["managedFields"]:
        entry["time"] = "2093-01-01T00:00:00Z"
    server.wait(2)
    a.lead(10)
    timeline = read_watch(server)
    assert timeline.ends <= LATEST
    assert all((span.ends or 0) <= LATEST for lane in timeline.lanes for span in lane.spans)
    assert timeline.lanes[0].spans[-1].kind is SpanKind.HELD


def test_an_edit_of_a_lease_that_nobody_holds_is_no_mark() -> None:
    server = FakeServer()
    server.write("shop/db", {"leaseTransitions": 1}, "kubectl-create", "alice", "")
    server.wait(2)
    server.write("shop/db", {"leaseTransitions": 5}, "kubectl-patch", "alice", "")
    (lane,) = read_log(server).lanes
    assert [kind for kind, _ in marks(lane)] == ["created"]


def test_of_more_marks_than_are_kept_the_oldest_are_counted() -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db")
    a.take()
    for _ in range(MAX_MARKS + 1):
        server.wait(0.002)
        a.fail(403, "no")
    (lane,) = read_log(server).lanes
    assert sum(mark.count for mark in lane.marks if mark.kind is MarkKind.DENIED) == MAX_MARKS + 1
    assert any(mark.count > 1 for mark in lane.marks)


def test_a_lease_lasts_as_long_as_the_last_of_two_pods_of_one_identity_wrote() -> None:
    server = FakeServer()
    long = server.elector("shared", "shop/db", pod="a", duration=60)
    short = server.elector("shared", "shop/db", pod="b", duration=10)
    long.lead(4)
    for _ in range(4):
        server.wait(1)
        short.renew()
        server.wait(1)
        long.renew()
    server.wait(1)
    short.renew()
    renewed = server.now
    server.wait(20)
    short.renew()
    *_, overdue, _ = read_log(server).lanes[0].spans
    assert overdue.kind is SpanKind.OVERDUE
    assert overdue.begins - renewed == pytest.approx(10 * SECOND, abs=MARGIN)
