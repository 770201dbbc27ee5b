"""`lease-webhook suggest`: bindings and fences that would have allowed what was seen."""

import time
from typing import Final

import click

from webhook.admission.policy.parse import parse
from webhook.admission.policy.schema import PolicyError
from webhook.analysis.claims.words import format_count
from webhook.analysis.inputs.cluster import Cluster
from webhook.analysis.inputs.files import read_documents
from webhook.analysis.suggestions.bindings import AllWrites, make_binding_policy
from webhook.analysis.suggestions.fence import find_leases, find_writes_by, format_policy, suggest_fence
from webhook.cli.absence import name_source, refuse_absence, suggest_leases, suggest_name
from webhook.cli.options import Command, parse_lease_name
from webhook.cli.progress import Progress
from webhook.cli.reading import (
    cluster_and_input_options,
    find_named_lease,
    find_namespace,
    lease_and_inputs,
    read_for_history,
    widen_to_all_namespaces,
)
from webhook.cli.terminal import Failure
from webhook.text.quoting import escape

_BINDINGS: Final = """\
Reads who wrote leases and prints a policy file with a binding for each of them: the writers and holder names that would
have allowed everything that was seen. Comments say what each entry rests on and what the input does not show. A writer
whose first write looks like an attack is not listed; a comment names it.

The input is anything that shows leases: the audit log of the API server (at level Metadata it hides the holders; add
a list of the leases), what the webhook captured, a watch or a list of leases with their pods, whose service accounts
are taken for the writers. Without --input, kubectl lists leases and pods, with your own credentials.
"""
_BINDINGS_EPILOG: Final = """\
Exit codes:
  0  printed
  2  something could not be read, or wrong usage

Examples:
  lease-webhook suggest bindings shop/checkout --input /var/log/kubernetes/audit
  kubectl lease suggest bindings -n shop
"""
_FENCE: Final = """\
Reads what a service account wrote in an audit log of the API server, and prints a fence for a policy file. Leases,
events and what followers wrote are left out, and it says why. The lease is the one that it wrote, unless one is named.
"""
_FENCE_EPILOG: Final = """\
Examples:
  lease-webhook suggest fence --input audit.log --writer shop/operator
"""
_NO_LEASE: Final = "{} is not NAMESPACE/NAME"


@click.command("bindings", cls=Command, help=_BINDINGS, epilog=_BINDINGS_EPILOG)
@lease_and_inputs
@cluster_and_input_options
def bindings(*, leases: tuple[str, ...], inputs: tuple[str, ...], cluster: Cluster) -> int:
    lease = find_named_lease(leases)
    key = None if lease is None else parse_lease_name(lease, _NO_LEASE.format(lease))
    only = find_namespace(cluster)
    seen = AllWrites(time.time_ns() // 1000)
    progress = Progress()
    cluster = widen_to_all_namespaces(cluster)
    for item in read_for_history(inputs, cluster, resources=("pods",), progress=progress):
        seen.observe(item)
    if not seen.coverage.count:
        raise refuse_absence("no lease and no candidate", inputs, progress, cluster)
    text = make_binding_policy(seen, key, only)
    if not text:
        raise progress.refuse(Failure(_describe_absence(seen, key, only, name_source(inputs, cluster))))
    parse(text)  # what a policy check would refuse is a bug
    print(text, end="")
    return progress.exit_code(2 if seen.unreadable else 0)


def _describe_absence(seen: AllWrites, lease: tuple[str, str] | None, only: str, source: str) -> str:
    if lease is None:
        hint = suggest_name(only, {namespace: namespace for namespace, _ in seen.leases})
        return f"no write of a lease{f' of namespace {only}' if only else ''} is in {source}{hint}"
    name = "/".join(lease)
    if only not in {"", lease[0]}:
        return f"lease {name} is not in namespace {only}"
    hint = suggest_leases(*lease, seen.leases) or f"; it has those of {format_count(len(seen.leases), 'other lease')}"
    return f"no write of lease {name} is in {source}{hint}"


@click.command("fence", cls=Command, help=_FENCE, epilog=_FENCE_EPILOG)
@lease_and_inputs
@click.option("--writer", required=True, metavar="NAMESPACE/NAME", help="the service account")
@click.option("--name", metavar="NAME", help="of the fence; default: from the lease")
def fence(*, leases: tuple[str, ...], inputs: tuple[str, ...], writer: str, name: str | None) -> int:
    namespace, account = parse_lease_name(writer, "--writer must be a service account as namespace/name")
    if not inputs:
        raise click.UsageError("Missing option '--input'.")
    documents = (one for path in inputs for one in read_documents(path))
    events = find_writes_by(documents, f"system:serviceaccount:{namespace}:{account}")
    if not events:
        raise Failure(f"no stored write by the service account {writer} is in the input; it must be an audit log")
    lease = find_named_lease(leases) or _find_named_lease(find_leases(events))
    parse_lease_name(lease, _NO_LEASE.format(lease))
    found = suggest_fence(events, lease)
    name = name or lease.replace("/", "-").replace(".", "-")[:57].strip("-")
    if not found.evidence:
        reasons = [f"{resource}: {reason}" for resource, reason in sorted(found.left_out.items())]
        why = "; ".join(reasons[:5]) or "the input has no write by it after one of the lease"
        raise Failure(f"nothing to fence for {writer}: {why}")
    text = format_policy(name, lease, writer, found)
    try:
        parse(f"apiVersion: lease-webhook/v1\n{text}")
    except PolicyError as error:
        raise Failure(f"{escape(error.path)}: {error.problem}") from error
    print(text, end="")
    return 0


def _find_named_lease(leases: list[str]) -> str:
    if not leases:
        raise Failure("name the lease: no stored write of a lease by this service account is in the input")
    if len(leases) > 1:
        raise Failure(f"name the lease: the service account wrote {', '.join(leases[:5])}")
    return leases[0]
