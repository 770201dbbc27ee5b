"""Metrics, under the names that dashboards rely on, for all workers together.

With PROMETHEUS_MULTIPROC_DIR set before prometheus_client is first imported, every worker counts in files of its own
in that directory and any of them can show the sum.
"""

import collections
import math
import os
import threading
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from itertools import accumulate, product
from pathlib import Path
from typing import Any, Final, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Metric, generate_latest, values
from prometheus_client.core import HistogramMetricFamily, Sample
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from webhook import __version__
from webhook.admission.policy.model import Policy
from webhook.admission.rules.change import Event
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.registry import ALL_RULES
from webhook.certificates.files import Certificate
from webhook.kubernetes.request import Resource
from webhook.server.http.message import REFUSAL_KINDS
from webhook.server.logs import LOG
from webhook.server.reviewer import BUG, DEADLINE_EXCEEDED, ReviewRecord

METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS: Final = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0)
"""Seconds. From 5 ms on they hold those of the API server's own admission metrics; a review takes 0.2 ms."""
_BOUNDS: Final = (*map(str, BUCKETS), "+Inf")
_DURATIONS: Final = "lease_webhook_review_durations"
_SECONDS: Final = "lease_webhook_review_seconds"
"""The two counters from which the histogram of durations is made."""
BODY: Final = "body"
"""The kind of a refused request whose body cannot be decoded as a review."""
OTHER: Final = "other"
"""The label for what a client sent that is not in a fixed set."""
REFUSED_BY_ROUTES: Final = {404: "path", 405: "method", 413: "body-size", 415: "media-type", 500: "bug"}
"""Label values for whole requests that are not reviews, by the status of their response."""
KINDS_OF_REFUSAL: Final = (*dict.fromkeys([*REFUSAL_KINDS.values(), *REFUSED_BY_ROUTES.values()]), BODY, OTHER)
MAX_CACHE_SECONDS: Final = 1.0
MAX_REVIEWS_WAITING: Final = 1000
"""Reviews that wait for a flush at most."""

_DIRECTORY: Final = "PROMETHEUS_MULTIPROC_DIR"
_RESOURCES: Final = frozenset(Resource)
_GONE_AT_ZERO: Final = frozenset({"lease_webhook_policy_info", "lease_webhook_certificate_not_after_seconds"})
"""Gauges of what may go, such as a policy: the shared files keep their series, with the value 0."""
_ReviewLabels = tuple[str, str, str, str]
"""Resource, operation, event, verdict."""


def make_metrics() -> "Metrics":
    """Return the counters of this process, shared with the other workers'.

    Where no file can be made (the disk is full), the process counts for itself alone: a worker that did not start for
    that reason would take all others with it, because gunicorn gives up on a worker that cannot boot.
    """
    try:
        return Metrics()
    except OSError as error:
        LOG.error("the metrics of this worker cannot be shared", extra={"fields": {"problem": str(error)}})
        for begun in Path(os.environ[_DIRECTORY]).glob(f"*_{os.getpid()}.db"):
            begun.unlink()  # an empty one would break every worker's exposition
        values.ValueClass = values.MutexValue
        return Metrics()


class Metrics:
    """The counters of one process. Label values come from fixed sets only: a client cannot invent a series."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._counters = {
            name: Counter(f"lease_webhook_{name}", text, labels, registry=registry)
            for name, (text, labels, _) in _COUNTERS.items()
        }
        self._durations = Counter(_DURATIONS, "Reviews by duration.", ["le"], registry=registry)
        self._seconds = Counter(_SECONDS, "Seconds of all reviews.", registry=registry)

        def gauge(name: str, text: str, mode: Literal["livesum", "livemin", "livemax"], *labels: str) -> Gauge:
            return Gauge(f"lease_webhook_{name}", text, labels, registry=registry, multiprocess_mode=mode)

        ends = "Expiry of the serving certificate, and of the CA that signed it, as Unix time."
        self._in_flight = gauge("in_flight", "Requests that have not arrived in full.", "livesum")
        self._not_after = gauge("certificate_not_after_seconds", ends, "livemin", "certificate")
        self._policy = gauge("policy_info", "1 for the policy in force.", "livemax", "preset", "hash", "mode")
        gauge("build_info", "Always 1.", "livemax", "version").labels(__version__).set(1)
        self._waiting: deque[tuple[_ReviewLabels, float, list[tuple[str, Mode]]]] = deque()
        self._flushing = threading.Lock()
        self._policy_in_force: Gauge | None = None
        self._ca_shown = False
        self._dropped: dict[str, int] = {}
        self._cached = b""
        self._cached_at = -math.inf

    def record(self, review: ReviewRecord) -> None:
        """Count one response; verdicts, findings and durations show after the next `flush`."""
        response = review.response
        request, verdict = response.request, response.verdict
        if request is None or verdict is None:
            if response.incident:
                self.count("incidents", response.incident)
            else:
                self.count(
                    "malformed", BODY if response.status == 400 else REFUSED_BY_ROUTES.get(response.status, OTHER)
                )
            return
        # A resource may be any text, as long as a review, and would be kept until the next flush.
        resource = request.resource if request.resource in _RESOURCES else OTHER
        outcome = verdict.outcome
        labels = (resource, request.operation, verdict.event, outcome)
        # Appending needs no lock, whichever thread does it.
        findings = [(one.rule, one.mode) for one in verdict.findings] if verdict.findings else []
        self._waiting.append((labels, review.seconds, findings))
        if len(self._waiting) >= MAX_REVIEWS_WAITING:
            self.flush()

    def flush(self) -> None:
        """Add what was counted since the last time to the shared files: once a second, not with each review.

        Counting with each review costs 8 us, a sixth of a whole review: its code and data are in no cache then.
        """
        with self._flushing:
            waiting = [self._waiting.popleft() for _ in range(len(self._waiting))]
            for labels, count in collections.Counter(labels for labels, _, _ in waiting).items():
                self.count("reviews", *labels, number=count)
            findings = collections.Counter(finding for _, _, some in waiting for finding in some)
            for (rule, mode), count in findings.items():
                self.count("findings", rule, mode.word, number=count)
            places = collections.Counter(bisect_left(BUCKETS, seconds) for _, seconds, _ in waiting)
            for place, count in places.items():
                self._durations.labels(_BOUNDS[place]).inc(count)
            self._seconds.inc(sum(seconds for _, seconds, _ in waiting))

    def count(self, counter: str, *labels: str, number: int = 1) -> None:
        """Add to a counter, named without `lease_webhook_`; label values are those of _COUNTERS."""
        found = self._counters[counter]
        (found.labels(*labels) if labels else found).inc(number)

    def show_in_flight(self, requests: int) -> None:
        """Show how many requests have begun and are not whole."""
        self._in_flight.set(requests)

    def show_dropped(self, what: str, total: int) -> None:
        """Bring the count of dropped things up to `total`."""
        self.count("dropped", what, number=total - self._dropped.get(what, 0))
        self._dropped[what] = total

    def show_policy(self, policy: Policy) -> None:
        """Show which policy is in force."""
        if self._policy_in_force is not None:
            self._policy_in_force.set(0)
        self._policy_in_force = self._policy.labels(policy.preset, policy.digest, policy.mode.word)
        self._policy_in_force.set(1)

    def show_certificate(self, serving: Certificate) -> None:
        """Export the expiry of the serving certificate, and of its CA if the CA's certificate is beside it."""
        self._not_after.labels("serving").set(serving.not_after.timestamp())
        if serving.ca_not_after or self._ca_shown:
            self._ca_shown = True
            self._not_after.labels("ca").set(serving.ca_not_after.timestamp() if serving.ca_not_after else 0)

    def render(self) -> bytes:
        """Return all workers' counts in Prometheus' text format; of other workers as they stood at their last flush.

        It takes milliseconds of the loop that answers reviews, so it is made once in MAX_CACHE_SECONDS at most.
        """
        now = time.monotonic()
        if now - self._cached_at >= MAX_CACHE_SECONDS:
            self._cached, self._cached_at = self._render(), now
        return self._cached

    def _render(self) -> bytes:
        self.flush()
        together = CollectorRegistry()
        together.register(_AllWorkers(self._registry))
        return generate_latest(together)


def _make_histogram(durations: Metric | None, seconds: Metric | None) -> HistogramMetricFamily:
    """Return the histogram that two counters stand for.

    The library's own takes a call for each review, 1.7 us; it has none for many at once, as a counter has.
    """
    by_bound = {sample.labels["le"]: sample.value for sample in _list_totals(durations)}
    totals = list(accumulate(by_bound.get(bound, 0) for bound in _BOUNDS))
    total_seconds = sum(sample.value for sample in _list_totals(seconds))
    histogram = HistogramMetricFamily(
        "lease_webhook_review_duration_seconds", "Time from the first byte of a review to its response."
    )
    histogram.add_metric([], list(zip(_BOUNDS, totals, strict=True)), total_seconds)
    return histogram


def _list_totals(counter: Metric | None) -> list[Sample]:
    return [sample for sample in counter.samples if sample.name.endswith("_total")] if counter else []


class _AllWorkers(Collector):
    """All workers' metrics, with every series of a counter from the start.

    A series that appears with the value 1 has no increase, so an alert on `increase(...)` would miss the first event,
    which is often the only one (Prometheus, "Instrumentation", "Avoid missing metrics").
    """

    def __init__(self, own: CollectorRegistry) -> None:
        directory = os.environ.get(_DIRECTORY)
        self._own = own
        self._inner: Any = MultiProcessCollector(None, directory) if directory else own  # type: ignore[no-untyped-call] # prometheus_client types it half

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics, also those that were never counted, and no gauge of what is gone."""
        counted = {metric.name: metric for metric in self._inner.collect()}
        yield _make_histogram(counted.pop(_DURATIONS, None), counted.pop(_SECONDS, None))
        for metric in self._own.collect():
            if metric.name not in counted and metric.type == "counter" and metric.name not in {_DURATIONS, _SECONDS}:
                counted[metric.name] = Metric(metric.name, metric.documentation, metric.type)
        for metric in counted.values():
            if metric.name in _GONE_AT_ZERO:
                metric.samples = [sample for sample in metric.samples if sample.value]
            # Only what happened costs memory and files, so the zeros are added here.
            _, names, known = _COUNTERS.get(metric.name.removeprefix("lease_webhook_"), ("", (), ()))
            there = {tuple(map(sample.labels.get, names)) for sample in metric.samples}
            for series in known:
                if series not in there:
                    metric.add_sample(f"{metric.name}_total", dict(zip(names, series, strict=True)), 0)
            yield metric


def _list_review_labels() -> Iterator[_ReviewLabels]:
    """Yield the labels of what this webhook is registered for; the event is empty where no rule ran."""
    updates: dict[Resource, list[Event]] = {
        Resource.LEASES: [event for event in Event if event not in {Event.CREATE, Event.UPDATE}],
        Resource.LEASECANDIDATES: [Event.UNTOUCHED, Event.UPDATE],
    }
    for resource, updated in updates.items():
        for operation, events in (("CREATE", [Event.CREATE]), ("UPDATE", updated), ("DELETE", [Event.DELETE])):
            for event, verdict in product([*map(str, events), ""], ("allowed", "warned", "denied")):
                yield resource.value, operation, event, verdict


_MODES: Final = [mode.word for mode in (Mode.AUDIT, Mode.WARN, Mode.DENY)]
_COUNTERS: Final[dict[str, tuple[str, tuple[str, ...], tuple[tuple[str, ...], ...]]]] = {
    "reviews": (
        "Verdicts: allowed, warned (allowed, with warnings) or denied.",
        ("resource", "operation", "event", "verdict"),
        tuple(_list_review_labels()),
    ),
    "findings": ("Findings of rules, by mode.", ("rule", "mode"), tuple(product(ALL_RULES, _MODES))),
    "shed": ("Requests answered with 503: too many bytes were being read, or a response took too long.", (), ()),
    "connections_closed": ("Connections closed because there were too many.", (), ()),
    "malformed": ("Requests rejected before evaluation.", ("class",), tuple((kind,) for kind in KINDS_OF_REFUSAL)),
    "incidents": (
        "Reviews answered with 500: a bug, or the deadline was exceeded.",
        ("kind",),
        ((BUG,), (DEADLINE_EXCEEDED,)),
    ),
    "reloads": (
        "Changed files that a worker loaded or refused.",
        ("what", "result"),
        tuple(product(("certificate", "policy"), ("success", "failure"))),
    ),
    "dropped": (
        "Log lines and captured reviews dropped because a queue was full.",
        ("what",),
        (("log",), ("capture",)),
    ),
}
"""Help, names of labels, and all values that they can have."""
