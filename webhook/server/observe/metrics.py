"""What is counted, under the names that dashboards rely on, for all workers together.

With PROMETHEUS_MULTIPROC_DIR set before prometheus_client is first imported, every worker counts in files of its own
in that directory and any of them can show the sum.
"""

import collections
import math
import os
import threading
import time
from collections import deque
from functools import partial
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, values

from webhook import __version__
from webhook.api.request import Resource
from webhook.certificates.inspect import Certificate
from webhook.policy.model import Policy
from webhook.server.http import refusal_kinds
from webhook.server.logs import LOG
from webhook.server.observe.multiprocess import DIRECTORY, exposition, observe_all
from webhook.server.observe.series import OTHER
from webhook.server.reviewer import Reviewed
from webhook.verdict.model import Verdict

BUCKETS: Final = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0)
"""Seconds. From 5 ms on they hold those of the API server's own admission metrics; a review takes 0.2 ms."""
ReviewLabels = tuple[str, str, str, str]
"""Resource, operation, event, verdict."""
SHOWN_SECONDS: Final = 1.0
MOST_TO_ADD: Final = 1000
"""Reviews that wait for a flush at most: under another server than ours there is no other flush."""
_RESOURCES: Final = frozenset(Resource)


def make_metrics() -> "Metrics":
    """The counters of this process, shared with the other workers'.

    Where no file can be made (the disk is full), the process counts for itself alone: a worker that did not start for
    that reason would take all others with it, because gunicorn gives up on a worker that cannot boot.
    """
    try:
        return Metrics()
    except OSError as error:
        LOG.error("the metrics of this worker cannot be shared", extra={"fields": {"problem": str(error)}})
        for begun in Path(os.environ[DIRECTORY]).glob(f"*_{os.getpid()}.db"):
            begun.unlink()  # an empty one would break every worker's exposition
        values.ValueClass = values.MutexValue
        return Metrics()


class Metrics:
    """The counters of one process. Label values come from fixed sets only: a client cannot invent a series."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        counter = partial(Counter, registry=registry)
        gauge = partial(Gauge, registry=registry)
        self._reviews = counter(
            "lease_webhook_reviews",
            "Reviews answered with a verdict: allowed, warned (allowed, with warnings) or denied.",
            ["resource", "operation", "event", "verdict"],
        )
        self._findings = counter(
            "lease_webhook_findings", "What rules found, by the mode they were left.", ["rule", "mode"]
        )
        self._duration = Histogram(
            "lease_webhook_review_duration_seconds",
            "From the first byte of a request to its answer.",
            buckets=BUCKETS,
            registry=registry,
        )
        self._in_flight = gauge(
            "lease_webhook_in_flight", "Requests whose last byte has not come yet.", multiprocess_mode="livesum"
        )
        self._shed = counter(
            "lease_webhook_shed",
            "Requests answered with 503: too many bytes or requests were waiting, or a response took too long.",
        )
        self._closed_for_others = counter(
            "lease_webhook_connections_closed",
            "Connections that were closed because there were too many, the longest idle first.",
        )
        self._malformed = counter(
            "lease_webhook_malformed", "Requests rejected before evaluation, by reason.", ["class"]
        )
        self._incidents = counter("lease_webhook_incidents", "Reviews answered with 500: a bug, or no-time.", ["kind"])
        self._not_after = gauge(
            "lease_webhook_certificate_not_after_seconds",
            "When a certificate ends, as Unix time: the one that serves, and the CA that signed it.",
            ["certificate"],
            multiprocess_mode="livemin",
        )
        self._reloads = counter(
            "lease_webhook_reloads",
            "Changed files that were taken or refused, counted by each worker.",
            ["what", "result"],
        )
        self._policy = gauge(
            "lease_webhook_policy_info",
            "1 for the policy that holds.",
            ["preset", "hash", "mode"],
            multiprocess_mode="livemax",
        )
        build = gauge(
            "lease_webhook_build_info",
            "1; the label says which version runs.",
            ["version"],
            multiprocess_mode="livemax",
        )
        self._dropped = counter(
            "lease_webhook_dropped", "Log lines and captured reviews dropped because a queue was full.", ["what"]
        )
        build.labels(__version__).set(1)
        self._bound_reviews: dict[ReviewLabels, Counter] = {}
        self._to_add: deque[tuple[ReviewLabels, float]] = deque()
        self._flushing = threading.Lock()
        self._bound_findings: dict[tuple[str, str], Counter] = {}
        self._shown_policy: Gauge | None = None
        self._ca_shown = False
        self._lost: dict[str, int] = {}
        self._shown = b""
        self._shown_at = -math.inf

    def responded(self, review: Reviewed) -> None:
        """Count one response; verdicts and durations show after the next `flush`."""
        request, verdict = review.response.request, review.response.verdict
        if request is None or verdict is None:
            self.refused(refusal_kinds.OF_REVIEW.get(review.response.status, refusal_kinds.BODY))
            return
        # A resource may be any text, as long as a review, and would be kept until the next flush.
        resource = request.resource if request.resource in _RESOURCES else OTHER
        labels = (resource, request.operation, verdict.event, _word(verdict))
        # Appending needs no lock, whichever thread does it.
        self._to_add.append((labels, review.seconds))
        if len(self._to_add) >= MOST_TO_ADD:
            self.flush()
        for finding in verdict.findings:
            self._count_finding(finding.rule, finding.mode.word)

    def flush(self) -> None:
        """Add what was counted since the last time to the shared files: once a second, not with each review."""
        with self._flushing:
            batch = [self._to_add.popleft() for _ in range(len(self._to_add))]
            for labels, count in collections.Counter(labels for labels, _ in batch).items():
                (self._bound_reviews.get(labels) or self._bind_review(*labels)).inc(count)
            if batch:
                observe_all(self._duration, [seconds for _, seconds in batch])

    def failed(self, kind: str) -> None:
        """Count a review without a verdict."""
        self._incidents.labels(kind).inc()

    def refused(self, kind: str) -> None:
        """Count a request that is rejected before evaluation; `kind` is one of refusal_kinds.ALL."""
        self._malformed.labels(kind).inc()

    def closed_for_others(self) -> None:
        """Count a connection that was closed because there were too many."""
        self._closed_for_others.inc()

    def shed(self) -> None:
        """Count a request that was answered 503."""
        self._shed.inc()

    def show_in_flight(self, requests: int) -> None:
        """Show how many requests have begun and are not whole."""
        self._in_flight.set(requests)

    def reloaded(self, what: str, result: str) -> None:
        """Count a changed file: certificate or policy, success or failure."""
        self._reloads.labels(what, result).inc()

    def lost(self, what: str, total: int) -> None:
        """Bring a count of losses up to `total`."""
        known = self._lost.get(what, 0)
        if total > known:
            self._dropped.labels(what).inc(total - known)
            self._lost[what] = total

    def show_policy(self, policy: Policy) -> None:
        """Show which policy is in force."""
        if self._shown_policy is not None:
            self._shown_policy.set(0)
        self._shown_policy = self._policy.labels(policy.preset, policy.digest, policy.mode.word)
        self._shown_policy.set(1)

    def show_certificate(self, serving: Certificate) -> None:
        """Show when the certificate that serves ends, and the CA that signed it if its certificate is beside it."""
        self._not_after.labels("serving").set(serving.not_after.timestamp())
        if serving.ca_not_after or self._ca_shown:
            self._ca_shown = True
            self._not_after.labels("ca").set(serving.ca_not_after.timestamp() if serving.ca_not_after else 0)

    def exposition(self) -> bytes:
        """All workers' counts in Prometheus' text format; of other workers as they stood at their last flush.

        It takes milliseconds of the loop that answers reviews, so it is made once in SHOWN_SECONDS at most.
        """
        now = time.monotonic()
        if now - self._shown_at >= SHOWN_SECONDS:
            self._shown, self._shown_at = self._exposition(), now
        return self._shown

    def _exposition(self) -> bytes:
        self.flush()
        return exposition(self._registry)

    def _bind_review(self, resource: str, operation: str, event: str, verdict: str) -> Counter:
        counter = self._reviews.labels(resource, operation, event, verdict)
        self._bound_reviews[(resource, operation, event, verdict)] = counter
        return counter

    def _count_finding(self, rule: str, mode: str) -> None:
        counter = self._bound_findings.get((rule, mode))
        if counter is None:
            counter = self._bound_findings[(rule, mode)] = self._findings.labels(rule, mode)
        counter.inc()


def _word(verdict: Verdict) -> str:
    if not verdict.allowed:
        return "denied"
    return "warned" if verdict.warnings else "allowed"
