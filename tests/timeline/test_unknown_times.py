"""What the page shows where an input does not say when something happened: that it does not say so."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.claims.accounts import shop
from tests.claims.test_gaps import without
from tests.factories import Document
from tests.history.fake_server import SECOND, START, Elector, FakeServer, together
from tests.timeline.test_states import lane_of, stored, timeline_of, written
from tests.timeline.test_truth import read_log, read_watch
from tests.timeline.test_truth import timeline_of as read_all
from tests.truth.evaluation import evaluate
from tests.truth.inputs import Kind, input_of
from tests.truth.stored import play_stored
from webhook.analysis.timeline.model import Lane, MarkKind, SpanKind, Timeline
from webhook.kubernetes.times import format_micro_time, format_time

UNKNOWN_RENEWAL = "is named as its holder, and the input does not show when it was renewed last"


def texts(timeline: Timeline) -> list[tuple[str, float, str]]:
    """Kind, begin in seconds and text of each span of the first lease."""
    lane = timeline.lanes[0]
    gaps = lane.list_gaps(timeline.ends)
    return [
        (span.kind.value, round((span.begins - START) / SECOND, 1), span.describe(gaps, timeline.ends))
        for span in lane.spans
    ]


def with_entry(lease: dict[str, Any], manager: str, at: str) -> dict[str, Any]:
    """A lease whose metadata another manager wrote."""
    fields: dict[str, Any] = {"f:metadata": {"f:labels": {".": {}}}}
    entry = {**lease["metadata"]["managedFields"][0], "manager": manager, "time": at, "fieldsV1": fields}
    lease["metadata"]["managedFields"].append(entry)
    return lease


def spans_of(lane: Lane) -> list[SpanKind]:
    return [span.kind for span in lane.spans]


def test_a_stamp_that_renewtime_contradicts_does_not_say_when_it_was_renewed(tmp_path: Path) -> None:
    lease = with_entry(stored("checkout", renewTime="2026-11-22T11:30:00.000000Z"), "editor", "2026-11-22T11:58:00Z")
    timeline = timeline_of(written(tmp_path, lease))
    # Nor since when it is held: its holder's clock is wrong, or another one sent the stamp.
    unknown, late = timeline.lanes[0].spans
    assert UNKNOWN_RENEWAL in unknown.describe((), timeline.ends)
    assert unknown.holder == "checkout-x2x8p_1"
    # The one who wrote last is stamped: if that was a renewal, it lasted for 15 s.
    assert late.kind is SpanKind.OVERDUE
    assert format_time(late.begins) == "2026-11-22T11:58:15Z"
    (gap,) = timeline.lanes[0].list_gaps(timeline.ends)
    assert gap.describe(timeline.ends) == "not renewed since 11:58:00Z"
    assert not timeline.lanes[0].ticks.count


def test_a_lease_that_says_nothing_of_a_holder_was_never_held_as_far_as_it_says(tmp_path: Path) -> None:
    blank = dict.fromkeys(("holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime", "leaseTransitions"))
    lane = lane_of(written(tmp_path, stored("checkout", **blank)))
    sentence = "never held, as the first state that was seen says: any replica may take it"
    assert [span.describe((), 0) for span in lane.spans] == [sentence]


def test_a_deletion_that_a_watch_does_not_date_is_not_the_begin_of_a_time_without_a_leader() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(10)
    server.wait(6)
    server.delete("shop/db")
    server.wait(4)
    server.elector("b", "shop/db").lead(4)
    unknown = ("unrecorded", 10.0, "not recorded: it was deleted in this time, and the input does not show when")
    assert texts(read_watch(server))[1] == unknown
    assert texts(read_log(server))[1] == ("leaderless", 16.0, "no leader for 4 s")
    timeline = read_watch(server)
    assert [gap.describe(timeline.ends) for gap in timeline.lanes[0].list_gaps(timeline.ends)] == [
        "no leader for up to 10 s"
    ]


def delete_in_hole(server: FakeServer, first: Elector, other: Elector) -> None:
    """Have a lease deleted while the log lacks all requests; then its elector reads it in vain."""
    known = len(server.log)
    together(16, other)
    server.delete("shop/db")
    del server.log[known:]
    for _ in range(2):
        server.wait(0.1)
        first.fail(404, 'leases.coordination.k8s.io "db" not found', verb="get")


def test_reads_that_find_no_lease_after_a_hole_end_the_time_of_its_holder() -> None:
    server = FakeServer()
    first, other = server.elector("a", "shop/db"), server.elector("m", "shop/mail")
    together(20, first, other)
    delete_in_hole(server, first, other)
    server.wait(0.1)
    first.take()
    together(4, first, other)
    held, unknown, again = texts(read_log(server))
    assert [held[:2], unknown[:2], again[:2]] == [("held", 0.0), ("unrecorded", 20.0), ("held", 36.3)]
    assert "it was deleted in this time" in unknown[2]


def test_a_holder_that_let_it_expire_does_not_hold_it_until_a_hole_after_which_no_lease_is_found() -> None:
    server = FakeServer()
    first, other = server.elector("a", "shop/db"), server.elector("m", "shop/mail")
    together(20, first, other)
    together(20, other)
    server.write("shop/db", server.leases["shop/db"]["spec"], "operator", "admin", "")
    delete_in_hole(server, first, other)
    together(4, other)
    held, overdue = texts(read_log(server))
    assert [held[:2], overdue[:2]] == [("held", 0.0), ("overdue", 35.0)]


def test_a_lease_that_is_gone_has_no_span_after_its_deletion() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(10)
    server.delete("shop/db")
    assert spans_of(read_watch(server).lanes[0]) == [SpanKind.HELD]


def test_a_holder_that_is_removed_without_a_stamp_is_removed_at_an_unknown_time() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(10)
    server.elector("b", "shop/cache").lead(4)
    server.write("shop/db", {}, "janitor", "janitor", "")
    del server.events[-1][2]["metadata"]["managedFields"][1:]
    server.events[-1][2]["metadata"]["managedFields"] = [
        {"manager": "janitor", "operation": "Update", "time": format_time(START), "fieldsV1": {}}
    ]
    sentence = "not recorded: its holder was removed in this time, and the input does not show when"
    lanes = {lane.name: lane for lane in read_watch(server).lanes}
    assert lanes["db"].spans[-1].describe((), 0) == sentence
    assert lanes["db"].list_gaps(server.now) == ()


def test_who_was_removed_in_the_second_in_which_it_took_the_lease_led_in_between() -> None:
    server = FakeServer()
    a, b = server.elector("a", "shop/db"), server.elector("b", "shop/db")
    a.lead(10)
    a.release()
    server.wait(2.3)
    b.take()
    server.wait(0.4)
    server.elector("mallory", "shop/db", ahead=1).release()  # so that nothing but the second of its stamp dates it
    server.wait(2.2)
    a.take()
    lane = read_watch(server).lanes[0]
    assert [round(one.length / SECOND, 1) for one in lane.list_gaps(server.now)] == [2.3, 2.6]
    assert [one.holder for one in lane.spans if one.kind is SpanKind.HELD] == ["a_1", "b_1", "a_1"]
    taken, removed = lane.marks[-3:-1]
    assert (taken.kind, removed.kind) == (MarkKind.TAKEOVER_BY_RELEASE, MarkKind.RELEASE)
    assert taken.begins < removed.begins < taken.begins + SECOND


def test_who_is_written_into_a_lease_that_stays_released_does_not_hold_it() -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db")
    a.lead(4)
    a.release()
    server.wait(2)
    released = server.leases["shop/db"]["spec"]
    server.write("shop/db", {**released, "holderIdentity": "b_1"}, "editor", "admin", "")
    server.wait(2)
    server.elector("b", "shop/db").renew()
    assert [kind for kind, *_ in texts(read_log(server))] == ["held", "leaderless", "leaderless", "held"]


@pytest.mark.parametrize(("seconds", "begins"), [(8, -30.0), (12, 12.0)])
def test_a_first_state_says_nothing_of_a_time_in_which_a_log_shows_no_renewal(seconds: float, begins: float) -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db")
    server.now = START - 30 * SECOND
    a.lead(30)
    server.log.clear()
    server.elector("b", "shop/cache").take()
    server.wait(seconds)
    a.renew()
    lane = next(lane for lane in read_log(server).lanes if lane.name == "db")
    assert round((lane.spans[0].begins - START) / SECOND, 1) == begins


def test_a_log_that_begins_with_a_holder_that_was_written_in_does_not_say_what_was_before() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(10)
    server.log.clear()
    spec = server.leases["shop/db"]["spec"]
    server.wait(5)
    server.write("shop/db", {**spec, "holderIdentity": "b_1"}, "gitops", "gitops", "")
    server.wait(2)
    server.elector("b", "shop/db").renew()
    lines = texts(read_log(server))
    assert lines == [("unrecorded", 15.0, f"not recorded: b_1 {UNKNOWN_RENEWAL}"), ("held", 17.0, "held by b_1")]
    assert read_log(server).lanes[0].ticks.count == 1


def test_a_renewal_is_drawn_that_only_the_stamp_of_a_later_write_dates() -> None:
    server, (db, *others) = shop()
    together(20, db, *others)
    db.release()
    first = len(server.log) - 1
    together(6, server.elector("db-1", "shop/db"), *others)
    last = len(server.log)
    server.wait(5)
    edited = {**server.leases["shop/db"]["spec"], "leaseDurationSeconds": 20}
    server.write("shop/db", edited, "kubectl-edit", "alice", "")
    together(4, *others)

    def is_lost(number: int, event: Document) -> bool:
        return first <= number < last and event["objectRef"]["name"] == "db"

    lane = next(one for one in read_all(without(server.audit_log(), is_lost)).lanes if one.name == "db")
    taken = lane.spans[-1]
    assert (taken.holder, taken.begins) == ("db-1_1", START + 31 * SECOND)
    assert lane.ticks.moments[-1] == START + 26 * SECOND


def log_with_a_hidden_edit(server: FakeServer) -> Timeline:
    """What a log shows that has the write before the last one at the level Metadata."""
    whole, hidden = server.audit_log().splitlines(), server.audit_log(metadata_only=True).splitlines()
    return read_all(b"\n".join([*whole[:-2], hidden[-2], whole[-1]]))


def test_a_holder_that_goes_on_after_a_hidden_edit_has_not_renewed_once_more() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(10)
    spec = server.leases["shop/db"]["spec"]
    renewals = read_log(server).lanes[0].ticks.count
    for _ in range(2):
        server.wait(6)
        server.write("shop/db", spec, "editor", "admin", "")
    lane = log_with_a_hidden_edit(server).lanes[0]
    assert lane.ticks.count == renewals
    assert spans_of(lane)[-1] is SpanKind.HELD


def test_a_holder_that_renews_after_a_hidden_edit_has_renewed() -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db")
    a.lead(10)
    spec = server.leases["shop/db"]["spec"]
    renewals = read_log(server).lanes[0].ticks.count
    server.wait(1)
    server.write("shop/db", spec, "editor", "admin", "")
    server.wait(1)
    a.renew()
    assert log_with_a_hidden_edit(server).lanes[0].ticks.count == renewals + 1


def test_a_lease_expires_after_the_last_renewal_by_another_one_whatever_a_log_lacks_of_its_holder() -> None:
    server, (db, *others) = shop()
    stranger = server.elector("mallory", "shop/db", user="system:serviceaccount:shop:mallory")
    stranger.identity, stranger.manager = db.identity, "mallory"
    together(20, db, *others)
    known = len(server.log)
    together(24, db, *others)
    del server.log[known:]
    together(6, stranger, *others)
    renewed = server.now
    together(40, *others)
    db.renew()
    (lane,) = (one for one in read_log(server).lanes if one.name == "db")
    (overdue,) = (span for span in lane.spans if span.kind is SpanKind.OVERDUE)
    assert abs(overdue.begins - renewed - 15 * SECOND) < 3 * SECOND
    assert overdue.ends == server.now


def edit_duration(server: FakeServer, seconds: int) -> None:
    spec = server.leases["shop/db"]["spec"]
    server.write("shop/db", {**spec, "leaseDurationSeconds": seconds}, "editor", "admin", "")


def test_a_lease_that_had_expired_is_held_again_once_another_one_makes_it_last_longer() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(10)
    other = server.elector("b", "shop/other")
    other.lead(20)
    edit_duration(server, 120)
    other.lead(20)
    assert [(kind, begins) for kind, begins, _ in texts(read_log(server))] == [
        ("held", 0.0),
        ("overdue", 25.0),
        ("held", 30.0),
    ]


def test_a_lease_was_held_for_its_stated_duration_until_another_user_shortened_it() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(10)
    server.wait(2)
    edit_duration(server, 600)
    server.wait(40)
    edit_duration(server, 15)
    server.wait(10)
    server.elector("b", "shop/other").take()
    assert [(kind, begins) for kind, begins, _ in texts(read_log(server))] == [("held", 0.0), ("overdue", 52.0)]


def test_a_lease_whose_last_renewal_is_not_shown_lasts_until_another_one_shortens_it() -> None:
    server = FakeServer()
    server.elector("a", "shop/db", ahead=3600.0).lead(10)
    (*_, (at, _, state)) = server.events
    server.events = [(at, "ADDED", state)]  # a renewTime that no stamp confirms
    server.wait(6)
    edit_duration(server, 1)
    server.wait(4)
    server.elector("b", "shop/other").take()
    shown = [(kind, begins) for kind, begins, _ in texts(read_watch(server))]
    assert shown == [("unrecorded", 10.0), ("overdue", 16.0)]


@pytest.mark.parametrize(
    ("seconds", "overdue_at"),
    [pytest.param(6, 18.0, id="before it expired"), pytest.param(30, 27.0, id="after it had expired")],
)
def test_a_lease_that_was_shortened_while_nothing_watched_lasted_until_then(seconds: float, overdue_at: float) -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(12)
    del server.events[-1]
    server.wait(seconds)
    edit_duration(server, 1)
    at, _, state = server.events.pop()
    server.events.append((at, "ADDED", state))  # as a watch begins that begins again
    server.wait(1)
    server.elector("b", "shop/other").take()
    assert [(kind, begins) for kind, begins, _ in texts(read_watch(server))] == [("held", 0.0), ("overdue", overdue_at)]


def choose(server: FakeServer, holder: str) -> None:
    held = {"holderIdentity": holder, "leaseDurationSeconds": 5, "renewTime": format_micro_time(server.now)}
    spec = {**held, "strategy": "OldestEmulationVersion", "acquireTime": None, "leaseTransitions": 0}
    server.write("shop/db", spec, "kube-apiserver", "system:apiserver", "")


def test_a_chosen_holder_that_never_renews_is_overdue_before_an_edit_extends_the_lease() -> None:
    server = FakeServer()
    other = server.elector("b", "shop/other")
    choose(server, "a")
    other.lead(20)
    edit_duration(server, 120)
    other.lead(20)
    for _ in range(3):
        edit_duration(server, 1)
        other.lead(4)
    assert [(kind, begins) for kind, begins, _ in texts(read_log(server))] == [
        ("held", 0.0),
        ("overdue", 5.0),
        ("held", 20.0),
        ("overdue", 40.0),
    ]


def test_a_chosen_holder_whose_first_renewal_seems_to_precede_the_choice_leads_at_once() -> None:
    server = FakeServer()
    other = server.elector("b", "shop/other")
    choose(server, "c")
    other.lead(20)
    choose(server, "a")
    a = server.elector("a", "shop/db")
    a.identity, server.now = "a", server.now - SECOND // 5  # by the clock of another API server
    a.renew()
    a.lead(10)
    held = [(one.kind, one.begins) for one in read_watch(server).lanes[0].spans if one.holder == "a"]
    assert [kind for kind, _ in held] == [SpanKind.HELD]


def test_the_duration_that_another_one_shortened_before_the_input_begins_counts_from_then_on(tmp_path: Path) -> None:
    lease = stored("checkout", leaseDurationSeconds=5)
    entry = lease["metadata"]["managedFields"][0]
    del entry["fieldsV1"]["f:spec"]["f:leaseDurationSeconds"]
    edited = {**entry, "manager": "editor", "time": "2026-11-22T11:58:00Z"}
    lease["metadata"]["managedFields"].append({**edited, "fieldsV1": {"f:spec": {"f:leaseDurationSeconds": {}}}})
    held, late = timeline_of(written(tmp_path, lease)).lanes[0].spans
    assert (held.kind, held.reason) == (SpanKind.HELD, "as the first state that was seen says")
    assert late.kind is SpanKind.OVERDUE
    assert format_time(late.begins) == "2026-11-22T11:58:00Z"


def test_a_log_that_begins_with_a_patch_does_not_show_that_the_lease_was_renewed_until_then() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(10)
    server.log.clear()
    server.elector("b", "shop/other").take()
    server.wait(8)
    spec = server.leases["shop/db"]["spec"]
    server.write("shop/db", {**spec, "renewTime": "2026-11-18T10:00:00.000000Z"}, "gitops", "gitops", "")
    server.log[-1]["verb"] = "patch"
    server.wait(60)
    server.elector("b", "shop/other").renew()
    lane = next(lane for lane in read_log(server).lanes if lane.name == "db")
    assert SpanKind.UNRECORDED in spans_of(lane)
    assert not any(span.writer for span in lane.spans)


def test_a_log_in_which_writes_were_refused_first_does_not_show_what_was_before() -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db")
    a.lead(30)
    server.log.clear()
    server.elector("b", "shop/other").take()
    a.fail(403, 'leases.coordination.k8s.io "db" is forbidden')
    server.wait(4)
    a.renew()
    lane = next(lane for lane in read_log(server).lanes if lane.name == "db")
    assert lane.spans[0].begins == server.now


def test_a_stamp_that_is_ahead_hides_no_theft() -> None:
    server, (db, *_) = shop()
    db.lead(10)
    entries = server.leases["shop/db"]["metadata"]["managedFields"]
    ahead = {"manager": "editor", "time": format_time(server.now + 20 * SECOND)}
    entries.append({**entries[0], **ahead, "fieldsV1": {"f:spec": {"f:leaseDurationSeconds": {}}}})
    server.events.clear()
    db.lead(4)  # the watch begins with a state that has this stamp
    server.elector("db-1", "shop/db").take()
    (lane,) = read_watch(server).lanes
    assert [(span.holder, span.begins > server.now) for span in lane.spans][-1] == ("db-1_1", False)


def test_a_command_in_the_holders_pod_may_be_the_holder() -> None:
    server = FakeServer()
    db = server.elector("db-0", "shop/db")
    db.identity = "437d5c43-b3cc-4a00-9000-a9b60a26b22d"  # of a process of any pod
    db.lead(20)
    del server.log[:-1]
    spec = server.leases["shop/db"]["spec"] | {"holderIdentity": "", "leaseDurationSeconds": 1}
    server.write("shop/db", spec, "kubectl-patch", db.user, db.pod)
    (lane,) = read_log(server).lanes
    assert (
        lane.marks[0].text
        == f"{db.identity} released it, or was removed as the holder: shop/db from pod db-0 wrote that"
    )


def test_a_lease_that_was_created_without_renewtime_need_not_be_held() -> None:
    server = FakeServer()
    spec = {"holderIdentity": "a_1", "leaseDurationSeconds": 15, "acquireTime": None, "leaseTransitions": 0}
    server.write("shop/db", spec, "gitops", "gitops", "")
    server.wait(4)
    server.elector("a", "shop/db").renew()
    assert texts(read_log(server)) == [
        ("unrecorded", 0.0, "not recorded: a_1 is named as its holder, and the lease has no renewTime"),
        ("held", 4.0, "held by a_1"),
    ]


@pytest.mark.parametrize("seconds", [0, 10], ids=["as it was taken", "after renewals"])
def test_a_lease_whose_renewtime_was_removed_is_held_until_it_expires(seconds: float) -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(seconds)
    other = server.elector("b", "shop/other")
    server.write("shop/db", {**server.leases["shop/db"]["spec"], "renewTime": None}, "editor", "admin", "")
    other.lead(4)
    assert [(kind, begins) for kind, begins, _ in texts(read_log(server))] == [("held", 0.0)]


def test_a_lease_lasts_again_as_before_it_was_shortened_once_that_is_undone() -> None:
    server = FakeServer()
    a = server.elector("a", "shop/db")
    a.lead(10)
    server.log.clear()
    a.renew()
    for seconds in (3600, 5, 3600):
        server.wait(1)
        edit_duration(server, seconds)
    server.wait(6)
    a.renew()
    assert [kind for kind, *_ in texts(read_log(server))] == ["held"]


def write_in_after_release(server: FakeServer) -> None:
    """Have someone write a holder into a lease that was released, and leave renewTime as it was."""
    a = server.elector("a", "shop/db")
    a.lead(10)
    a.release()
    server.wait(5)
    spec = {**server.leases["shop/db"]["spec"], "holderIdentity": "b_1", "leaseDurationSeconds": 15}
    server.write("shop/db", spec, "gitops", "gitops", "")
    server.elector("c", "shop/other").lead(20)


def test_who_is_written_in_without_a_renewal_holds_a_lease_for_as_long_as_since_its_release() -> None:
    server = FakeServer()
    write_in_after_release(server)
    assert [(kind, begins) for kind, begins, _ in texts(read_log(server))] == [
        ("held", 0.0),
        ("leaderless", 10.0),
        ("held", 15.0),
        ("overdue", 25.0),
    ]


def test_whether_who_is_written_in_holds_it_is_unknown_where_the_release_is_not_shown() -> None:
    server = FakeServer()
    write_in_after_release(server)
    *_, released, _ = (number for number, one in enumerate(server.log) if one["objectRef"]["name"] == "db")
    del server.log[released - 2 : released]  # the release follows a state that the log does not have
    assert next(kind for kind, _, sentence in texts(read_log(server)) if "b_1" in sentence) == "unrecorded"


def test_when_a_lease_expired_is_unknown_if_its_duration_rose_unseen() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(10)
    server.wait(40)
    spec = server.leases["shop/db"]["spec"]
    server.write("shop/db", {**spec, "leaseDurationSeconds": 30}, "edit", "admin", "")
    server.elector("b", "shop/cache").lead(20)
    lane = next(one for one in read_all(server.watch(managed_fields=False)).lanes if one.name == "db")
    begins = [(one.kind.value, round((one.begins - START) / SECOND)) for one in lane.spans]
    assert begins == [("held", 0), ("unrecorded", 25), ("overdue", 40)]


def test_a_holder_may_have_lost_an_expired_lease_before_a_takeover_in_a_log_that_lacks_writes() -> None:
    given = input_of(play_stored("expired-just-before-a-takeover-in-a-leaky-log"), Kind.HOLE)
    assert given is not None
    lane = next(one for one in read_all(given.files["audit.log"]).lanes if one.name == "dns")
    before = next(one for one, after in pairwise(lane.spans) if after.holder == "dns-7c9-0_a78c4b32")
    assert (before.kind, before.reason) == (SpanKind.UNRECORDED, "it may have expired before the next holder took it")


def test_a_chosen_holder_that_was_renewed_unseen_is_not_drawn_as_overdue() -> None:
    """A webhook renames it while an API server asks it to step down; no stamp says when it was chosen again."""
    history = play_stored("a-webhook-renames-a-holder-that-is-asked-to-step-down")
    given = input_of(history, Kind.WATCH_WITH_POLICY)
    assert given is not None
    drawn = [one.claim for one in evaluate(history, given, ["timeline"]) if one.lease == "shop/checkout"]
    overdue = [one["from"] for one in drawn if one["claim"] == "timeline-overdue"]
    assert overdue
    assert "2025-06-15T15:07:17.000000Z" not in overdue


def test_a_holder_that_was_chosen_before_its_own_release_by_another_clock_leads_from_its_renewal_on() -> None:
    given = input_of(play_stored("chosen-again-before-its-own-release-by-another-clock"), Kind.WATCH)
    assert given is not None
    lane = next(one for one in read_all(given.files["watch.json"]).lanes if one.name == "checkout")
    assert spans_of(lane) == [SpanKind.HELD, SpanKind.CHOSEN, SpanKind.HELD]


def test_a_duration_that_another_one_put_back_ends_a_lease_that_another_one_made_longer() -> None:
    given = input_of(play_stored("a-duration-put-back-after-another-one-made-it-longer"), Kind.WATCH)
    assert given is not None
    lane = next(one for one in read_all(given.files["watch.json"]).lanes if one.name == "checkout")
    assert spans_of(lane) == [SpanKind.HELD, SpanKind.OVERDUE, SpanKind.HELD]
    assert MarkKind.STEAL not in {one.kind for one in lane.marks}


def test_who_renews_when_a_log_begins_need_not_be_the_holder_that_was_written_in_before() -> None:
    given = input_of(play_stored("a-late-log-of-a-stranger-that-renews-and-removes-the-holder"), Kind.LATE_LOG)
    assert given is not None
    lane = next(one for one in read_all(given.files["audit.log"]).lanes if one.name == "checkout")
    (removed,) = (one.text for one in lane.marks if one.kind is MarkKind.RELEASE)
    assert removed.startswith("checkout-5b7d-f3f17 released it, or was removed")


def test_a_list_of_a_lease_that_was_released_under_a_name_does_not_date_that_by_the_name() -> None:
    """Somebody had written the holder in long before it released the lease by its duration."""
    history = play_stored("a-list-of-a-holder-that-was-released-under-its-name")
    given = input_of(history, Kind.LIST)
    assert given is not None
    drawn = [one.claim for one in evaluate(history, given, ["timeline"]) if one.lease == "shop/checkout"]
    (free,) = (one for one in drawn if one["claim"] == "timeline-leaderless")
    assert free["from"].startswith("2025-06-15T15:08:03")
