"""The alerts fire on the first event, stay silent otherwise, and end: asked of Prometheus itself."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.e2e.toolchain import build_promtool
from lab.rendered.prometheus import EVENT, MINUTES, Series, check_firing, make_constant, make_new_series, scrape_around
from tools.rendered.rendering import ROOT, compose_overlay, find_object, load_objects, render
from webhook.admission.policy.parse import parse
from webhook.server.metrics import Metrics

ENTRY = 'name="leases.lease-webhook.svc"'
FAIL_OPEN = f'apiserver_admission_webhook_fail_open_count{{{ENTRY},type="validating",instance="a"}}'
REJECTED = (
    f'apiserver_admission_webhook_rejection_count{{{ENTRY},type="validating",operation="UPDATE",'
    'error_type="calling_webhook_error",rejection_code="0"}'
)
RUNNING = {'lease_webhook_build_info{version="0.2.0"}': make_constant(1)}
WEEK = 7 * 24 * 60


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    text = render(compose_overlay(tmp_path_factory.mktemp("monitoring"), "cert-manager", "monitoring"))
    spec: dict[str, Any] = find_object(load_objects(text), "PrometheusRule")["spec"]
    return spec


def list_first_events() -> dict[str, tuple[str, Series]]:
    """Return for each event the alert that it fires, and the series."""
    ours: dict[str, tuple[str, Callable[[Metrics], object]]] = {
        "a bug": ("LeaseWebhookIncident", lambda metrics: metrics.count("incidents", "bug")),
        "a review without time": (
            "LeaseWebhookIncident",
            lambda metrics: metrics.count("incidents", "deadline-exceeded"),
        ),
        "a refused policy": ("LeaseWebhookReloadFails", lambda metrics: metrics.count("reloads", "policy", "failure")),
        "a refused certificate": (
            "LeaseWebhookReloadFails",
            lambda metrics: metrics.count("reloads", "certificate", "failure"),
        ),
        "a request that is answered 503": ("LeaseWebhookSheds", lambda metrics: metrics.count("shed")),
        "a body that no API server sends": (
            "LeaseWebhookMalformedBody",
            lambda metrics: metrics.count("malformed", "body"),
        ),
    }
    return {
        **{event: (alert, scrape_around(happens)) for event, (alert, happens) in ours.items()},
        "a write that fails open": ("LeaseWebhookFailsOpen", RUNNING | {FAIL_OPEN: make_new_series(1)}),
        "a write that fails closed": ("LeaseWebhookFailsClosed", RUNNING | {REJECTED: make_new_series(1)}),
    }


@pytest.mark.parametrize(
    ("alert", "series"), [pytest.param(*case, id=name) for name, case in list_first_events().items()]
)
def test_the_first_event_fires_at_once_and_the_alert_ends(
    alert: str, series: Series, rules: dict[str, Any], tmp_path: Path
) -> None:
    moments = {EVENT - 1: [], EVENT + 1: [alert], EVENT + 8: [alert], EVENT + 17: []}
    assert check_firing(rules, series, moments, tmp_path) == ""


@pytest.mark.parametrize("alert", ["LeaseWebhookFailsOpen", "LeaseWebhookFailsClosed"])
def test_increase_alone_misses_a_series_that_appears_with_its_first_event(
    alert: str, rules: dict[str, Any], tmp_path: Path
) -> None:
    (group,) = rules["groups"]
    (rule,) = [each for each in group["rules"] if each["alert"] == alert]
    old = {"groups": [{"name": "old", "rules": [rule | {"expr": rule["expr"].partition("\nor ")[0]}]}]}
    (series,) = [series for name, series in list_first_events().values() if name == alert]
    assert check_firing(old, series, {EVENT + 1: []}, tmp_path) == ""


def read_outages() -> list[int]:
    """Return the writes that failed open in three minutes without us, as lab/e2e saw them."""
    text = (ROOT / "lab" / "e2e" / "RESULTS.md").read_text()
    return sorted({int(count) for count in re.findall(r"(\d+) writes failed open", text)} - {0})


@pytest.mark.parametrize("writes", read_outages())
def test_a_measured_outage_is_noticed(writes: int, rules: dict[str, Any], tmp_path: Path) -> None:
    steps = [max(1, writes // 3), max(1, 2 * writes // 3), writes]
    series = RUNNING | {FAIL_OPEN: make_new_series(*steps)}
    moments = {EVENT - 1: [], EVENT + 1: ["LeaseWebhookFailsOpen"], EVENT + 17: []}
    assert check_firing(rules, series, moments, tmp_path) == ""


def test_another_event_years_after_the_first_fires_again(rules: dict[str, Any], tmp_path: Path) -> None:
    series = RUNNING | {FAIL_OPEN: f"7x{EVENT - 1} 8x{MINUTES}"}
    moments = {EVENT - 1: [], EVENT + 1: ["LeaseWebhookFailsOpen"], EVENT + 17: []}
    assert check_firing(rules, series, moments, tmp_path) == ""


@pytest.mark.parametrize("series", [pytest.param(FAIL_OPEN, id="open"), pytest.param(REJECTED, id="closed")])
def test_a_scrape_of_the_api_server_that_fails_is_no_event(series: str, rules: dict[str, Any], tmp_path: Path) -> None:
    """A failed scrape marks the counters of years ago as ended, and ten minutes later they look as if they were new."""
    values = {series: f"{make_constant(7, EVENT - 1)} stale {make_constant(7)}"}
    moments: dict[int, list[str]] = {EVENT + minute: [] for minute in range(1, 25)}
    assert check_firing(rules, RUNNING | values, moments, tmp_path) == ""


def test_the_second_api_server_has_a_first_event_of_its_own(rules: dict[str, Any], tmp_path: Path) -> None:
    series = RUNNING | {FAIL_OPEN: make_constant(7), FAIL_OPEN.replace('"a"', '"b"'): make_new_series(1)}
    moments = {EVENT - 1: [], EVENT + 1: ["LeaseWebhookFailsOpen"], EVENT + 17: []}
    assert check_firing(rules, series, moments, tmp_path) == ""


def test_a_quiet_week_is_silent(rules: dict[str, Any], tmp_path: Path) -> None:
    """With old failures, rollouts, a renewed certificate, traffic, and paths that a scanner tried."""
    rolled_out = f"0x{WEEK // 2 - 1} _x{WEEK}"
    rolled_in = f"_x{WEEK // 2} 0x{WEEK}"
    series = {
        'lease_webhook_build_info{version="0.2.0"}': make_constant(1, WEEK),
        'lease_webhook_policy_info{preset="standard",hash="5f2beae4",mode="deny"}': make_constant(1, WEEK),
        'lease_webhook_certificate_not_after_seconds{certificate="serving"}': make_constant(30 * 86400, WEEK),
        'lease_webhook_certificate_not_after_seconds{certificate="ca"}': make_constant(3650 * 86400, WEEK),
        'lease_webhook_incidents_total{kind="bug",pod="a"}': rolled_out,
        'lease_webhook_incidents_total{kind="bug",pod="b"}': rolled_in,
        'lease_webhook_reloads_total{what="certificate",result="failure"}': make_constant(2, WEEK),
        'lease_webhook_reloads_total{what="certificate",result="success"}': f"0x{WEEK // 2} 2x{WEEK}",
        'lease_webhook_malformed_total{class="body"}': make_constant(3, WEEK),
        'lease_webhook_malformed_total{class="path"}': f"0+1x{WEEK}",
        'lease_webhook_shed_total{pod="a"}': rolled_out,
        'lease_webhook_shed_total{pod="b"}': rolled_in,
        'lease_webhook_review_duration_seconds_bucket{le="0.0005"}': f"0+60x{WEEK}",
        'lease_webhook_review_duration_seconds_bucket{le="+Inf"}': f"0+60x{WEEK}",
        FAIL_OPEN: make_constant(7, WEEK),
        REJECTED: make_constant(7, WEEK),
    }
    moments: dict[int, list[str]] = {minute: [] for minute in range(11, WEEK, 59)}
    assert check_firing(rules, series, moments, tmp_path) == ""


def test_a_kill_switch_that_is_forgotten_fires_after_an_hour(rules: dict[str, Any], tmp_path: Path) -> None:
    policy = parse('apiVersion: lease-webhook/v1\npreset: standard\nmode: "off"\n')
    series = scrape_around(lambda metrics: metrics.show_policy(policy))
    moments = {EVENT + 50: [], EVENT + 62: ["LeaseWebhookAllowsEverything"]}
    assert check_firing(rules, series, moments, tmp_path) == ""


@pytest.mark.parametrize("certificate", ["serving", "ca"])
def test_a_certificate_that_ends_within_two_weeks_fires(
    certificate: str, rules: dict[str, Any], tmp_path: Path
) -> None:
    name = f'lease_webhook_certificate_not_after_seconds{{certificate="{certificate}"}}'
    moments = {50: [], 65: ["LeaseWebhookCertificateEnds"]}
    assert check_firing(rules, RUNNING | {name: make_constant(10 * 86400)}, moments, tmp_path) == ""


def test_slow_reviews_fire(rules: dict[str, Any], tmp_path: Path) -> None:
    series = RUNNING | {
        'lease_webhook_review_duration_seconds_bucket{le="0.1"}': make_constant(0),
        'lease_webhook_review_duration_seconds_bucket{le="0.5"}': f"0+60x{MINUTES}",
        'lease_webhook_review_duration_seconds_bucket{le="+Inf"}': f"0+60x{MINUTES}",
    }
    assert check_firing(rules, series, {5: [], 20: ["LeaseWebhookSlow"]}, tmp_path) == ""


def test_pods_that_nobody_scrapes_fire(rules: dict[str, Any], tmp_path: Path) -> None:
    series = {'lease_webhook_build_info{version="0.2.0"}': f"1x{EVENT} stale"}
    assert check_firing(rules, series, {EVENT: [], EVENT + 15: ["LeaseWebhookGone"]}, tmp_path) == ""


def test_every_alert_is_fired_by_a_test_here(rules: dict[str, Any]) -> None:
    (group,) = rules["groups"]
    text = Path(__file__).read_text()
    assert all(f'"{rule["alert"]}"' in text for rule in group["rules"])


def test_the_rules_pass_promtools_own_check(rules: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rules))
    result = subprocess.run(
        [build_promtool(), "check", "rules", tmp_path / "rules.yaml"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
