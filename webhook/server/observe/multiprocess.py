"""prometheus_client with several processes: counts in files that they share, and all of them as text."""

import os
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, Final

from prometheus_client import CollectorRegistry, Histogram, Metric, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector

from webhook.server.observe.series import with_zeros

DIRECTORY: Final = "PROMETHEUS_MULTIPROC_DIR"


def exposition(own: CollectorRegistry) -> bytes:
    """Prometheus' text format: all workers' counts, of the others as they stood at their last flush."""
    together = CollectorRegistry()
    together.register(_Shown(own))
    return generate_latest(together)


def observe_all(histogram: Histogram, values: list[float]) -> None:
    """`histogram.observe` of each value, with one write to each bucket instead of one for each value.

    The library has no such call; a test holds these private names to what `observe` does.
    """
    histogram._sum.inc(sum(values))  # noqa: SLF001 - see above
    counts = [0] * len(histogram._upper_bounds)  # noqa: SLF001
    for value in values:
        counts[bisect_left(histogram._upper_bounds, value)] += 1  # noqa: SLF001
    for bucket, count in zip(histogram._buckets, counts, strict=True):  # noqa: SLF001
        if count:
            bucket.inc(count)


def forget_worker(pid: int) -> None:
    """Take a dead worker's gauges out of the sum; called in the master."""
    if DIRECTORY in os.environ:
        mark_process_dead(pid)  # type: ignore[no-untyped-call] # prometheus_client types it half


class _Shown(Collector):
    """All workers' metrics: every series of a counter from the start, and no gauge of what is gone.

    A policy that no longer holds, or a CA that is no longer there, has the value 0: the shared files keep it.
    """

    def __init__(self, own: CollectorRegistry) -> None:
        directory = os.environ.get(DIRECTORY)
        self._own = own
        self._inner: Any = MultiProcessCollector(None, directory) if directory else own  # type: ignore[no-untyped-call] # prometheus_client types it half

    def collect(self) -> Iterator[Metric]:
        """The metrics, also those that were never counted."""
        counted = {metric.name: metric for metric in self._inner.collect()}
        for metric in self._own.collect():
            if metric.name not in counted and metric.type == "counter":
                counted[metric.name] = Metric(metric.name, metric.documentation, metric.type)
        for metric in counted.values():
            if metric.name in _GONE_AT_ZERO:
                metric.samples = [sample for sample in metric.samples if sample.value]
            yield with_zeros(metric)


_GONE_AT_ZERO: Final = frozenset({"lease_webhook_policy_info", "lease_webhook_certificate_not_after_seconds"})
