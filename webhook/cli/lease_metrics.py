"""Gauges and counters of leases in the text format of Prometheus, for the textfile collector of node_exporter."""

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from webhook.explanation.account import Account
from webhook.history.standing import State
from webhook.history.tenure import Handover
from webhook.rules.times import SECOND


def exposition(accounts: Sequence[Account]) -> str:
    """What was seen of these leases: who is held, when it was renewed, how often it changed hands, how long nobody led.

    The series of one lease are few, and the caller chooses the leases; the webhook itself has no series by lease.
    """
    registry = CollectorRegistry()
    labels = ("namespace", "lease")
    held = Gauge("lease_held", "1 if the lease is held and has not expired.", labels, registry=registry)
    renewed = Gauge(
        "lease_last_renewal_timestamp_seconds", "When the API server saw the last renewal.", labels, registry=registry
    )
    leaderless = Counter(
        "lease_leaderless_seconds",
        "Seconds without a leader between two holders, as far as seen.",
        labels,
        registry=registry,
    )
    handovers = Counter(
        "lease_handovers", "Changes of the holder, by how the one before ended.", (*labels, "how"), registry=registry
    )
    longest = Gauge(
        "lease_longest_silence_seconds", "The longest time without a renewal by one holder.", labels, registry=registry
    )
    for account in accounts:
        history = account.history
        key = (history.namespace, history.name)
        is_held = account.state in {State.LIVE, State.FROZEN} and bool(account.holder)
        held.labels(*key).set(is_held)
        if account.last_renewal is not None:
            renewed.labels(*key).set(account.last_renewal / SECOND)
        leaderless.labels(*key).inc(history.leaderless / SECOND)
        longest.labels(*key).set(history.renewals.longest / SECOND)
        for how, number in history.handovers.items():
            if how is not Handover.SEEN:
                handovers.labels(*key, how.value).inc(number)
    return generate_latest(registry).decode()
