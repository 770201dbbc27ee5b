"""docs/flask.md as it stands: the service under a plain gunicorn with threads, over TLS."""

import http.client
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.recordings import recordings
from tests.server.connections import REVIEW
from tests.server.harness import PATIENCE, client_context, make_certificates, running, wait_until
from webhook.api.request import MAX_REQUEST
from webhook.api.review import OPENING
from webhook.server.settings import Guards

DOCUMENT = (Path(__file__).parents[2] / "docs" / "flask.md").read_text()
BODY = REVIEW.partition(b"\r\n\r\n")[2]
COMMAND = re.search(r"```sh\n(LEASE_WEBHOOK_POLICY=\S+) gunicorn (.*?)```", DOCUMENT, re.DOTALL)


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
        wait_until(lambda: _answers(port, directory) or process.poll() is not None, "gunicorn to serve")
        assert process.poll() is None
        yield port, directory
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0


def ask(service: tuple[int, Path], method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
    port, directory = service
    context = client_context(directory / "ca.crt")
    connection = http.client.HTTPSConnection("localhost", port, timeout=PATIENCE, context=context)
    try:
        connection.request(method, path, body or None, {"Content-Type": "application/json"})
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


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/livez", 200),
        ("GET", "/readyz", 200),
        ("GET", "/metrics", 200),
        ("GET", "/validate", 405),
        ("POST", "/validate/", 404),
    ],
)
def test_the_other_routes(service: tuple[int, Path], method: str, path: str, status: int) -> None:
    assert ask(service, method, path)[0] == status


def test_every_recorded_review_gets_the_bytes_of_our_own_server(service: tuple[int, Path], tmp_path: Path) -> None:
    make_certificates(tmp_path)
    with running(tmp_path, policy="strict") as ours:
        for recording in recordings():
            # Some texts say how long ago something was.
            same = (
                ask(service, "POST", "/validate?timeout=10s", recording.body) == ours.post(recording.body)
                for _ in range(3)
            )
            assert any(same), recording.file


@pytest.mark.parametrize(
    ("size", "beginning", "status"),
    [
        pytest.param(MAX_REQUEST, b"{ ", 400, id="any form up to the size of a request"),
        pytest.param(MAX_REQUEST + 1, b"{ ", 413, id="another form"),
        pytest.param(MAX_REQUEST + 1, OPENING, 400, id="the form of an API server"),
    ],
)
def test_sizes_are_limited_as_on_our_own_server(
    service: tuple[int, Path], tmp_path: Path, size: int, beginning: bytes, status: int
) -> None:
    assert ask(service, "POST", "/validate", beginning.ljust(size))[0] == status
    make_certificates(tmp_path)
    with running(tmp_path) as ours:
        assert ours.post(beginning.ljust(size), "/validate")[0] == status


def test_a_body_that_is_too_large_is_refused_before_it_is_sent(service: tuple[int, Path]) -> None:
    port, directory = service
    context = client_context(directory / "ca.crt")
    connection = http.client.HTTPSConnection("localhost", port, timeout=PATIENCE, context=context)
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
