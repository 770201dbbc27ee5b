"""What a recorder did not see: no sum, no length of time and no picture claims anything of it."""

import json

import pytest

from tests.factories import Document
from tests.history.fake_server import SECOND, FakeServer
from tests.history.observing import merge_inputs
from tests.inputs.reading import read
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.assemble import make_account
from webhook.analysis.claims.presentation.account_json import make_account_json
from webhook.analysis.claims.presentation.happened import list_events
from webhook.analysis.claims.presentation.text import list_facts
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Handover
from webhook.analysis.inputs.items import Item, Unreadable
from webhook.analysis.timeline.lanes import TimelineBuilder
from webhook.analysis.timeline.model import SpanKind
from webhook.kubernetes.times import format_time

KEY = ("shop", "db")
REASON = "connection refused"


class Record:
    """A record of one lease; while it is not `seen`, nothing of what the server stores is in it."""

    def __init__(self) -> None:
        self.server = FakeServer()
        self.a, self.b = (self.server.elector(name, "shop/db") for name in "ab")
        self.lines: list[Document] = []
        self._taken = 0
        self.a.lead(20)

    def see(self) -> None:
        events = self.server.events[self._taken :]
        self.lines += [{"type": kind, "object": one} for _, kind, one in events]
        self._taken = len(self.server.events)

    def miss(self, since: int) -> None:
        """Record nothing of what was stored since; a list shows the present."""
        self._taken = len(self.server.events)
        times = {key: format_time(at) for key, at in (("from", since), ("to", self.server.now))}
        self.lines.append({"type": "GAP", "object": {**times, "reason": REASON}})
        self.lines += [{"type": "ADDED", "object": one} for one in self.server.leases.values()]

    def miss_a_release(self) -> None:
        """Let the holder give the lease up while nothing is recorded."""
        self.see()
        since = self.server.now
        self.server.wait(4)
        self.a.release()
        self.miss(since)

    @property
    def items(self) -> list[Item]:
        return list(read("record", [json.dumps(line).encode() for line in self.lines]))

    @property
    def account(self) -> Account:
        histories = ClusterHistory()
        for item in self.items:
            histories.add(item)
        return make_account(histories, histories.leases[KEY], self.server.now)

    def spans(self) -> list[tuple[SpanKind, str]]:
        builder = TimelineBuilder(self.server.now)
        for item in self.items:
            builder.observe(item)
        return [(one.kind, one.holder) for one in builder.timeline(self.server.now).lanes[0].spans]

    @property
    def thinned(self) -> list[str]:
        builder = TimelineBuilder(self.server.now)
        for item in self.items:
            builder.observe(item)
        return list(builder.timeline(self.server.now).thinned)


def said(account: Account) -> str:
    return "\n".join(
        f"{line.label} {line.text}" for part in (list_facts(account), list_events(account)) for line in part
    )


def gap(record: Record, holder: str, seconds: float = 20) -> None:
    """Nothing is recorded while a replica takes the lease, if it has not got it, and leads."""
    record.see()
    since = record.server.now
    record.server.wait(16)
    getattr(record, holder).lead(seconds)
    record.miss(since)
    getattr(record, holder).lead(20)
    record.see()


def test_a_change_of_holder_has_a_bound_that_counts_in_the_sum() -> None:
    record = Record()
    gap(record, "b")
    gap(record, "a")
    account = record.account
    text, document = said(account), make_account_json(account)
    unseen = "b_1 came to hold it after a_1, at a time that was not recorded"
    assert f"11:07:36Z {unseen}; not renewed for up to 37 s" in text
    assert "11:07:00Z not recorded from 2026-11-18T11:07:00Z to 2026-11-18T11:07:36Z: connection refused" in text
    assert "in all" not in text
    assert [one["reason"] for one in document["unrecorded"]] == [REASON] * 2
    assert document["unrecorded"][0]["from"].startswith("2026-11-18T11:07:00")
    held, missed = SpanKind.HELD, SpanKind.UNRECORDED
    assert record.spans() == [(held, "a_1"), (missed, ""), (held, "b_1"), (missed, ""), (held, "a_1")]
    assert record.thinned == [
        f"not recorded from {one}: {REASON}"
        for one in ("2026-11-18T11:07:00Z to 2026-11-18T11:07:36Z", "2026-11-18T11:07:56Z to 2026-11-18T11:08:32Z")
    ]


def test_the_longest_gap_is_only_that_of_what_was_recorded_if_the_holder_goes_on() -> None:
    record = Record()
    gap(record, "a")
    account = record.account
    assert [one.began for one in account.history.tenures] == [Handover.SEEN]
    assert "longest gap between two by the same holder: 2 s, as far as was recorded" in said(account)


def test_a_holder_that_lost_the_lease_and_has_it_again() -> None:
    record = Record()
    record.see()
    since = record.server.now
    record.server.wait(16)
    record.b.lead(20)
    record.server.wait(16)
    record.a.lead(20)
    record.miss(since)
    assert (
        "a_1 came to hold it after the previous holder, at a time that was not recorded; "
        "not renewed for up to 1 min 13 s" in said(record.account)
    )


@pytest.mark.parametrize("acquired", ["2020-01-01T00:00:00.000000Z", "2030-01-01T00:00:00.000000Z", None])
def test_a_bound_does_not_follow_what_the_holder_writes(acquired: str | None) -> None:
    record = Record()
    record.see()
    since = record.server.now
    record.server.wait(16)
    record.b.lead(20)
    record.server.leases["shop/db"]["spec"]["acquireTime"] = acquired
    record.miss(since)
    before, after = record.account.history.tenures
    assert (before.until, after.since, after.leaderless) == (since, record.server.now, 37 * SECOND)


def test_a_lease_that_was_created_again() -> None:
    record = Record()
    record.see()
    since = record.server.now
    record.server.delete("shop/db")
    record.server.wait(3)
    record.a.lead(20)
    record.server.leases["shop/db"]["metadata"]["uid"] = "another"
    record.miss(since)
    text = said(record.account)
    unseen = "a_1 came to hold it after the previous holder, at a time that was not recorded"
    assert f"{unseen}; not renewed for up to 24 s" in text


def test_a_holder_that_goes_on_is_not_drawn_where_nothing_was_recorded() -> None:
    record = Record()
    gap(record, "a")
    assert record.spans() == [(SpanKind.HELD, "a_1"), (SpanKind.UNRECORDED, ""), (SpanKind.HELD, "a_1")]


def test_a_lease_that_was_given_up_is_drawn_as_free_once_that_is_seen() -> None:
    record = Record()
    record.miss_a_release()
    assert record.spans() == [(SpanKind.HELD, "a_1"), (SpanKind.UNRECORDED, ""), (SpanKind.LEADERLESS, "")]


def test_a_removal_that_nothing_dates_was_none_in_a_gap_that_was_recorded_later() -> None:
    record = Record()
    entries = record.server.leases["shop/db"]["metadata"]["managedFields"]
    wiped = dict.fromkeys(record.server.leases["shop/db"]["spec"]) | {"leaseTransitions": 0}
    record.server.write("shop/db", wiped, "janitor", "janitor", "")
    record.server.leases["shop/db"]["metadata"]["managedFields"] = entries[:1]
    record.server.wait(2)
    record.b.lead(20)
    gap(record, "b")
    histories = ClusterHistory()
    for item in merge_inputs(record.items):
        histories.add(item)
    account = make_account(histories, histories.leases[KEY], record.server.now)
    assert "b_1 took it after a_1 was removed as the holder" in said(account)


def test_a_lease_that_was_given_up_in_a_gap_is_taken_by_whoever_is_seen_next() -> None:
    record = Record()
    record.miss_a_release()
    record.server.wait(3)
    record.b.lead(20)
    record.see()
    assert "b_1 took it; no one held it; not renewed for up to 8 s" in said(record.account)


def test_a_deletion_that_no_one_saw_says_nothing_of_a_silence() -> None:
    record = Record()
    mail = record.server.elector("m", "shop/mail")
    mail.lead(4)
    record.see()
    since, lease = record.server.now, record.server.leases["shop/db"]
    record.server.delete("shop/db")
    mail.lead(300)
    record.miss(since)
    record.lines.append({"type": "DELETED", "object": lease})
    account = record.account
    assert account.history.tenures[0].until == since - 4 * SECOND
    assert not [one for one in account.findings if "had not renewed it" in one.message]


def test_a_gap_before_anything_else_is_named() -> None:
    record = Record()
    record.miss(record.server.now - 5 * SECOND)
    record.a.lead(20)
    record.see()
    assert "not recorded from" in said(record.account)


@pytest.mark.parametrize("times", [{}, {"from": "yesterday", "to": "2026-11-18T11:07:00Z"}])
def test_a_gap_whose_times_cannot_be_read_is_unreadable(times: Document) -> None:
    (item,) = read("record", [json.dumps({"type": "GAP", "object": times}).encode()])
    assert isinstance(item, Unreadable)
