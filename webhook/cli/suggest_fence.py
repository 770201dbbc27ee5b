"""`lease-webhook suggest fence`: propose what to fence, from RBAC objects or from an audit log."""

from typing import Final

import click

from webhook.api.text import escape
from webhook.cli import object_stream
from webhook.cli.arguments import files, namespaced
from webhook.cli.failure import Failure
from webhook.cli.lazy_group import Command
from webhook.fence.audited import from_audit, leases_of, written_by
from webhook.fence.rights import from_rights
from webhook.fence.suggestion import Suggestion, policy_text
from webhook.policy.error import PolicyError
from webhook.policy.parse import parse

_DESCRIPTION: Final = """\
Reads what a service account may write (its Roles and the bindings that give them) or what it wrote (an audit log of
the API server), and prints a fence for a policy file. Leases, events and what followers wrote are left out, and it says
why. A log knows more than roles: it shows which pod led, and what the others wrote.
"""
_EPILOG: Final = """\
Examples:
  kubectl get clusterroles,clusterrolebindings,roles,rolebindings -A -o yaml |
    lease-webhook suggest fence - --writer shop/operator --lease shop/operator
  lease-webhook suggest fence audit.log --writer shop/operator
"""


@click.command("fence", cls=Command, help=_DESCRIPTION, epilog=_EPILOG)
@click.argument("inputs", nargs=-1, required=True, metavar="FILE...", shell_complete=files)
@click.option("--writer", required=True, metavar="NAMESPACE/NAME", help="the service account")
@click.option("--lease", metavar="NAMESPACE/NAME", help="its lease; default: the one that it wrote in the log")
@click.option("--name", metavar="NAME", help="of the fence; default: from the lease")
def command(*, inputs: tuple[str, ...], writer: str, lease: str | None, name: str | None) -> int:
    """Print the proposal; raises Failure."""
    namespace, account = namespaced(writer, "--writer must be a service account as namespace/name")
    objects = [one for path in inputs for one in object_stream.read(path)]
    events = written_by(objects, f"system:serviceaccount:{namespace}:{account}")
    lease = lease or _only(leases_of(events))
    found = from_audit(events, lease) if events else from_rights(objects, namespace, account)
    name = name or lease.replace("/", "-").replace(".", "-")[:57].strip("-")
    if not found.evidence:
        raise Failure(f"nothing to fence for {writer}{_why(found)}")
    text = policy_text(name, lease, writer, found)
    try:
        parse(f"apiVersion: lease-webhook/v1\n{text}")
    except PolicyError as error:
        raise Failure(f"{escape(error.path)}: {error.problem}") from error
    print(text, end="")
    return 0


def _only(leases: list[str]) -> str:
    if not leases:
        raise Failure("give --lease: no stored write of a lease by this service account is in the input")
    if len(leases) > 1:
        raise Failure(f"give --lease: the service account wrote {', '.join(leases[:5])}")
    return leases[0]


def _why(found: Suggestion) -> str:
    reasons = [f"{name}: {reason}" for name, reason in sorted(found.left_out.items())] + found.unseen
    if not reasons:
        return ": no role that lets it write is bound to it, and no write of it is logged"
    return f"; {'; '.join(reasons[:5])}"
