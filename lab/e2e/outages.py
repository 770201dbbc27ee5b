"""Webhooks that fail, each in one of the ways that an outage has. All listen on loopback."""

import datetime as dt
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from webhook.certificates.issue import Issued, create_authority, issue_leaf, load_authority, save

TOO_SLOW_SECONDS = 30.0
NAME = "lease-webhook.lease-webhook.svc"


class _Server(ThreadingHTTPServer):
    """An HTTPS server that negotiates TLS in the thread of the connection: a client that refuses us blocks nobody."""

    daemon_threads = True
    context: ssl.SSLContext

    def get_request(self) -> tuple[Any, Any]:
        connection, address = super().get_request()
        return self.context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

    def handle_error(self, *_: object) -> None:
        """Ignore broken handshakes and connections, which are the purpose here; a thread that ends is enough."""


class _Answer500(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(500)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing: every write of the run would be a line."""


class _NeverInTime(_Answer500):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(TOO_SLOW_SECONDS)
        self.close_connection = True


@contextmanager
def start_outages(certs: Path, directory: Path) -> Iterator[dict[str, int]]:
    """Yield the ports by failure mode.

    `certs` holds the CA that the API server trusts; other certificates go to `directory`.
    """
    trusted, now = load_authority(certs), dt.datetime.now(dt.UTC)
    good = _issue_leaf(trusted, directory / "good", now)
    expired = _issue_leaf(trusted, directory / "expired", now - dt.timedelta(days=2))
    foreign = _issue_leaf(create_authority(now), directory / "foreign", now)
    with ExitStack() as stack:
        yield {
            "refused": stack.enter_context(_bind_closed_port()),
            "black-holed": stack.enter_context(_open_black_hole()),
            "http-500": stack.enter_context(_serve(_Answer500, good)),
            "too-slow": stack.enter_context(_serve(_NeverInTime, good)),
            "expired-certificate": stack.enter_context(_serve(_Answer500, expired)),
            "foreign-certificate": stack.enter_context(_serve(_Answer500, foreign)),
        }


def _issue_leaf(authority: Issued, directory: Path, now: dt.datetime) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    save(directory, issue_leaf(authority, [NAME], 1, now))
    return directory


@contextmanager
def _bind_closed_port() -> Iterator[int]:
    """Bind a port, so that nobody else gets it, and do not listen on it."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        yield listener.getsockname()[1]


@contextmanager
def _open_black_hole() -> Iterator[int]:
    """Open a listener whose backlog is full: the kernel drops every further SYN, and the caller waits in vain."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = listener.getsockname()
        for _ in range(8):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(address)
        yield address[1]


@contextmanager
def _serve(handler: type[BaseHTTPRequestHandler], certificate: Path) -> Iterator[int]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "tls.crt", certificate / "tls.key")
    server = _Server(("127.0.0.1", 0), handler)
    server.context = context
    thread = threading.Thread(target=server.serve_forever, name=handler.__name__)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
