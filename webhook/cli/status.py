"""`lease-webhook status`: says whether the webhook is in force in a cluster."""

import datetime as dt
import time
from typing import Final

import click
from msgspec import Struct
from msgspec.structs import replace

from webhook.analysis.inputs import cluster as clusters
from webhook.analysis.inputs.cluster import Cluster
from webhook.analysis.inputs.documents import Value
from webhook.api_server.doctor.documents import LISTED, VALIDATING, Documents
from webhook.api_server.doctor.in_force import NAME, PROOF, Fact, Sample, facts, interpret_proof, out_of_scope, samples
from webhook.cli.options import Command, format_option
from webhook.cli.reading import connection_options
from webhook.cli.terminal import encode_line, format_table, measure_width, style, wrap_on_terminal
from webhook.text.quoting import escape

_DESCRIPTION: Final = """\
Says whether the webhook reviews writes: by a dry run of a lease that nothing else refuses, of which nothing is stored.
Then it shows configuration, pods, certificate, policy, policies of the API server and the verdicts so far.

It runs kubectl with your own credentials. What may not be read is shown as not known.
"""
_EPILOG: Final = """\
Exit codes:
  0  in force, and nothing that is known is wrong
  1  not in force, or something is wrong (marked with !)
  2  not known, or wrong usage

Examples:
  lease-webhook status
  lease-webhook status -n shop               # are writes in this namespace reviewed?
  lease-webhook status --wait 120            # after an apply, or a change of the policy
"""
_CLUSTER_WIDE: Final = {"validatingwebhookconfigurations": (VALIDATING,), **LISTED}
_PAUSE: Final = 2.0
"""Seconds between two looks."""
_WORDS: Final = {True: ("in force", "green"), False: ("not in force", "red"), None: ("not known", "yellow")}


class _Status(Struct, frozen=True, rename="camel"):
    in_force: bool | None
    reason: str
    facts: list[Fact]

    @property
    def code(self) -> int:
        if self.in_force is False or any(one.is_wrong for one in self.facts):
            return 1
        return 0 if self.in_force else 2


@click.command("status", cls=Command, help=_DESCRIPTION, epilog=_EPILOG)
@click.option("-n", "--namespace", metavar="NAME", default="default", help="send the dry run to this namespace")
@click.option("--wait", metavar="SECONDS", type=click.FloatRange(min=0), default=0, help="wait for exit code 0")
@connection_options
@format_option()
def command(*, namespace: str, wait: float, cluster: Cluster, output: str) -> int:
    until = time.monotonic() + wait
    cluster = replace(cluster, namespace=namespace)
    while (status := _find_status(cluster)).code and time.monotonic() + _PAUSE < until:
        time.sleep(_PAUSE)
    if output == "json":
        print(encode_line(status))
        return status.code
    word, color = _WORDS[status.in_force]
    print(style(word, fg=color) + wrap_on_terminal(f"{word}: {status.reason}", 3)[len(word) :])
    rows = [("!" if one.is_wrong else " ", one.subject, escape(one.text)) for one in status.facts]
    print("\n".join(format_table(rows, by=0, columns=measure_width())))
    return status.code


def _find_status(cluster: Cluster) -> _Status:
    is_created, said = clusters.try_to_create(cluster, PROOF)
    values: list[Value] = []
    unread: list[str] = []
    unknown: list[Fact] = []

    def read(kinds: str, *words: str) -> None:
        found = clusters.get_objects(cluster, kinds, *words)
        if not isinstance(found, str):
            values.extend(found)
        elif clusters.NO_SUCH_KIND not in found:
            unread.extend(_CLUSTER_WIDE.get(kinds, ()))
            if all(found not in one.text for one in unknown):
                unknown.append(Fact("not known", f"{kinds.replace(',', ', ')}: {found}"))

    for kinds in _CLUSTER_WIDE:
        read(kinds)
    namespace = min(Documents(values).namespaces, default="")
    if namespace:
        read("deployments,statefulsets,pods,configmaps", f"--namespace={namespace}")
    found, metrics = Documents(values, unread), list[Sample]()
    for pod in found.find_all("Pod"):
        if (pod.metadata.labels or {}).get("app.kubernetes.io/name") == NAME:
            text, problem = clusters.read_metrics(cluster, namespace, pod.metadata.name)
            metrics += samples(pod.metadata.name, text.decode(errors="replace"))
            if problem:
                unknown.append(Fact("pod", f"{pod.metadata.name}: not known: {problem}"))
    known = facts(found, metrics, dt.datetime.now(dt.UTC))
    scope = out_of_scope(found, cluster.namespace)
    return _Status(*interpret_proof(is_created=is_created, said=said, out_of_scope=scope), [*known, *unknown])
