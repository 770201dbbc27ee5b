"""`lease-webhook why`: who leads, since when, why the leader changed, and what to do."""

import sys
from collections.abc import Iterable, Sequence
from typing import Final

import click
from msgspec import Struct
from msgspec.structs import asdict

from webhook.api.text import cut, escape
from webhook.audit.holding import pod_of
from webhook.cli import json_text, kubectl, object_stream
from webhook.cli.arguments import files, format_option
from webhook.cli.cluster_options import HIDDEN_STAMPS, Moment, cluster_options, moment_of_input
from webhook.cli.failure import Failure, needing_the_server
from webhook.cli.input_progress import InputProgress
from webhook.cli.kubectl import Cluster
from webhook.cli.lazy_group import Command
from webhook.cli.observed import observe_all
from webhook.cli.report import say
from webhook.cli.terminal import paint_for, table
from webhook.cli.why_text import lines
from webhook.doctor.on_path import OnPath, on_path
from webhook.explanation.account import Account, account_of, as_json
from webhook.explanation.words import ago, clock, name
from webhook.history.cluster_history import ClusterHistory
from webhook.history.lease_history import LeaseHistory
from webhook.history.standing import State
from webhook.observations.observation import Item

_DESCRIPTION = """\
Says who holds a lease and since when, when the API server saw the last renewal, how the holder changed, for how long
no one led, and whether the API server or the holder was the cause. Without a name it lists all leases.

The input is anything that shows leases: kubectl get -o json or yaml, a watch, the audit log of the API server (also
rotated and gzipped), reviews that the webhook captured. A watch or a log has a history; a dump shows only the present.
Without --input, kubectl is run with your own credentials.
"""

_EPILOG = """\
Examples:
  kubectl lease why shop/checkout
  kubectl get leases -A -o json --show-managed-fields | lease-webhook why --input -
  kubectl get leases -A -w -o json --output-watch-events --show-managed-fields > leases.json   # for a while, then:
  lease-webhook why shop/checkout --input leases.json
  lease-webhook why shop/checkout --input /var/log/kubernetes/audit
  kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o yaml > webhooks.yaml
  lease-webhook why shop/checkout --input leases.json --webhooks webhooks.yaml

Exit codes: 0 the lease was found, 2 it was not, or nothing could be read.
"""

_LONGEST_LEASE: Final = 320
"""Characters in the list, as many as legal names have at most: the longest one makes every row as long."""


@click.command("why", cls=Command, help=_DESCRIPTION, epilog=_EPILOG)
@click.argument("lease", metavar="[NAMESPACE/NAME]", required=False)
@click.option("--input", "inputs", metavar="FILE|DIR|-", multiple=True, help="may be repeated", shell_complete=files)
@click.option(
    "--webhooks",
    metavar="FILE",
    help="webhook configurations: say which of them may be called for it",
    shell_complete=files,
)
@click.option("--now", metavar="RFC3339", help="decide what has expired as of this time")
@click.option("--metrics", is_flag=True, help="print gauges and counters of all leases as Prometheus reads them")
@cluster_options
@format_option("json prints one line per lease")
def command(
    *,
    lease: str | None,
    inputs: tuple[str, ...],
    webhooks: str | None,
    now: str | None,
    metrics: bool,
    context: str,
    kubeconfig: str,
    namespace: str,
    all_namespaces: bool,
    output: str,
) -> int:
    """Read everything, then say what is known."""
    wanted = _wanted(lease, namespace)
    cluster = Cluster(
        context,
        kubeconfig,
        namespace or (wanted.namespace if wanted and not all_namespaces else ""),
        all_namespaces or (wanted is None and not namespace),
    )
    history = ClusterHistory()
    _read(history, inputs, cluster)
    as_of = moment_of_input(now, inputs, history.until)
    if wanted is None:
        _all(history, as_of, output, metrics=metrics)
        return 0
    one = _found(history, wanted)
    has_pod = None if inputs else _has_pod(one, as_of, cluster)
    passed = _webhooks(one, webhooks, None if inputs else cluster)
    account = account_of(history, one, as_of.at, has_pod=has_pod)
    if metrics:
        print(_exposition([account]), end="")
    elif output == "json":
        found = None if passed is None else [asdict(each) for each in passed]
        print(json_text.line({**as_json(account), "webhooks": found}))
    else:
        print("\n".join(lines(account, as_of, passed, paint_for(sys.stdout))))
    return 0


class Wanted(Struct, frozen=True):
    """A lease as it was named; the namespace is "" where none was."""

    namespace: str
    name: str


def _wanted(lease: str | None, namespace: str) -> Wanted | None:
    if lease is None:
        return None
    before, slash, after = lease.partition("/")
    found = Wanted(before, after) if slash else Wanted(namespace, before)
    if not found.name or (slash and not before) or "/" in found.name:
        raise Failure(f"{lease} must be NAMESPACE/NAME")
    if found.name.startswith("-") or found.namespace.startswith("-"):
        raise Failure(f"{lease} is not the name of a lease")
    return found


def _read(history: ClusterHistory, inputs: Sequence[str], cluster: Cluster) -> None:
    notes: list[str] = []
    items: Iterable[Item] = observe_all(inputs) if inputs else kubectl.objects(cluster, notes)
    for item in InputProgress("objects").watch(items):
        history.observe(item)
    for note in notes:
        say(note)
    if not history.leases:
        raise Failure("no lease is in the input")
    if not history.has_managed_fields and any(one.lease for one in history.leases.values()):
        say(HIDDEN_STAMPS)


def _found(history: ClusterHistory, wanted: Wanted) -> LeaseHistory:
    if wanted.namespace:
        found = [one] if (one := history.leases.get((wanted.namespace, wanted.name))) else []
    else:
        found = [one for key, one in history.leases.items() if key[1] == wanted.name]
    if len(found) == 1:
        return found[0]
    shown = f"{wanted.namespace}/{wanted.name}" if wanted.namespace else wanted.name
    if found:
        raise Failure(f"{shown} is in several namespaces: {', '.join(one.namespace for one in found[:5])}")
    near = sorted(
        f"{space}/{lease}" for space, lease in history.leases if wanted.name in lease or space == wanted.namespace
    )
    hint = f"; there are {', '.join(near[:5])}" if near else f"; {len(history.leases)} others are"
    raise Failure(f"lease {shown} is not in the input{hint}")


def _has_pod(one: LeaseHistory, as_of: Moment, cluster: Cluster) -> bool | None:
    standing = one.standing(as_of.at)
    if standing is None or "_" not in standing.holder:
        return None
    pod = pod_of(standing.holder)
    return kubectl.has_pod(cluster, one.namespace, pod) if pod else None


def _webhooks(one: LeaseHistory, path: str | None, cluster: Cluster | None) -> list[OnPath] | None:
    """The webhooks on the path of its writes; None if no configurations were given and none may be read."""
    if path is None:
        documents = None if cluster is None else kubectl.webhook_configurations(cluster)
    else:
        documents = list(object_stream.read(path))
    return None if documents is None else list(on_path(documents, one.namespace))


def _all(history: ClusterHistory, as_of: Moment, output: str, *, metrics: bool) -> None:
    keys = sorted(history.leases)
    accounts = (account_of(history, history.leases[key], as_of.at) for key in keys)
    if metrics:
        print(_exposition(list(accounts)), end="")
        return
    if output == "json":
        for account in accounts:
            print(json_text.line(as_json(account)))
        return
    rows: list[tuple[str, ...]] = [("LEASE", "STATE", "HOLDER", "LAST RENEWED", "CAN BE TAKEN", "CHANGES", "WRONG")]
    rows += [_row(account) for account in accounts]
    print("\n".join(table(rows, 0)))
    print(as_of.text)


def _exposition(accounts: Sequence[Account]) -> str:
    with needing_the_server("--metrics"):
        from webhook.cli.lease_metrics import exposition  # noqa: PLC0415
    return exposition(accounts)


def _row(account: Account) -> tuple[str, ...]:
    history, standing, now = account.history, account.standing, account.now
    takeable = standing.takeable_at if standing else None
    is_free = account.state in {State.RELEASED, State.NEVER_HELD} or (takeable is not None and takeable <= now)
    worst = account.findings[0] if account.findings and account.findings[0].severity.value != "info" else None
    return (
        escape(cut(f"{history.namespace}/{history.name}", _LONGEST_LEASE)),
        account.state.value,
        escape(name(account.holder)) if account.holder else "-",
        "-" if account.last_renewal is None else ago(account.last_renewal, now),
        "now" if is_free else "-" if takeable is None else clock(takeable, now),
        str(history.changes) if history.changes else "-",
        worst.check if worst else "-",
    )
