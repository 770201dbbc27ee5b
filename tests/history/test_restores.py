"""A store of an API server that is put back to an earlier state: resourceVersions go back there."""

from collections.abc import Callable
from copy import deepcopy

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import Elector, FakeServer, together
from tests.history.observing import LEASE, merge_inputs
from tests.inputs.reading import read
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.merge import merged
from webhook.analysis.inputs.items import StoreRestored
from webhook.kubernetes.times import SECOND, format_micro_time, parse

VIEWS = pytest.mark.parametrize("show", [FakeServer.audit_log, FakeServer.watch], ids=["log", "watch"])


TIMES = ("requestReceivedTimestamp", "stageTimestamp")


def history_of(*inputs: bytes) -> ClusterHistory:
    histories = ClusterHistory()
    for item in merge_inputs(*(read(f"in-{number}", [data]) for number, data in enumerate(inputs))):
        histories.add(item)
    return histories


def put_back_after(seconds: float) -> tuple[FakeServer, Elector, list[Elector]]:
    """A store that is put back to a copy, after a second holder of shop/db has followed a first one that stopped."""
    server = FakeServer()
    first, *others = [server.elector(f"{lease}-0", f"shop/{lease}") for lease in ("db", "mail", "cart")]
    second = server.elector("db-1", "shop/db")
    together(20, first, *others)
    copy = deepcopy(server.leases), server.revision
    together(10, first, *others)
    together(18, *others)
    second.take()
    together(seconds, second, *others)
    server.leases, server.revision = copy
    server.wait(8)
    return server, second, others


@VIEWS
def test_a_holder_after_the_restore_is_not_accused(show: Callable[[FakeServer], bytes]) -> None:
    server, second, others = put_back_after(10)
    together(14, *others)
    second.take()
    together(12, second, *others)
    histories = history_of(show(server))
    answer = account(histories, server.now)
    last = histories.leases[LEASE].tenures[-1]
    assert (last.holder, last.beginning.is_unseen, last.leaderless) == (second.identity, True, None)
    assert {one.check for one in answer.findings} == {"leader-lost", "timing-tight"}
    sentence = (
        "resourceVersions went back to an earlier value: etcd was put back to an earlier state, or these are several"
    )
    assert f"{sentence} clusters; no conclusion is drawn across this point" in text(answer)


@VIEWS
def test_a_lease_that_no_one_wrote_since_the_restore_is_not_known(show: Callable[[FakeServer], bytes]) -> None:
    server, _, others = put_back_after(10)
    together(14, *others)
    answer = account(history_of(show(server)), server.now)
    assert (answer.status, answer.history.hidden_since is None) == (None, False)
    assert "may lack what was written to it since" in text(answer)


@VIEWS
def test_a_restore_of_more_than_waits_is_found(
    show: Callable[[FakeServer], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merged, "MAX_PENDING", 20)
    server, second, others = put_back_after(60)
    second.take()
    together(12, second, *others)
    histories = history_of(show(server))
    assert histories.leases[LEASE].current_tenure is not None
    assert len(histories.bounds.unrecorded) == 1


def test_of_two_inputs_each_shows_the_restore_once() -> None:
    server, second, others = put_back_after(10)
    second.take()
    together(12, second, *others)
    histories = history_of(server.audit_log(), server.watch())
    assert len(histories.bounds.unrecorded) == 1
    assert histories.leases[LEASE].tenures[-1].holder == second.identity


def test_writes_by_clocks_that_differ_are_no_restore() -> None:
    server = FakeServer()
    db, other = server.elector("db-0", "shop/db"), server.elector("mail-0", "shop/mail")
    together(2, db, other)
    for number in range(40):
        # By one API server, then by another one.
        server.now += 20_000_000 if number % 2 else -16_000_000
        for elector in (db, other):
            elector.renew()
    server.log.sort(key=lambda event: event["stageTimestamp"])
    assert not history_of(server.audit_log()).bounds.unrecorded


def test_a_watch_beside_a_log_of_a_clock_that_is_behind_is_no_restore() -> None:
    server = FakeServer()
    together(60, server.elector("db-0", "shop/db"), server.elector("mail-0", "shop/mail"))
    for event in server.log:
        event |= {key: format_micro_time(parse(event[key]) - 20 * SECOND) for key in TIMES}
    assert not history_of(server.audit_log(), server.watch()).bounds.unrecorded


def test_writes_by_a_clock_that_is_ahead_are_no_restore() -> None:
    server = FakeServer()
    db, other = server.elector("db-0", "shop/db"), server.elector("mail-0", "shop/mail")
    together(60, db, other)
    for event in server.log[:40]:
        event |= {key: format_micro_time(parse(event[key]) + 20 * SECOND) for key in TIMES}
    server.log.sort(key=lambda event: event["stageTimestamp"])
    assert not history_of(server.audit_log()).bounds.unrecorded


@VIEWS
def test_after_a_restore_nobody_took_the_lease_and_the_holder_before_may_have_led(
    show: Callable[[FakeServer], bytes],
) -> None:
    server, _, others = put_back_after(10)
    first = server.elector("db-0", "shop/db")
    for _ in first.ticks(12):
        first.renew()
        for other in others:
            other.renew()
    answer = account(history_of(show(server)), server.now)
    output = text(answer)
    words = "db-0_1 held it according to the restored state, or since a time that was not recorded"
    assert f"{words}; db-1_1, the previous holder, may have led until it noticed" in output
    assert "db-1_1 may have led beside it until it noticed; writes made after the restored state are lost." in output


def test_a_lease_that_is_created_again_at_an_earlier_version_shows_the_restore() -> None:
    server, _, others = put_back_after(10)
    created = server.elector("cart-0", "shop/cart")
    server.delete("shop/cart")
    created.take()
    together(12, *others[:1], created)
    log = server.audit_log()
    items = [item for item in merge_inputs(read("in", [log])) if isinstance(item, StoreRestored)]
    assert len(items) == 1
    assert not history_of(log).bounds.is_log_leaky
