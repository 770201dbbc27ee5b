"""The live page: a timeline in bounded memory, and its server for whoever knows the address.

Threads add observations, and each page that is open gets what has changed as server-sent events. The random part of the
address is the only secret; it is compared in constant time. The Host header must name an address that was bound, so
that no page of another site can read this one through a name of its own (DNS rebinding).
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

from msgspec import Struct

from webhook.admission.rules.expiry import BOUND
from webhook.analysis.history.stored_leases import Key
from webhook.analysis.inputs.cluster import LEASES
from webhook.analysis.inputs.items import Item, Observation, Unreadable
from webhook.analysis.live.server_clock import ServerClock, read_clock
from webhook.analysis.live.watch import Listing
from webhook.analysis.timeline.downsampling import fit_into
from webhook.analysis.timeline.lanes import TimelineBuilder
from webhook.analysis.timeline.model import Timeline
from webhook.analysis.timeline.page import encode_page_data, make_content_security_policy, render
from webhook.kubernetes.times import SECOND

MAX_TICKS: Final = 100_000
"""Renewals of all leases together that are drawn one by one."""
_MAX_SEARCH: Final = 0.2
"""Seconds in which causes are sought for one message."""

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


class Change(Struct, frozen=True):
    """The changes since a version: lanes, if any changed, the moment by the API server's clock, and what to say."""

    version: int
    timeline: Timeline
    status: str
    has_ended: bool


class Feed:
    """One timeline; every method may be called from any thread."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._changed = threading.Condition()
        self._builder = TimelineBuilder(read_clock() + BOUND, max_ticks=MAX_TICKS)
        self._listing = Listing()
        self._version = 1
        self._versions: dict[Key, int] = {}
        self._clock = ServerClock()
        self._shown_until = 0
        self._status = ""
        self._has_ended = False
        self._stands_still = False

    @property
    def version(self) -> int:
        """A number that grows with each change."""
        with self._changed:
            return self._version

    @property
    def lease_count(self) -> int:
        """How many leases it has shown."""
        with self._changed:
            return self._builder.histories.lease_count

    def observe(self, item: Item) -> None:
        """Take in one item."""
        with self._changed:
            # The API server's clock may be ahead of this computer's.
            self._builder.clock = read_clock() + BOUND
            if isinstance(item, Unreadable) and item.place.path == LEASES:
                self._listing.note_unreadable()
            if isinstance(item, Observation) and item.kind == "Lease":
                self._listing.note(item, read_clock() / SECOND)
                self._clock.measure(item, read_clock())
            self._take(item)

    def read(self, items: Iterable[Item]) -> None:
        """Take in all that an input has."""
        for item in items:
            self.observe(item)
        # It knows nothing beyond its last moment.
        self._stands_still = True
        self.show_status("The input has ended.")

    def begin(self, _: str = LEASES) -> None:
        """Note that the watch begins, perhaps again: at first it lists every lease that there is."""
        with self._changed:
            leases = self._builder.histories.leases.items()
            self._listing.begin({key for key, history in leases if not history.is_deleted})

    def show_status(self, status: str) -> None:
        """Set what the page says about the connection to the cluster."""
        with self._changed:
            self._status = status
            self._note(())

    def end(self, why: str) -> None:
        """End the timeline: no more changes follow."""
        self._has_ended = True
        self.show_status(why)

    def wait(self, version: int, seconds: float) -> None:
        """Return when there is something newer than a version, or after that many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._version > version or self._has_ended, seconds)

    def get_changes(self, version: int) -> Change:
        """Return what has changed since a version; 0 is before everything."""
        with self._changed:
            for gone in self._listing.find_deleted(read_clock() / SECOND):
                self._take(gone)
            ends = self._find_end()
            # A lease that is not renewed has changed, without an observation.
            if overdue := self._builder.list_overdue_between(self._shown_until, ends):
                self._note(overdue)
            self._shown_until = ends
            keys = sorted(key for key, changed in self._versions.items() if changed > version)
            self._version = max([self._version, *(self._versions[key] for key in keys)])
            self._explain(keys, ends)
            timeline = self._builder.timeline(ends, (self._source,), keys=keys)
            return Change(self._version, timeline, self._status, self._has_ended)

    def _explain(self, keys: Iterable[Key], ends: int) -> None:
        """Seek causes for a limited time; leases that remain, or are undecided, follow with the next change."""
        began = time.monotonic()
        left = [key for key in keys if time.monotonic() - began > _MAX_SEARCH or not self._builder.explain(key, ends)]
        self._versions.update(dict.fromkeys(left, self._version + 1))

    def _find_end(self) -> int:
        """Return the present moment by the API server's clock, as far as that can be known."""
        if self._stands_still and self._builder.histories.bounds.until is not None:
            return self._builder.histories.bounds.until
        return self._clock.estimate(read_clock(), self._builder.histories.bounds.until)

    def _take(self, item: Item) -> None:
        if key := self._builder.observe(item):
            self._note([key])

    def _note(self, changed: Iterable[Key]) -> None:
        self._version += 1
        self._versions.update(dict.fromkeys(changed, self._version))
        self._changed.notify_all()


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
        """Answer; a client that goes away is not an error."""
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
        now = self.server.feed.get_changes(self.server.feed.version).timeline
        empty = Timeline(now.begins, now.ends, sources=now.sources)
        events = f"/{self.server.token}/events"
        self._begin(200, "text/html; charset=utf-8", make_content_security_policy(events=events) + _NOT_FRAMED)
        self.wfile.write(render(empty, events=events).encode())

    def _send_events(self) -> None:
        """Send what changes, as long as the page is open."""
        if not self.server.places.acquire(blocking=False):
            self.send_error(503)
            return
        try:
            self._begin(200, "text/event-stream")
            for message in _make_messages(self.server.feed):
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


def _make_messages(feed: Feed) -> Iterator[bytes]:
    """Yield a message for the page whenever something has changed, and each second."""
    version, has_ended = 0, False
    while not has_ended:
        began = time.monotonic()
        change = feed.get_changes(version)
        version, has_ended = change.version, change.has_ended
        # JSON of one line has no line break, which would end the data.
        yield (
            b"data: " + encode_page_data(fit_into(change.timeline), status=change.status, hasEnded=has_ended) + b"\n\n"
        )
        took = time.monotonic() - began
        time.sleep(0 if has_ended else max(MIN_PAUSE, took * _SHARE))
        feed.wait(version, MAX_PAUSE)
