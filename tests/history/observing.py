"""Whole inputs, observed."""

from collections.abc import Iterable

from webhook.history.cluster_history import ClusterHistory
from webhook.observations.observation import Fenced, Item, LogEnd, Observation
from webhook.timeline.builder import TimelineBuilder


def observe_all(target: ClusterHistory | TimelineBuilder, items: Iterable[Item]) -> None:
    """Have every item observed; none of them may be anything else than an observation."""
    for item in items:
        assert isinstance(item, Observation | LogEnd | Fenced)
        target.observe(item)
