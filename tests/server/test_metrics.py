"""Counts are gathered and added together; the sums are those that adding one by one would give."""

import re
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Histogram, generate_latest

from tests.factories import drop, make_lease, make_review, put, to_bytes
from webhook.server import metrics
from webhook.server.metrics import BUCKETS, Metrics
from webhook.server.policy_file import load
from webhook.server.respond import respond

NOW = 1_763_640_002_000_000
DURATIONS = [0.0, 0.0004, 0.001, 0.0011, 0.005, 0.02, 0.3, 0.3, 9.99, 10.0, 11.0]
ALLOWED = to_bytes(make_review())
DENIED = to_bytes(make_review(new=make_lease(put("spec.leaseDurationSeconds", 0))))


def exposed(histogram: Any) -> list[str]:
    lines = generate_latest(histogram).decode().splitlines()
    return [line for line in lines if "_created" not in line]


def test_many_observations_at_once_are_what_observe_makes_of_them() -> None:
    one_by_one, together = CollectorRegistry(), CollectorRegistry()
    first = Histogram("d", "text", buckets=BUCKETS, registry=one_by_one)
    for duration in DURATIONS:
        first.observe(duration)
    metrics._observe_all(Histogram("d", "text", buckets=BUCKETS, registry=together), DURATIONS)
    assert exposed(one_by_one) == exposed(together)


def counted(shown: Metrics) -> dict[str, float]:
    found = re.findall(
        r"^(lease_webhook_reviews_total\{.*\}|lease_webhook_review_duration_seconds_count) (\S+)$",
        shown.exposition().decode(),
        re.M,
    )
    return {series: float(value) for series, value in found}


def test_every_reply_is_shown() -> None:
    counts, policy = Metrics(), load(None)
    for body in (ALLOWED, DENIED, ALLOWED):
        counts.replied(respond(body, policy, NOW), body, {}, 0.001)
    labels = 'event="create",operation="CREATE",resource="leases",verdict='
    assert counted(counts) == {
        f'lease_webhook_reviews_total{{{labels}"allowed"}}': 2,
        f'lease_webhook_reviews_total{{{labels}"denied"}}': 1,
        "lease_webhook_review_duration_seconds_count": 3,
    }


def test_what_waits_is_bounded_where_nobody_flushes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MOST_TO_ADD", 5)
    counts, reply = Metrics(), respond(ALLOWED, load(None), NOW)
    for _ in range(12):
        counts.replied(reply, ALLOWED, {}, 0.001)
        assert len(counts._to_add) < 5
    assert counted(counts)["lease_webhook_review_duration_seconds_count"] == 12


def test_a_name_that_a_client_invented_is_no_label() -> None:
    counts = Metrics()
    body = to_bytes(
        make_review(
            put("request.resource.resource", "x" * 50), put("request.kind.kind", "X"), drop("request.kind.group")
        )
    )
    counts.replied(respond(body, load(None), NOW), body, {}, 0.001)
    assert [series for series in counted(counts) if "xxx" in series] == []
