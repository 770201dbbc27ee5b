"""The plain port: /livez, /readyz and /metrics, answered by the event loops that answer reviews.

Every worker listens on it, and the kernel gives a probe to a worker that is awake. So a response is proof that an event
loop runs; if none runs there is no response, and the kubelet restarts the pod. One stuck worker beside healthy ones
gets no probes and is replaced by gunicorn.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from webhook.server.http.message import Head, HttpResponse

PAGES: Final = ("/livez", "/readyz", "/metrics")
METRICS_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8"
_METHODS: Final = frozenset({b"GET", b"HEAD"})


class Readiness(NamedTuple):
    """`reasons` why a server should get no traffic, and `warnings` about what it can serve without."""

    reasons: list[str]
    warnings: list[str]


class HealthPort:
    """Takes what it shows from two functions: whether the server is ready, and its metrics as text."""

    def __init__(self, readiness: Callable[[], Readiness], exposition: Callable[[], bytes]) -> None:
        self._readiness = readiness
        self._exposition = exposition

    def respond(self, head: Head, body: bytes, began: float) -> HttpResponse:  # noqa: ARG002 - a probe has no body
        """Answer a probe or a scrape."""
        if head.method not in _METHODS:
            return HttpResponse(405, b"use GET\n", headers=b"allow: GET, HEAD\r\n")
        page = self.page(head.path.decode("latin-1"))
        return page if head.method == b"GET" else page.without_body()

    def page(self, path: str) -> HttpResponse:
        """One of PAGES, or 404."""
        if path == "/livez":
            return HttpResponse(200, b"ok\n")
        if path == "/readyz":
            return _readiness_page(self._readiness())
        if path == "/metrics":
            return HttpResponse(200, self._exposition(), METRICS_TYPE)
        return HttpResponse(404, b"not found; try /livez, /readyz or /metrics\n")


def _readiness_page(readiness: Readiness) -> HttpResponse:
    lines = [*(readiness.reasons or ["ok"]), *(f"warning: {warning}" for warning in readiness.warnings)]
    return HttpResponse(503 if readiness.reasons else 200, "".join(f"{line}\n" for line in lines).encode())
