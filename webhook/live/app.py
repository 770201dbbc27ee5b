"""The live page as a Flask application: the page, its events, and nothing for whoever does not know the address.

The random part of the address is the only secret; it is compared in constant time. The Host header must name an address
that was bound, so that no page of another site can read this one through a name of its own (DNS rebinding).
"""

import hmac
from collections.abc import Iterable
from ipaddress import ip_address
from typing import Final

from flask import Flask, Response, abort, render_template, request
from werkzeug.exceptions import HTTPException

from webhook.live.events import Listeners
from webhook.live.feed import Feed
from webhook.timeline.model import Timeline
from webhook.timeline.page import content_security_policy, render

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


TEXTS: Final = {
    404: "There is nothing here. The address of the timeline is what the terminal shows; it changes with each start.",
    421: "This server is called by another name than its own. Use the address that the terminal shows.",
    503: "Too many pages listen to this timeline. Close one of them.",
}


def make_app(feed: Feed, token: str, hosts: Iterable[str]) -> Flask:
    """The application.

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
        """The page without lanes: they come as events."""
        self._check(given)
        now = self._feed.since(self._feed.version).timeline
        empty = Timeline(now.begins, now.ends, sources=now.sources)
        response = Response(render(empty, events=self._events_path), content_type="text/html; charset=utf-8")
        response.headers["Content-Security-Policy"] = self._policy
        return response

    def events(self, given: str) -> Response:
        """What changes, as long as the page is open."""
        self._check(given)
        messages = self._listeners.messages()
        if messages is None:
            abort(503)
        return Response(messages, content_type=EVENT_STREAM)

    def _check(self, given: str) -> None:
        if not hmac.compare_digest(given.encode(), self._token.encode()):
            abort(404)


def _refused(error: HTTPException) -> Response:
    code = error.code or 500
    body = render_template("refused.html", code=code, text=TEXTS.get(code, error.name))
    return Response(body, code, content_type="text/html; charset=utf-8")


def _harden(response: Response) -> Response:
    response.headers.update(HEADERS)
    response.headers.setdefault("Content-Security-Policy", _NO_PAGE)
    return response


def is_own_host(host: str, names: frozenset[str]) -> bool:
    """Whether a Host header is an address, which no other site can choose, or one of some names."""
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
