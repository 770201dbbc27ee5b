"""Leases as a watch shows them: deletions and gaps between two watches, and the clock of the API server."""

import json
import time

import pytest

from tests.cli.test_stamps import StampingServer, policy
from tests.history.fake_server import FakeServer
from webhook.admission.policy.file import load
from webhook.analysis.inputs.cluster import CANDIDATES, LEASES
from webhook.analysis.inputs.documents import split_documents
from webhook.analysis.inputs.items import Place, Unreadable
from webhook.analysis.inputs.kinds import interpret_all
from webhook.analysis.live import leases as module
from webhook.analysis.live.leases import KEPT_AFTER_DELETION, LiveLeases
from webhook.kubernetes.times import SECOND

__all__ = ["policy"]


class Clock:
    now = 0

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "read_clock", clock)
    return clock


def show(leases: LiveLeases, server: FakeServer, clock: Clock, *, ahead: int = 0) -> None:
    """Show what the server did as it happens, to a computer whose clock is ahead."""
    for at, kind, lease in server.events:
        clock.now = at + ahead * SECOND
        for item in interpret_all(split_documents("-", [json.dumps({"type": kind, "object": lease}).encode()])):
            leases.observe(item)
    server.events.clear()


def test_the_present_is_by_the_clock_of_the_api_server(clock: Clock) -> None:
    server, leases = FakeServer(), LiveLeases()
    server.elector("a", "shop/db").lead(10)
    show(leases, server, clock, ahead=30)
    clock.now += SECOND
    with leases.lock() as (histories, now):
        assert abs(now - server.now - SECOND) <= SECOND
        assert histories.names() == [("shop", "db")]


@pytest.mark.parametrize("is_listed", [True, False], ids=["with a policy file", "without"])
def test_stamps_are_believed_where_a_policy_file_says_so(is_listed: bool, clock: Clock, policy: str) -> None:
    server = StampingServer()
    leases = LiveLeases(load(policy).stamps if is_listed else None)
    server.elector("a", "shop/db").lead(10)
    show(leases, server, clock)
    with leases.lock() as (histories, now):
        status = histories.get_history(("shop", "db")).find_status(now)
        assert status is not None
        assert status.from_stamps is is_listed
        assert histories.stamped == (frozenset({"shop"}) if is_listed else frozenset())


def test_without_a_watch_the_present_is_by_the_clock_of_this_computer() -> None:
    with LiveLeases().lock() as (histories, now):
        assert histories.names() == []
        assert abs(now - time.time_ns() // 1000) < 60 * SECOND


def test_what_a_second_watch_lacks_was_deleted_and_the_gap_is_known(clock: Clock) -> None:
    server, leases = FakeServer(), LiveLeases()
    server.elector("a", "shop/db").lead(4)
    server.elector("b", "shop/mail").lead(4)
    leases.begin(LEASES)
    show(leases, server, clock)
    leases.begin(CANDIDATES)
    leases.show_status("The watch ended.")
    leases.begin(LEASES)
    server.wait(20)
    server.elector("b", "shop/mail").renew()
    show(leases, server, clock)
    clock.now += 10 * SECOND
    with leases.lock() as (histories, _):
        assert histories.leases["shop", "db"].is_deleted
        assert not histories.leases["shop", "mail"].is_deleted
        (gap,) = histories.bounds.unrecorded
    assert gap.end - gap.start >= 20 * SECOND
    assert leases.status == "The watch ended."


def test_a_list_with_a_lease_that_cannot_be_read_shows_no_deletion(clock: Clock) -> None:
    server, leases = FakeServer(), LiveLeases()
    server.elector("a", "shop/db").lead(4)
    server.elector("b", "shop/mail").lead(4)
    leases.begin(LEASES)
    show(leases, server, clock)
    leases.begin(LEASES)
    leases.observe(Unreadable(Place(LEASES, 1), "nested too deeply"))
    server.elector("b", "shop/mail").renew()
    show(leases, server, clock)
    clock.now += 10 * SECOND
    with leases.lock() as (histories, _):
        assert not histories.leases["shop", "db"].is_deleted


def test_a_gap_between_two_watches_is_dated_by_the_clock_of_the_api_server(clock: Clock) -> None:
    server, leases = FakeServer(), LiveLeases()
    elector = server.elector("a", "shop/db")
    elector.lead(10)
    leases.begin(LEASES)
    show(leases, server, clock, ahead=300)
    began = server.now
    leases.begin(LEASES)
    server.wait(20)
    elector.renew()
    show(leases, server, clock, ahead=300)
    with leases.lock() as (histories, _):
        (gap,) = histories.bounds.unrecorded
    assert abs(gap.start - began) <= SECOND
    assert abs(gap.end - server.now) <= SECOND


@pytest.mark.parametrize("is_seen_to_end", [True, False], ids=["in a watch", "between two watches"])
def test_a_lease_that_was_deleted_an_hour_ago_is_forgotten(is_seen_to_end: bool, clock: Clock) -> None:
    server, leases = FakeServer(), LiveLeases()
    server.elector("a", "shop/db").lead(4)
    mail = server.elector("b", "shop/mail")
    mail.lead(4)
    leases.begin(LEASES)
    show(leases, server, clock)
    server.delete("shop/db")
    if not is_seen_to_end:
        server.events.clear()
        leases.begin(LEASES)
    mail.renew()
    show(leases, server, clock)
    clock.now += 10 * SECOND
    with leases.lock() as (histories, _):
        assert histories.leases["shop", "db"].is_deleted
    clock.now += KEPT_AFTER_DELETION + SECOND
    with leases.lock() as (histories, _):
        assert histories.names() == [("shop", "mail")]


def test_what_a_watch_shows_has_deleted_leases_forgotten_too(clock: Clock) -> None:
    server, leases = FakeServer(), LiveLeases()
    server.elector("a", "shop/db").lead(4)
    server.delete("shop/db")
    server.wait(2 * KEPT_AFTER_DELETION / SECOND)
    server.elector("b", "shop/mail").lead(4)
    show(leases, server, clock)
    assert [*leases._histories.leases] == [("shop", "mail")]


def test_a_lease_that_was_created_again_is_kept(clock: Clock) -> None:
    server, leases = FakeServer(), LiveLeases()
    server.elector("a", "shop/db").lead(4)
    server.delete("shop/db")
    server.elector("a", "shop/db").lead(4)
    show(leases, server, clock)
    clock.now += 2 * KEPT_AFTER_DELETION
    with leases.lock() as (histories, _):
        assert histories.names() == [("shop", "db")]


def test_it_is_watching_from_the_first_lease_until_the_watch_ends(clock: Clock) -> None:
    server, leases = FakeServer(), LiveLeases()
    assert not leases.is_watching
    server.elector("a", "shop/db").lead(4)
    show(leases, server, clock)
    assert leases.is_watching
    leases.show_status("The watch ended.")
    assert not leases.is_watching


def test_what_is_no_lease_does_not_begin_the_watch(clock: Clock) -> None:
    leases = LiveLeases()
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "shop", "uid": "u"}}
    for item in interpret_all(split_documents("-", [json.dumps({"type": "ADDED", "object": pod}).encode()])):
        leases.observe(item)
    assert not leases.is_watching
