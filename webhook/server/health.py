"""The plain port: /livez, /readyz and /metrics, answered by the loops that answer reviews.

Every worker listens on it, and the kernel gives a probe to a worker that is awake. So an answer is proof that a loop
turns; where no loop turns nobody answers, and the kubelet restarts the pod. One stuck worker beside healthy ones gets
no probes and is replaced by gunicorn.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from uvicorn.config import Config
from uvicorn.server import ServerState

from webhook.server.http_message import Answer
from webhook.server.load import Load
from webhook.server.metrics import CONTENT_TYPE, Metrics
from webhook.server.protocol import GuardedProtocol

_ALLOWED: Final = frozenset({b"GET", b"HEAD"})


class HealthProtocol(GuardedProtocol):
    """A connection from a kubelet or from Prometheus. `reasons` says why this server is not ready."""

    def __init__(
        self,
        load: Load,
        reasons: Callable[[], list[str]],
        metrics: Metrics,
        config: Config,
        state: ServerState,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(load, config, state, loop)
        self._reasons = reasons
        self._metrics = metrics

    def answers_at_once(self) -> bool:
        """Nothing here goes to the application."""
        return True

    def answer(self, body: bytes) -> Answer:  # noqa: ARG002 - a probe has none
        """Answer a probe or a scrape."""
        method = self.parser.get_method()
        if method not in _ALLOWED:
            return Answer(405, b"use GET\n")
        answer = self._page(self.url.partition(b"?")[0])
        return answer if method == b"GET" else answer._replace(body=b"")

    def shutdown(self) -> None:
        """A server that stops takes no more probes."""
        self.transport.close()

    def _page(self, path: bytes) -> Answer:
        if path == b"/livez":
            return Answer(200, b"ok\n")
        if path == b"/readyz":
            reasons = self._reasons()
            return (
                Answer(503, "".join(f"{reason}\n" for reason in reasons).encode()) if reasons else Answer(200, b"ok\n")
            )
        if path == b"/metrics":
            return Answer(200, self._metrics.exposition(), CONTENT_TYPE)
        return Answer(404, b"here are /livez, /readyz and /metrics\n")
