"""The live page over HTTP: the page and its server-sent events, for whoever knows the address.

The random part of the address is the only secret; it is compared in constant time. The Host header must name an address
that was bound, so that no page of another site can read this one through a name of its own (DNS rebinding).
"""

import hmac
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

from webhook.live.feed import Feed
from webhook.timeline.downsampling import fitted
from webhook.timeline.model import Timeline
from webhook.timeline.page import content_security_policy, page_data, render

HEADERS: Final = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_NOT_FRAMED: Final = "; frame-ancestors 'none'"
_NO_PAGE: Final = "default-src 'none'; base-uri 'none'; form-action 'none'" + _NOT_FRAMED
MAX_LISTENERS: Final = 8
MAX_WAIT: Final = 30.0
"""Seconds for which a client may neither send its request nor read what it asked for."""
MIN_PAUSE: Final = 0.4
"""Seconds between two messages, so that a burst of changes is one message."""
MAX_PAUSE: Final = 1.0
_SHARE: Final = 4
"""The pause after a message, as a multiple of the time that making it took, so that work stays bounded."""
TEXTS: Final = {
    404: "There is nothing here. The address of the timeline is what the terminal shows; it changes with each start.",
    421: "This server is called by another name than its own. Use the address that the terminal shows.",
    503: "Too many pages listen to this timeline. Close one of them.",
}


class LiveServer(ThreadingHTTPServer):
    """Serves one timeline to a few pages, each in a thread of its own."""

    def __init__(self, listener: socket.socket, feed: Feed, token: str, hosts: Iterable[str]) -> None:
        """Take over a socket that listens; `token` is the random part of the address, `hosts` its possible names."""
        super().__init__(("", 0), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.feed = feed
        self.token = token
        self.hosts = frozenset(name.lower() for name in hosts)
        self.places = threading.BoundedSemaphore(MAX_LISTENERS)


class _Handler(BaseHTTPRequestHandler):
    """Answers one request, and closes the connection."""

    server: LiveServer
    timeout = MAX_WAIT

    def handle(self) -> None:
        """Answer; a client that goes is no error."""
        with suppress(OSError):
            super().handle()

    def do_GET(self) -> None:
        given, slash, rest = self.path.removeprefix("/").partition("/")
        if not is_own_host(self.headers.get("Host", ""), self.server.hosts):
            self.send_error(421)
        elif not hmac.compare_digest(given.encode(), self.server.token.encode()) or not slash:
            self.send_error(404)
        elif not rest:
            self._send_page()
        elif rest == "events":
            self._send_events()
        else:
            self.send_error(404)

    def _send_page(self) -> None:
        """Send the page without lanes: they come as events."""
        now = self.server.feed.since(self.server.feed.version).timeline
        empty = Timeline(now.begins, now.ends, sources=now.sources)
        events = f"/{self.server.token}/events"
        self._begin(200, "text/html; charset=utf-8", content_security_policy(events=events) + _NOT_FRAMED)
        self.wfile.write(render(empty, events=events).encode())

    def _send_events(self) -> None:
        """Send what changes, as long as the page is open."""
        if not self.server.places.acquire(blocking=False):
            self.send_error(503)
            return
        try:
            self._begin(200, "text/event-stream")
            for message in _events(self.server.feed):
                self.wfile.write(message)
        finally:
            self.server.places.release()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002 - the library's own signature
        """Refuse a request; nothing of it is repeated."""
        self._begin(code, "text/plain; charset=utf-8")
        self.wfile.write(f"{TEXTS.get(code, HTTPStatus(code).phrase)}\n".encode())

    def _begin(self, code: int, content_type: str, policy: str = _NO_PAGE) -> None:
        self.send_response(code)
        for name, value in {**HEADERS, "Content-Security-Policy": policy, "Content-Type": content_type}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_words: Any) -> None:  # noqa: ANN401 - whatever would be logged
        """Log no request: its line would show the token."""


def is_own_host(host: str, names: frozenset[str]) -> bool:
    """True if a Host header is an address, which no other site can choose, or one of some names."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name in names or bool(ip_address(name))
    except ValueError:
        return False


def _events(feed: Feed) -> Iterator[bytes]:
    """Yield a message for the page whenever something has changed, and each second."""
    version, has_ended = 0, False
    while not has_ended:
        began = time.monotonic()
        change = feed.since(version)
        version, has_ended = change.version, change.has_ended
        # JSON of one line has no line break, which would end the data.
        yield b"data: " + page_data(fitted(change.timeline), status=change.status, hasEnded=has_ended) + b"\n\n"
        took = time.monotonic() - began
        time.sleep(0 if has_ended else max(MIN_PAUSE, took * _SHARE))
        feed.wait(version, MAX_PAUSE)
