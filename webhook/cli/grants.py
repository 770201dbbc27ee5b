"""Who may write leases by RBAC, as text: `writers`, and `why` and `audit` on request."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

import click

from webhook.analysis.inputs.cluster import Cluster, get_objects
from webhook.analysis.inputs.documents import Value
from webhook.analysis.inputs.files import decode, read_documents
from webhook.analysis.rights import KINDS, AccessControl, Grant, Rights, RightsError, read_access_control
from webhook.cli.absence import explain_emptiness
from webhook.cli.terminal import Failure, format_table, print_message
from webhook.text.commands import quote_name
from webhook.text.quoting import escape, truncate

_RESOURCES: Final = "clusterroles,clusterrolebindings"
_LIST: Final = "kubectl get roles,rolebindings,clusterroles,clusterrolebindings -A -o json"
_MAX_NAME: Final = 120
_MAX_SUBJECTS: Final = 6
"""Subjects that a row of a table has."""
EVERYONE: Final = frozenset({"system:authenticated", "system:unauthenticated", "system:serviceaccounts"})
"""Groups of users whom no one named."""
WRITERS_HELP: Final = "also show who may write it, from RBAC objects in the input or listed by kubectl"


def read_access(inputs: Sequence[str], cluster: Cluster, namespace: str) -> AccessControl:
    """Read RBAC objects from files, or list those of a namespace by kubectl, "" for all. Raises Failure."""
    try:
        return read_access_control(_read_objects(inputs, cluster, namespace))
    except RightsError as error:
        raise Failure(f"not an object of RBAC: {error}") from error


def refuse_writers(inputs: Sequence[str], *, is_listed: bool) -> None:
    """Raise UsageError where --writers cannot be done: for a list, or with standard input, which is read once."""
    if is_listed:
        raise click.UsageError("--writers is for one lease, and excludes --format name; see audit --writers")
    if "-" in inputs:
        raise click.UsageError("--writers reads the input twice: give files, with leases and RBAC objects")


def format_rights(rights: Rights, namespace: str, name: str) -> Iterator[str]:
    """Yield a table of the grants, and what follows from them; roles that are missing go to standard error."""
    yield from _format_table(rights.grants)
    yield from _format_notes(rights, namespace, name)


def format_overview(access: AccessControl, leases: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a row for each lease, with the subjects that may write it; those limited to it are marked."""
    rows = [("LEASE", "WRITERS (* only this lease)")]
    rows += [(escape(f"{namespace}/{name}"), _format_subjects(access, namespace, name)) for namespace, name in leases]
    yield from format_table(rows, by=0)


def _format_subjects(access: AccessControl, namespace: str, name: str) -> str:
    named: dict[str, bool] = {}
    for grant in sorted(access.find_rights(namespace, name).grants, key=_is_of_kubernetes):
        named[grant.subject] = named.get(grant.subject, True) and grant.is_named
    shown = [f"{escape(truncate(subject, _MAX_NAME))}{'*' if only else ''}" for subject, only in named.items()]
    more = f", {len(shown) - _MAX_SUBJECTS} more" if len(shown) > _MAX_SUBJECTS else ""
    return ", ".join(shown[:_MAX_SUBJECTS]) + more if shown else "-"


def _is_of_kubernetes(grant: Grant) -> bool:
    """True of what Kubernetes itself runs as: it comes last, so that a row begins with others."""
    return grant.name.startswith(("system:", "kube-system/")) and grant.name not in EVERYONE


def _read_objects(inputs: Sequence[str], cluster: Cluster, namespace: str) -> Iterator[Value]:
    if inputs:
        yield from _read_inputs(inputs)
        return
    of_namespace = f"--namespace={namespace}" if namespace else "--all-namespaces"
    for kinds, where in ((_RESOURCES, ()), ("roles,rolebindings", (of_namespace,))):
        listed = get_objects(cluster, kinds, *where, *cluster.options, command=_LIST)
        if isinstance(listed, str):
            instead = f"; whoever may run this can write a file for --input: {_LIST}" if "forbidden" in listed else ""
            raise Failure(f"kubectl get {kinds}: {listed}{instead}")
        yield from listed


def _read_inputs(inputs: Sequence[str]) -> Sequence[Value]:
    found, is_empty = list[Value](), True
    for document in chain.from_iterable(map(read_documents, inputs)):
        is_empty = False
        # Of an audit log beside the objects, no event is decoded.
        if document.kind in KINDS:
            found.append(decode(document))
    if not found:
        reason = explain_emptiness(inputs) if is_empty else f": {_LIST}"
        raise Failure(f"no role and no binding is in the input{reason}")
    return found


def _format_table(grants: Sequence[Grant]) -> Iterator[str]:
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
    yield from format_table(rows, by=0)


def _format_notes(rights: Rights, namespace: str, name: str) -> Iterator[str]:
    lease = f"{quote_name(namespace)}/{quote_name(name)}"
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
