"""The worker serves any WSGI application, in every form that PEP 3333 allows, with the same limits for clients."""

import http.client
import socket
import ssl
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.harness import client_context, make_certificates
from tests.waiting import PATIENCE, wait_for

APPLICATION = """
import threading, time
from wsgiref.validate import validator

told = []

def echo(environ, start_response):
    body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"] or 0))
    start_response("200 Fine", [("Content-Type", "text/plain"), ("X-Twice", "a"), ("X-Twice", "b")])
    names = ("REQUEST_METHOD", "PATH_INFO", "QUERY_STRING", "wsgi.url_scheme", "REMOTE_ADDR")
    facts = [environ[name] for name in names]
    return [" ".join(facts).encode("latin-1"), b"\\n", body, b"\\n", environ.get("HTTP_X_A", "").encode("latin-1")]

def blocks(environ, start_response):
    "Starts its response with its first block, and tells when it is closed."
    def produce():
        start_response("200 OK", [("Content-Type", "text/plain")])
        try:
            yield b""
            yield b"first\\n"
            time.sleep(0.5)
            yield b"second\\n"
        finally:
            told.append("closed")
    return produce()

def threads(environ, start_response):
    "All of one response is made in one thread."
    names = {threading.get_ident()}
    def produce():
        for _ in range(5):
            names.add(threading.get_ident())
            yield b"x"
        yield str(len(names)).encode()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return produce()

def length(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "6")])
    return iter([b"abc", b"def"])

def too_long(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "4")])
    return iter([b"abc", b"def"])

def write(environ, start_response):
    write = start_response("200 OK", [("Content-Type", "text/plain")])
    write(b"written ")
    write(b"and ")
    return [b"returned"]

def empty(environ, start_response):
    start_response("204 No Content", [])
    return []

def second_thoughts(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    try:
        raise RuntimeError("put in by a test")
    except RuntimeError:
        import sys
        start_response("418 I'm a Teapot", [("Content-Type", "text/plain")], sys.exc_info())
    return [b"short and stout"]

def bug(environ, start_response):
    raise RuntimeError("put in by a test")

def late_bug(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    yield b"before"
    raise RuntimeError("put in by a test")

def injected(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain"), ("X-A", "a\\r\\nSet-Cookie: b")])
    return [b""]

def silent(environ, start_response):
    return [b"no head"]

def endless(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    try:
        while True:
            yield b"x" * 65536
    finally:
        told.append("ended")

def slow(environ, start_response):
    time.sleep(3)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"late"]

def telling(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [" ".join(told).encode()]

ROUTES = {"/" + function.__name__: function for function in (
    echo, blocks, threads, length, too_long, write, empty, second_thoughts, bug, late_bug, injected, silent, endless,
    slow, telling)}
CHECKED = {path: validator(function) for path, function in ROUTES.items()}

def application(environ, start_response):
    path = environ["PATH_INFO"]
    routes = CHECKED if environ["QUERY_STRING"] == "checked" else ROUTES
    return routes.get(path, echo)(environ, start_response)
"""
CONFIGURATION = """
from webhook.server.settings import Guards
from webhook.server.worker import GuardedWorker

class worker_class(GuardedWorker):
    guards = Guards(request_seconds=1.5, handshake_seconds=1.0)

threads = 4
loglevel = "error"
control_socket_disable = True
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    """A port, and the directory of the certificates and of stderr."""
    directory = tmp_path_factory.mktemp("any")
    make_certificates(directory / "tls")
    (directory / "foreign.py").write_text(textwrap.dedent(APPLICATION))
    (directory / "gunicorn.conf.py").write_text(CONFIGURATION)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [
        sys.executable, "-m", "gunicorn", "--chdir", str(directory), "-c", str(directory / "gunicorn.conf.py"),
        "-b", f"127.0.0.1:{port}", "--certfile", "tls/tls.crt", "--keyfile", "tls/tls.key", "foreign:application",
    ]  # fmt: skip
    with (directory / "stderr").open("wb") as stderr:
        process = subprocess.Popen(command, cwd=directory, stdout=stderr, stderr=stderr)
    try:
        wait_for("the server", lambda: _answers((port, directory)) or process.poll() is not None)
        assert process.poll() is None, (directory / "stderr").read_text()
        yield port, directory
    finally:
        process.terminate()
        assert process.wait(PATIENCE) == 0


def _answers(address: tuple[int, Path]) -> bool:
    try:
        return get(address, "/echo")[0] == 200
    except (OSError, http.client.HTTPException):
        return False


def connect(address: tuple[int, Path]) -> http.client.HTTPSConnection:
    port, directory = address
    context = client_context(directory / "tls" / "ca.crt")
    return http.client.HTTPSConnection("localhost", port, timeout=PATIENCE, context=context)


def get(
    address: tuple[int, Path], path: str, method: str = "GET", body: bytes | None = None
) -> tuple[int, http.client.HTTPMessage, bytes]:
    connection = connect(address)
    try:
        connection.request(method, path, body)
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def wire(address: tuple[int, Path]) -> ssl.SSLSocket:
    port, directory = address
    context = client_context(directory / "tls" / "ca.crt")
    return context.wrap_socket(socket.create_connection(("127.0.0.1", port), PATIENCE), server_hostname="localhost")


def complaints(address: tuple[int, Path]) -> str:
    return (address[1] / "stderr").read_text()


@pytest.mark.parametrize(
    "path", ["/echo", "/blocks", "/threads", "/length", "/write", "/empty", "/second_thoughts", "/telling"]
)
@pytest.mark.parametrize("method", ["GET", "POST", "HEAD"])
def test_the_validator_of_the_standard_library_has_no_complaint(
    address: tuple[int, Path], path: str, method: str
) -> None:
    before = complaints(address).count("AssertionError")
    status, _, _ = get(address, f"{path}?checked", method, b"body" if method == "POST" else None)
    assert status in {200, 204, 418}
    assert complaints(address).count("AssertionError") == before


def test_an_environ_has_what_was_sent(address: tuple[int, Path]) -> None:
    connection = connect(address)
    connection.putrequest("POST", "/echo/%C3%A9?a=%20b")
    for name, value in (("X-A", "1"), ("X-A", "2"), ("X_A", "spoofed"), ("Content-Length", "4")):
        connection.putheader(name, value)
    connection.endheaders(b"body")
    response = connection.getresponse()
    assert response.headers.get_all("X-Twice") == ["a", "b"]
    assert response.reason == "Fine"
    assert response.read().decode() == "POST /echo/é a=%20b https 127.0.0.1\nbody\n1,2"
    connection.close()


def test_each_block_is_sent_before_the_next_is_made(address: tuple[int, Path]) -> None:
    with wire(address) as connection:
        began = time.monotonic()
        connection.sendall(b"GET /blocks HTTP/1.1\r\nHost: a\r\n\r\n" + b"GET /echo HTTP/1.1\r\nHost: a\r\n\r\n")
        heard = b""
        while b"first" not in heard:
            heard += connection.recv(65536)
        assert time.monotonic() - began < 0.45
        assert b"second" not in heard
        while b"/echo" not in heard:
            heard += connection.recv(65536)
        assert b"transfer-encoding: chunked\r\n" in heard
        assert heard.index(b"second\n\r\n0\r\n\r\n") < heard.index(b"HTTP/1.1 200 Fine")
    assert b"closed" in get(address, "/telling")[2]


def test_the_blocks_of_a_response_to_http_1_0_end_with_the_connection(address: tuple[int, Path]) -> None:
    with wire(address) as connection:
        connection.sendall(b"GET /blocks HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        heard = b""
        while piece := connection.recv(65536):
            heard += piece
    head, _, body = heard.partition(b"\r\n\r\n")
    assert b"connection: close" in head
    assert b"chunked" not in head
    assert body == b"first\nsecond\n"


@pytest.mark.parametrize(
    ("path", "status", "body"),
    [
        pytest.param("/threads", 200, b"xxxxx1", id="one thread for one response"),
        pytest.param("/length", 200, b"abcdef", id="blocks with a length"),
        pytest.param("/write", 200, b"written and returned", id="write"),
        pytest.param("/empty", 204, b"", id="no content"),
        pytest.param("/second_thoughts", 418, b"short and stout", id="a second head, with its reason"),
        pytest.param("/bug", 500, b"internal server error\n", id="a bug"),
        pytest.param("/injected", 500, b"internal server error\n", id="a line break in a header"),
        pytest.param("/silent", 500, b"internal server error\n", id="no head"),
        pytest.param("/slow", 503, b"the response took too long\n", id="a response that takes too long"),
    ],
)
def test_each_form_of_a_response_arrives_whole(address: tuple[int, Path], path: str, status: int, body: bytes) -> None:
    answered, headers, text = get(address, path)
    assert (answered, text) == (status, body)
    if path == "/length":
        assert headers["Content-Length"] == "6"
        assert headers["Transfer-Encoding"] is None


@pytest.mark.parametrize("path", ["/late_bug", "/too_long"])
def test_a_response_that_fails_in_its_middle_is_cut_off(address: tuple[int, Path], path: str) -> None:
    connection = connect(address)
    connection.request("GET", path)
    response = connection.getresponse()
    with pytest.raises((http.client.HTTPException, ConnectionError, ssl.SSLError)):
        response.read()
    connection.close()


def test_a_client_that_does_not_read_is_cut_off_and_its_application_ends(address: tuple[int, Path]) -> None:
    ends = get(address, "/telling")[2].count(b"ended")
    connections = [wire(address) for _ in range(3)]
    for connection in connections:
        connection.sendall(b"GET /endless HTTP/1.1\r\nHost: a\r\n\r\n")
    wait_for("the applications to end", lambda: get(address, "/telling")[2].count(b"ended") == ends + 3)
    for connection in connections:
        connection.close()


def test_slow_clients_hold_no_thread(address: tuple[int, Path]) -> None:
    slow = [wire(address) for _ in range(20)]
    for connection in slow:
        connection.sendall(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nx")
    assert get(address, "/echo")[0] == 200
    assert slow[0].recv(12) == b"HTTP/1.1 408"
    for connection in slow:
        connection.close()


def test_a_new_certificate_is_served(address: tuple[int, Path]) -> None:
    with wire(address) as before:
        old = before.getpeercert(binary_form=True)
    make_certificates(address[1] / "tls")
    seen = []

    def is_new() -> bool:
        try:
            with wire(address) as connection:
                seen.append(connection.getpeercert(binary_form=True))
        except ssl.SSLError:
            return False
        return seen[-1] != old

    wait_for("the new certificate", is_new)
