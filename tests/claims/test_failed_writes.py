"""Writes whose answers say that they failed, although they were stored, or may have been."""

import pytest

from tests.claims.accounts import account, shop, text
from tests.history.fake_server import FakeServer, together
from tests.history.observing import View, follow_both, follow_log
from tests.history.test_failed_writes import fail_last, forget_last
from webhook.analysis.claims.evidence.writers.failed_writes import describe_stored
from webhook.analysis.claims.presentation.account_json import make_account_json
from webhook.analysis.history.audit_log.refusal import Refusal
from webhook.analysis.inputs.items import Writer


def lose_after_failures(*, is_stored: bool) -> FakeServer:
    """A holder whose last write is answered with 504, and stored or not, and which then fails until another takes."""
    server, (db, *others) = shop()
    together(20, db, *others)
    server.wait(2)
    db.renew()
    fail_last(server, took=2)
    if not is_stored:
        forget_last(server)
    for _ in range(6):
        together(2, *others)
        db.fail(500, "etcdserver: no leader")
    together(10, *others)
    server.elector("db-1", "shop/db").take()
    together(4, *others)
    return server


def explain(server: FakeServer, follow: View) -> str:
    return text(account(follow(server), server.now))


def test_a_renewal_that_was_answered_as_failed_and_stored_is_the_last_one() -> None:
    output = explain(lose_after_failures(is_stored=True), follow_both)
    assert "db-0_1 last renewed at 11:07:02Z, by a write that was answered with 504 and stored all the same, " in output
    assert (
        "The API server answered that the writes of db-0_1 failed: at least 7 requests answered with 500 and 504"
        in output
    )
    assert "1 of which was stored all the same" in output
    assert "failed with 504, and was stored all the same" in output
    assert "could not store" not in output


def test_a_log_alone_says_that_it_may_have_been_stored() -> None:
    output = explain(lose_after_failures(is_stored=True), follow_log)
    assert "failed with 504, and may have been stored all the same" in output
    assert "1 of which may have been stored all the same" in output
    assert "could not store" not in output
    # What it made may have renewed the lease.
    assert "whether it had expired is not known" in output


@pytest.mark.parametrize("follow", [follow_both, follow_log])
def test_a_write_that_was_replaced_by_none_was_not_stored(follow: View) -> None:
    output = explain(lose_after_failures(is_stored=False), follow)
    assert "db-0_1 last renewed at 11:07:00Z, 26 s before db-1_1 took the expired lease" in output
    assert "The API server could not store the writes of db-0_1" in output
    assert "stored all the same" not in output


def test_refusals_after_a_write_that_may_have_been_stored_leave_that_open() -> None:
    server, (db, *others) = shop()
    together(20, db, *others)
    server.wait(2)
    db.renew()
    fail_last(server, took=2)
    for _ in range(8):
        together(2, *others)
        db.fail(422, "no")
    server.elector("db-1", "shop/db").take()
    output = explain(server, follow_log)
    assert "whether it had expired is not known" in output
    assert "the input lacks writes" not in output


def test_the_last_answer_of_a_silent_holder_may_be_of_a_write_that_was_stored() -> None:
    server, (db, *others) = shop()
    together(20, db, *others)
    server.wait(2)
    db.fail(504)
    together(18, *others)
    server.elector("db-1", "shop/db").take()
    output = explain(server, follow_log)
    assert "a write from its pod was answered with 504;" not in output
    assert "a write from its pod was answered with 504" in output


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        ([False, False], ""),
        ([None], ", and may have been stored all the same"),
        ([True], ", and was stored all the same"),
        ([None, None], ", any of which may have been stored all the same"),
        ([True, True, False], ", 2 of which were stored all the same"),
        ([None, False], ", 1 of which may have been stored all the same"),
        ([True, None], ", 1 of which was stored all the same, and 1 of which may have been stored all the same"),
    ],
)
def test_the_words_for_several(stored: list[bool | None], words: str) -> None:
    failed = [Refusal(at=0, code=504, message="", took=0, writer=Writer(), was_stored=one) for one in stored]
    assert describe_stored(failed) == words


@pytest.mark.parametrize(
    ("messages", "stored", "words"),
    [
        (["stream error: stream ID 45; NO_ERROR"], None, ", as the API server did not receive all of it"),
        (["stream error: stream ID 1; CANCEL"] * 2, False, ", as the API server did not receive all of them"),
        (["stream error: stream ID 45; NO_ERROR"], True, ", and was stored all the same"),
        (["stream error: stream ID 1; CANCEL", "etcdserver: no leader"], False, ""),
        (['failed calling webhook "a": stream error: stream ID 1; CANCEL'], False, ""),
        (["stream error: stream ID 1; CANCEL: while it asked etcd"], False, ""),
    ],
    ids=["one", "two", "it was stored", "another one failed", "of a webhook", "of what it asks"],
)
def test_what_an_api_server_received_in_part_is_no_failure_of_its_own(
    messages: list[str], stored: bool | None, words: str
) -> None:
    failed = [Refusal(at=0, code=500, message=one, took=0, writer=Writer(), was_stored=stored) for one in messages]
    assert describe_stored(failed) == words


def fail_all(*, others_fail: bool) -> FakeServer:
    """A holder that loses the lease while the API server fails, also, or only, for its own one."""
    server, electors = shop()
    together(40, *electors)
    for _ in range(8):
        server.wait(2)
        for elector in electors if others_fail else electors[:1]:
            elector.fail(500, "etcdserver: request timed out")
    together(2, *electors[1:])
    server.elector("db-1", "shop/db").take()
    together(20, *electors[1:])
    return server


@pytest.mark.parametrize("others_fail", [True, False])
def test_requests_for_other_leases_that_failed_are_counted(*, others_fail: bool) -> None:
    output = explain(fail_all(others_fail=others_fail), follow_log)
    assert "at least 7 requests answered with 500" in output
    assert ("; at least 16 requests for other leases were answered with 500; " in output) is others_fail
    assert ("for other leases were answered" in output) is others_fail


def test_a_single_failure_has_no_last_one() -> None:
    server, electors = shop()
    together(40, *electors)
    server.wait(8)
    electors[0].fail(500, "etcdserver: request timed out")
    for elector in electors[1:2]:
        elector.fail(504, "timeout")
    server.wait(8)
    electors[0].fail(500, "etcdserver: request timed out")
    server.wait(1)
    server.elector("db-1", "shop/db").take()
    together(20, *electors[1:])
    assert "; at least 1 request for other leases was answered with 504; " in explain(server, follow_log)


def test_the_span_of_failures_begins_at_the_time_of_their_line() -> None:
    server, (db, *others) = shop()
    together(20, db, *others)
    begun = server.now
    for _ in range(4):
        server.wait(10)
        db.fail(504, "timeout", took=8)
    line = next(one for one in explain(server, follow_log).splitlines() if "failed with 504" in one)
    assert line.startswith("11:07:10Z: 4 writes by shop/db from pod db-0 failed with 504 within 30 s")
    assert server.now == begun + 40_000_000


@pytest.mark.parametrize(
    ("code", "pod", "name", "causes"),
    [
        pytest.param(500, "db-0", "db-0_1", ["failed"], id="of its pod, that failed"),
        pytest.param(403, "db-0", "db-0_1", ["refused-other"], id="of its pod, that was refused"),
        pytest.param(409, "", "db-0_1", ["conflict"], id="of its account without a pod, that conflicted"),
        pytest.param(500, "", "db-1_1", [], id="of its account without a pod, for another holder"),
        pytest.param(500, "db-1", "db-0_1", [], id="of another pod"),
    ],
)
def test_a_write_after_the_expiry_leaves_its_cause(code: int, pod: str, name: str, causes: list[str]) -> None:
    server = FakeServer()
    db, mail, follower = (
        server.elector(*names) for names in (("db-0", "shop/db"), ("m", "shop/mail"), ("db-1", "shop/db"))
    )
    together(20, db, mail)
    for _ in follower.ticks(17):
        follower.ask()
    server.elector("db-0", "shop/db", pod=pod).fail_as(name, code, "no")
    server.wait(1)
    follower.take()
    answer = make_account_json(account(follow_log(server), server.now))
    (claim,) = (one for one in answer["claims"] if one["claim"] == "leader-lost")
    assert claim["causes"] == ["stopped", "api-server", "network", *causes]


@pytest.mark.parametrize("follow", [follow_both, follow_log])
def test_who_takes_a_lease_a_duration_after_it_could_see_a_write_that_failed_is_not_late(follow: View) -> None:
    server, (db, *others) = shop()
    waiting = server.elector("db-1", "shop/db")
    together(20, db, *others)
    server.wait(2)
    db.renew()
    fail_last(server, took=18)
    waiting.ask(is_shown=True)
    for _ in range(8):
        together(2, *others)
        waiting.ask(is_shown=True)
    waiting.take()
    output = explain(server, follow)
    assert "by a write that was answered with 504 and stored all the same, up to 34" in output
    assert "taken-late" not in output
    assert "the log lacks requests" not in output
