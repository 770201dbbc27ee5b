"""Alerts on leases that no one renews, as PrometheusRules over what kube-state-metrics already exposes.

`kube_lease_renew_time` has no duration, so the limit of each lease is a series of its own, made by a recording rule
with its namespace and name as labels: names never stand inside an expression.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final

from msgspec import Struct

from webhook.analysis.history.renewals import DEFAULT_DURATION

LIMIT: Final = "lease:silence_limit:seconds"
"""The recorded series: seconds without a renewal, by namespace, lease and kind."""
SCRAPE_LAG: Final = 60
"""Seconds by which kube-state-metrics and Prometheus may be late: two scrapes of 30 s."""
MAX_LIMIT: Final = 3600
"""Seconds: no known elector sets such a duration, and an alert after it would come too late."""
UNLISTED_LIMIT: Final = 900
"""Seconds, for leases that are not in the table: longer than any known elector needs."""
MAX_RULES_OF_AN_OBJECT: Final = 1000
"""Records in one PrometheusRule: some 150 KB, below what etcd and a ConfigMap hold."""
MAX_HOLDERS: Final = 4
"""Holders of one lease within an hour: a rollout of three replicas has at most four."""

DOCS: Final = "https://lease-webhook.example/docs/alerts.md"
"""The page about these alerts; who publishes the documentation replaces it."""

_OBJECT: Final = "lease-alerts"
"""The name of the object with the alerts, and the beginning of the names of those with limits."""

PrometheusRule = dict[str, Any]


class WatchedLease(Struct, frozen=True, order=True):
    """A lease with its own limit; `duration` in seconds as stored, None if it has none."""

    namespace: str
    name: str
    duration: int | None = None
    is_heartbeat: bool = False

    @property
    def limit(self) -> int:
        """Seconds without a renewal after which someone should look.

        An election has no leader once its duration has passed; another duration is left for a replica to notice and
        to take it. A lease without a duration has the usual one, and so has a released one: client-go writes 1 when it
        releases. A heartbeat is silent after five durations, as Open Cluster Management sees it.
        """
        duration = self.duration if self.duration is not None and self.duration > 1 else DEFAULT_DURATION
        return min(MAX_LIMIT, (5 if self.is_heartbeat else 2) * duration + SCRAPE_LAG)


def make_prometheus_rules(leases: Iterable[WatchedLease], docs: str = DOCS) -> Iterator[dict[str, Any]]:
    """Yield the alerts as an object for the Prometheus operator, then tables with the limit of each lease.

    Without leases, every lease has the limit of those that are not listed. `docs` is the address of the page of alerts.
    """
    yield _make_prometheus_rule(
        _OBJECT, [("lease-elections", _make_election_alerts(docs)), ("lease-heartbeats", _make_heartbeat_alerts(docs))]
    )
    listed = sorted(leases)
    for number, start in enumerate(range(0, len(listed), MAX_RULES_OF_AN_OBJECT), 1):
        records = [_make_record(lease) for lease in listed[start : start + MAX_RULES_OF_AN_OBJECT]]
        yield _make_prometheus_rule(f"{_OBJECT}-limits-{number}", [(f"lease-limits-{number}", records)])


def make_recorder_rule(docs: str = DOCS) -> dict[str, Any]:
    """Return the alerts on what `lease-webhook record --metrics` shows, as an object for the Prometheus operator."""
    return _make_prometheus_rule("lease-recorder", [("lease-recorder", _make_recorder_alerts(docs))])


def make_rules_file(objects: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the same groups as a file of rules, for a Prometheus without the operator."""
    return {"groups": list(chain.from_iterable(thing["spec"]["groups"] for thing in objects))}


def _make_prometheus_rule(name: str, groups: Sequence[tuple[str, Sequence[PrometheusRule]]]) -> dict[str, Any]:
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/name": "lease-webhook"}},
        "spec": {"groups": [{"name": group, "rules": [*rules]} for group, rules in groups]},
    }


def _make_record(lease: WatchedLease) -> PrometheusRule:
    kind = "heartbeat" if lease.is_heartbeat else "election"
    labels = {"namespace": lease.namespace, "lease": lease.name, "kind": kind}
    return {"record": LIMIT, "expr": f"vector({lease.limit})", "labels": labels}


_RENEW_TIME: Final = "max by (namespace, lease) (kube_lease_renew_time)"
_LIMIT_OF_LEASE: Final = f"max by (namespace, lease) ({LIMIT})"
"""While a table is replaced by another one, two of its rules may record the same lease."""
_LEASE: Final = "{{ $labels.namespace }}/{{ $labels.lease }}"
_AGO: Final = "{{ $value | humanizeDuration }}"
_WHY: Final = f"`lease-webhook why {_LEASE}` shows who holds it, and what happened."
_CLOCK: Final = "renewTime is written by the holder's clock: if that is wrong, so is this age."


def _make_alert(
    name: str, expression: str, *, severity: str, runbook: str, summary: str, description: str, lasts: str = ""
) -> PrometheusRule:
    """Return an alert, which fires once its expression has held for `lasts`; `runbook` has a heading of its name."""
    return {
        "alert": name,
        "expr": expression,
        **({"for": lasts} if lasts else {}),
        "labels": {"severity": severity},
        "annotations": {
            "runbook_url": f"{runbook}#{name.lower()}",
            "summary": summary,
            "description": description,
        },
    }


def _name_limits(kind: str) -> str:
    return f'max by (namespace, lease) ({LIMIT}{{kind="{kind}"}})'


def _make_election_alerts(docs: str) -> list[PrometheusRule]:
    unlisted = (
        '(time() - max by (namespace, lease) (kube_lease_renew_time{namespace!="kube-node-lease"})'
        f" unless on (namespace, lease) {_LIMIT_OF_LEASE}) > {UNLISTED_LIMIT}"
    )
    missing = (
        f"{_name_limits('election')} unless on (namespace, lease) {_RENEW_TIME} and on () count(kube_lease_renew_time)"
    )
    holders = (
        "count by (namespace, lease) (count by (namespace, lease, lease_holder) "
        f'(last_over_time(kube_lease_owner{{lease_holder!=""}}[1h]))) > {MAX_HOLDERS}'
    )
    return [
        _make_alert(
            "LeaseWithoutLeader",
            f"time() - {_RENEW_TIME} > on (namespace, lease) {_name_limits('election')}",
            lasts="1m",
            severity="warning",
            runbook=docs,
            summary=f"No one renews lease {_LEASE}",
            description=f"It was last renewed {_AGO} ago: its time is over, and no replica has taken it. {_WHY} "
            f"{_CLOCK}",
        ),
        _make_alert(
            "LeaseMissing",
            missing,
            lasts="5m",
            severity="warning",
            runbook=docs,
            summary=f"Lease {_LEASE} does not exist, or was never renewed",
            description="It existed when its limit was exported. If its program was removed on purpose, export "
            "the limits again.",
        ),
        _make_alert(
            "LeaseRenewedInTheFuture",
            f"{_RENEW_TIME} - time() > 60",
            lasts="5m",
            severity="warning",
            runbook=docs,
            summary=f"renewTime of lease {_LEASE} is in the future",
            description=f"It is {_AGO} ahead. Until then no alert can see whether the lease is renewed, "
            f"and some clients do not take it. The holder's clock is wrong, or someone froze the lease. {_WHY}",
        ),
        _make_alert(
            "LeaseChangesHands",
            holders,
            lasts="15m",
            severity="info",
            runbook=docs,
            summary=f"Lease {_LEASE} had {{{{ $value }}}} holders within an hour",
            description="A rollout has at most one more than there are replicas. Otherwise its leaders crash, "
            f"or lose the lease. {_WHY}",
        ),
        _make_alert(
            "LeaseNotRenewed",
            unlisted,
            lasts="1m",
            severity="info",
            runbook=docs,
            summary=f"Lease {_LEASE}, which has no limit of its own, is not renewed",
            description=f"It was last renewed {_AGO} ago. `lease-webhook export alerts` gives "
            f"each lease a limit from its own duration, and keeps elections and heartbeats apart. {_WHY} {_CLOCK}",
        ),
        _make_alert(
            "LeaseMetricsMissing",
            "absent(kube_lease_renew_time)",
            lasts="15m",
            severity="warning",
            runbook=docs,
            summary="Prometheus has no metrics of leases, so no alert on them can fire",
            description="kube-state-metrics is not scraped, or does not collect leases (--resources).",
        ),
    ]


def _make_heartbeat_alerts(docs: str) -> list[PrometheusRule]:
    return [
        _make_alert(
            "LeaseHeartbeatSilent",
            f"time() - {_RENEW_TIME} > on (namespace, lease) {_name_limits('heartbeat')}",
            lasts="1m",
            severity="info",
            runbook=docs,
            summary=f"The heartbeat of {_LEASE} is silent",
            description=f"It was last renewed {_AGO} ago. This is not an election: no one else would take it. "
            f"Look at the process that the lease is named after. {_CLOCK}",
        ),
    ]


_LIVE: Final = "max by (namespace, lease) (lease_webhook_leader_live)"
_STEALS: Final = 'max by (namespace, lease) (increase(lease_webhook_leader_handovers_total{how="stolen"}[10m]))'
_LEADERLESS: Final = "max by (namespace, lease) (increase(lease_webhook_leader_leaderless_seconds_total[1h]))"
_MAX_LEADERLESS: Final = 300
"""Seconds of an hour."""
_SEEN_LIVE: Final = "max by (namespace, lease) (max_over_time(lease_webhook_leader_live[1d]))"
"""1 for a lease that someone held within a day: what was left behind before is for `audit`."""


def _make_recorder_alerts(docs: str) -> list[PrometheusRule]:
    return [
        _make_alert(
            "LeaderLost",
            f"{_LIVE} == 0 and on (namespace, lease) {_SEEN_LIVE} == 1",
            lasts="1m",
            severity="warning",
            runbook=docs,
            summary=f"Lease {_LEASE} is expired, free or frozen",
            # The holder of a frozen lease may renew it, and lead: nobody is to delete it unseen.
            description="It expired or was released, and no replica took it within a minute; or it is frozen: no other "
            f"replica can take it, and its holder may still lead. Before you change anything: {_WHY} "
            "Delete the lease only if no one holds it and its program was stopped on purpose.",
        ),
        _make_alert(
            "LeaseStolen",
            f"{_STEALS} > 0",
            severity="warning",
            runbook=docs,
            summary=f"Lease {_LEASE} was taken from a holder that renewed it",
            description=f"Two may have led at once. {_WHY}",
        ),
        _make_alert(
            "LeaderAbsentOften",
            f"{_LEADERLESS} > {_MAX_LEADERLESS}",
            lasts="5m",
            severity="info",
            runbook=docs,
            summary=f"Lease {_LEASE} had no leader for {_AGO} of the last hour",
            description=f"That is an upper bound, over all gaps together. {_WHY}",
        ),
        _make_alert(
            "LeaseRecorderBlind",
            "absent(lease_webhook_leader_watching == 1)",
            lasts="10m",
            severity="warning",
            runbook=docs,
            summary="The recorder of leases sees nothing, so no alert on its metrics can fire",
            description="Its pod does not run, is not scraped, or its watch has ended: its log says why. "
            "kubectl -n lease-webhook logs lease-recorder-0",
        ),
    ]
