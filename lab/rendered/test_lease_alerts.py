"""The alerts on leases, asked of Prometheus itself: series as kube-state-metrics shows them."""

from pathlib import Path
from typing import Any

import pytest

from lab.rendered.prometheus import EVENT, MINUTES, Series, check_firing, make_constant
from lab.rendered.test_alerts import WEEK
from webhook.analysis.alerts import WatchedLease, make_prometheus_rules, make_recorder_rule, make_rules_file

LOST, GONE, FUTURE = "LeaseWithoutLeader", "LeaseMissing", "LeaseRenewedInTheFuture"
HANDS, UNLISTED, ABSENT, SILENT = "LeaseChangesHands", "LeaseNotRenewed", "LeaseMetricsMissing", "LeaseHeartbeatSilent"


@pytest.fixture
def rules() -> dict[str, Any]:
    leases = [WatchedLease("shop", "checkout", 15), WatchedLease("east", "agent", 60, is_heartbeat=True)]
    return make_rules_file(make_prometheus_rules(leases))


def make_renewed(name: str, namespace: str, until: int = MINUTES, *, ahead: int = 0, replica: str = "a") -> Series:
    """Return the renewTime at each minute, renewed until some minute, then unchanged."""
    labels = f'{{namespace="{namespace}",lease="{name}",instance="{replica}"}}'
    start, step = ahead, 60
    tail = f" {start + 60 * until}x{MINUTES}" if until < MINUTES else ""
    return {f"kube_lease_renew_time{labels}": f"{start}+{step}x{until - 1}{tail}"}


def make_healthy() -> Series:
    return make_renewed("checkout", "shop") | make_renewed("agent", "east")


def test_leases_that_are_renewed_are_silent(rules: dict[str, Any], tmp_path: Path) -> None:
    assert check_firing(rules, make_healthy(), {5: [], EVENT: [], MINUTES - 1: []}, tmp_path) == ""


def test_an_election_that_no_one_renews_fires_after_its_own_limit(rules: dict[str, Any], tmp_path: Path) -> None:
    series = make_healthy() | make_renewed("checkout", "shop", EVENT)
    assert check_firing(rules, series, {EVENT + 1: [], EVENT + 4: [LOST]}, tmp_path) == ""


def test_a_heartbeat_fires_later_and_under_its_own_name(rules: dict[str, Any], tmp_path: Path) -> None:
    series = make_healthy() | make_renewed("agent", "east", EVENT)
    assert check_firing(rules, series, {EVENT + 5: [], EVENT + 9: [SILENT]}, tmp_path) == ""


def test_two_copies_of_the_metrics_count_once_and_the_newer_one_counts(rules: dict[str, Any], tmp_path: Path) -> None:
    series = make_healthy() | make_renewed("checkout", "shop", EVENT, replica="b")
    assert check_firing(rules, series, {EVENT + 9: []}, tmp_path) == ""


def test_a_lease_that_is_deleted_is_missing(rules: dict[str, Any], tmp_path: Path) -> None:
    labels = '{namespace="shop",lease="checkout",instance="a"}'
    series = make_healthy() | {f"kube_lease_renew_time{labels}": f"0+60x{EVENT - 1} stale"}
    assert check_firing(rules, series, {EVENT + 3: [], EVENT + 7: [GONE]}, tmp_path) == ""


def test_without_any_metrics_only_that_is_said(rules: dict[str, Any], tmp_path: Path) -> None:
    assert check_firing(rules, {"up": make_constant(1)}, {10: [], 20: [ABSENT], EVENT: [ABSENT]}, tmp_path) == ""


def test_a_frozen_lease_is_in_the_future(rules: dict[str, Any], tmp_path: Path) -> None:
    series = make_healthy() | make_renewed("checkout", "shop", ahead=3600)
    assert check_firing(rules, series, {4: [], 7: [FUTURE], EVENT: [FUTURE]}, tmp_path) == ""


@pytest.mark.parametrize(
    ("namespace", "alerts"),
    [pytest.param("shop", [UNLISTED], id="of a program"), pytest.param("kube-node-lease", [], id="of a node")],
)
def test_a_lease_without_a_limit_has_fifteen_minutes(
    rules: dict[str, Any], tmp_path: Path, namespace: str, alerts: list[str]
) -> None:
    series = make_healthy() | make_renewed("newer", namespace, EVENT)
    assert check_firing(rules, series, {EVENT + 14: [], EVENT + 18: alerts}, tmp_path) == ""


def test_many_holders_within_an_hour_are_noticed(rules: dict[str, Any], tmp_path: Path) -> None:
    series: Series = {}
    for number in range(6):
        labels = f'{{namespace="shop",lease="checkout",lease_holder="checkout-{number}"}}'
        before = f"_x{5 * number} " if number else ""
        series[f"kube_lease_owner{labels}"] = f"{before}1x4 stale"
    # Five holders are known from minute 20 on, the sixth from 25; after an hour they are forgotten.
    assert check_firing(rules, make_healthy() | series, {18: [], 40: [HANDS], 89: []}, tmp_path) == ""


def test_one_holder_with_two_owners_is_one(rules: dict[str, Any], tmp_path: Path) -> None:
    series = {
        f'kube_lease_owner{{namespace="shop",lease="checkout",lease_holder="checkout-0",owner_name="{name}"}}': "1x90"
        for name in "abcdef"
    }
    assert check_firing(rules, make_healthy() | series, {EVENT: []}, tmp_path) == ""


def test_what_deploy_ships_gives_every_lease_the_same_limit(tmp_path: Path) -> None:
    shipped = make_rules_file(make_prometheus_rules(()))
    series = make_healthy() | make_renewed("checkout", "shop", EVENT)
    assert check_firing(shipped, series, {EVENT + 14: [], EVENT + 18: [UNLISTED]}, tmp_path) == ""


def test_nothing_fires_for_a_week_of_renewals(rules: dict[str, Any], tmp_path: Path) -> None:
    series = {name: values.replace(f"x{MINUTES - 1}", f"x{WEEK}") for name, values in make_healthy().items()}
    assert check_firing(rules, series, {WEEK // 2: [], WEEK - 1: []}, tmp_path) == ""


def make_recorded(
    live: str, *, stolen: str = f"0x{MINUTES}", leaderless: str = f"0x{MINUTES}", pod: str = "a"
) -> Series:
    """Return the metrics of a recorder about one lease."""
    labels = f'namespace="shop",lease="checkout",instance="{pod}"'
    return {
        f"lease_webhook_leader_live{{{labels}}}": live,
        f'lease_webhook_leader_handovers_total{{{labels},how="stolen"}}': stolen,
        f"lease_webhook_leader_leaderless_seconds_total{{{labels}}}": leaderless,
        f'lease_webhook_leader_watching{{instance="{pod}"}}': make_constant(1),
    }


@pytest.mark.parametrize(
    ("series", "fired"),
    [
        pytest.param(make_recorded(make_constant(1)), [], id="held"),
        pytest.param(make_recorded(f"1x{EVENT} 0x{MINUTES}"), ["LeaderLost"], id="lost"),
        pytest.param(make_recorded(f"1x{EVENT} 0x1 1x{MINUTES}"), [], id="taken over within a minute or two"),
        pytest.param(make_recorded(make_constant(0)), [], id="never held while it was recorded"),
        pytest.param(make_recorded(make_constant(1), stolen=f"0x{EVENT} 1x{MINUTES}"), ["LeaseStolen"], id="stolen"),
        pytest.param(
            make_recorded(make_constant(1), leaderless=f"0x{EVENT - 10} 0+60x10 600x{MINUTES}"),
            ["LeaderAbsentOften"],
            id="long without a leader",
        ),
        pytest.param({"up": make_constant(1)}, ["LeaseRecorderBlind"], id="no recorder"),
    ],
)
def test_what_a_recorder_shows(series: Series, fired: list[str], tmp_path: Path) -> None:
    rules = make_rules_file([make_recorder_rule()])
    assert check_firing(rules, series, {EVENT + 6: fired}, tmp_path) == ""
