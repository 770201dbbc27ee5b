"""`lease-webhook status`: says whether the webhook is in force in a cluster."""

import datetime as dt
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, cast

import click
from msgspec import Struct
from msgspec.structs import replace

from webhook.admission.policy.model import Policy
from webhook.admission.policy.schema import PolicyError
from webhook.analysis.inputs import cluster as clusters
from webhook.analysis.inputs.cluster import Cluster
from webhook.analysis.inputs.documents import Value
from webhook.api_server.doctor.documents import (
    LISTED_BESIDE,
    LISTED_KINDS,
    VALIDATING,
    Documents,
    ServiceReference,
    WebhookEntry,
)
from webhook.api_server.doctor.in_force import (
    NAME,
    PROOF,
    RULE,
    Fact,
    Handshake,
    Sample,
    describe_exclusion,
    describe_own_exemption,
    explain_silence,
    find_cause,
    find_entries_to_try,
    find_facts,
    find_stored_policy,
    interpret_proof,
    parse_samples,
)
from webhook.cli.options import Command, format_option
from webhook.cli.reading import connection_options
from webhook.cli.terminal import encode_line, format_table, measure_width, print_message, style, wrap_on_terminal
from webhook.text.quoting import escape

_DESCRIPTION: Final = """\
Says whether the webhook reviews writes: by a dry run, which stores nothing, of a lease that only the webhook refuses.
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
  lease-webhook status -n shop      # are writes in this namespace reviewed?
  lease-webhook status --wait 120   # after an apply, or a change of the policy
"""
_NAMESPACE: Final = 'send the dry run to this namespace; "default" unless given'
_WAIT: Final = "wait up to this long for exit code 0"
_CLUSTER_WIDE: Final = {"validatingwebhookconfigurations": (VALIDATING,), **LISTED_KINDS}
_KINDS: Final = _CLUSTER_WIDE | LISTED_BESIDE
_PAUSE: Final = 2.0
"""Seconds between two looks."""


class _Status(Struct, frozen=True, rename="camel"):
    in_force: bool | None
    reason: str
    facts: list[Fact]

    @property
    def headline(self) -> tuple[str, str]:
        """The answer in a few words, and its color."""
        if self.in_force is None:
            return "not known", "yellow"
        return ("in force", "green") if self.in_force else ("not in force", "red")

    @property
    def summary(self) -> str:
        """The answer in one line, with what is wrong where it is in force."""
        wrong = next((f"{one.subject}: {one.text}" for one in self.facts if one.is_wrong), "")
        return f"in force, but {wrong}" if self.in_force and wrong else f"{self.headline[0]}: {self.reason}"

    @property
    def code(self) -> int:
        if self.in_force is False or any(one.is_wrong for one in self.facts):
            return 1
        return 0 if self.in_force else 2


@click.command("status", cls=Command, help=_DESCRIPTION, epilog=_EPILOG)
@click.option(
    "-n",
    "--namespace",
    metavar="NAME",
    default="default",
    help=_NAMESPACE,
)
@click.option("--wait", metavar="SECONDS", type=click.FloatRange(min=0), default=0, help=_WAIT)
@connection_options
@format_option()
def command(*, namespace: str, wait: float, cluster: Cluster, output: str) -> int:
    until = time.monotonic() + wait
    cluster = replace(cluster, namespace=namespace)
    told = ""
    while (status := _find_status(cluster)).code and time.monotonic() + _PAUSE < until:
        if status.summary != told:
            told = status.summary
            print_message(f"waiting; {told}")
        time.sleep(_PAUSE)
    if output == "json":
        print(encode_line(status))
        return status.code
    headline, color = status.headline
    text = wrap_on_terminal(f"{headline}: {status.reason}", 3)
    print(style(headline, fg=color) + text.removeprefix(headline))
    rows = [row for fact in status.facts for row in _make_rows(fact)]
    if rows:
        print("\n".join(format_table(rows, by=0, columns=measure_width())))
    return status.code


def _make_rows(fact: Fact) -> Iterator[tuple[str, str, str]]:
    yield "!" if fact.is_wrong else " ", fact.subject, escape(fact.text)
    for lead, text in (("risk", fact.risk), ("fix", fact.fix)):
        if text:
            yield " ", "", f"{lead}: {escape(text)}"


class _Reader:
    """Reads objects by kubectl, and keeps what could not be read."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._values: list[Value] = []
        self._unread: list[str] = []
        self.unknown: list[Fact] = []

    @property
    def found(self) -> Documents:
        return Documents(self._values, self._unread)

    def read(self, kinds: str, *words: str) -> None:
        found = clusters.get_objects(self._cluster, kinds, *words)
        if not isinstance(found, str):
            self._values.extend(found)
        elif clusters.NO_SUCH_KIND not in found:
            self._unread.extend(_KINDS.get(kinds, ()))
            if all(found not in one.text for one in self.unknown):
                self.unknown.append(Fact("not known", f"{kinds.replace(',', ', ')}: {found}"))

    def read_metrics(self, namespace: str) -> Iterator[Sample]:
        for pod in self.found.find_all("Pod"):
            if (pod.metadata.labels or {}).get("app.kubernetes.io/name") == NAME:
                text, problem = clusters.read_metrics(self._cluster, namespace, pod.metadata.name)
                yield from parse_samples(pod.metadata.name, text.decode(errors="replace"))
                if problem:
                    self.unknown.append(Fact("pod", f"{pod.metadata.name}: not known: {problem}"))


def _find_status(cluster: Cluster) -> _Status:
    is_created, said = clusters.try_to_create(cluster, PROOF)
    if not is_created and (why := clusters.find_why_unreached(said)):
        # Each object that is not read would say so again, after as long a wait.
        return _Status(None, f"no API server was reached: {why}; {clusters.CHOOSE}", [])
    reader, now = _Reader(cluster), dt.datetime.now(dt.UTC)
    for kinds in _CLUSTER_WIDE:
        reader.read(kinds)
    namespaces = sorted(reader.found.namespaces)
    for namespace in namespaces[:1]:
        reader.read("deployments,statefulsets,pods,configmaps", f"--namespace={namespace}")
    for namespace in namespaces:
        for kinds in LISTED_BESIDE:
            reader.read(kinds, f"--namespace={namespace}")
    found, metrics = reader.found, [one for namespace in namespaces[:1] for one in reader.read_metrics(namespace)]
    scope = describe_exclusion(found, cluster.namespace)
    is_unanswered = is_created and not scope and RULE not in said
    handshakes = [_shake_hands(cluster, entry) for entry in find_entries_to_try(found, now)] if is_unanswered else []
    policy: Policy | None = None
    with suppress(PolicyError):  # of which there is a fact
        policy = find_stored_policy(found)
    in_force, reason = interpret_proof(
        is_created=is_created,
        said=said,
        out_of_scope=scope,
        silence=explain_silence(policy, cluster.namespace) if policy else "",
        cause=find_cause(found, policy, cluster.namespace, handshakes, now),
    )
    known = [*find_facts(found, metrics, now, handshakes), *reader.unknown]
    if writer := clusters.find_own_user(cluster):
        known += describe_own_exemption(policy, *writer, cluster.namespace, round(now.timestamp() * 1e6))
    return _Status(in_force, reason, known)


def _shake_hands(cluster: Cluster, entry: WebhookEntry) -> Handshake:
    config = entry.webhook.client_config
    service = cast("ServiceReference", config.service)
    outcome, reason = clusters.try_tls(
        cluster, service.namespace, service.name, service.number, name=config.server_name, roots=config.roots
    )
    return Handshake(entry, outcome, reason)
