"""Metrics of elections, as Prometheus reads them: who leads, for how long no one did, and how leaders changed."""

from collections.abc import Iterator
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from webhook.admission.rules.expiry import MAX_TOLERANCE
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Handover
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.status import LeaseState, LeaseStatus
from webhook.analysis.history.stored_leases import Key
from webhook.analysis.live.leases import LiveLeases
from webhook.kubernetes.times import SECOND

PREFIX: Final = "lease_webhook_leader_"
_LABELS: Final = ("namespace", "lease")
_HOW: Final = {
    Handover.RELEASED: "released",
    Handover.EXPIRED: "expired",
    Handover.STOLEN: "stolen",
    Handover.DELETED: "other",
    Handover.CLAIMED: "other",
    Handover.PREFERRED: "other",
    Handover.UNKNOWN: "other",
}
"""Label values of handovers. The first holder that was seen, and another pod under the same name, are not handovers."""


class LeaderMetrics:
    """A collector of prometheus_client; heartbeats and deleted leases have no series."""

    def __init__(self, leases: LiveLeases) -> None:
        self._leases = leases
        self._leaderless: dict[Key, int] = {}
        """Values that were shown: what is known later may bound a time more closely, and no counter goes back."""

    def collect(self) -> Iterator[Metric]:
        """Yield every metric as it is now."""
        live = GaugeMetricFamily(
            f"{PREFIX}live",
            "1 while the lease is live; 0 after it expired or was released, and while no other replica can take it "
            "(frozen), even if its holder still renews it.",
            labels=_LABELS,
        )
        age = GaugeMetricFamily(
            f"{PREFIX}renewal_age_seconds",
            "Seconds since the last renewal, by the clock of the API server.",
            labels=_LABELS,
        )
        duration = GaugeMetricFamily(
            f"{PREFIX}duration_seconds", "Duration of the lease: after so long another may take it.", labels=_LABELS
        )
        leaderless = CounterMetricFamily(
            f"{PREFIX}leaderless_seconds", "Seconds without a leader, at most, since this began.", labels=_LABELS
        )
        handovers = CounterMetricFamily(
            f"{PREFIX}handovers", "Changes of the leader since this began.", labels=(*_LABELS, "how")
        )
        watching = GaugeMetricFamily(f"{PREFIX}watching", "1 while the watch of leases goes on, 0 after it ended.")
        watching.add_metric((), float(self._leases.is_watching))
        with self._leases.lock() as (histories, now):
            self._leaderless = {key: most for key, most in self._leaderless.items() if key in histories.leases}
            for (namespace, name), history in _find_elections(histories):
                status = history.find_status(now)
                if status is None:
                    continue  # what is shown is of several clusters, or was hidden
                labels = (namespace, name)
                renewed = history.known_renewal
                if renewed is None and status.from_stamps and not status.is_disputed:
                    renewed = status.last_renewal
                if _is_state_known(status, renewed, now):
                    live.add_metric(labels, float(status.state is LeaseState.LIVE))
                if status.holder and renewed is not None:
                    age.add_metric(labels, max(0, now - renewed) / SECOND)
                if status.holder and status.duration is not None:
                    duration.add_metric(labels, status.duration)
                leaderless.add_metric(
                    labels, self._raise_leaderless((namespace, name), history.measure_leaderless_time(now)) / SECOND
                )
                counts = dict.fromkeys(_HOW.values(), 0)
                for handover, number in history.handovers.items():
                    if how := _HOW.get(handover):
                        counts[how] += number
                for how, number in counts.items():
                    handovers.add_metric((*labels, how), number)
        yield from (live, age, duration, leaderless, handovers, watching)

    def _raise_leaderless(self, key: Key, leaderless: int) -> int:
        self._leaderless[key] = max(leaderless, self._leaderless.get(key, 0))
        return self._leaderless[key]


def _is_state_known(status: LeaseStatus, renewed: int | None, now: int) -> bool:
    """Return whether an API server's clock shows if a lease is live; `renewed` is its last renewal by that clock.

    A holder's own clock may be wrong, and no label of the metric says that it is only that. Where the last renewal is
    later than the moment at hand, either is wrong.
    """
    # Whoever renews a lease without a holder may lead or not: it was released all the same, and people are to know.
    if status.is_disputed or (status.state is LeaseState.UNKNOWN and status.holder):
        return False
    is_dated = renewed is not None and renewed <= now + MAX_TOLERANCE
    return is_dated or status.state not in {LeaseState.LIVE, LeaseState.EXPIRED}


def _find_elections(histories: ClusterHistory) -> Iterator[tuple[Key, LeaseHistory]]:
    for key, history in histories.leases.items():
        if history.lease is not None and not history.is_deleted and not history.is_heartbeat:
            yield key, history


def make_registry(leases: LiveLeases) -> CollectorRegistry:
    """Return a registry of these metrics alone."""
    registry = CollectorRegistry()
    registry.register(LeaderMetrics(leases))
    return registry
