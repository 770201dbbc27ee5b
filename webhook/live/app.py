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
    places = threading.BoundedSemaphore(MAX_LISTENERS)
    events_path = f"/{token}/events"
    policy = content_security_policy(events=events_path) + _NOT_FRAMED

    def check() -> None:
        if not is_own_host(request.host, names):
            abort(421)
        # A request that matches no view has no token to compare.
        given = request.view_args["given"] if request.view_args else token
        if not hmac.compare_digest(given.encode(), token.encode()):
            abort(404)

    def page(given: str) -> Response:  # noqa: ARG001 - the token, which is checked before
        """Return the page without lanes: they come as events."""
        now = feed.since(feed.version).timeline
        empty = Timeline(now.begins, now.ends, sources=now.sources)
        response = Response(render(empty, events=events_path), content_type="text/html; charset=utf-8")
        response.headers["Content-Security-Policy"] = policy
        return response

    def events(given: str) -> Response:  # noqa: ARG001
        """Return what changes, as long as the page is open."""
        if not places.acquire(blocking=False):
            abort(503)
        response = Response(_events(feed), content_type=EVENT_STREAM)
        response.call_on_close(places.release)
        return response

    app.before_request(check)
    app.after_request(_harden)
    app.register_error_handler(HTTPException, _refused)
    for rule, view in (("/<given>/", page), ("/<given>/events", events)):
        app.add_url_rule(rule, view_func=view, methods=["GET"], provide_automatic_options=False, strict_slashes=True)
    return app


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
