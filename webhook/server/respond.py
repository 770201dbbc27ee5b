"""From the bytes of a review to those of its response: one pure function that every way of serving calls."""

from typing import Final

from webhook.api.request import AdmissionRequest
from webhook.api.review import ReviewError, decode, identified
from webhook.evaluate import evaluate
from webhook.policy.model import Policy
from webhook.rules.mode import Mode
from webhook.server.http.message import HttpResponse
from webhook.verdict.encode import encode
from webhook.verdict.model import Verdict

JSON: Final = b"application/json"


class ReviewResponse(HttpResponse, frozen=True, gc=False):
    """200 with an AdmissionReview as JSON, or a 4xx with one line of text; and what it says, for those who record it.

    `refused_user` is the writer that was named in a body which no API server sends.
    """

    request: AdmissionRequest | None = None
    verdict: Verdict | None = None
    refused_user: str = ""


def respond(body: bytes, policy: Policy, now: int) -> ReviewResponse:
    """Evaluate the bytes of one review; `now` in microseconds since 1970.

    A bug raises: the caller responds with HTTP 500, so that failurePolicy decides and not we.
    """
    try:
        # The kill switch must work for whatever an API server sends, so nothing but the uid is read.
        request = identified(body) if policy.mode is Mode.OFF else decode(body)
    except ReviewError as error:
        return ReviewResponse(error.status, f"{error.text}\n".encode(), refused_user=error.user)
    verdict = evaluate(request, policy, now)
    return ReviewResponse(200, encode(verdict, request), JSON, b"", request, verdict)
