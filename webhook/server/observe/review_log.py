"""One log line for each verdict that may need an explanation: a denial, or a write allowed with warnings."""

import logging
import time

from webhook.api.request import AdmissionRequest
from webhook.rules.mode import Mode
from webhook.server.logs import LOG, LogThrottle
from webhook.server.respond import ReviewResponse
from webhook.server.reviewer import Reviewed
from webhook.verdict.model import Verdict


def described(request: AdmissionRequest, verdict: Verdict) -> dict[str, object]:
    """What every line about a verdict says: who wrote what."""
    return {
        "uid": request.uid,
        "operation": request.operation,
        "event": verdict.event,
        "resource": request.resource,
        "namespace": request.namespace,
        "name": request.name,
        "user": request.user.username if request.user else "",
        "code": verdict.code,
    }


class ReviewLog:
    """Plain allowed writes (most are renewals) are not logged; metrics count them."""

    def __init__(self) -> None:
        self._refused = LogThrottle(1)

    def responded(self, review: Reviewed) -> None:
        """Log a denial or warnings."""
        request, verdict = review.response.request, review.response.verdict
        if review.response.refused_user:
            self._log_refused(review.response, len(review.body))
        if request is None or verdict is None or (verdict.allowed and not verdict.warnings):
            return
        fields = described(request, verdict) | {
            "rules": ",".join(f"{one.rule}={one.mode.word}" for one in verdict.findings if one.mode >= Mode.WARN),
            "reason": verdict.message or "; ".join(verdict.warnings),
            "milliseconds": round(review.seconds * 1000, 3),
        }
        level = logging.INFO if verdict.allowed else logging.WARNING
        LOG.log(level, "warned" if verdict.allowed else "denied", extra={"fields": fields})

    def _log_refused(self, response: ReviewResponse, size: int) -> None:
        """A body that no API server sends, at most once a second: any client could fill the log otherwise."""
        if self._refused.admit(time.monotonic()) is None:
            return
        reason = response.body.decode().strip()
        fields = {"user": response.refused_user, "code": response.status, "reason": reason, "bytes": size}
        LOG.warning("refused a body that no API server sends", extra={"fields": fields})

    def failed(self, kind: str) -> None:
        """The reviewer has logged it, with the incident's id."""
