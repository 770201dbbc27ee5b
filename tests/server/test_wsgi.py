"""docs/flask.md as it stands: the service under a plain gunicorn with threads, over TLS."""

import http.client
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.recordings import recordings
from tests.server.connections import REVIEW
from tests.server.harness import client_context, make_certificates, running
from tests.server.test_reviews_over_tls import check
from tests.waiting import PATIENCE, wait_for
from webhook.api.request import MAX_REQUEST
from webhook.api.review import OPENING
from webhook.policy_file import load
from webhook.server.settings import Guards

DOCUMENT = (Path(__file__).parents[2] / "docs" / "flask.md").read_text()
JSON = {"Content-Type": "application/json"}
STRICT = load("strict")
BODY = REVIEW.partition(b"\r\n\r\n")[2]
COMMAND = re.search(r"```sh [^\n]*\n(LEASE_WEBHOOK_POLICY=\S+) gunicorn (.*?)```", DOCUMENT, re.DOTALL)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    """The port, and the directory of the certificates."""
    directory = tmp_path_factory.mktemp("wsgi")
    make_certificates(directory)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert COMMAND, "the command of the document"
    name, _, policy = COMMAND[1].partition("=")
    arguments = COMMAND[2].replace("\\\n", " ").replace("'", "").replace("certs/", f"{directory}/").split()
    arguments = [argument.replace("0.0.0.0:8443", f"127.0.0.1:{port}") for argument in arguments]
    process = subprocess.Popen(
        [sys.executable, "-m", "gunicorn", "--no-control-socket", *arguments],
        env=os.environ | {name: policy},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for("gunicorn to serve", lambda: _answers(port, directory) or process.poll() is not None)
        assert process.poll() is None
        yield port, directory
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0


def connect(service: tuple[int, Path]) -> http.client.HTTPSConnection:
    port, directory = service
    context = client_context(directory / "ca.crt")
    return http.client.HTTPSConnection("localhost", port, timeout=PATIENCE, context=context)


def ask(service: tuple[int, Path], method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
    connection = connect(service)
    try:
        connection.request(method, path, body or None, JSON)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def test_reviews_are_evaluated_by_the_policy_of_the_variable(service: tuple[int, Path]) -> None:
    for path in ("/validate?timeout=10s", "/validate-coordination-k8s-io-v1-lease"):
        status, body = ask(service, "POST", path, BODY)
        assert status == 200
        assert b'"allowed":true' in body
        assert b'"policy":"strict ' in body


def test_every_recorded_review_gets_the_bytes_of_our_own_server(service: tuple[int, Path]) -> None:
    """Compare with those in process: tests/server/test_reviews_over_tls.py."""
    connection = connect(service)
    for recording in recordings():
        since = time.time_ns() // 1000
        connection.request("POST", "/validate?timeout=10s", recording.body, JSON)
        response = connection.getresponse()
        check(response.status, response.read(), recording.body, since, STRICT)
    connection.close()


def test_sizes_are_limited_as_on_our_own_server(service: tuple[int, Path], tmp_path: Path) -> None:
    make_certificates(tmp_path)
    with running(tmp_path) as ours:
        for size, beginning, status in (
            (MAX_REQUEST, b"{ ", 400),  # any form up to the size of a request
            (MAX_REQUEST + 1, b"{ ", 413),  # another form
            (MAX_REQUEST + 1, OPENING, 400),  # the form of an API server
        ):
            body = beginning.ljust(size)
            assert ask(service, "POST", "/validate", body)[0] == ours.post(body, "/validate")[0] == status


def test_a_body_that_is_too_large_is_refused_before_it_is_sent(service: tuple[int, Path]) -> None:
    connection = connect(service)
    connection.putrequest("POST", "/validate")
    connection.putheader("Content-Length", str(Guards().max_body + 1))
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()


def _answers(port: int, directory: Path) -> bool:
    try:
        return ask((port, directory), "GET", "/livez")[0] == 200
    except (OSError, ssl.SSLError, http.client.HTTPException):
        return False
