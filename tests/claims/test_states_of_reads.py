"""Answers to reads, as a log has them at level RequestResponse: what they show of writes that the log lacks."""

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest
from msgspec import Struct

from tests.claims.accounts import account, text
from tests.factories import Document, Tweak, drop, make_entry, put
from tests.history.fake_server import SECOND, START, FakeServer, strip_stamps
from tests.history.observing import follow_both, follow_log, merge_inputs
from tests.inputs.reading import read
from webhook.analysis.claims.account import Account
from webhook.analysis.history.audit_log.observed_requests import Writes
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.merge import reads
from webhook.analysis.inputs.items import Observation
from webhook.cli.main import main
from webhook.findings import Severity
from webhook.kubernetes.times import format_micro_time, format_time

MOVED = 40
"""Seconds after which the leader renews through an API server whose log is not there."""


def move(*, until: float = 60, read_until: float = 60, cached: bool = False, end: float = 60) -> FakeServer:
    """A leader that moves to another API server, renews until then, and is read through the first one until then."""
    server = FakeServer()
    leader, follower = server.elector("db-0", "shop/db"), server.elector("db-1", "shop/db")
    other = server.elector("mail-0", "shop/mail")
    leader.take()
    other.take()
    for _ in other.ticks(end):
        at = (server.now - START) / SECOND
        if at <= until:
            leader.renew()
        if at > MOVED:
            server.log = [event for event in server.log if not is_renewal(event, after=MOVED)]
        other.renew()
        server.wait(0.2)
        if at <= read_until:
            follower.ask(is_shown=True)
            if cached:
                server.log[-1]["requestURI"] += "?resourceVersion=0"
    return server


def is_renewal(event: Document, after: float) -> bool:
    at = format_micro_time(START + int(after * SECOND))
    return bool(event["verb"] == "update" and event["objectRef"]["name"] == "db" and event["stageTimestamp"] > at)


def explain(server: FakeServer) -> Account:
    return account(follow_log(server), server.now)


def test_a_read_of_a_renewal_that_the_log_lacks_shows_that_the_lease_is_live() -> None:
    found = explain(move())
    lines = text(found).splitlines()
    assert lines[0] == "db-0_1 holds it since 11:06:40Z, renewed 0.2 s ago, as a read at 11:07:39Z shows"
    assert "Last renewed: 11:07:39Z, 0.2 s ago, as a read at 11:07:39Z shows, field manager operator" in lines
    assert "Not shown: who made some writes: the log lacks those that the answer to a read shows" in lines
    assert lines[-1] == (
        "ADVICE It is held and renewed, as the answer to a read shows, and the log lacks its renewals. "
        "Collect the logs of all API servers, and compare their audit policies; if a buffer overflowed, "
        "apiserver_audit_error_total counts what was dropped."
    )
    assert not [one for one in found.findings if one.severity is not Severity.INFO]


def test_the_same_holds_for_the_audit_the_table_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = move()
    (tmp_path / "audit.log").write_bytes(server.audit_log())
    given = ["--input", str(tmp_path / "audit.log"), "--now", format_time(server.now)]
    main(["audit", *given])
    assert "expired" not in capsys.readouterr().out
    main(["why", *given])
    assert "expired" not in capsys.readouterr().out
    main(["why", "shop/db", *given, "--format", "json"])
    found = json.loads(capsys.readouterr().out)
    assert (found["state"], found["last_renewal_by"]["user"]) == ("live", "")
    assert found["headline"].endswith("as a read at 11:07:39Z shows")


def test_another_holder_that_a_read_shows_is_named() -> None:
    server = move(until=MOVED, read_until=MOVED)
    server.elector("db-2", "shop/db").take()
    server.log.pop()
    server.elector("db-1", "shop/db").ask(is_shown=True)
    assert text(explain(server)).startswith("db-2_1 holds it, renewed 0 s ago, as a read at")


def test_reads_that_end_before_the_lease_would_expire_do_not_show_that_it_has_expired() -> None:
    found = explain(move(read_until=46, end=90))
    assert text(found).startswith("db-0_1 has not renewed it for 44 s, as far as a read at 11:07:26Z shows")
    assert "ADVICE The log has no request for what a read at 11:07:26Z shows, so it may lack all renewals." in text(
        found
    )
    assert found.cause is None
    assert found.takeable_at is None


def test_reads_that_go_on_show_that_the_lease_has_expired() -> None:
    found = explain(move(until=46, read_until=90, end=90))
    assert text(found).startswith("db-0_1 has not renewed it for 44 s")
    assert ", as far as" not in text(found).splitlines()[0]
    assert found.takeable_at is not None


def test_reads_from_memory_that_go_on_do_not_show_that_it_has_expired() -> None:
    found = explain(move(until=46, read_until=90, end=90, cached=True))
    assert ", as far as a read at" in text(found).splitlines()[0]
    assert found.takeable_at is None


def test_a_read_that_is_older_than_the_last_write_shows_nothing() -> None:
    """An API server may answer from its memory."""
    server = move(until=MOVED, read_until=MOVED)
    old = server.leases["shop/db"]
    server.elector("db-0", "shop/db").renew()
    server.log_request("shop/db", "get", "nina@example.org", "", old)
    assert "as a read at" not in text(explain(server))


def test_a_released_lease_that_a_read_shows_is_free_as_far_as_it_shows() -> None:
    server = move(until=MOVED, read_until=MOVED)
    server.elector("db-0", "shop/db").release()
    server.log.pop()
    server.elector("db-1", "shop/db").ask(is_shown=True)
    assert ", as a read at 11:07:" in text(explain(server)).splitlines()[0]
    assert text(explain(server)).startswith("no one holds it")


def test_a_read_of_what_a_watch_shows_adds_nothing() -> None:
    server = move()
    assert "read at" not in text(account(follow_both(server), server.now)).splitlines()[0]


@pytest.mark.parametrize(
    "answer",
    [
        {"kind": "Lease", "metadata": {"name": "db", "namespace": "shop", "resourceVersion": "9000"}, "spec": 1},
        {"kind": "Lease", "metadata": {"name": "x", "namespace": "shop", "resourceVersion": "9000"}, "spec": {}},
        {"kind": "Lease", "metadata": {"name": "db", "namespace": "shop"}, "spec": {}},
    ],
    ids=["of wrong types", "of another lease", "without a resourceVersion"],
)
def test_an_answer_that_shows_no_state_of_the_lease_shows_nothing(answer: Document) -> None:
    server = move(until=MOVED, read_until=0)
    server.log_request("shop/db", "get", "nina@example.org", "", answer)
    assert "read at" not in text(explain(server))


def test_the_number_of_reads_that_are_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "MAX_READ", 0)
    assert "as a read at" not in text(explain(move()))


def test_an_answer_without_managed_fields_has_the_time_of_the_holder() -> None:
    server = move()
    for event in server.log:
        if event["objectRef"]["resource"] == "leases":
            event["responseObject"] = strip_stamps(event["responseObject"])
    lines = text(explain(server)).splitlines()
    assert lines[0].endswith("as a read at 11:07:39Z shows")
    assert any(line.startswith("Evidence: the holder's own clock") for line in lines)


def test_what_a_read_shows_is_not_evaluated_as_a_write() -> None:
    writes = Writes()
    items = merge_inputs(read("audit.log", [move().audit_log()]))
    (state,) = (one for one in items if isinstance(one, Observation) and one.read_at is not None)
    assert writes.make_request(state) is None


def test_a_log_that_has_only_reads_of_a_lease_shows_who_holds_it() -> None:
    server = move()
    server.log = [event for event in server.log if event["verb"] == "get"]
    histories = ClusterHistory()
    for item in merge_inputs(read("audit.log", [server.audit_log()])):
        histories.add(item)
    assert text(account(histories, server.now)).startswith("db-0_1 holds it, renewed 0.2 s ago, as a read at")


def test_an_answer_that_is_no_text_shows_nothing() -> None:
    server = move(until=MOVED, read_until=0)
    answer = {"kind": "Lease", "metadata": {"name": "?", "namespace": "shop", "resourceVersion": "9000"}, "spec": {}}
    server.log_request("shop/db", "get", "nina@example.org", "", answer)
    histories = ClusterHistory()
    for item in merge_inputs(read("audit.log", [server.audit_log().replace(b'"?"', b'"\xff"')])):
        histories.add(item)
    assert "read at" not in text(account(histories, server.now))


@pytest.mark.parametrize(
    "tweak",
    [
        pytest.param(put("spec.renewTime", "2026-11-18T12:06:00.000000Z"), id="a renewTime after the read"),
        pytest.param(drop("spec.renewTime"), id="no renewTime"),
        pytest.param(put("metadata.managedFields[0].time", "2026-11-18T11:00:00Z"), id="a stamp of another time"),
        pytest.param(
            put("metadata.managedFields", [make_entry("renewTime"), make_entry("renewTime", manager="other")]),
            id="two stamps",
        ),
    ],
)
def test_a_read_whose_times_do_not_agree_shows_nothing(tweak: Tweak) -> None:
    server = move()
    for event in server.log:
        if event["verb"] == "get" and event.get("responseObject"):
            event["responseObject"] = deepcopy(event["responseObject"])
            tweak(event["responseObject"])
    output = text(explain(server))
    assert "as a read at" not in output
    assert "has not renewed it for" in output


class Hole(Struct, frozen=True):
    """A log that lacks a holder's renewals of 8 s, and perhaps its release, before it has another write."""

    is_read: bool = True
    is_released: bool = False
    is_taken: bool = True
    is_plain: bool = False
    """The log has no managedFields."""

    def make(self) -> FakeServer:
        server = FakeServer()
        leader, follower = server.elector("db-0", "shop/db"), server.elector("db-1", "shop/db")
        leader.lead(20)
        for _ in leader.ticks(8):
            self._drop(server, leader.renew)
            server.wait(0.3)
            if self.is_read:
                follower.ask(is_shown=True)
        if self.is_released:
            server.delete_pod("db-0")
            self._drop(server, leader.release)
        server.wait(0.4)
        if self.is_read:
            follower.ask(is_shown=True)
        (follower if self.is_taken else leader).lead(10)
        for event in server.log if self.is_plain else ():
            if event["objectRef"]["resource"] == "leases":
                event["responseObject"] = strip_stamps(event["responseObject"])
        return server

    @staticmethod
    def _drop(server: FakeServer, write: Callable[[], object]) -> None:
        """Write what the log lacks."""
        write()
        server.log.pop()


BY_READS = "the log lacks requests that the answers to reads show, from 11:07:0"


@pytest.mark.parametrize("is_plain", [True, False], ids=["without managedFields", "with them"])
def test_a_holder_that_reads_show_removed_was_not_followed_before_that(*, is_plain: bool) -> None:
    output = text(explain(Hole(is_released=True, is_plain=is_plain).make()))
    assert "db-1_1 took it (shop/db from pod db-1); no one held it" in output
    assert BY_READS in output
    assert "pod db-0, which had held it, was deleted" in output
    assert "came to hold it" not in output


def test_a_takeover_after_writes_that_nothing_shows_happened_at_a_time_that_is_not_known() -> None:
    output = text(explain(Hole(is_released=True, is_read=False).make()))
    assert "db-1_1 came to hold it after db-0_1, at a time that was not recorded; not renewed for up to" in output


def test_renewals_that_reads_show_are_not_missing() -> None:
    output = text(explain(Hole(is_taken=False).make()))
    assert BY_READS in output
    assert "writes from then until" not in output
    assert "writes from then until" in text(explain(Hole(is_taken=False, is_read=False).make()))


def test_only_the_latest_states_between_writes_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "_MAX_BETWEEN", 1)
    output = text(explain(Hole(is_released=True).make()))
    assert "db-1_1 took it (shop/db from pod db-1); no one held it" in output
    assert ", from " not in output.partition("the answers to reads show")[2].partition("\n")[0]


def test_the_number_of_leases_of_which_states_between_writes_are_kept_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reads, "MAX_READ", 0)
    assert BY_READS not in text(explain(Hole(is_released=True).make()))


def test_what_a_write_without_its_content_made_is_not_taken_for_another_one() -> None:
    server = Hole(is_released=True).make()
    event = next(event for event in server.log if event["verb"] == "update")
    del event["responseObject"]
    assert BY_READS not in text(explain(server))


def test_a_read_between_two_writes_that_shows_no_state_shows_nothing() -> None:
    server = Hole(is_taken=False).make()
    for event in server.log:
        if event["verb"] == "get":
            event["responseObject"] = event["responseObject"] | {"spec": 1}
    assert BY_READS not in text(explain(server))


@pytest.mark.parametrize("seconds", [0.1, 20], ids=["just then", "long before"])
def test_when_a_lease_was_created_again_is_not_its_first_renewal_that_is_read(seconds: float) -> None:
    server = FakeServer()
    leader, follower = server.elector("db-0", "shop/db"), server.elector("db-1", "shop/db")
    leader.lead(20)
    server.delete("shop/db")
    kept = list(server.log)
    server.wait(1)
    leader.retry = min(2, seconds)
    leader.lead(seconds)
    server.log = kept
    server.wait(0.2)
    follower.ask(is_shown=True)
    assert ("it was created again" in text(explain(server))) is (seconds < 1)
