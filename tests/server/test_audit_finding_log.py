"""Findings of mode audit are logged, seldom, whatever names clients choose."""

import logging
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.factories import Document, changed, make_review, put, to_bytes
from tests.rules.findings import RIVAL, by_user, take, update, written
from tests.server.conftest import Start
from tests.server.harness import make_certificates
from webhook.admission.policy.model import Policy
from webhook.admission.policy.parse import parse
from webhook.server.logs import LogThrottle
from webhook.server.reviewer import ReviewRecord, respond
from webhook.server.verdict_log import SECONDS_BETWEEN_LINES, AuditFindingLog

NOW = 1_763_640_004_000_000
AUDIT = parse("apiVersion: lease-webhook/v1\npreset: strict\nmode: audit\n")
STEAL = update(
    written(take(RIVAL), put("spec.leaseTransitions", 6), at="2025-11-20T12:00:04Z"), review=[by_user("dev")]
)
"""One finding, takeover-before-expiry."""
TWO = changed(STEAL, put("request.object.spec.leaseDurationSeconds", 2_147_483_647))
"""That one and duration-too-long."""


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Logged:
    """An AuditFindingLog with a clock of its own, and the lines that it made."""

    def __init__(self, caplog: pytest.LogCaptureFixture, most: int = 1000) -> None:
        caplog.set_level(logging.INFO)
        self.clock = Clock()
        self._caplog = caplog
        self._log = AuditFindingLog(self.clock, most)

    def see(self, review: Document, policy: Policy = AUDIT) -> None:
        body = to_bytes(review)
        self._log.record(ReviewRecord(respond(body, policy, NOW), body, {}, 0.001))

    def lines(self, message: str = "audited") -> list[dict[str, Any]]:
        return [getattr(record, "fields") for record in self._caplog.records if record.message == message]  # noqa: B009 - `extra` puts it there


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Logged:
    return Logged(caplog)


def test_a_line_says_who_did_what(logged: Logged) -> None:
    logged.see(STEAL)
    (line,) = logged.lines()
    assert line["reason"].startswith('spec.holderIdentity: Forbidden: lease "shop/checkout" is held by ')
    assert {key: value for key, value in line.items() if key not in ("uid", "reason")} == {
        "operation": "UPDATE",
        "event": "steal",
        "resource": "leases",
        "namespace": "shop",
        "name": "checkout",
        "user": "dev",
        "code": 200,
        "rules": "takeover-before-expiry=audit",
        "more_since_last_line": 0,
    }


def test_a_write_without_findings_of_mode_audit_is_not_logged(logged: Logged) -> None:
    logged.see(make_review())
    logged.see(STEAL, parse("apiVersion: lease-webhook/v1\npreset: strict\n"))
    logged.see(make_review(put("request.operation", "PATCH")))
    logged.see({})
    assert logged.lines() == []


def test_findings_that_ride_on_a_denial_are_logged_too(logged: Logged) -> None:
    standard = parse("apiVersion: lease-webhook/v1\nrules: {takeover-before-expiry: {mode: audit}}\n")
    logged.see(TWO, standard)
    (line,) = logged.lines()
    assert (line["rules"], line["code"]) == ("takeover-before-expiry=audit", 422)


def test_one_line_a_minute_and_the_next_counts_the_others(logged: Logged) -> None:
    for _ in range(5):
        logged.see(STEAL)
        logged.clock.now += 10
    assert len(logged.lines()) == 1
    logged.clock.now = 1000 + SECONDS_BETWEEN_LINES - 0.001
    logged.see(STEAL)
    assert len(logged.lines()) == 1
    logged.clock.now = 1000 + SECONDS_BETWEEN_LINES
    logged.see(STEAL)
    logged.see(STEAL)
    assert [line["more_since_last_line"] for line in logged.lines()] == [0, 5]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(TWO, id="another rule"),
        pytest.param(changed(STEAL, by_user("eve")), id="another user"),
        pytest.param(
            changed(
                STEAL,
                *(put(f"request.{path}", "db") for path in ("name", "object.metadata.name", "oldObject.metadata.name")),
            ),
            id="another lease",
        ),
        pytest.param(
            changed(
                STEAL,
                *(
                    put(f"request.{path}", "bank")
                    for path in ("namespace", "object.metadata.namespace", "oldObject.metadata.namespace")
                ),
            ),
            id="another namespace",
        ),
    ],
)
def test_what_differs_has_a_line_of_its_own(other: Document, logged: Logged) -> None:
    logged.see(STEAL)
    logged.see(other)
    assert len(logged.lines()) == 2


def test_a_rule_that_found_much_in_one_write_has_one_line(logged: Logged) -> None:
    logged.see(changed(STEAL, put("request.object.metadata.labels", {f"-{number}": "" for number in range(30)})))
    assert [line["rules"] for line in logged.lines()] == ["object-metadata=audit", "takeover-before-expiry=audit"]
    assert '"-0"' in logged.lines()[0]["reason"]
    logged.clock.now += SECONDS_BETWEEN_LINES
    logged.see(STEAL)
    assert logged.lines()[-1]["more_since_last_line"] == 0


def test_a_flood_of_names_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    logged = Logged(caplog, most=3)
    for number in range(50):
        logged.see(changed(STEAL, by_user(f"user-{number}")))
    assert [line["user"] for line in logged.lines()] == ["user-0", "user-1", "user-2"]
    logged.clock.now += SECONDS_BETWEEN_LINES
    for number in range(50, 60):
        logged.see(changed(STEAL, by_user(f"user-{number}")))
    assert [line["user"] for line in logged.lines()][3:] == ["user-50", "user-51", "user-52"]


def test_long_names_take_no_memory() -> None:
    lines = LogThrottle(60, 100)
    for number in range(10_000):
        lines.admit(float(number) / 1000, hash(("x" * 10_000, str(number))))
    assert len(lines._lines) == 100
    assert sum(sys.getsizeof(item) for pair in lines._lines.items() for item in pair) < 20_000


def test_the_oldest_makes_room_first() -> None:
    lines = LogThrottle(60, 2)
    assert [lines.admit(now, key) for key, now in ((1, 0), (2, 10), (1, 60), (3, 65), (3, 70), (1, 80))] == [
        0,
        0,
        0,
        None,
        0,
        None,
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [pytest.param({}, 1, id="as shipped"), pytest.param({"audit_lines": False}, 0, id="turned off")],
)
def test_a_server_logs_them_unless_told_otherwise(
    start: Start, tmp_path: Path, options: dict[str, Any], expected: int
) -> None:
    make_certificates(tmp_path / "tls")
    policy = tmp_path / "policy.yaml"
    policy.write_text("apiVersion: lease-webhook/v1\npreset: strict\nmode: audit\n")
    with start(tmp_path / "tls", policy=str(policy), **options) as server:
        for _ in range(3):
            assert server.post(to_bytes(STEAL))[0] == 200
    assert len(server.said("audited")) == expected
    assert server.said("denied") == []
