"""Counts: every response, every series from the start, and no series that a client invents."""

import re
from itertools import product
from pathlib import Path

import pytest
from cryptography import x509

from tests.factories import drop, make_lease, make_review, put, to_bytes
from tests.server.conftest import Start
from tests.server.harness import ROOT, make_certificates
from webhook.admission.policy.file import load
from webhook.admission.policy.parse import parse
from webhook.server import metrics
from webhook.server.certificate_reload import CertificateReloader
from webhook.server.metrics import BUCKETS, KINDS_OF_REFUSAL, Metrics
from webhook.server.reviewer import ReviewRecord, respond

RECORDINGS = sorted((ROOT / "tests" / "data" / "recordings").rglob("*.json"))

NOW = 1_763_640_002_000_000
ALLOWED = to_bytes(make_review())
DENIED = to_bytes(make_review(new=make_lease(put("spec.leaseDurationSeconds", 0))))


def counted(metrics: Metrics) -> dict[str, float]:
    samples = re.findall(
        r"^(lease_webhook_reviews_total\{.*\}|lease_webhook_review_duration_seconds_count) (\S+)$",
        metrics.render().decode(),
        re.M,
    )
    return {series: float(value) for series, value in samples}


def test_every_response_is_shown() -> None:
    counts, policy = Metrics(), load(None)
    for body in (ALLOWED, DENIED, ALLOWED):
        counts.record(ReviewRecord(respond(body, policy, NOW), body, {}, 0.001))
    labels = 'event="create",operation="CREATE",resource="leases",verdict='
    assert {series: value for series, value in counted(counts).items() if value} == {
        f'lease_webhook_reviews_total{{{labels}"allowed"}}': 2,
        f'lease_webhook_reviews_total{{{labels}"denied"}}': 1,
        "lease_webhook_review_duration_seconds_count": 3,
    }


def test_what_waits_is_bounded_without_a_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MAX_REVIEWS_WAITING", 5)
    counts, response = Metrics(), respond(ALLOWED, load(None), NOW)
    for _ in range(12):
        counts.record(ReviewRecord(response, ALLOWED, {}, 0.001))
        assert len(counts._waiting) < 5
    assert counted(counts)["lease_webhook_review_duration_seconds_count"] == 12


def test_a_name_that_a_client_invented_is_no_label() -> None:
    counts = Metrics()
    body = to_bytes(
        make_review(
            put("request.resource.resource", "x" * 50), put("request.kind.kind", "X"), drop("request.kind.group")
        )
    )
    counts.record(ReviewRecord(respond(body, load(None), NOW), body, {}, 0.001))
    assert [series for series in counted(counts) if "xxx" in series] == []


def series(metrics: Metrics) -> set[str]:
    lines = metrics.render().decode().splitlines()
    return {line.rpartition(" ")[0] for line in lines if line.startswith("lease_webhook_") and "_created" not in line}


def test_every_counter_is_there_before_the_first_event() -> None:
    """An alert on `increase(...)` misses a series that appears with its first event."""
    begun = series(Metrics())
    text = (ROOT / "deploy" / "components" / "monitoring" / "prometheus-rule.yaml").read_text()
    text += (ROOT / "deploy" / "components" / "monitoring" / "dashboard.json").read_text()
    # Those of the recorder are its own.
    counters = set(re.findall(r"lease_webhook_(?!leader_)\w+(?:_total|_bucket)", text))
    assert len(counters) == 8
    assert counters <= {name.partition("{")[0] for name in begun}


def test_recorded_reviews_and_refused_requests_add_no_series() -> None:
    counts, policy = Metrics(), load(None)
    begun = series(counts)
    for recording in RECORDINGS:
        body = recording.read_bytes()
        counts.record(ReviewRecord(respond(body, policy, NOW), body, {}, 0.001))
    for body in (b"", b"{}", b"[1]", b'{"kind":"AdmissionReview"}'):
        counts.record(ReviewRecord(respond(body, policy, NOW), body, {}, 0.001))
    for kind in KINDS_OF_REFUSAL:
        counts.count("malformed", kind)
    for kind in ("bug", "deadline-exceeded"):
        counts.count("incidents", kind)
    for what, result in product(("certificate", "policy"), ("success", "failure")):
        counts.count("reloads", what, result)
    for what in ("log", "capture"):
        counts.show_dropped(what, 3)
    assert series(counts) == begun


def test_the_kinds_of_refused_requests_are_those_of_the_page() -> None:
    (line,) = re.findall(r".*lease_webhook_malformed_total. \| .class.*", (ROOT / "docs" / "operate.md").read_text())
    kinds = {"framing", "head-size", "slow", "method", "expectation", "client", "bug"}
    assert {*KINDS_OF_REFUSAL} == kinds | {"path", "media-type", "body-size", "body", "other"}
    assert {*re.findall(r"`([a-z-]+)`", line.rpartition(":")[2])} == {*KINDS_OF_REFUSAL}


def test_the_kill_switch_is_a_label_of_the_policy() -> None:
    counts = Metrics()
    counts.show_policy(parse('apiVersion: lease-webhook/v1\npreset: standard\nmode: "off"\n'))
    (series_name,) = [name for name in series(counts) if "policy_info" in name]
    assert 'mode="off"' in series_name
    assert 'preset="standard"' in series_name


def test_buckets_fit_a_service_of_a_fifth_of_a_millisecond() -> None:
    assert {0.001, 0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0} < set(BUCKETS)
    assert len([bound for bound in BUCKETS if bound < 0.001]) >= 3


def test_the_end_of_the_authority_is_shown_beside_that_of_the_certificate(tmp_path: Path) -> None:
    make_certificates(tmp_path / "certs")
    counts, certificates = Metrics(), CertificateReloader(tmp_path / "certs", tmp_path)
    certificates.start()
    assert certificates.current
    counts.show_certificate(certificates.current)
    ends = dict(re.findall(r'not_after_seconds\{certificate="(\w+)"\} (\S+)', counts.render().decode()))
    authority = x509.load_pem_x509_certificate((tmp_path / "certs" / "ca.crt").read_bytes())
    assert float(ends["ca"]) == authority.not_valid_after_utc.timestamp()
    assert float(ends["serving"]) < float(ends["ca"])


def test_a_certificate_without_its_authority_shows_no_end_of_one(tmp_path: Path) -> None:
    make_certificates(tmp_path / "certs")
    (tmp_path / "certs" / "ca.crt").unlink()
    counts, certificates = Metrics(), CertificateReloader(tmp_path / "certs", tmp_path)
    certificates.start()
    assert certificates.current
    counts.show_certificate(certificates.current)
    assert 'certificate="ca"' not in counts.render().decode()


def test_workers_together_show_every_series_before_the_first_event(start: Start, tmp_path: Path) -> None:
    make_certificates(tmp_path)
    with start(tmp_path, workers=2) as server:
        status, text = server.probe("/metrics")
    names = {line.rpartition(" ")[0] for line in text.splitlines() if line.startswith("lease_webhook_")}
    assert status == 200
    assert {name for name in series(Metrics()) if "_total{" in name} <= names
    assert 'lease_webhook_incidents_total{kind="bug"} 0.0' in text
    assert 'lease_webhook_certificate_not_after_seconds{certificate="ca"}' in text
    assert 'mode="deny"' in text
