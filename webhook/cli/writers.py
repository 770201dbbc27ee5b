"""`lease-webhook writers`: who may write a lease by RBAC, who has written it, and how to close it."""

from collections.abc import Iterator, Sequence
from typing import Final

import click
from msgspec import to_builtins

from webhook.api.text import escape, truncate
from webhook.cli.options import Command, format_option, namespaced
from webhook.cli.reading import cluster_options, input_option
from webhook.cli.terminal import Failure, json_line, print_message
from webhook.findings import word
from webhook.inputs.cluster import Cluster, objects_of
from webhook.inputs.documents import Value
from webhook.inputs.files import objects
from webhook.rights import KINDS, Grant, Rights, RightsError, rights_on

_HELP: Final = """\
Shows who may write one lease, from the RBAC objects of the cluster: each subject, its verbs on this lease, and the
binding that grants them. Without --input, kubectl lists roles and bindings with your own credentials.

Not in the list: system:masters without a binding, which may do everything; authorizers other than RBAC; and who may
impersonate a subject, change its rights, or run a pod with its service account.
"""
_EPILOG: Final = """\
Exit codes:
  0  printed
  2  something could not be read, or wrong usage

Examples:
  kubectl lease writers shop/checkout
  kubectl get roles,rolebindings,clusterroles,clusterrolebindings -A -o json > rbac.json
  lease-webhook writers shop/checkout --input rbac.json
"""
_RESOURCES: Final = "clusterroles,clusterrolebindings"
_MAX_NAME: Final = 120


@click.command("writers", cls=Command, help=_HELP, epilog=_EPILOG)
@click.argument("lease", metavar="NAMESPACE/NAME")
@input_option
@format_option()
@cluster_options
def command(*, lease: str, inputs: tuple[str, ...], output: str, cluster: Cluster) -> int:
    namespace, name = namespaced(lease, f"{lease} is not NAMESPACE/NAME")
    try:
        rights = rights_on([*_objects(inputs, cluster, namespace)], namespace, name)
    except RightsError as error:
        raise Failure(f"not an object of RBAC: {error}") from error
    if output == "json":
        print(json_line({"namespace": namespace, "name": name, **to_builtins(rights)}))
        return 0
    for line in _table(rights.grants):
        print(line)
    print("\n".join(_notes(rights, namespace, name)))
    return 0


def _objects(inputs: Sequence[str], cluster: Cluster, namespace: str) -> Iterator[Value]:
    if inputs:
        found = [thing for path in inputs for thing in objects(path)]
        if not any(thing.get("kind") in KINDS for thing in found):
            raise Failure(
                "no role and no binding is in the input: kubectl get roles,rolebindings,"
                "clusterroles,clusterrolebindings -A -o json"
            )
        yield from found
        return
    for kinds, where in ((_RESOURCES, ()), ("roles,rolebindings", (f"--namespace={namespace}",))):
        listed = objects_of(cluster, kinds, *where, *cluster.options)
        if isinstance(listed, str):
            raise Failure(f"kubectl get {kinds}: {listed}")
        yield from listed


def _table(grants: Sequence[Grant]) -> Iterator[str]:
    rows = [("SUBJECT", "VERBS", "ONLY THIS LEASE", "THROUGH")]
    rows += [
        (
            escape(truncate(grant.subject, _MAX_NAME)),
            ",".join(grant.verbs),
            "yes" if grant.is_named else "no",
            escape(truncate(grant.through, 2 * _MAX_NAME)),
        )
        for grant in grants
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        yield "  ".join((*(text.ljust(width) for text, width in zip(row[:3], widths, strict=True)), row[3]))


def _notes(rights: Rights, namespace: str, name: str) -> Iterator[str]:
    lease = f"{word(namespace)}/{word(name)}"
    for through in rights.unresolved:
        print_message(f"{escape(truncate(through, 2 * _MAX_NAME))}: its role does not exist, or was not read")
    yield ""
    if not rights.grants:
        yield "By RBAC, no one but system:masters may write this lease."
        return
    if any("create" in grant.verbs for grant in rights.grants):
        yield "RBAC cannot limit create by name: whoever may create leases here can create this one while it is gone."
    yield f"Who has written it: lease-webhook suggest bindings {lease} --input AUDIT-LOG"
    yield "That prints a binding, with which the webhook denies every other writer: docs/bind-a-lease.md"
