"""Connections to the reviews' port: `POST /validate*` gets a verdict, everything else a line of text."""

import asyncio
from typing import Final

from uvicorn.config import Config
from uvicorn.server import ServerState

from webhook.server.certificate_reload import peer_names
from webhook.server.http.message import Answer
from webhook.server.http.port_state import Load
from webhook.server.http.protocol import GuardedProtocol
from webhook.server.review_path import REVIEW_PATH
from webhook.server.reviewer import OK, Reviewer

JSON: Final = b"application/json"
_match = REVIEW_PATH.fullmatch


class ReviewProtocol(GuardedProtocol):
    """`client_names`: who may ask, where clients show certificates; empty where they do not."""

    def __init__(
        self,
        load: Load,
        reviewer: Reviewer,
        client_names: frozenset[str],
        config: Config,
        state: ServerState,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(load, config, state, loop)
        self._reviewer = reviewer
        self._client_names = client_names
        self._stranger = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Look at the client's certificate once; the CA has been checked by TLS."""
        super().connection_made(transport)
        if self._client_names:
            self._stranger = not peer_names(transport.get_extra_info("peercert")) & self._client_names

    def refusal(self) -> tuple[int, str] | None:
        """A certificate of the right CA with a name that nobody allowed."""
        return (403, "this client certificate may not ask") if self._stranger else None

    def answer(self, body: bytes) -> Answer:
        """The verdict, or why there is none."""
        head = self.head
        if head.path != b"/validate" and _match(head.path.decode("latin-1")) is None:
            return self._refused_answer("path", Answer(404, b"not found\n"))
        if head.method != b"POST":
            return self._refused_answer("method", Answer(405, b"method not allowed\n", allow=b"POST"))
        status, text = self._reviewer.answer(body, head.query, head.fields, self.begun)
        return Answer(status, text, JSON) if status == OK else Answer(status, text)

    def _refused_answer(self, kind: str, answer: Answer) -> Answer:
        self.load.metrics.refused(kind)
        return answer if self.head.method != b"HEAD" else answer._replace(body=b"")
