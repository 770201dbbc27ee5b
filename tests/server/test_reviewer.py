"""What surrounds the pure function: time, bugs, media types, observers, log lines."""

import json
import logging
import os
import threading
import time
from collections.abc import Mapping
from typing import Any

import pytest

from tests.factories import make_lease, make_review, put
from tests.waiting import wait_for
from webhook.admission.policy.file import load
from webhook.admission.policy.model import Policy
from webhook.server import logs
from webhook.server.http.wsgi import BEGAN
from webhook.server.logs import STDOUT, LogThrottle, StdoutHandler
from webhook.server.reviewer import (
    Observer,
    Respond,
    Reviewer,
    ReviewRecord,
    ReviewResponse,
    check_media_type,
    read_timeout,
    respond,
)
from webhook.server.verdict_log import ReviewLog

STANDARD = load(None)
JSON = {"CONTENT_TYPE": "application/json"}
REVIEW = json.dumps(make_review(new=make_lease())).encode()
DENIED = json.dumps(make_review(new=make_lease(put("spec.leaseDurationSeconds", -1)))).encode()


def review(
    body: bytes,
    query: str = "",
    headers: Mapping[str, str] = JSON,
    *observers: Observer,
    late: float = 0,
    respond: Respond = respond,
) -> tuple[int, bytes]:
    environ = {**headers, "QUERY_STRING": query, BEGAN: time.monotonic() - late}
    response = Reviewer(STANDARD, observers, respond).review(body, environ)
    return response.status, response.body


def raises(body: bytes, policy: Policy, now: int) -> ReviewResponse:
    raise RecursionError("deep inside")


@pytest.mark.parametrize(
    ("query", "seconds"),
    [
        pytest.param("timeout=2s", 2, id="what is granted"),
        pytest.param("timeout=1s", 1, id="the least that an API server grants"),
        pytest.param("timeout=0s", 1, id="zero"),
        pytest.param("timeout=-5s", 10, id="negative is invalid"),
        pytest.param("timeout=999s", 30, id="never more than an API server waits"),
        pytest.param("", 10, id="missing"),
        pytest.param("a=b&timeout=3s&c=d", 3, id="among others"),
        pytest.param("xtimeout=3s", 10, id="another parameter's end"),
        pytest.param("timeout=1m0s", 10, id="minutes are never sent"),
        pytest.param("timeout=3s&timeout=9s", 3, id="the first counts"),
    ],
)
def test_the_time_that_a_query_grants(query: str, seconds: int) -> None:
    assert read_timeout(query) == seconds


@pytest.mark.parametrize(
    ("query", "late"),
    [
        pytest.param("timeout=1s", 0.5, id="in the only second"),
        pytest.param("timeout=2s", 1.5, id="in the last second"),
        pytest.param("", 9.5, id="in the last second of the default"),
    ],
)
def test_a_denial_that_is_ready_before_the_api_server_stops_waiting_is_sent(query: str, late: float) -> None:
    status, body = review(DENIED, query, late=late)
    assert status == 200
    assert json.loads(body)["response"]["allowed"] is False


def test_unsupported_names_the_way_out() -> None:
    assert check_media_type({}) == "send the review as Content-Type: application/json"
    assert check_media_type({**JSON, "HTTP_CONTENT_ENCODING": "gzip"}) == "send the review without Content-Encoding"
    assert check_media_type({"CONTENT_TYPE": "application/json; charset=utf-16"}) == "send the review in UTF-8"


def test_a_bug_is_a_500_with_an_incident_and_no_trace(caplog: pytest.LogCaptureFixture) -> None:
    status, text = review(REVIEW, respond=raises)
    assert status == 500
    incident = text.decode().strip().rpartition(" ")[2]
    assert b"deep inside" not in text
    record = next(record for record in caplog.records if record.message == "internal error")
    assert getattr(record, "fields")["incident"] == incident  # noqa: B009 - `extra` puts it there
    assert "deep inside" in STDOUT.format(record)


def test_no_time_left_before_and_after(caplog: pytest.LogCaptureFixture) -> None:
    assert review(REVIEW, "timeout=2s", late=2.5)[0] == 500

    def late(body: bytes, policy: Policy, now: int) -> ReviewResponse:
        time.sleep(1.1)
        return respond(body, policy, now)

    assert review(REVIEW, "timeout=1s", respond=late)[0] == 500
    assert [record.message for record in caplog.records] == ["deadline exceeded"] * 2
    assert not any(record.exc_info for record in caplog.records)


def test_an_observer_that_fails_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def broken(record: ReviewRecord) -> None:
        raise ValueError(f"broken by {len(record.body)} bytes")

    seen: list[tuple[int, str]] = []

    def keep(record: ReviewRecord) -> None:
        seen.append((record.response.status, record.response.incident))

    assert review(REVIEW, "", JSON, broken, keep) == review(REVIEW)
    assert "a verdict could not be recorded" in caplog.text
    assert review(REVIEW, "", JSON, broken, keep, late=20)[0] == 500
    assert seen == [(200, ""), (500, "deadline-exceeded")]


def test_only_denials_and_warnings_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    review(REVIEW, "", JSON, ReviewLog().record)
    assert caplog.records == []
    review(DENIED, "", JSON, ReviewLog().record)
    line = json.loads(STDOUT.format(caplog.records[0]))
    assert (line["level"], line["message"], line["namespace"], line["name"]) == (
        "warning",
        "denied",
        "shop",
        "checkout",
    )
    assert line["code"] == 422
    assert "=deny" in line["rules"]
    assert {"uid", "operation", "event", "user", "reason", "milliseconds"} <= line.keys()


def test_a_body_that_no_api_server_sends_is_logged_with_its_user_once_a_second(
    caplog: pytest.LogCaptureFixture,
) -> None:
    deep = REVIEW.replace(b'"object":', b'"x":' + b"[" * 5000 + b"]" * 5000 + b',"object":', 1)
    log = ReviewLog().record
    assert [review(deep, "", JSON, log)[0] for _ in range(3)] == [400, 400, 400]
    (record,) = caplog.records
    line = json.loads(STDOUT.format(record))
    assert line["message"] == "refused a body that no API server sends"
    assert (line["user"], line["reason"]) == (
        "system:serviceaccount:shop:checkout",
        "the body is nested too deeply",
    )
    assert line["bytes"] == len(deep)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("two\nlines", id="a line break"),
        pytest.param("\x1b[31mred", id="a terminal's command"),
        pytest.param("right\u202eto left", id="an invisible turn"),
        pytest.param("\ud800", id="half a surrogate pair"),
    ],
)
def test_log_values_are_escaped(text: str) -> None:
    record = logging.makeLogRecord({"msg": "x", "fields": {"name": text}})
    line = STDOUT.format(record)
    assert line.isascii()
    assert line.isprintable()
    assert len(json.loads(STDOUT.format(logging.makeLogRecord({"msg": "y" * 9000})))["message"]) < 1100


def test_a_traceback_is_plain_but_for_its_line_breaks() -> None:
    bug = ValueError("a\x1b[31m\u202eb\x9b\ud800")
    record = logging.LogRecord("x", logging.ERROR, "x", 1, "bug", None, (ValueError, bug, None))
    lines = json.loads(STDOUT.format(record))["traceback"].splitlines()
    assert lines[-1] == "ValueError: a\\x1b[31m\\u202eb\\x9b\\ud800"


def test_the_handler_drops_what_the_pipe_does_not_take(tmp_path: Any) -> None:

    reader, writer = os.pipe()
    outlet = StdoutHandler(writer)
    for _ in range(2000):
        outlet.emit(logging.makeLogRecord({"msg": "z" * 500}))
    assert outlet.dropped > 0
    os.close(reader)
    os.close(writer)


def test_a_throttle_counts_what_it_drops() -> None:
    throttle = LogThrottle(10)
    assert [throttle.admit(now) for now in (0, 1, 2, 11, 12)] == [0, None, None, 2, None]


def lines_of(reader: int) -> list[str]:
    return [json.loads(line)["message"] for line in os.read(reader, 1 << 16).splitlines()]


def test_lines_are_written_together_and_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "WRITE_SECONDS", 0.3)
    reader, writer = os.pipe()
    outlet = StdoutHandler(writer)
    outlet.start()
    for message in ("first", "second", "third"):
        outlet.emit(logging.makeLogRecord({"msg": message}))
    assert lines_of(reader) == ["first", "second", "third"]
    outlet.emit(logging.makeLogRecord({"msg": "last"}))
    outlet.stop()
    assert lines_of(reader) == ["last"]
    outlet.emit(logging.makeLogRecord({"msg": "after the thread has ended"}))
    assert lines_of(reader) == ["after the thread has ended"]
    os.close(reader)
    os.close(writer)


def test_as_many_lines_wait_as_the_bound_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "WRITE_SECONDS", 60)
    reader, writer = os.pipe()
    outlet = StdoutHandler(writer)
    outlet.max_waiting = 3
    outlet.start()
    outlet.emit(logging.makeLogRecord({"msg": "taken"}))
    wait_for("the thread to take it", outlet.queue.empty)
    for number in range(5):
        outlet.emit(logging.makeLogRecord({"msg": str(number)}))
    assert outlet.dropped == 2
    outlet.stop()
    assert lines_of(reader) == ["taken", "0", "1", "2"]
    os.close(reader)
    os.close(writer)


def test_a_line_holds_no_text_as_long_as_its_client_likes() -> None:
    reader, writer = os.pipe()
    outlet = StdoutHandler(writer)
    outlet._thread = threading.current_thread()
    outlet.emit(logging.makeLogRecord({"msg": "x", "fields": {"user": "y" * 1_000_000}}))
    assert len(outlet.queue.get()) < 2000
    os.close(reader)
    os.close(writer)
