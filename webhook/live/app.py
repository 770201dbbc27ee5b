"""The live page as a Flask application: the page and its server-sent events, for whoever knows the address.

The random part of the address is the only secret; it is compared in constant time. The Host header must name an address
that was bound, so that no page of another site can read this one through a name of its own (DNS rebinding).
"""

import hmac
import threading
import time
from collections.abc import Iterable, Iterator
from ipaddress import ip_address
from typing import Final

import msgspec
from flask import Flask, Response, abort, request
from werkzeug.exceptions import HTTPException

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
EVENT_STREAM: Final = "text/event-stream"
MAX_LISTENERS: Final = 8
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


def make_app(feed: Feed, token: str, hosts: Iterable[str]) -> Flask:
    """Return the application.

    Args:
        feed: what the page shows.
        token: the random part of the address.
        hosts: names under which it may be called, beside addresses.

    """
    app = Flask(__name__, static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = 0
    names = frozenset(name.lower() for name in hosts)
    pages = _Pages(feed, token)

    def check_host() -> None:
        if not is_own_host(request.host, names):
            abort(421)

    app.before_request(check_host)
    app.after_request(_harden)
    app.register_error_handler(HTTPException, _refused)
    for rule, name, view in (("/<given>/", "page", pages.page), ("/<given>/events", "events", pages.events)):
        app.add_url_rule(rule, name, view, methods=["GET"], provide_automatic_options=False, strict_slashes=True)
    return app


class _Pages:
    """The views."""

    def __init__(self, feed: Feed, token: str) -> None:
        self._feed = feed
        self._token = token
        self._listeners = Listeners(feed)
        self._events_path = f"/{token}/events"
        self._policy = content_security_policy(events=self._events_path) + _NOT_FRAMED

    def page(self, given: str) -> Response:
        """Return the page without lanes: they come as events."""
        self._check(given)
        now = self._feed.since(self._feed.version).timeline
        empty = Timeline(now.begins, now.ends, sources=now.sources)
        response = Response(render(empty, events=self._events_path), content_type="text/html; charset=utf-8")
        response.headers["Content-Security-Policy"] = self._policy
        return response

    def events(self, given: str) -> Response:
        """Return what changes, as long as the page is open."""
        self._check(given)
        messages = self._listeners.messages()
        if messages is None:
            abort(503)
        return Response(messages, content_type=EVENT_STREAM)

    def _check(self, given: str) -> None:
        if not hmac.compare_digest(given.encode(), self._token.encode()):
            abort(404)


def _refused(error: HTTPException) -> HTTPException:
    error.description = TEXTS.get(error.code or 500, error.name)
    return error


def _harden(response: Response) -> Response:
    response.headers.update(HEADERS)
    response.headers.setdefault("Content-Security-Policy", _NO_PAGE)
    return response


def is_own_host(host: str, names: frozenset[str]) -> bool:
    """True if a Host header is an address, which no other site can choose, or one of some names."""
    name = host.lower()
    if name.startswith("["):
        name = name[1:].partition("]")[0]
    elif ":" in name:
        name = name.rpartition(":")[0]
    if name in names:
        return True
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


class Listeners:
    """Counts the pages that listen, and gives each of them its events."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed

        self._places = threading.BoundedSemaphore(MAX_LISTENERS)

    def messages(self) -> "Messages | None":
        """Return the events for one more page; None if there are too many."""
        return Messages(self._feed, self._places) if self._places.acquire(blocking=False) else None


class Messages:
    """The events for one page, as bytes. A server calls `close` when the page has gone."""

    def __init__(self, feed: Feed, places: threading.BoundedSemaphore) -> None:
        self._places = places
        self._closing = threading.Lock()
        self._is_closed = False
        self._events = _events(feed)

    def __iter__(self) -> Iterator[bytes]:
        return self._events

    def close(self) -> None:
        """Free the place for another page; a second call does nothing."""
        with self._closing:
            if not self._is_closed:
                self._is_closed = True
                self._places.release()


def _events(feed: Feed) -> Iterator[bytes]:
    version, status = 0, ""
    while True:
        began = time.monotonic()
        change = feed.since(version)
        if change.timeline.lanes:
            yield _event("lanes", page_data(fitted(change.timeline)))
        else:
            yield _event("clock", msgspec.json.encode({"ends": change.timeline.ends}))
        if change.status != status:
            status = change.status
            yield _event("status", msgspec.json.encode({"text": status}))
        if change.has_ended:
            yield _event("end", msgspec.json.encode({"why": status}))
            return
        version = change.version
        took = time.monotonic() - began
        time.sleep(max(MIN_PAUSE, took * _SHARE))
        feed.wait(version, MAX_PAUSE)


def _event(name: str, data: bytes) -> bytes:
    # JSON of one line has no line break, which would end the data.
    return b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"
