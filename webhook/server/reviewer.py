"""Calls the pure function for each review: with the clock, the deadline, the handling of bugs, and observers."""

import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from webhook.policy.model import Policy
from webhook.server.http.message import HttpResponse
from webhook.server.logs import LOG
from webhook.server.respond import ReviewResponse, respond
from webhook.server.review_path import budget, unsupported

UNSUPPORTED_MEDIA_TYPE: Final = 415
SERVER_ERROR: Final = 500


class Reviewed(NamedTuple):
    """A response with what it answers: the request's body and headers, and the seconds since its first byte."""

    response: ReviewResponse
    body: bytes
    headers: Mapping[bytes, bytes]
    seconds: float


class Observer(Protocol):
    """What records each response after it was made: metrics, log, capture."""

    def responded(self, review: Reviewed) -> None:
        """A review got a response."""

    def failed(self, kind: str) -> None:
        """No verdict was reached: `kind` is bug or no-time."""


class Reviewer:
    """Responds to reviews, on the fast path and behind Flask, so both give the same bytes.

    `policy` may be replaced at any time.
    """

    def __init__(self, policy: Policy, observers: Sequence[Observer] = ()) -> None:
        self.policy = policy
        self._observers = tuple(observers)

    def review(self, body: bytes, query: bytes, headers: Mapping[bytes, bytes], began: float) -> HttpResponse:
        """JSON with status 200, else one line of text.

        `began` is the monotonic time of the request's first byte. This never raises: a bug is a 500, so that
        failurePolicy decides. A deadline that passed before the review began is noticed at its end,
        because an evaluation is short.
        """
        try:
            problem = unsupported(headers)
            if problem:
                response = ReviewResponse(UNSUPPORTED_MEDIA_TYPE, f"{problem}\n".encode())
            else:
                response = respond(body, self.policy, time.time_ns() // 1000)
            seconds = time.monotonic() - began
            if not problem and seconds > budget(query):
                return self._incident("no-time", "no time left for this review", headers)
        except Exception:  # noqa: BLE001 - whatever a bug raises, the API server gets a 500 and the log a traceback
            return self._incident("bug", "internal error", headers, traceback=True)
        reviewed = Reviewed(response, body, headers, seconds)
        for observer in self._observers:
            try:
                observer.responded(reviewed)
            except Exception:  # noqa: BLE001 - any bug of an observer; it is logged
                # The verdict stays: an observer must not change it.
                LOG.exception("a verdict could not be recorded")
        return response

    def _incident(
        self, kind: str, message: str, headers: Mapping[bytes, bytes], *, traceback: bool = False
    ) -> HttpResponse:
        incident = uuid.uuid4().hex[:12]
        fields = {"incident": incident, "kind": kind, "bytes": headers.get(b"content-length", b"").decode("latin-1")}
        LOG.error(message, exc_info=traceback, extra={"fields": fields})
        for observer in self._observers:
            try:
                observer.failed(kind)
            except Exception:  # noqa: BLE001 - any bug of an observer; it is logged
                LOG.exception("a failure could not be recorded")
        return HttpResponse(SERVER_ERROR, f"{message}; incident {incident}\n".encode())
