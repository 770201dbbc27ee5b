"""The reviews' port. `POST /validate...` is answered on the event loop, everything else by the Flask application.

The fast path is the same function that Flask calls, with the same bytes, but without the framework, which costs ten
times as much as a review.
"""

import asyncio
import functools
import io
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final
from urllib.parse import unquote_to_bytes

from flask import Flask
from werkzeug.test import create_environ
from werkzeug.wrappers import Response

from webhook.api.bulk import may_be_a_review
from webhook.review_paths import REVIEW_PATH
from webhook.server.http.message import Head, HttpResponse, RefusedError
from webhook.server.http.port import RETRY, Handlers
from webhook.server.reviewer import Reviewer

THREADS: Final = 1
"""For Flask. While one runs, the event loop waits up to sys.getswitchinterval() for the interpreter."""
MOST_WAITING: Final = 32
"""Requests for Flask, beyond which a request gets 503. Their bodies count among the bytes in flight."""

_match = REVIEW_PATH.fullmatch


class ReviewPort:
    """`client_names`: whose certificates are accepted, if clients show certificates; else empty.

    `check_caller` raises RefusedError for a head that does not prove to come from an API server.
    """

    def __init__(
        self,
        reviewer: Reviewer,
        app: Flask,
        client_names: frozenset[str],
        check_caller: Callable[[Head], None] | None = None,
    ) -> None:
        self._review = reviewer.review
        self._app = app
        self._client_names = client_names
        self._check_caller = check_caller
        self._threads = ThreadPoolExecutor(THREADS, "flask")
        self._waiting = 0

    def handlers(self) -> Handlers:
        """For the port."""
        return Handlers(self.respond, self.accept, self.accept_body)

    def accept(self, head: Head, names: frozenset[str]) -> None:
        """Refuse a certificate of the right CA with a name that is not allowed, and a caller without its token."""
        if self._client_names and not names & self._client_names:
            raise RefusedError(403, "this client certificate is not allowed")
        if self._check_caller is not None:
            self._check_caller(head)

    def accept_body(self, size: int, beginning: bytes | bytearray) -> None:
        """Refuse a large body that no API server sends by its first bytes."""
        if not may_be_a_review(size, beginning):
            raise RefusedError(413, "a body of this size must begin as an API server begins a review")

    def respond(self, head: Head, body: bytes, began: float) -> HttpResponse | asyncio.Future[HttpResponse]:
        """A review by the fast path, everything else by Flask."""
        method, path, query, fields, _ = head
        if method != b"POST" or (path != b"/validate" and _match(path.decode("latin-1")) is None):
            return self.respond_later(head, body)
        return self._review(body, query, fields, began)

    def respond_later(self, head: Head, body: bytes) -> asyncio.Future[HttpResponse]:
        """Ask Flask, in a thread."""
        if self._waiting >= MOST_WAITING:
            raise RefusedError(503, "too many requests wait", RETRY)
        self._waiting += 1
        response = asyncio.get_running_loop().run_in_executor(
            self._threads, functools.partial(call, self._app, head, body)
        )
        response.add_done_callback(self._done)
        return response

    def stop(self) -> None:
        """Start no more calls."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _done(self, _response: asyncio.Future[HttpResponse]) -> None:
        self._waiting -= 1


def call(app: Flask, head: Head, body: bytes) -> HttpResponse:
    """What an application responds; it blocks."""
    environ = create_environ(
        method=head.method.decode("latin-1"),
        query_string=head.query.decode("latin-1"),
        headers=[(name.decode("latin-1"), value.decode("latin-1")) for name, value in head.fields.items()],
        input_stream=io.BytesIO(body),
        base_url="https://localhost",
        multithread=True,
        multiprocess=True,
    )
    # PEP 3333: bytes as text in latin-1. werkzeug would take `//host` for a host.
    environ["PATH_INFO"] = unquote_to_bytes(head.path).decode("latin-1")
    response = Response.from_app(app.wsgi_app, environ, buffered=True)
    allow = response.headers.get("Allow")
    headers = f"allow: {allow}\r\n".encode("latin-1") if allow else b""
    return HttpResponse(
        response.status_code, response.data, response.headers["Content-Type"].encode("latin-1"), headers
    )
