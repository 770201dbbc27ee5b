"""The feed: versions of lanes, deletions that a watch missed, leases that no one renews, bounded memory."""

import json

import pytest

from tests.factories import drop, make_lease, put
from tests.history.fake_server import SECOND, START, FakeServer, together
from tests.inputs.reading import read
from webhook.analysis.inputs.cluster import LEASES
from webhook.analysis.inputs.items import Item, Place, Unreadable
from webhook.analysis.live import server as feed_module
from webhook.analysis.live import server_clock
from webhook.analysis.live.server import Feed
from webhook.analysis.timeline.model import MarkKind, SpanKind
from webhook.analysis.timeline.page import encode_page_data


class Clock:
    """The clock of this computer; a test sets it."""

    def __init__(self, now: int) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock(START)
    monkeypatch.setattr(feed_module, "read_clock", clock)
    return clock


def items(server: FakeServer) -> list[Item]:
    """The events since the last call."""
    items = list(read("kubectl", [server.watch()]))
    server.events.clear()
    return items


def seen(feed: Feed, server: FakeServer, clock: Clock) -> None:
    """Take in what has happened, now."""
    clock.now = server.now
    for item in items(server):
        feed.observe(item)


def names(feed: Feed, version: int) -> list[str]:
    return [lane.name for lane in feed.get_changes(version).timeline.lanes]


def test_only_what_has_changed_since_a_version_is_given(clock: Clock) -> None:
    server, feed = FakeServer(), Feed("x")
    a, m = server.elector("a", "shop/db"), server.elector("m", "shop/mail")
    together(4, a, m)
    seen(feed, server, clock)
    assert names(feed, 0) == ["db", "mail"]
    assert feed.lease_count == 2
    version = feed.version
    assert names(feed, version) == []
    together(2, m)
    seen(feed, server, clock)
    assert names(feed, version) == ["mail"]


@pytest.mark.parametrize("ahead", [0.0, 300.0, -300.0], ids=["equal", "ahead", "behind"])
def test_the_end_is_now_by_the_clock_of_the_api_server(ahead: float, clock: Clock) -> None:
    server, feed = FakeServer(), Feed("x")
    a = server.elector("a", "shop/db")
    a.take()
    for _ in range(5):
        server.wait(2)
        a.renew()
        clock.now = server.now + int(ahead * SECOND)
        for item in items(server):
            feed.observe(item)
    clock.now += 3 * SECOND
    assert abs(feed.get_changes(0).timeline.ends - (server.now + 3 * SECOND)) < SECOND


def test_one_lease_with_forged_stamps_does_not_move_the_clock(clock: Clock) -> None:
    """Without a webhook anyone who may update a lease may date it: then every other lease would look overdue."""
    server, feed = FakeServer(), Feed("x")
    electors = [server.elector(name, f"shop/{name}") for name in "abc"]
    for _ in range(20):
        together(2, *electors)
        for event in server.events:
            if event[2]["metadata"]["name"] == "b":
                for entry in event[2]["metadata"]["managedFields"]:
                    entry["time"] = "2099-01-01T00:00:00Z"
        seen(feed, server, clock)
    assert abs(feed.get_changes(0).timeline.ends - server.now) <= 2 * SECOND


def test_the_clock_is_compared_by_so_many_leases(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_clock, "_MEASURED", 2)
    server, feed = FakeServer(), Feed("x")
    electors = [server.elector(name, f"shop/{name}") for name in "abc"]
    together(4, *electors)
    server.wait(2)
    for elector in electors:
        elector.renew()
    seen(feed, server, clock)
    assert list(feed._clock._delays) == [("shop", "b"), ("shop", "c")]


def test_a_lease_that_nobody_renews_changes_when_its_time_runs_out(clock: Clock) -> None:
    server, feed = FakeServer(), Feed("x")
    together(4, server.elector("a", "shop/db"))
    seen(feed, server, clock)
    version = feed.get_changes(0).version
    clock.now += 14 * SECOND
    change = feed.get_changes(version)
    assert change.timeline.lanes == ()
    clock.now += 2 * SECOND
    (lane,) = feed.get_changes(change.version).timeline.lanes
    assert lane.spans[-1].kind is SpanKind.OVERDUE


def test_a_cause_is_sent_again_after_the_other_leases_have_been_read(clock: Clock) -> None:
    server, feed = FakeServer(), Feed("x")
    a, m = server.elector("a", "shop/db"), server.elector("m", "shop/mail")
    together(30, a, m)
    together(18, m)
    together(2, server.elector("b", "shop/db"), m)
    seen(feed, server, clock)
    change = feed.get_changes(0)
    (taken,) = [mark for mark in change.timeline.lanes[0].marks if mark.kind is MarkKind.TAKEOVER_BY_EXPIRY]
    assert "other lease was renewed on time" in taken.text
    clock.now += 5 * SECOND
    change = feed.get_changes(change.version)
    assert [lane.name for lane in change.timeline.lanes] == ["db"]
    clock.now += 5 * SECOND
    change = feed.get_changes(change.version)
    clock.now += SECOND
    assert feed.get_changes(change.version).timeline.lanes == ()


def test_a_search_for_causes_ends_after_a_moment(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "_MAX_SEARCH", -1.0)
    server, feed = FakeServer(), Feed("x")
    together(30, server.elector("a", "shop/db"), server.elector("m", "shop/mail"))
    seen(feed, server, clock)
    change = feed.get_changes(0)
    assert len(change.timeline.lanes) == 2
    assert len(feed.get_changes(change.version).timeline.lanes) == 2


def test_what_is_gone_when_a_watch_begins_again_was_deleted(clock: Clock) -> None:
    server, feed = FakeServer(), Feed("x")
    a, m = server.elector("a", "shop/db"), server.elector("m", "shop/mail")
    feed.begin()
    together(4, a, m)
    seen(feed, server, clock)
    feed.begin()
    del server.leases["shop/db"]
    server.wait(4)
    m.renew()
    server.events = [(server.now, "ADDED", server.leases["shop/mail"])]
    seen(feed, server, clock)
    assert [mark.kind for mark in feed.get_changes(0).timeline.lanes[0].marks].count(MarkKind.DELETED) == 0
    clock.now += 6 * SECOND
    db, mail = feed.get_changes(0).timeline.lanes
    assert db.marks[-1].kind is MarkKind.DELETED
    assert db.marks[-1].text == "the lease was deleted while a_1 held it, then or later"
    assert [span.kind for span in mail.spans] == [SpanKind.HELD]


def test_a_list_with_a_lease_that_cannot_be_read_shows_no_deletion(clock: Clock) -> None:
    server, feed = FakeServer(), Feed("x")
    a, m = server.elector("a", "shop/db"), server.elector("m", "shop/mail")
    together(4, a, m)
    seen(feed, server, clock)
    feed.begin()
    feed.observe(Unreadable(Place(LEASES, 1), "nested too deeply"))
    together(4, m)
    seen(feed, server, clock)
    clock.now += 10 * SECOND
    db, _ = feed.get_changes(0).timeline.lanes
    assert MarkKind.DELETED not in [mark.kind for mark in db.marks]


def test_what_was_missed_between_two_watches_is_drawn_as_not_recorded(clock: Clock) -> None:
    server, feed = FakeServer(), Feed("x")
    a = server.elector("a", "shop/db")
    together(4, a)
    seen(feed, server, clock)
    together(60, a)
    server.events = [(server.now, "ADDED", server.leases["shop/db"])]
    feed.begin()
    seen(feed, server, clock)
    clock.now += 6 * SECOND
    (lane,) = feed.get_changes(0).timeline.lanes
    assert [span.kind for span in lane.spans] == [SpanKind.HELD, SpanKind.UNRECORDED, SpanKind.HELD]
    missed = lane.spans[1]
    assert (missed.holder, missed.describe((), 0)) == ("", "not recorded: the input does not show who held it")
    assert (missed.begins, missed.ends) == (START + 4 * SECOND, server.now)
    assert lane.handovers == 0


def test_a_lease_that_says_no_time_says_nothing_of_the_clock(clock: Clock) -> None:
    lease = make_lease(drop("spec.renewTime"), drop("spec.acquireTime"), drop("metadata.managedFields"))
    feed = Feed("x")
    for item in read("kubectl", [json.dumps({"type": "MODIFIED", "object": lease}).encode()]):
        feed.observe(item)
    assert feed.get_changes(0).timeline.ends == START


def test_an_input_that_has_ended_goes_no_further(clock: Clock) -> None:
    server, feed = FakeServer(), Feed("x")
    together(4, server.elector("a", "shop/db"))
    seen(feed, server, clock)
    feed.read(())
    clock.now += 3600 * SECOND
    change = feed.get_changes(0)
    assert change.timeline.ends < START + 5 * SECOND
    assert [span.kind for span in change.timeline.lanes[0].spans] == [SpanKind.HELD]
    assert change.status == "The input has ended."


def test_broken_parts_of_a_stream_are_passed_over(clock: Clock) -> None:
    server, feed = FakeServer(), Feed("x")
    server.elector("a", "shop/db").take()
    for item in read("kubectl", [b'{"kind": 1}\n[1]\n' + server.watch()]):
        feed.observe(item)
    assert names(feed, 0) == ["db"]


def test_memory_is_bounded_however_many_renewals_come(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "MAX_TICKS", 400)
    server, feed = FakeServer(), Feed("x")
    elector = server.elector("a", "shop/db")
    sizes = []
    for _ in range(3):
        together(1400, elector)
        seen(feed, server, clock)
        sizes.append(len(encode_page_data(feed.get_changes(0).timeline)))
    assert sizes[2] < sizes[1] * 1.1
    timeline = feed.get_changes(0).timeline
    assert [lane.ticks.count for lane in timeline.lanes] == [2100]
    assert json.loads(encode_page_data(timeline))["thinned"]


def test_waiting_ends_with_a_change_or_with_the_end(clock: Clock) -> None:
    feed = Feed("x")
    version = feed.version
    feed.wait(version, 0.0)
    feed.show_status("something")
    feed.wait(version, 60.0)
    feed.end("the end")
    feed.wait(feed.version, 60.0)
    change = feed.get_changes(0)
    assert (change.status, change.has_ended) == ("the end", True)


def test_each_list_shows_what_is_gone_since_the_one_before(clock: Clock) -> None:
    feed = Feed("x")

    def show(name: str, kind: str = "ADDED") -> None:
        event = {"type": kind, "object": make_lease(put("metadata.name", name))}
        for item in read("kubectl", [json.dumps(event).encode()]):
            feed.observe(item)

    def deleted() -> list[str]:
        clock.now += 6 * SECOND
        lanes = feed.get_changes(0).timeline.lanes
        return [lane.name for lane in lanes if any(mark.kind is MarkKind.DELETED for mark in lane.marks)]

    for name in "abc":
        show(name)
    feed.begin()
    show("a")
    show("d")
    assert deleted() == ["b", "c"]
    show("d", "DELETED")
    feed.begin()
    show("c")
    assert deleted() == ["a", "b", "c", "d"]
