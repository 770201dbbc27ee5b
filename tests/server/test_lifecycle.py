"""Starting, stopping and starting again: no review that reached us is lost."""

import http.client
import os
import signal
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.factories import UID
from tests.server.conftest import Start
from tests.server.harness import Server, make_certificates
from tests.server.test_reviewer import DENIED
from tests.server.traffic import HEADERS, REVIEW, Traffic
from tests.waiting import wait_for
from webhook.server.settings import GRACEFUL_SECONDS

BUSY = {"workers": 2, "guards": {"drain_seconds": 1.0}}


@pytest.fixture
def tls_dir(tmp_path: Path) -> Path:
    make_certificates(tmp_path / "tls")
    return tmp_path / "tls"


def test_sigterm_loses_nothing_on_open_connections(start: Start, tls_dir: Path) -> None:
    with start(tls_dir, **BUSY) as server, Traffic(server) as traffic:
        wait_for("some traffic", lambda: traffic.answered > 200)
        assert server.stop() == 0
    assert traffic.lost == []
    assert traffic.refused > 0


@pytest.mark.parametrize("name", ["SIGINT", "SIGQUIT"])
def test_a_quick_stop_of_the_master_alone_ends_the_workers_without_killing_them(
    start: Start, tls_dir: Path, name: str
) -> None:
    with start(tls_dir, **BUSY) as server:
        server.process.send_signal(signal.Signals[name])
        assert server.stop() == 0
    assert [line for line in server.lines if "SIGKILL" in line["message"]] == []


def test_sigterm_answers_one_more_request_on_an_idle_connection(start: Start, tls_dir: Path) -> None:
    with start(tls_dir, **BUSY) as server:
        connection = server.connect()
        connection.request("POST", "/validate", REVIEW, HEADERS)
        assert connection.getresponse().read()
        server.process.send_signal(signal.SIGTERM)
        wait_for("the port to close", lambda: _refuses(server))
        connection.request("POST", "/validate", REVIEW, HEADERS)
        answer = connection.getresponse()
        assert (answer.status, answer.getheader("connection")) == (200, "close")
        answer.read()
        connection.close()


def test_sigterm_loses_no_line_about_a_denial(start: Start, tls_dir: Path) -> None:
    uids = [f"{number}" for number in range(500)]
    with start(tls_dir, workers=1) as server:
        connection = server.connect()
        for uid in uids:
            connection.request("POST", "/validate", DENIED.replace(UID.encode(), uid.encode()), HEADERS)
            connection.getresponse().read()
        connection.close()
        assert server.stop() == 0
    assert [line["uid"] for line in server.said("denied")] == uids


def test_an_idle_connection_does_not_hold_the_exit(start: Start, tls_dir: Path) -> None:
    with start(tls_dir, **BUSY) as server:
        connection = server.connect()
        connection.connect()
        assert server.stop(GRACEFUL_SECONDS / 2) == 0
        connection.close()


def test_what_a_worker_counted_last_outlives_it(start: Start, tls_dir: Path) -> None:
    with start(tls_dir, workers=1, guards={"drain_seconds": 0.3}) as server:
        assert server.post(REVIEW)[0] == 200
        before = server.workers()
        server.process.send_signal(signal.SIGHUP)
        wait_for("a new worker", lambda: server.workers() and not set(before) & set(server.workers()))
        wait_for("the old one's count", lambda: server.metric("lease_webhook_review_duration_seconds_count") == 1)


def test_sighup_replaces_the_workers_and_loses_nothing(start: Start, tls_dir: Path) -> None:
    with start(tls_dir, **BUSY) as server:
        before = set(server.workers())
        with Traffic(server, pause=0.005) as kept, Traffic(server, threads=2, pause=0.05, keep=False) as fresh:
            wait_for("some traffic", lambda: kept.answered > 100)
            server.process.send_signal(signal.SIGHUP)
            wait_for("new workers", lambda: not before & set(server.workers()))
            answered = kept.answered
            wait_for("traffic on the new workers", lambda: kept.answered > answered + 100)
        assert kept.lost == fresh.lost == []
        assert kept.refused == fresh.refused == 0
        assert fresh.handshakes_failed == []


def test_a_killed_worker_is_replaced_and_its_gauges_are_forgotten(start: Start, tls_dir: Path) -> None:
    with start(tls_dir, workers=2) as server:
        victim = server.workers()[0]
        os.kill(victim, signal.SIGKILL)
        server.wait_for_line("policy in use", 3)
        assert server.post(REVIEW)[0] == 200
        assert server.metric(f'lease_webhook_build_info{{version="{version("lease-webhook")}"}}') == 1
        assert server.metric("lease_webhook_in_flight") == 0


def test_a_worker_that_starts_while_the_certificate_is_broken_serves_the_last_good_one(
    start: Start, tls_dir: Path
) -> None:
    with start(tls_dir, workers=1) as server:
        (tls_dir / "tls.crt").write_text("broken")
        os.kill(server.workers()[0], signal.SIGKILL)
        server.wait_for_line("policy in use", 2)
        assert server.post(REVIEW)[0] == 200
        status, why = server.probe("/readyz")
        assert status == 200, why


def _refuses(server: Server) -> bool:
    connection = server.connect()
    try:
        connection.connect()
    except (ConnectionRefusedError, ConnectionResetError):
        return True
    except http.client.HTTPException:
        return False
    connection.close()
    return False
