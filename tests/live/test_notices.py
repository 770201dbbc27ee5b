"""Kubernetes Events say once that a leader was lost, or a lease stolen."""

from typing import Any

from tests.history.fake_server import FakeServer
from tests.live.test_leases import Clock, clock, show
from webhook.analysis.live.leases import KEPT_AFTER_DELETION, LiveLeases
from webhook.analysis.live.notices import LOST, STOLEN, Notices
from webhook.kubernetes.times import SECOND

__all__ = ["clock"]


def since(notices: Notices, leases: LiveLeases) -> list[dict[str, Any]]:
    with leases.lock() as (histories, now):
        return [*notices.find_new(histories, now)]


def test_a_lost_leader_is_one_event(clock: Clock) -> None:
    server, leases, notices = FakeServer(), LiveLeases(), Notices()
    server.elector("a", "shop/db").lead(10)
    show(leases, server, clock)
    assert since(notices, leases) == []
    clock.now += 20 * SECOND
    (event,) = since(notices, leases)
    assert event["reason"] == LOST
    assert event["involvedObject"]["kind"] == "Lease"
    assert (event["involvedObject"]["namespace"], event["involvedObject"]["name"]) == ("shop", "db")
    assert event["message"].startswith("a_1 has not renewed it for ")
    assert event["metadata"]["generateName"] == "db."
    assert since(notices, leases) == []


def test_a_stolen_lease_is_one_event(clock: Clock) -> None:
    server, leases, notices = FakeServer(), LiveLeases(), Notices()
    server.elector("a", "shop/db").lead(10)
    show(leases, server, clock)
    assert since(notices, leases) == []
    server.elector("b", "shop/db").take()
    show(leases, server, clock)
    (event,) = since(notices, leases)
    assert event["reason"] == STOLEN
    assert "b_1" in event["message"]
    assert since(notices, leases) == []


def test_what_was_so_before_is_no_event(clock: Clock) -> None:
    server, leases, notices = FakeServer(), LiveLeases(), Notices()
    server.elector("a", "shop/db").lead(10)
    server.elector("b", "shop/db").take()
    show(leases, server, clock)
    clock.now += 60 * SECOND
    assert since(notices, leases) == []


def test_a_release_and_a_deletion_are_no_events(clock: Clock) -> None:
    server, leases, notices = FakeServer(), LiveLeases(), Notices()
    free = server.elector("a", "shop/db")
    free.lead(10)
    server.elector("b", "shop/mail").lead(10)
    show(leases, server, clock)
    assert since(notices, leases) == []
    free.release()
    server.delete("shop/mail")
    show(leases, server, clock)
    clock.now += 60 * SECOND
    assert since(notices, leases) == []


def test_an_event_about_a_steal_is_about_the_latest_one(clock: Clock) -> None:
    server, leases, notices = FakeServer(), LiveLeases(), Notices()
    server.elector("a", "shop/db").lead(10)
    server.elector("b", "shop/db").lead(300)
    show(leases, server, clock)
    assert since(notices, leases) == []
    server.elector("c", "shop/db").take()
    show(leases, server, clock)
    (event,) = since(notices, leases)
    assert event["reason"] == STOLEN
    assert "c_1" in event["message"]


def test_a_lease_that_is_first_seen_expired_after_it_was_created_again_has_lost_no_leader(clock: Clock) -> None:
    server, leases, notices = FakeServer(), LiveLeases(), Notices()
    server.elector("a", "shop/db").lead(10)
    show(leases, server, clock)
    assert since(notices, leases) == []
    server.delete("shop/db")
    show(leases, server, clock)
    assert since(notices, leases) == []
    server.elector("a", "shop/db").take()
    show(leases, server, clock)
    clock.now += 20 * SECOND
    assert since(notices, leases) == []


def test_nothing_is_kept_of_a_lease_that_was_deleted_long_ago(clock: Clock) -> None:
    server, leases, notices = FakeServer(), LiveLeases(), Notices()
    server.elector("a", "shop/db").lead(10)
    show(leases, server, clock)
    assert since(notices, leases) == []
    server.delete("shop/db")
    show(leases, server, clock)
    clock.now += 2 * KEPT_AFTER_DELETION
    assert since(notices, leases) == []
    assert notices == Notices()
