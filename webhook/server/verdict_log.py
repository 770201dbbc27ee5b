"""Log lines of single verdicts: denials, warnings, and findings of mode audit."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from webhook.admission.rules.mode import Mode
from webhook.admission.verdict import RatedFinding, Verdict
from webhook.kubernetes.request import AdmissionRequest
from webhook.server.logs import LOG, LogThrottle, log_verdict
from webhook.server.reviewer import ReviewRecord

SECONDS_BETWEEN_LINES: Final = 60.0
"""Between two lines about findings of mode audit with the same rule, lease and user."""
MAX_KEYS: Final = 1000
"""Combinations of rule, lease and user that are remembered; clients choose names, so this bounds the lines as well."""


def _describe(request: AdmissionRequest, verdict: Verdict) -> dict[str, object]:
    """Return the fields of every line about a verdict: who wrote what."""
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
    """One line for each denial, and each write that was allowed with warnings; metrics count all others."""

    def __init__(self) -> None:
        self._refused = LogThrottle(1)

    def record(self, review: ReviewRecord) -> None:
        """Log a denial or warnings; a body that no API server sends, at most once a second."""
        request, verdict = review.response.request, review.response.verdict
        if verdict is not None and verdict.allowed and not verdict.warnings:
            return
        refused = review.response.refused_user
        # Any client could fill the log with such bodies.
        if refused and self._refused.admit(time.monotonic()) is not None:
            reason = review.response.body.decode().strip()
            fields = {"user": refused, "code": review.response.status, "reason": reason, "bytes": len(review.body)}
            LOG.warning("refused a body that no API server sends", extra={"fields": fields})
        if request is None or verdict is None:
            return
        fields = _describe(request, verdict)
        fields["rules"] = ",".join([f"{one.rule}={one.mode.word}" for one in verdict.findings if one.mode >= Mode.WARN])
        fields["reason"] = verdict.message or "; ".join(verdict.warnings)
        fields["milliseconds"] = round(review.seconds * 1000, 3)
        level, message = (logging.INFO, "warned") if verdict.allowed else (logging.WARNING, "denied")
        log_verdict(level, message, fields)


class AuditFindingLog:
    """Throttled log lines for audit-mode findings, which the writer does not see; they may come with every write.

    One line for each rule, lease and user in a minute. Each worker limits its own lines. The metrics and the API
    server's audit log have every finding. `clock` is in monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, max_keys: int = MAX_KEYS) -> None:
        self._clock = clock
        self._lines = LogThrottle(SECONDS_BETWEEN_LINES, max_keys)
        self._one_at_a_time = threading.Lock()

    def record(self, review: ReviewRecord) -> None:
        """Log the findings of mode audit that have not been logged within the last minute."""
        request, verdict = review.response.request, review.response.verdict
        if request is None or verdict is None or not verdict.findings:
            return
        first: dict[str, RatedFinding] = {}
        for finding in verdict.findings:
            if finding.mode is Mode.AUDIT:
                first.setdefault(finding.rule, finding)
        for rule, finding in first.items():
            fields = _describe(request, verdict)
            silent = self._admit((rule, request.resource, request.namespace, request.name, str(fields["user"])))
            if silent is not None:
                fields["rules"] = f"{rule}={finding.mode.word}"
                fields["reason"] = str(finding.error)
                fields["more_since_last_line"] = silent
                log_verdict(logging.INFO, "audited", fields)

    def _admit(self, key: tuple[str, ...]) -> int | None:
        with self._one_at_a_time:
            # The hash alone is remembered: a name may be as long as a client likes.
            return self._lines.admit(self._clock(), hash(key))
