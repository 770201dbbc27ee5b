"""Writes whose answer says that they failed: whether they were stored all the same."""

import json
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from tests.factories import Tweak, changed, drop, put
from tests.history.fake_server import START, Elector, FakeServer, strip_stamps
from tests.history.observing import LEASE, follow_both, follow_log, follow_watch, merge_inputs
from tests.inputs.reading import read
from webhook.analysis.history.audit_log import failed_writes
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.inputs.items import Item, Observation, Writer
from webhook.kubernetes.times import SECOND, format_micro_time

TIMEOUT = "Timeout: request did not complete within requested timeout - context deadline exceeded"


def lead() -> tuple[FakeServer, Elector]:
    """A server and the holder of a lease, after ten renewals."""
    server = FakeServer()
    holder = server.elector("db-0", "shop/db")
    holder.lead(20)
    server.wait(2)
    return server, holder


def fail_last(server: FakeServer, *tweaks: Tweak, code: int = 504, message: str = TIMEOUT, took: float = 5) -> None:
    """Have the log say that the last write failed, `took` seconds after it was received."""
    event = server.log[-1]
    asked = json.loads(json.dumps(event.pop("responseObject")))
    event["requestObject"] = asked
    event["responseStatus"] = {"metadata": {}, "status": "Failure", "code": code, "message": message}
    event["stageTimestamp"] = format_micro_time(server.now + int(took * SECOND))
    server.log[-1] = changed(event, *tweaks)
    server.wait(took)


def forget_last(server: FakeServer) -> None:
    """Have the last write, to the lease shop/db, never been stored, although the log has its request."""
    server.events.pop()
    server.leases["shop/db"] = [one for *_, one in server.events if one["metadata"]["name"] == "db"][-1]


def outcomes(history: LeaseHistory) -> list[bool | None]:
    return [one.was_stored for one in history.requests.refusals if one.has_failed]


def renewed_by(history: LeaseHistory) -> Writer | None:
    """Return who made the last renewal, None if that is not known."""
    renewed = history.tenures[-1].last_renewal_write
    return renewed.writer if renewed else None


def both(server: FakeServer) -> LeaseHistory:
    return follow_both(server).leases[LEASE]


def log(server: FakeServer) -> LeaseHistory:
    return follow_log(server).leases[LEASE]


@pytest.mark.parametrize("code", [500, 503, 504])
def test_a_watch_shows_that_a_write_which_failed_was_stored(code: int) -> None:
    server, holder = lead()
    holder.renew()
    fail_last(server, code=code, message="etcdserver: whatever")
    history = both(server)
    assert outcomes(history) == [True]
    assert history.tenures[-1].last_renewal // SECOND == START // SECOND + 22
    assert renewed_by(history) == history.tenures[-1].processes.own


def test_a_watch_without_stamps_shows_it_as_well() -> None:
    server, holder = lead()
    holder.renew()
    fail_last(server)
    server.events = [(at, kind, strip_stamps(one)) for at, kind, one in server.events]
    assert outcomes(both(server)) == [True]


@pytest.mark.parametrize(
    "tweak",
    [
        put("requestObject.spec.renewTime", "2026-11-18T00:00:00.000000Z"),
        put("requestObject.spec.holderIdentity", "db-1"),
        put("requestReceivedTimestamp", format_micro_time(START + 25 * SECOND)),
        put("objectRef.resourceVersion", "7"),
        drop("requestObject"),
        drop("requestObject.spec.renewTime"),
    ],
    ids=[
        "another time was asked for",
        "another holder was asked for",
        "it was received after the state was stamped",
        "it was to replace another state",
        "the log does not show what was asked for",
        "no time was asked for",
    ],
)
def test_a_state_that_a_failed_write_need_not_have_made_leaves_it_open(tweak: Tweak) -> None:
    server, holder = lead()
    holder.renew()
    fail_last(server, tweak)
    history = both(server)
    assert outcomes(history) == [None]
    assert renewed_by(history) is None


def test_times_that_are_written_in_another_way_are_the_same() -> None:
    server, holder = lead()
    holder.renew()
    time = server.leases["shop/db"]["spec"]["renewTime"]
    fail_last(server, put("requestObject.spec.renewTime", time.replace("Z", "+00:00")))
    assert outcomes(both(server)) == [True]


@pytest.mark.parametrize(("user", "expected"), [("system:serviceaccount:shop:db", True), ("mallory", None)])
def test_a_state_whose_stamp_names_another_writer_is_of_that_one(user: str, expected: bool | None) -> None:
    server, holder = lead()
    holder.renew()
    fail_last(server)

    def name_writer(item: Item) -> Item:
        return replace(item, writer=Writer(user, pod="db-0")) if isinstance(item, Observation) else item

    stamped = map(name_writer, read("watch", [server.watch()]))
    merged = merge_inputs(stamped, read("log", [server.audit_log()]))
    (failed,) = (one for one in merged if isinstance(one, Observation) and one.answer and one.answer.code == 504)
    assert failed.was_stored is expected


def test_of_two_requests_that_asked_for_the_same_neither_is_known_to_be_stored() -> None:
    server, holder = lead()
    holder.renew()
    fail_last(server, took=3)
    again = {**server.log[-1], "requestReceivedTimestamp": format_micro_time(START + 22 * SECOND + 500_000)}
    server.log.append({**again, "stageTimestamp": format_micro_time(server.now + SECOND)})
    assert outcomes(both(server)) == [None, None]


def test_of_two_writes_that_were_to_replace_one_state_only_one_was_stored() -> None:
    server, holder = lead()
    holder.renew()
    fail_last(server)
    again = changed(
        server.log[-1],
        put("requestObject.spec.renewTime", format_micro_time(server.now)),
        put("requestReceivedTimestamp", format_micro_time(server.now)),
        put("stageTimestamp", format_micro_time(server.now + 5 * SECOND)),
    )
    server.log.append(again)
    assert outcomes(both(server)) == [True, False]


def test_a_write_that_another_one_came_before_was_not_stored() -> None:
    server, holder = lead()
    holder.renew()
    fail_last(server)
    forget_last(server)
    server.elector("db-1", "shop/db").take()
    assert outcomes(both(server)) == [False]
    assert outcomes(log(server)) == [False]


def test_a_write_that_nothing_follows_may_have_been_stored() -> None:
    server, holder = lead()
    holder.renew()
    fail_last(server)
    forget_last(server)
    assert outcomes(log(server)) == [None]
    assert outcomes(both(server)) == [None]


def test_a_later_write_that_replaces_an_unknown_state_leaves_open_whether_a_write_was_stored() -> None:
    server, holder = lead()
    holder.renew()
    fail_last(server)
    server.elector("db-1", "shop/db").take()
    assert outcomes(log(server)) == [None]


@pytest.mark.parametrize(
    ("code", "message", "expected"),
    [
        (504, "", None),
        (500, "etcdserver: request timed out", None),
        (500, "etcdserver: mvcc: database space exceeded", False),
        (500, 'failed calling webhook "w.example.com": context deadline exceeded', False),
        (503, "apiserver is shutting down", False),
    ],
)
def test_only_an_answer_that_does_not_know_leaves_it_open(code: int, message: str, expected: bool | None) -> None:
    server, holder = lead()
    holder.fail(code, message)
    assert outcomes(log(server)) == [expected]


def renew(holder: Elector) -> None:
    holder.renew()


def lose_one(holder: Elector) -> None:
    """Renew twice, the first time in a way that the log lacks."""
    holder.renew()
    holder.server.log.pop()
    holder.renew()


def hide_what_is_replaced(holder: Elector) -> None:
    holder.renew()
    del holder.server.log[-1]["objectRef"]["resourceVersion"]


@pytest.mark.parametrize(
    ("go_on", "expected"),
    [(renew, False), (lose_one, None), (hide_what_is_replaced, None), (lambda _: None, None)],
    ids=["nothing is missing", "a write is missing", "what was replaced is hidden", "nothing follows"],
)
def test_a_patch_that_failed_was_not_stored_where_no_write_is_missing(
    go_on: Callable[[Elector], None], expected: bool | None
) -> None:
    server, holder = lead()
    holder.fail(504, verb="patch")
    server.wait(1)
    go_on(holder)
    assert outcomes(log(server)) == [expected]


@pytest.mark.parametrize("is_created", [True, False])
def test_a_creation_that_failed_was_not_stored_if_another_one_was(is_created: bool) -> None:
    server = FakeServer()
    holder = server.elector("db-0", "shop/db")
    holder.fail(504, verb="create")
    server.wait(1)
    holder.lead(4)
    if not is_created:
        del server.log[1]
    assert outcomes(log(server)) == [False if is_created else None]


def test_a_read_that_failed_stored_nothing() -> None:
    server, holder = lead()
    holder.fail(504, verb="get")
    assert outcomes(log(server)) == [False]


def test_a_watch_alone_knows_nothing_of_it() -> None:
    server, holder = lead()
    holder.renew()
    fail_last(server)
    assert outcomes(follow_watch(server).leases[LEASE]) == []


def count_looks(number: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how often it is asked whether an observation is a state, where each write follows one that failed."""
    server, holder = lead()
    for _ in range(number):
        server.wait(2)
        holder.renew()
        fail_last(server, drop("objectRef.resourceVersion"), drop("requestObject.metadata.resourceVersion"), took=0.1)
        server.wait(2)
        holder.renew()
    order = [one for one in read("in", [server.audit_log()]) if isinstance(one, Observation)]
    asked: list[Observation] = []
    is_state = failed_writes._is_state

    def ask(seen: Observation) -> bool:
        asked.append(seen)
        return is_state(seen)

    monkeypatch.setattr(failed_writes, "_is_state", ask)
    assert len([*failed_writes.find_outcomes(order)]) == number
    monkeypatch.undo()
    return len(asked)


def test_each_write_is_looked_at_as_often_in_a_long_log_as_in_a_short_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert count_looks(80, monkeypatch) < 3 * count_looks(40, monkeypatch)


def read_after_failure(*, is_replaced: bool) -> tuple[FakeServer, int]:
    """A write that is answered with 504 and stored, as another one then reads; return when it was received, too."""
    server, holder = lead()
    holder.renew()
    received = server.now
    fail_last(server, put("requestReceivedTimestamp", format_micro_time(received)))
    server.wait(3)
    waiting = server.elector("db-1", "shop/db")
    waiting.ask(is_shown=True)
    if is_replaced:
        server.wait(15)
        waiting.take()
    return server, received


@pytest.mark.parametrize("is_replaced", [True, False])
def test_a_read_shows_that_a_write_which_failed_was_stored_and_the_log_does_not_lack_it(*, is_replaced: bool) -> None:
    server, received = read_after_failure(is_replaced=is_replaced)
    histories = follow_log(server)
    history = histories.leases[LEASE]
    assert outcomes(history) == [True]
    assert not histories.lacks_requests(history)
    assert history.read is None
    renewed = history.tenures[0].last_renewal_write
    assert renewed is not None
    # It was stored between its request and the read, whatever second the API server stamped.
    assert renewed.earliest == received
    assert renewed.shown_at == received + 8 * SECOND


def test_a_read_shows_until_when_what_it_stored_was_not_replaced() -> None:
    server, received = read_after_failure(is_replaced=False)
    history = log(server)
    assert history.is_read_unchanged_at(received + 8 * SECOND)
    assert not history.is_read_unchanged_at(received + 9 * SECOND)
