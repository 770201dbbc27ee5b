"""Connections to the reviews' port: `POST /validate*` is answered from its bytes, everything else by Flask."""

import asyncio
from typing import Final

from uvicorn.config import Config
from uvicorn.server import ServerState

from webhook.server.head import REVIEW_PATH
from webhook.server.http_message import Answer
from webhook.server.load import Load
from webhook.server.protocol import GuardedProtocol
from webhook.server.reviewer import OK, Reviewer
from webhook.server.tls import peer_names

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

    def answers_at_once(self) -> bool:
        """Whether this is a review."""
        head = self.head
        return head.method == b"POST" and (head.path == b"/validate" or _match(head.path.decode("latin-1")) is not None)

    def answer(self, body: bytes) -> Answer:
        """The verdict, or why there is none."""
        head = self.head
        status, text = self._reviewer.answer(body, head.query, head.fields, self.begun)
        return Answer(status, text, JSON) if status == OK else Answer(status, text)
