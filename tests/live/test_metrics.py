"""Metrics of elections agree with what happened, and no counter goes back."""

import json

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from tests.claims.test_nameless_renewals import lose_names
from tests.factories import drop, put
from tests.history.fake_server import FakeServer
from tests.live.test_leases import Clock, clock, show
from webhook.analysis.inputs.cluster import LEASES
from webhook.analysis.live.leases import KEPT_AFTER_DELETION, LiveLeases
from webhook.analysis.live.metrics import PREFIX, LeaderMetrics, make_registry
from webhook.kubernetes.times import SECOND

__all__ = ["clock"]
LABELS = ("namespace", "lease", "how")


def values(leases: LiveLeases) -> dict[tuple[str, ...], float]:
    """Return each value by its name, the lease, and how leaders changed."""
    text = generate_latest(make_registry(leases)).decode()
    return {
        (one.name.removeprefix(PREFIX), *(one.labels[key] for key in LABELS if key in one.labels)): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


def test_a_held_lease(clock: Clock) -> None:
    server, leases = FakeServer(), LiveLeases()
    server.elector("a", "shop/db").lead(10)
    assert values(leases) == {("watching",): 0.0}
    leases.begin(LEASES)
    show(leases, server, clock)
    clock.now += 3 * SECOND
    samples = values(leases)
    assert samples["live", "shop", "db"] == 1
    assert 2 <= samples["renewal_age_seconds", "shop", "db"] <= 4
    assert samples["duration_seconds", "shop", "db"] == 15
    assert samples["leaderless_seconds_total", "shop", "db"] == 0
    assert samples[("watching",)] == 1
    assert {key[-1]: value for key, value in samples.items() if key[0] == "handovers_total"} == {
        "released": 0,
        "expired": 0,
        "stolen": 0,
        "other": 0,
    }


def test_a_lost_leader(clock: Clock) -> None:
    server, leases = FakeServer(), LiveLeases()
    old, new = server.elector("a", "shop/db"), server.elector("b", "shop/db")
    old.lead(10)
    show(leases, server, clock)
    clock.now += 40 * SECOND
    lost = values(leases)
    assert lost["live", "shop", "db"] == 0
    assert 35 <= lost["leaderless_seconds_total", "shop", "db"] <= 45
    server.wait(40)
    new.lead(4)
    show(leases, server, clock)
    samples = values(leases)
    assert samples["live", "shop", "db"] == 1
    assert samples["handovers_total", "shop", "db", "expired"] == 1
    assert samples["leaderless_seconds_total", "shop", "db"] >= 35


def test_a_lease_that_is_renewed_without_a_holder_is_as_one_that_was_released(clock: Clock) -> None:
    leases, server = LiveLeases(), lose_names()
    show(leases, server, clock)
    samples = values(leases)
    assert samples["live", "shop", "db"] == 0
    assert ("renewal_age_seconds", "shop", "db") not in samples


def test_a_stolen_lease(clock: Clock) -> None:
    server, leases = FakeServer(), LiveLeases()
    server.elector("a", "shop/db").lead(10)
    server.elector("b", "shop/db").take()
    show(leases, server, clock)
    assert values(leases)["handovers_total", "shop", "db", "stolen"] == 1


def test_a_counter_does_not_go_back(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    server, leases = FakeServer(), LiveLeases()
    server.elector("a", "shop/db").lead(10)
    show(leases, server, clock)
    registry = make_registry(leases)
    name, labels = f"{PREFIX}leaderless_seconds_total", {"namespace": "shop", "lease": "db"}
    seen = []
    for micros in (5 * SECOND, 3 * SECOND, 7 * SECOND):
        with leases.lock() as (follower, _):
            follower.leases["shop", "db"].vacancy.leaderless = micros
        seen.append(registry.get_sample_value(name, labels))
    assert seen == [5, 5, 7]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(put("metadata.namespace", "kube-node-lease"), id="a node's"),
        pytest.param(drop("spec.acquireTime"), id="one by its shape"),
    ],
)
def test_heartbeats_have_no_series(change: object, clock: Clock) -> None:
    server, leases = FakeServer(), LiveLeases()
    server.elector("a", "shop/db").take()
    (at, kind, lease) = server.events[0]
    lease = json.loads(json.dumps(lease))
    if change is not None:
        assert callable(change)
        change(lease)
    lease["spec"].pop("leaseTransitions", None)
    server.events[:] = [(at, kind, lease)]
    show(leases, server, clock)
    assert [key for key in values(leases) if len(key) > 1] == []


def test_a_lease_of_several_clusters_has_no_series(clock: Clock) -> None:
    server, leases = FakeServer(), LiveLeases()
    server.elector("a", "shop/db").lead(4)
    show(leases, server, clock)
    with leases.lock() as (follower, _):
        follower.leases["shop", "db"].existence.is_mixed = True
    clock.now += SECOND
    assert [key for key in values(leases) if len(key) > 1] == []


def test_a_deleted_lease_and_a_free_one(clock: Clock) -> None:
    server, leases = FakeServer(), LiveLeases()
    server.elector("a", "shop/db").lead(4)
    free = server.elector("b", "shop/mail")
    free.lead(4)
    free.release()
    server.delete("shop/db")
    show(leases, server, clock)
    samples = values(leases)
    assert ("live", "shop", "db") not in samples
    assert samples["live", "shop", "mail"] == 0
    assert ("renewal_age_seconds", "shop", "mail") not in samples


def test_a_frozen_lease_is_not_live_although_its_holder_renews_it(clock: Clock) -> None:
    server, leases = FakeServer(), LiveLeases()
    elector = server.elector("a", "shop/db")
    elector.lead(10)
    show(leases, server, clock)
    assert values(leases)["live", "shop", "db"] == 1
    elector.renew(leaseTransitions=2**31 - 1)
    elector.lead(10)
    show(leases, server, clock)
    samples = values(leases)
    assert samples["live", "shop", "db"] == 0
    assert samples["renewal_age_seconds", "shop", "db"] <= 1


def test_nothing_is_kept_of_a_lease_that_was_deleted_long_ago(clock: Clock) -> None:
    server, leases = FakeServer(), LiveLeases()
    server.elector("a", "shop/db").lead(10)
    show(leases, server, clock)
    metrics = LeaderMetrics(leases)
    list(metrics.collect())
    server.delete("shop/db")
    show(leases, server, clock)
    clock.now += 2 * KEPT_AFTER_DELETION
    list(metrics.collect())
    assert metrics._leaderless == {}


def test_a_lease_whose_stamp_another_write_may_have_moved_is_neither_live_nor_not(clock: Clock) -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(10)
    del server.events[:-1]
    last = server.events[-1]
    as_renewed, as_disputed = LiveLeases(), LiveLeases()
    show(as_renewed, server, clock)
    assert values(as_renewed)["live", "shop", "db"] == 1
    last[2]["spec"]["renewTime"] = "2026-11-22T11:30:00.000000Z"
    server.events.append(last)
    show(as_disputed, server, clock)
    samples = values(as_disputed)
    assert ("live", "shop", "db") not in samples
    assert ("renewal_age_seconds", "shop", "db") not in samples
    assert samples["duration_seconds", "shop", "db"] == 15


def test_a_lease_that_only_its_holder_s_clock_dates_is_neither_live_nor_not(clock: Clock) -> None:
    server, leases = FakeServer(), LiveLeases()
    server.elector("a", "shop/db").lead(10)
    for _, _, lease in server.events:
        del lease["metadata"]["managedFields"]
    show(leases, server, clock)
    samples = values(leases)
    assert ("live", "shop", "db") not in samples
    assert ("renewal_age_seconds", "shop", "db") not in samples
    assert samples["duration_seconds", "shop", "db"] == 15


def test_a_lease_without_renew_time_is_neither_live_nor_not(clock: Clock) -> None:
    server, leases = FakeServer(), LiveLeases()
    server.elector("a", "shop/db").take()
    for _, _, lease in server.events:
        del lease["spec"]["renewTime"]
    show(leases, server, clock)
    assert ("live", "shop", "db") not in values(leases)


def test_a_lease_whose_last_renewal_is_after_the_moment_at_hand_is_neither_live_nor_not(clock: Clock) -> None:
    server, leases = FakeServer(), LiveLeases()
    server.elector("a", "shop/db").lead(10)
    show(leases, server, clock)
    assert values(leases)["live", "shop", "db"] == 1
    clock.now -= 3600 * SECOND
    assert ("live", "shop", "db") not in values(leases)
