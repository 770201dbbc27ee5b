"""From bytes to an answer, whatever happens: the clock, the time there is, bugs, and who is told about a verdict."""

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from webhook.policy.model import Policy
from webhook.server.logs import LOG
from webhook.server.respond import Reply
from webhook.server.review_path import budget, unsupported

OK: Final = 200
UNSUPPORTED_MEDIA_TYPE: Final = 415
SERVER_ERROR: Final = 500
_NO_TIME: Final = "no time left for this review"


class Observer(Protocol):
    """Somebody who is told about each reply after it was made: metrics, log, capture."""

    def replied(self, reply: Reply, body: bytes, head: Mapping[bytes, bytes], seconds: float) -> None:
        """`body` and `head` are the request's; `seconds` since its first byte."""

    def failed(self, kind: str) -> None:
        """No verdict was reached: `kind` is bug or no-time."""


class Reviewer:
    """Answers reviews; the one function behind the fast path and behind Flask, so both give the same bytes.

    `policy` may be replaced at any time.
    """

    def __init__(self, policy: Policy, respond: Callable[..., Reply], observers: Sequence[Observer] = ()) -> None:
        self.policy = policy
        self._respond = respond
        self._observers = tuple(observers)

    def answer(self, body: bytes, query: bytes, head: Mapping[bytes, bytes], started: float) -> tuple[int, bytes]:
        """The HTTP status and body: JSON for 200, else one line of text.

        `started` is the monotonic time of the request's first byte. This never raises: an exception inside a parser
        callback would become uvicorn's own 400, and a bug must be a 500 so that failurePolicy decides.
        """
        try:
            problem = unsupported(head)
            if problem:
                reply = Reply(UNSUPPORTED_MEDIA_TYPE, f"{problem}\n".encode())
                return self._finish(reply, body, head, time.monotonic() - started)
            deadline = started + budget(query)
            if time.monotonic() > deadline:
                return self._incident("no-time", _NO_TIME, head)
            reply = self._respond(body, self.policy, time.time_ns() // 1000)
            ended = time.monotonic()
            if ended > deadline:
                return self._incident("no-time", _NO_TIME, head)
        except Exception:  # noqa: BLE001 - whatever a bug raises, the API server gets a 500 and the log a traceback
            return self._incident("bug", "a review met a bug", head, traceback=True)
        return self._finish(reply, body, head, ended - started)

    def _finish(self, reply: Reply, body: bytes, head: Mapping[bytes, bytes], seconds: float) -> tuple[int, bytes]:
        try:
            for observer in self._observers:
                observer.replied(reply, body, head, seconds)
        except Exception:  # noqa: BLE001 - any bug of an observer; it is logged
            # The verdict stands: what only watches must not change it.
            LOG.exception("a verdict could not be recorded")
        return reply.status, reply.body

    def _incident(
        self, kind: str, message: str, head: Mapping[bytes, bytes], *, traceback: bool = False
    ) -> tuple[int, bytes]:
        incident = uuid.uuid4().hex[:12]
        fields = {"incident": incident, "kind": kind, "bytes": head.get(b"content-length", b"").decode("latin-1")}
        LOG.error(message, exc_info=traceback, extra={"fields": fields})
        for observer in self._observers:
            observer.failed(kind)
        return SERVER_ERROR, f"{message}; incident {incident}\n".encode()
