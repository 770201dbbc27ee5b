"""An input that lacks events: the gap is said, and no sentence presumes that nothing is missing."""

import json
import re
from collections.abc import Callable

import pytest

from tests.claims.accounts import account, shop, text
from tests.claims.test_dating import date
from tests.factories import Document
from tests.history.fake_server import SECOND, FakeServer, hide_responses, together
from tests.history.observing import advise, cluster_of, follow_both, follow_log, follow_watch
from tests.inputs.reading import read
from webhook.analysis.claims.facts import find_claims
from webhook.analysis.claims.findings.headline import make_headline
from webhook.analysis.claims.presentation.happened import list_latest
from webhook.analysis.claims.presentation.urgency import advise_with_urgency
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import API_SERVER
from webhook.analysis.history.status import LeaseState

GONE = {"type": "ERROR", "object": {"kind": "Status", "apiVersion": "v1", "code": 410, "reason": "Expired"}}
WELL = "It is held and renewed; a lease does not show whether its holder works."
PARTIAL = "It is held and renewed; what the input does not show may have gone wrong."


def events_of(watch: bytes) -> list[Document]:
    """The documents of a watch, as kubectl prints them."""
    documents, text_, at = [], watch.decode(), 0
    while text_[at:].strip():
        at += len(text_[at:]) - len(text_[at:].lstrip())
        document, at = json.JSONDecoder().raw_decode(text_, at)
        documents.append(document)
    return documents


def watch_again(watch: bytes, first: int, last: int) -> bytes:
    """A watch that ended before its event `first`, and began again, with the states of that time, at `last`."""
    events = events_of(watch)
    states = {one["object"]["metadata"]["name"]: one["object"] for one in events[:last]}
    listed = [{"type": "ADDED", "object": one} for one in states.values()]
    return b"\n".join(json.dumps(one).encode() for one in [*events[:first], GONE, *listed, *events[last:]])


def without(log: bytes, is_lost: Callable[[int, Document], bool]) -> bytes:
    """A log whose collector dropped some events."""
    lines = log.splitlines()
    return b"\n".join(line for number, line in enumerate(lines) if not is_lost(number, json.loads(line)))


def led() -> FakeServer:
    """A server on which three leases are renewed for a minute, and db is handed over in the middle."""
    server, (db, *others) = shop()
    together(30, db, *others)
    db.release()
    together(30, server.elector("db-1", "shop/db"), *others)
    return server


@pytest.mark.parametrize("of", [follow_log, follow_watch, follow_both])
def test_a_whole_input_has_no_gap(of: Callable[[FakeServer], object]) -> None:
    server = led()
    answer = account(of(server), server.now)  # type: ignore[arg-type]
    assert advise(answer) == WELL
    assert "lacks" not in text(answer)
    assert not answer.is_partial


def test_a_watch_that_began_again_says_what_it_did_not_see() -> None:
    server = led()
    answer = account(cluster_of(watch_again(server.watch(), 30, 60)), server.now)
    assert advise(answer) == PARTIAL
    (gap,) = [line.text for line in list_latest(answer) if "lacks" in line.text]
    assert re.search(r"the input lacks writes from then until \S+; what they changed is not known$", gap)
    assert "at a time that was not recorded" in text(answer)


def test_a_watch_that_missed_one_renewal_says_so() -> None:
    server = led()
    answer = account(cluster_of(watch_again(server.watch(), 30, 34)), server.now)
    assert advise(answer) == PARTIAL
    assert "Not shown: some writes to it, within the time for which a renewal lasts" in text(answer)


def test_a_watch_that_began_again_and_missed_nothing_has_no_gap() -> None:
    server = led()
    assert advise(account(cluster_of(watch_again(server.watch(), 30, 30)), server.now)) == WELL


@pytest.mark.parametrize("lease", ["db", "mail"])
def test_a_log_that_dropped_events_says_so(lease: str) -> None:
    """The writes of one lease show that events were dropped, also those of another one."""
    server = led()

    def is_lost(number: int, event: Document) -> bool:
        return event["objectRef"]["name"] == lease and number % 7 == 0

    answer = account(cluster_of(without(server.audit_log(), is_lost)), server.now)
    assert answer.doubt.is_log_leaky
    assert advise(answer) == PARTIAL
    assert "Not shown: the log lacks some requests" in text(answer)


def test_a_log_that_dropped_events_does_not_show_that_a_process_made_no_request() -> None:
    server, electors = shop()
    together(40, *electors)
    together(20, *electors[1:])
    together(10, server.elector("db-1", "shop/db"), *electors[1:])

    def is_lost(number: int, event: Document) -> bool:
        return event["objectRef"]["name"] == "mail" and number % 7 == 0

    whole, dropped = (
        text(account(cluster_of(log), server.now)) for log in (server.audit_log(), without(server.audit_log(), is_lost))
    )
    assert "For most of that time the log has no answered request for the lease from its pod" in whole
    assert "the log has no answered request" not in dropped
    assert "It stored no renewal (it may have ended, or been paused, cut off or refused)" in dropped


def test_a_log_that_lacks_requests_does_not_show_that_a_lease_expired() -> None:
    server, (db, *others) = shop()
    together(30, db, *others)
    whole = account(follow_log(server), server.now + 30 * SECOND)
    assert advise_with_urgency(whole).sentence.startswith("Act now if a program still uses this lease.")
    assert "expired" in {claim.check for claim in find_claims(whole)}
    dropped = without(
        server.audit_log(), lambda number, event: event["objectRef"]["name"] == "mail" and number % 7 == 0
    )
    answer = account(cluster_of(dropped), server.now + 30 * SECOND)
    assert advise_with_urgency(answer).sentence.startswith("The log lacks requests, and a renewal may be one of them.")
    assert make_headline(answer).endswith(", as far as the log shows")
    assert "expired" not in {claim.check for claim in find_claims(answer)}


def test_who_renews_in_the_place_of_a_holder_whose_renewals_a_log_lacks_is_not_the_holder() -> None:
    server, (db, *_) = shop()
    stranger = server.elector("mallory", "shop/db", user="system:serviceaccount:shop:mallory")
    stranger.identity, stranger.manager = db.identity, "mallory"
    db.lead(20)
    known = len(server.log)
    together(4, db, stranger)
    del server.log[known:]
    server.wait(1.5)
    stranger.renew()
    answer = account(follow_log(server), server.now)
    assert (answer.state, answer.last_renewal, answer.is_renewed_last) == (LeaseState.LIVE, None, False)
    assert "Last renewed" not in text(answer)
    server.wait(0.5)
    db.renew()
    assert account(follow_log(server), server.now).last_renewal == server.now


def test_a_write_that_was_stored_although_it_failed_is_not_missing() -> None:
    server, (db, *others) = shop()
    together(20, db, *others)
    known = len(server.log)
    db.renew()
    del server.log[known:]
    db.fail(504)
    together(20, db, *others)
    assert not account(follow_log(server), server.now).doubt.is_log_leaky


def test_a_gap_that_a_recorder_reports_is_shown_once() -> None:
    server, histories = led(), ClusterHistory()
    lines = watch_again(server.watch(), 30, 60).splitlines()
    at = next(number for number, line in enumerate(lines) if json.loads(line)["type"] == "ERROR")
    begin, end = (json.loads(lines[one])["object"]["spec"]["renewTime"][:19] + "Z" for one in (at - 3, at + 1))
    reported = {"from": begin, "to": end, "reason": "the watch began again"}
    lines[at] = json.dumps({"type": "GAP", "object": reported}).encode()
    for item in read("in", [b"\n".join(lines)]):
        histories.add(item)
    output = text(account(histories, server.now))
    assert f"not recorded from {begin} to " in output
    assert "lacks writes" not in output


def test_a_stamp_that_was_forged_while_nothing_was_seen_does_not_say_when_a_watch_ends() -> None:
    server, electors = shop()
    together(20, *electors)
    first = len(server.events)
    together(4, *electors)
    date(server, 30)
    cluster = cluster_of(watch_again(server.watch(), first, len(server.events)))
    assert cluster.bounds.until is not None
    assert server.now - 2 * SECOND < cluster.bounds.until <= server.now


@pytest.mark.parametrize("is_chosen_again", [False, True], ids=["as before", "chosen again meanwhile"])
def test_a_chosen_holder_goes_on_after_a_gap_if_no_one_named_it_since(*, is_chosen_again: bool) -> None:
    server = FakeServer()
    holder = server.elector("db-0", "shop/db")
    chosen = {"holderIdentity": "db-0_1", "leaseDurationSeconds": 15, "leaseTransitions": 0, "strategy": "Oldest"}
    server.write(
        "shop/db", chosen | {"acquireTime": None, "renewTime": holder._time()}, "kube-apiserver", API_SERVER, ""
    )
    for number in range(30):
        server.wait(2)
        if is_chosen_again and number == 15:
            for name in ("db-1_1", "db-0_1"):
                spec = server.leases["shop/db"]["spec"] | {"holderIdentity": name}
                server.write("shop/db", spec, "kube-apiserver", API_SERVER, "")
        holder.renew(acquireTime=None, strategy="Oldest")
    answer = account(cluster_of(watch_again(server.watch(), 10, 25)), server.now)
    assert len(answer.history.tenures) == (2 if is_chosen_again else 1)
    sentence = "db-0_1 held it as before, or took it again at a time that was not recorded"
    assert (sentence in text(answer)) is is_chosen_again


def pause(seconds: float) -> FakeServer:
    """A server on which all clients stop for a time, and go on."""
    server, electors = shop()
    together(20, *electors)
    server.wait(seconds)
    together(10, *electors)
    return server


@pytest.mark.parametrize(("seconds", "is_told"), [(20, True), (8, False)])
def test_a_time_without_any_answer_is_told_if_it_is_long(seconds: float, *, is_told: bool) -> None:
    server = pause(seconds)
    said = (
        "11:07:00Z: the log has no answer about any lease until 11:07:22Z, for 22 s: none was given then, or it lacks"
    )
    assert (said in text(account(follow_log(server), server.now))) is is_told


@pytest.mark.parametrize("is_written", [True, False])
def test_a_time_without_any_answer_lacks_some_if_a_watch_shows_writes_of_it(*, is_written: bool) -> None:
    server, electors = shop()
    together(20, *electors)
    number = len(server.log)
    if is_written:
        together(20, *electors)
        del server.log[number:]
    else:
        server.wait(20)
    together(10, *electors)
    said = text(account(follow_both(server), server.now))
    quiet = "11:07:00Z: the log has no answer about any lease until 11:07:22Z, for 22 s"
    assert (f"{quiet}, and lacks some: the input shows writes to leases of that time\n" in said) is is_written
    assert (f"{quiet}: none was given then, or it lacks them\n" in said) is not is_written


def stop_after_renewals(*, is_another_written: bool) -> FakeServer:
    """All stop after two renewals of db in a row, and db goes on a minute later, as a log of what was sent shows."""
    server, (db, *others) = shop()
    together(20, db, *others)
    for is_last in (False, True):
        server.wait(1)
        if is_last and is_another_written:
            server.write("shop/else", {"holderIdentity": "x"}, "kubectl", "alice", "")
            del server.log[-1]
        db.renew()
    server.wait(60)
    together(10, db, *others)
    return hide_responses(server)


@pytest.mark.parametrize("is_another_written", [True, False])
def test_a_request_that_names_the_next_version_shows_that_no_write_is_missing(*, is_another_written: bool) -> None:
    server = stop_after_renewals(is_another_written=is_another_written)
    unseen = account(follow_log(server), server.now).history.renewals.unseen
    assert bool(unseen) is is_another_written
