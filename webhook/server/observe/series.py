"""The label values that each counter can have: a client cannot add one, and all of them are shown from the start.

A series that appears with the value 1 has no increase, so an alert on `increase(...)` would miss the first event,
which is often the only one (Prometheus, "Instrumentation", "Avoid missing metrics").
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Final

from prometheus_client import Metric

from webhook.api.request import Operation, Resource
from webhook.rules.events import Event
from webhook.rules.mode import Mode
from webhook.rules.registry import OBJECT_TYPES, RULES
from webhook.server.http import refusal_kinds

OTHER: Final = "other"
"""The label for names from clients that are not known."""

VERDICTS: Final = ("allowed", "warned", "denied")
INCIDENTS: Final = ("bug", "no-time")
RELOADS: Final = tuple(product(("certificate", "policy", "token-keys"), ("success", "failure")))
DROPPED: Final = ("log", "capture")
FINDINGS: Final = tuple(product((*RULES, OBJECT_TYPES), (mode.word for mode in (Mode.AUDIT, Mode.WARN, Mode.DENY))))
"""Rule and mode."""

Series = tuple[dict[str, str], frozenset[tuple[str, str]]]
"""The labels of one series, and the same as a key."""

_UPDATES: Final = {
    Resource.LEASES: tuple(event for event in Event if event not in {Event.CREATE, Event.UPDATE}),
    Resource.LEASECANDIDATES: (Event.UNTOUCHED, Event.UPDATE),
}


def reviews() -> Iterator[tuple[str, str, str, str]]:
    """Resource, operation, event and verdict of what this webhook is registered for.

    The event is empty where no rule ran: a wrong type, a request that contradicts itself, the kill switch.
    """
    for resource, updates in _UPDATES.items():
        events = {Operation.CREATE: (Event.CREATE,), Operation.UPDATE: updates, Operation.DELETE: (Event.DELETE,)}
        for operation, known in events.items():
            for event, verdict in product((*known, ""), VERDICTS):
                yield resource.value, operation.value, str(event), verdict


def with_zeros(metric: Metric) -> Metric:
    """The metric with a sample of 0 for each known series that it lacks: only what happened costs memory and files."""
    name = f"{metric.name}_total"
    there = {frozenset(sample.labels.items()) for sample in metric.samples if sample.name == name}
    for labels, key in _KNOWN.get(metric.name, ()):
        if key not in there:
            metric.add_sample(name, labels, 0)
    return metric


def _series(names: tuple[str, ...], values: Iterable[tuple[str, ...]]) -> tuple[Series, ...]:
    labels = [dict(zip(names, one, strict=True)) for one in values]
    return tuple((one, frozenset(one.items())) for one in labels)


_KNOWN: Final[Mapping[str, tuple[Series, ...]]] = {
    "lease_webhook_reviews": _series(("resource", "operation", "event", "verdict"), reviews()),
    "lease_webhook_findings": _series(("rule", "mode"), FINDINGS),
    "lease_webhook_malformed": _series(("class",), zip(refusal_kinds.ALL)),
    "lease_webhook_incidents": _series(("kind",), zip(INCIDENTS)),
    "lease_webhook_reloads": _series(("what", "result"), RELOADS),
    "lease_webhook_dropped": _series(("what",), zip(DROPPED)),
}
