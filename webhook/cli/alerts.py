"""`lease-webhook export alerts`: Prometheus alerts on leases that no one renews; nothing is applied."""

import re
import time
from collections.abc import Iterable
from typing import Final

import click
from msgspec import Struct, field

from webhook.admission.rules.change import NODE_LEASES
from webhook.analysis.alerts import DOCS, MAX_LIMIT, WatchedLease, make_prometheus_rules, make_rules_file
from webhook.analysis.heartbeats import is_heartbeat
from webhook.analysis.history.status import date_renewal
from webhook.analysis.inputs.cluster import Cluster
from webhook.analysis.inputs.items import Act, Item, Observation, Unreadable
from webhook.cli.absence import refuse_absence
from webhook.cli.options import Command
from webhook.cli.progress import Progress
from webhook.cli.reading import (
    cluster_and_input_options,
    find_namespace,
    input_option,
    read_for_history,
    widen_to_all_namespaces,
)
from webhook.cli.terminal import print_message
from webhook.kubernetes.objects import Lease
from webhook.kubernetes.times import DAY, SECOND
from webhook.text.yaml_writer import write_comment, write_stream

_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9.:-]{0,251}[a-z0-9])?")
_MAX_NAMED: Final = 5
_AUDIT: Final = "says how to repair it"
_HEADER: Final = "Made by lease-webhook export alerts. To apply: kubectl -n NAMESPACE-OF-PROMETHEUS apply -f FILE"
_HELP: Final = """\
Prints alerts for Prometheus on leases that no one renews: elections without a leader, leases that are gone, times in
the future, and, by themselves, heartbeats that are silent. They use what kube-state-metrics exposes: no webhook, no
rights and no program of ours is needed in the cluster. Each lease has a limit from its own duration, so export them
again when operators come or go.

The input is any input of `why`; without one, kubectl lists the leases. Leases that no one has renewed for a day, and
those of nodes (unless -n kube-node-lease asks for them), have no limit.
"""
_EPILOG: Final = """\
Exit codes:
  0  printed
  2  something could not be read, or wrong usage

Examples:
  kubectl lease export alerts | kubectl -n monitoring apply -f -
  lease-webhook export alerts --input leases.json --format rules \\
    > lease-rules.yaml
"""


class _LatestLeases(Struct):
    """The latest state of each lease of an input."""

    leases: dict[tuple[str, str], Lease] = field(default_factory=dict)
    unreadable: int = 0

    def observe(self, item: Item) -> None:
        if isinstance(item, Unreadable):
            self.unreadable += 1
        if not isinstance(item, Observation) or item.kind != "Lease" or not item.is_stored:
            return
        key = item.namespace, item.name
        if item.act is Act.DELETED:
            self.leases.pop(key, None)
        elif isinstance(item.object, Lease):
            self.leases[key] = item.object


@click.command("alerts", cls=Command, help=_HELP, epilog=_EPILOG)
@input_option
@click.option(
    "--format",
    "form",
    type=click.Choice(("operator", "rules")),
    default="operator",
    show_default=True,
    help="objects for the Prometheus operator, or a file of rules for Prometheus itself",
)
@click.option("--docs", default=DOCS, metavar="URL", help="address of the page about these alerts, for runbook_url")
@cluster_and_input_options
def alerts(*, inputs: tuple[str, ...], form: str, docs: str, cluster: Cluster) -> int:
    latest = _LatestLeases()
    progress = Progress()
    cluster = widen_to_all_namespaces(cluster)
    for item in read_for_history(inputs, cluster, progress=progress):
        latest.observe(item)
    if not latest.leases:
        raise refuse_absence("no lease", inputs, progress, cluster)
    watched = _find_watched_leases(latest.leases, find_namespace(cluster), time.time_ns() // 1000)
    objects = [*make_prometheus_rules(watched, docs)]
    print(write_comment(_HEADER if form == "operator" else "Made by lease-webhook export alerts"))
    print(write_stream(objects if form == "operator" else [make_rules_file(objects)]), end="")
    heartbeats = sum(1 for lease in watched if lease.is_heartbeat)
    print_message(f"limits of {len(watched) - heartbeats} elections and {heartbeats} heartbeats")
    return progress.exit_code(2 if latest.unreadable else 0)


def _find_watched_leases(leases: dict[tuple[str, str], Lease], only: str, now: int) -> list[WatchedLease]:
    """Return the leases that have a limit; say on standard error which have none, and why."""
    watched, abandoned, never, odd = list[WatchedLease](), list[str](), list[str](), list[str]()
    last = {key: date_renewal(lease.spec, ()) for key, lease in leases.items()}
    # A file may be old: what counts is how long before the others a lease was renewed last.
    as_of = min(now, max((at for at in last.values() if at is not None and at <= now), default=now))
    for (namespace, name), lease in sorted(leases.items()):
        if only not in ("", namespace) or (namespace == NODE_LEASES and only != NODE_LEASES):
            continue
        renewal, place = last[namespace, name], f"{namespace}/{name}"
        if not (_NAME.fullmatch(namespace) and _NAME.fullmatch(name)):
            odd.append(place)
        elif renewal is None:
            never.append(place)
        elif as_of - renewal > DAY:
            abandoned.append(place)
        else:
            duration = lease.spec.lease_duration_seconds
            watched.append(WatchedLease(namespace, name, duration, is_heartbeat(lease, namespace)))
            if duration is not None and duration > MAX_LIMIT:
                print_message(
                    f"{place} lasts {duration} s, so its limit is {MAX_LIMIT} s: lease-webhook audit {_AUDIT}"
                )
            if as_of - renewal > watched[-1].limit * SECOND:
                print_message(f"{place} is not renewed now: its alert will fire")
    _mention(abandoned, "not renewed for a day, so without a limit")
    _mention(never, "never renewed, so without a limit")
    _mention(odd, "not a name that an API server stores, so without a limit")
    return watched


def _mention(places: Iterable[str], reason: str) -> None:
    (*named,) = places
    if named:
        more = f" and {len(named) - _MAX_NAMED} more" if len(named) > _MAX_NAMED else ""
        print_message(f"{reason}: {', '.join(named[:_MAX_NAMED])}{more}")
