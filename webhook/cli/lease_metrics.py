"""Gauges and counters of leases in the text format of Prometheus, for the textfile collector of node_exporter."""

from collections.abc import Iterator, Sequence
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from webhook.api.formats import LONGEST_NAME
from webhook.api.text import cut, escape
from webhook.explanation.account import Account
from webhook.history.tenure import FIRST, Handover
from webhook.rules.times import SECOND
from webhook.rules.well_known import NODE_LEASES

KINDS: Final = tuple(how for how in Handover if how not in FIRST)
"""How a holder followed another one. Each is counted from 0 on, so that `increase` sees the first one too."""


def exposition(accounts: Sequence[Account]) -> str:
    """What was seen of these leases: who is held, when it was renewed, how often it changed hands, how long no one led.

    The series of one lease are few, and the caller chooses the leases; the webhook itself has no series by lease.
    """
    registry = CollectorRegistry()
    registry.register(_Leases(accounts))
    return generate_latest(registry).decode()


class _Leases(Collector):
    """Values that were counted elsewhere: they have no time of creation."""

    def __init__(self, accounts: Sequence[Account]) -> None:
        self._accounts = accounts

    def collect(self) -> Iterator[Metric]:
        """The metrics, each with the series of all leases."""
        labels = ("namespace", "lease")
        held = GaugeMetricFamily("lease_held", "1 if the lease is held and has not expired.", labels=labels)
        renewed = GaugeMetricFamily(
            "lease_last_renewal_timestamp_seconds", "When the API server saw the last renewal.", labels=labels
        )
        leaderless = CounterMetricFamily(
            "lease_leaderless_seconds", "Seconds without a leader between two holders, as far as seen.", labels=labels
        )
        handovers = CounterMetricFamily(
            "lease_handovers", "Changes of the holder, by how the holder before lost it.", labels=(*labels, "how")
        )
        longest = GaugeMetricFamily(
            "lease_longest_silence_seconds", "The longest time without a renewal by one holder.", labels=labels
        )
        for account in self._accounts:
            history = account.history
            # Prometheus escapes no more than the backslash, the quote and the line break.
            key = (_label(history.namespace), _label(history.name))
            held.add_metric(key, account.standing is not None and account.standing.is_held)
            if account.last_renewal is not None:
                renewed.add_metric(key, account.last_renewal / SECOND)
            leaderless.add_metric(key, history.leaderless / SECOND)
            longest.add_metric(key, history.renewals.longest / SECOND)
            # A node's lease never changes hands, and a cluster has thousands.
            for how in () if history.namespace == NODE_LEASES else KINDS:
                handovers.add_metric((*key, how.value), history.handovers.get(how, 0))
        return iter((held, renewed, leaderless, handovers, longest))


def _label(name: str) -> str:
    """A name from the input, which an API server need not have checked."""
    return escape(cut(name, LONGEST_NAME))
