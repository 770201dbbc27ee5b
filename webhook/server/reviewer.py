"""Answers a review: `respond` is a pure function of bytes, a policy and a moment.

`Reviewer` gives it a clock, a deadline and observers, and turns a bug into a 500.
"""

import re
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from webhook.admission.evaluate import evaluate
from webhook.admission.policy.model import Policy
from webhook.admission.rules.mode import Mode
from webhook.admission.verdict import Verdict, encode
from webhook.kubernetes.opened_review import ReviewError, read_uid
from webhook.kubernetes.request import AdmissionRequest
from webhook.kubernetes.review import decode
from webhook.server.http.wsgi import BEGAN
from webhook.server.logs import LOG

DEADLINE_EXCEEDED: Final = "deadline-exceeded"
BUG: Final = "bug"
JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"
_DEFAULT_TIMEOUT: Final = 10
"""Seconds that an API server waits if a webhook configuration does not say."""
_MAX_TIMEOUT: Final = 30
_MIN_TIMEOUT: Final = 1
"""An API server rounds up to a whole second what is left of its own time."""
_TIMEOUT: Final = re.compile(r"(?:^|[?&])timeout=([0-9]{1,12})s(?:&|$)")


class ReviewResponse(Struct, frozen=True, gc=False):
    """200 with an AdmissionReview as JSON, or a 4xx with one line of text; and what it says, for those who record it.

    `refused_user` is the writer that was named in a body which no API server sends. `incident` is BUG or
    DEADLINE_EXCEEDED with status 500.
    """

    status: int
    body: bytes
    content_type: str = TEXT
    request: AdmissionRequest | None = None
    verdict: Verdict | None = None
    refused_user: str = ""
    incident: str = ""


class ReviewRecord(Struct, frozen=True, gc=False):
    """A response with what it answers: the request's body and its environ, and the seconds since its first byte."""

    response: ReviewResponse
    body: bytes
    environ: Mapping[str, Any]
    seconds: float


Observer = Callable[[ReviewRecord], None]
"""Records each response after it was made: metrics, log, capture."""


def respond(body: bytes, policy: Policy, now: int) -> ReviewResponse:
    """Evaluate the bytes of one review at `now` (microseconds since 1970): a pure function, in which a bug raises."""
    try:
        # The kill switch must work for whatever an API server sends, so nothing but the uid is read.
        request = read_uid(body) if policy.mode is Mode.OFF else decode(body)
    except ReviewError as error:
        return ReviewResponse(error.status, f"{error.text}\n".encode(), refused_user=error.user)
    verdict = evaluate(request, policy, now)
    return ReviewResponse(200, encode(verdict, request), JSON, request, verdict)


Respond = Callable[[bytes, Policy, int], ReviewResponse]
"""What `respond` is."""


class Reviewer:
    """Responds to reviews, in any thread. `policy` and `observers` may be replaced; `respond` makes each response."""

    def __init__(self, policy: Policy, observers: Sequence[Observer] = (), respond: Respond = respond) -> None:
        self.policy = policy
        self.observers = tuple(observers)
        self._respond = respond

    def review(self, body: bytes, environ: Mapping[str, Any]) -> ReviewResponse:
        """Return JSON with status 200, else one line of text.

        The time counts from the first byte of the request where the server says when that was, else from now. This
        never raises: a bug is a 500, so that failurePolicy decides. A deadline that passed before the review began is
        noticed at its end.
        """
        began = environ.get(BEGAN) or time.monotonic()
        try:
            problem = check_media_type(environ)
            if problem:
                response = ReviewResponse(415, f"{problem}\n".encode())
            else:
                response = self._respond(body, self.policy, time.time_ns() // 1000)
            seconds = time.monotonic() - began
            # No API server grants less than a second, so most queries need not be read.
            if seconds > _MIN_TIMEOUT and not problem and seconds > read_timeout(environ.get("QUERY_STRING", "")):
                response = _report_incident(DEADLINE_EXCEEDED, "deadline exceeded", len(body))
        except Exception:  # noqa: BLE001 - whatever a bug raises, the API server gets a 500 and the log a traceback
            response, seconds = _report_incident(BUG, "internal error", len(body)), 0.0
        record = ReviewRecord(response, body, environ, seconds)
        for observe in self.observers:
            try:
                observe(record)
            except Exception:  # noqa: BLE001 - any bug of an observer; it is logged
                # The verdict stays: an observer must not change it.
                LOG.exception("a verdict could not be recorded")
        return response


def _report_incident(kind: str, message: str, size: int) -> ReviewResponse:
    """Log an incident, with the traceback if one is being handled, and return the response that names it."""
    incident = uuid.uuid4().hex[:12]
    fields = {"incident": incident, "kind": kind, "bytes": size}
    LOG.error(message, exc_info=kind == BUG, extra={"fields": fields})
    return ReviewResponse(500, f"{message}; incident {incident}\n".encode(), incident=kind)


def read_timeout(query: str) -> int:
    """Return how many seconds the API server waits at most, from `timeout=Ns` in the query; an invalid one is ignored.

    It may wait up to a second less, and stops by itself. So a verdict that is ready before is sent: in its place a 500
    would let a denied write pass under Ignore, and refuse an allowed one under Fail.
    """
    found = _TIMEOUT.search(query)
    granted = int(found[1]) if found else _DEFAULT_TIMEOUT
    return max(min(granted, _MAX_TIMEOUT), _MIN_TIMEOUT)


def check_media_type(environ: Mapping[str, Any]) -> str:
    """Return why the body cannot be read as JSON in UTF-8, or ""."""
    media = environ.get("CONTENT_TYPE", "")
    if media == JSON and "HTTP_CONTENT_ENCODING" not in environ:
        return ""  # what API servers send
    coding = environ.get("HTTP_CONTENT_ENCODING", "identity").strip().lower()
    if coding not in {"", "identity"}:
        return "send the review without Content-Encoding"
    kind, _, parameters = media.lower().partition(";")
    if kind.strip() != JSON:
        return "send the review as Content-Type: application/json"
    for parameter in filter(None, (part.strip() for part in parameters.split(";"))):
        name, _, value = parameter.partition("=")
        if name.strip() == "charset" and value.strip("' \"") not in {"utf-8", "utf8", "us-ascii"}:
            return "send the review in UTF-8"
    return ""
