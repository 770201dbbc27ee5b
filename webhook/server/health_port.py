"""The plain port: /livez, /readyz and /metrics, answered by the loops that answer reviews.

Every worker listens on it, and the kernel gives a probe to a worker that is awake. So an answer is proof that a loop
turns; where no loop turns nobody answers, and the kubelet restarts the pod. One stuck worker beside healthy ones gets
no probes and is replaced by gunicorn.
"""

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple

from uvicorn.config import Config
from uvicorn.server import ServerState

from webhook.server.http.message import Answer
from webhook.server.http.port_state import Load
from webhook.server.http.protocol import GuardedProtocol
from webhook.server.observe.metrics import CONTENT_TYPE, Metrics

_ALLOWED: Final = frozenset({b"GET", b"HEAD"})


class Readiness(NamedTuple):
    """`reasons` why a server should get no traffic, and `warnings` about what it can serve without."""

    reasons: list[str]
    warnings: list[str]


class HealthProtocol(GuardedProtocol):
    """A connection from a kubelet or from Prometheus."""

    def __init__(
        self,
        load: Load,
        readiness: Callable[[], Readiness],
        metrics: Metrics,
        config: Config,
        state: ServerState,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(load, config, state, loop)
        self._readiness = readiness
        self._metrics = metrics

    def answer(self, body: bytes) -> Answer:  # noqa: ARG002 - a probe has none
        """Answer a probe or a scrape."""
        method = self.head.method
        if method not in _ALLOWED:
            return Answer(405, b"use GET\n")
        answer = self._page(self.head.path)
        return answer if method == b"GET" else answer._replace(body=b"")

    def shutdown(self) -> None:
        """A server that stops takes no more probes."""
        self.transport.close()

    def _page(self, path: bytes) -> Answer:
        if path == b"/livez":
            return Answer(200, b"ok\n")
        if path == b"/readyz":
            return _readiness_page(self._readiness())
        if path == b"/metrics":
            return Answer(200, self._metrics.exposition(), CONTENT_TYPE)
        return Answer(404, b"here are /livez, /readyz and /metrics\n")


def _readiness_page(readiness: Readiness) -> Answer:
    lines = [*(readiness.reasons or ["ok"]), *(f"warning: {warning}" for warning in readiness.warnings)]
    return Answer(503 if readiness.reasons else 200, "".join(f"{line}\n" for line in lines).encode())
