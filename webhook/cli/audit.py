"""`lease-webhook audit`: what is wrong with the leases that are stored, and how to repair it."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import click

from webhook.audit.stock import Stock
from webhook.cli import in_cluster as inside
from webhook.cli import kubectl
from webhook.cli.arguments import files, format_option
from webhook.cli.audit_printer import Printer
from webhook.cli.audit_run import Audit
from webhook.cli.cluster_options import cluster_options, moment_of_input
from webhook.cli.failure import Failure, needing_the_server
from webhook.cli.input_progress import InputProgress
from webhook.cli.kubectl import Cluster
from webhook.cli.lazy_group import Command
from webhook.cli.observed import observe_all
from webhook.cli.report import say
from webhook.cli.terminal import paint_for
from webhook.observations.observation import Item
from webhook.reports.model import Severity

_DESCRIPTION = """\
Examines Leases and LeaseCandidates as they are stored: values that an API server refuses or that freeze a lease,
forged or missing times of the API server, leaders that are gone, leases without an owner, leases that several programs
share, names that a generator proposed, candidates that cannot agree, timings that a short outage breaks.

PATH is any input of `why`; without one, kubectl is run. Pods and Nodes in the same input show which holders are gone.
A watch or an audit log shows more: lost leaders, steals, late renewals, shared identities.
"""

_EPILOG = """\
Exit codes:
  0  nothing found, or nothing as severe as --fail-on
  1  something that severe was found
  2  something could not be read, or wrong usage

Examples:
  kubectl get leases,leasecandidates -A -o json --show-managed-fields | lease-webhook audit -
  kubectl lease audit -A
  lease-webhook audit --format json dump.json > known.jsonl
  lease-webhook audit --baseline known.jsonl dump.json      # fails for new findings only
"""

STREAMED: Final = frozenset({"text", "json"})


@click.command("audit", cls=Command, help=_DESCRIPTION, epilog=_EPILOG)
@click.argument("paths", metavar="[PATH]...", nargs=-1, shell_complete=files)
@click.option("--now", metavar="RFC3339", help="evaluate the leases as of this time")
@click.option(
    "--fail-on",
    type=click.Choice([one.value for one in Severity]),
    default=Severity.WARNING.value,
    help="exit with 1 for findings of this severity or above; text only counts those below",
)
@click.option(
    "--baseline", metavar="FILE", help="JSON of an earlier audit: findings in it are skipped", shell_complete=files
)
@click.option("--with-pods", is_flag=True, help="let kubectl list pods and nodes too, to find holders that are gone")
@click.option("--in-cluster", is_flag=True, help="list leases with the service account of this pod, without kubectl")
@click.option(
    "--metrics", metavar="FILE", help="write a gauge of the findings for Prometheus, replacing the file at once"
)
@cluster_options
@format_option("json prints one line per finding", ("text", "json", "sarif", "junit", "openreports"))
def command(
    *,
    paths: tuple[str, ...],
    now: str | None,
    fail_on: str,
    baseline: str | None,
    with_pods: bool,
    in_cluster: bool,
    metrics: str | None,
    context: str,
    kubeconfig: str,
    namespace: str,
    all_namespaces: bool,
    output: str,
) -> int:
    """Examine everything and say what was found."""
    cluster = Cluster(context, kubeconfig, namespace, all_namespaces or not namespace)
    known = _known_findings(baseline) if baseline else frozenset()
    audit = Audit(Stock(moment_of_input(now, paths, None).at), Severity(fail_on), known, now, paths)
    notes: list[str] = []
    if paths and in_cluster:
        raise Failure("give either PATH or --in-cluster")
    items: Iterable[Item]
    if paths:
        items = observe_all(paths)
    elif in_cluster:
        items = inside.objects(notes, namespace=namespace, with_pods=with_pods)
    else:
        items = kubectl.objects(cluster, notes, with_pods=with_pods)
    progress = InputProgress("objects")
    printer = Printer(output, Severity(fail_on), paint_for(sys.stdout))
    for finding in audit.run(progress.watch(items)):
        if output in STREAMED:
            progress.print(*printer.lines(finding))
        else:
            printer.kept.append(finding)
    for note in (*audit.complaints(), *notes):
        say(note)
    printer.finish(audit)
    if metrics:
        with needing_the_server("--metrics"):
            from webhook.cli.audit_gauge import write_gauge  # noqa: PLC0415
        write_gauge(Path(metrics), audit.counts_by_check, len(audit.examined), audit.stock.now)
    return audit.exit_code


def _known_findings(path: str) -> frozenset[str]:
    """The fingerprints in the JSON lines that an earlier `audit --format json` printed; raises Failure."""
    try:
        lines = Path(path).read_bytes().splitlines()
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error
    return frozenset(_fingerprint(path, number, line) for number, line in enumerate(lines, 1) if line.strip())


def _fingerprint(path: str, number: int, line: bytes) -> str:
    try:
        one = json.loads(line)
        parts = [one[key] for key in ("kind", "namespace", "name", "check")]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Failure(f"{path}, line {number}: not a finding; write it with `audit --format json`") from None
    return "/".join(map(str, parts))
