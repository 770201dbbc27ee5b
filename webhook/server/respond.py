"""The seam between bytes and judging: one pure function that every way of serving calls."""

from msgspec import Struct

from webhook.api.request import AdmissionRequest
from webhook.api.review import ReviewError, decode, identified
from webhook.evaluate import evaluate
from webhook.policy.model import Policy
from webhook.rules.mode import Mode
from webhook.verdict.encode import encode
from webhook.verdict.model import Verdict


class Reply(Struct, frozen=True, gc=False):
    """What goes back over HTTP: 200 with an AdmissionReview as JSON, or a 4xx with one plain line.

    `refused_user` is the writer that a body named which no API server sends.
    """

    status: int
    body: bytes
    request: AdmissionRequest | None = None
    verdict: Verdict | None = None
    refused_user: str = ""


def respond(body: bytes, policy: Policy, now: int) -> Reply:
    """Judge the bytes of one review; `now` in microseconds since 1970.

    A bug raises: the caller answers HTTP 500, so that failurePolicy decides and not we.
    """
    try:
        # The kill switch must work for whatever an API server sends, so nothing but the uid is read.
        request = identified(body) if policy.mode is Mode.OFF else decode(body)
    except ReviewError as error:
        return Reply(error.status, f"{error.text}\n".encode(), refused_user=error.user)
    verdict = evaluate(request, policy, now)
    return Reply(200, encode(verdict, request), request, verdict)
