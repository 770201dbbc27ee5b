"""The alerts on the CronJob of the audit, asked of Prometheus itself."""

from pathlib import Path
from typing import Any

import pytest

from lab.rendered.prometheus import EVENT, MINUTES, Series, check_firing, make_constant
from lab.rendered.test_alerts import WEEK
from tools.rendered.rendering import compose_overlay, find_object, load_objects, render

FINDINGS, MISSING = "LeaseAuditFindings", "LeaseAuditMissing"
QUARTER = 15
PLACE = 'namespace="lease-webhook"'
CRONJOB = f'{{{PLACE},cronjob="lease-audit"}}'


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    text = render(compose_overlay(tmp_path_factory.mktemp("audit"), "cert-manager", "audit", "audit-alerts"))
    spec: dict[str, Any] = find_object(load_objects(text), "PrometheusRule")["spec"]
    return spec


def make_job(name: str, start: int, length: int, *, failed: bool, minutes: int = MINUTES, reason: str = "") -> Series:
    """Return a job as kube-state-metrics shows it: it starts at a minute, runs some minutes, and ends."""
    labels = f'{{{PLACE},job_name="{name}"}}'
    kind = f'{{{PLACE},job_name="{name}",reason="{reason or "BackoffLimitExceeded"}"}}'
    before = f"_x{start}" if start else ""
    good = f"_x{minutes}" if failed else f"0x{minutes}"
    failure = {f"kube_job_status_failed{kind}": f"{before} _x{length} 1x{minutes}".strip()} if failed else {}
    return failure | {
        f"kube_job_status_start_time{labels}": f"{before} {start * 60}x{minutes}".strip(),
        f"kube_job_status_active{labels}": f"{before} 1x{max(0, length - 1)} 0x{minutes}".strip(),
        f"kube_job_status_failed{labels}": f"{before} 0x{max(0, length - 1)} {good}".strip(),
    }


def make_cron_job(minutes: int = MINUTES) -> Series:
    """Return a CronJob that is scheduled every quarter of an hour."""
    times = " ".join(f"{start * 60}x{QUARTER - 1}" for start in range(0, minutes, QUARTER))
    return {
        f"kube_cronjob_status_last_schedule_time{CRONJOB}": times,
        f"kube_cronjob_created{CRONJOB}": make_constant(0, minutes),
    }


def test_good_jobs_are_silent(rules: dict[str, Any], tmp_path: Path) -> None:
    series = (
        make_cron_job()
        | make_job("lease-audit-1", 0, 1, failed=False)
        | make_job("lease-audit-2", EVENT, 1, failed=False)
    )
    assert check_firing(rules, series, {1: [], EVENT: [], EVENT + 20: []}, tmp_path) == ""


@pytest.mark.parametrize("reason", ["BackoffLimitExceeded", "DeadlineExceeded"])
def test_a_job_that_failed_fires_until_a_later_one_is_good(rules: dict[str, Any], tmp_path: Path, reason: str) -> None:
    series = make_cron_job() | make_job("lease-audit-1", 0, 1, failed=False)
    series |= make_job("lease-audit-2", 30, 2, failed=True, reason=reason) | make_job(
        "lease-audit-3", 60, 2, failed=False
    )
    moments = {29: [], 31: [], 33: [FINDINGS], 59: [FINDINGS], 63: [], 80: []}
    assert check_firing(rules, series, moments, tmp_path) == ""


def test_a_job_that_runs_does_not_end_the_alert(rules: dict[str, Any], tmp_path: Path) -> None:
    series = (
        make_cron_job() | make_job("lease-audit-1", 0, 1, failed=True) | make_job("lease-audit-2", 30, 5, failed=True)
    )
    assert check_firing(rules, series, {29: [FINDINGS], 31: [FINDINGS], 34: [FINDINGS], 40: [FINDINGS]}, tmp_path) == ""


def test_jobs_of_others_count_for_nothing(rules: dict[str, Any], tmp_path: Path) -> None:
    others = {
        name.replace("lease-webhook", "shop"): values
        for name, values in make_job("lease-audit-1", 0, 1, failed=True).items()
    }
    others |= make_job("another-1", 0, 1, failed=True)
    assert check_firing(rules, make_cron_job() | others, {10: [], EVENT: []}, tmp_path) == ""


def test_a_job_that_is_no_longer_scheduled_is_noticed_after_two_hours(rules: dict[str, Any], tmp_path: Path) -> None:
    series = {f"kube_cronjob_status_last_schedule_time{CRONJOB}": make_constant(0, WEEK)}
    assert check_firing(rules, series, {119: [], 121: [MISSING], WEEK // 2: [MISSING]}, tmp_path) == ""


def test_a_job_that_was_never_scheduled_is_noticed_as_well(rules: dict[str, Any], tmp_path: Path) -> None:
    series = {f"kube_cronjob_created{CRONJOB}": make_constant(0, WEEK)}
    assert check_firing(rules, series, {119: [], 121: [MISSING]}, tmp_path) == ""


def test_without_the_component_nothing_fires(rules: dict[str, Any], tmp_path: Path) -> None:
    assert check_firing(rules, {"up": make_constant(1, WEEK)}, {60: [], WEEK // 2: []}, tmp_path) == ""
