"""`lease-webhook writers`: who may write a lease by RBAC, who has written it, and how to close it."""

from typing import Final

import click
from msgspec import to_builtins

from webhook.analysis.inputs.cluster import Cluster
from webhook.cli.grants import format_rights, read_access
from webhook.cli.options import Command, format_option, parse_lease_name
from webhook.cli.reading import connection_options, input_option, print_unread_pipe
from webhook.cli.terminal import encode_line

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
  kubectl get roles,rolebindings,clusterroles,clusterrolebindings -A -o json \\
    > rbac.json
  lease-webhook writers shop/checkout --input rbac.json
"""


@click.command("writers", cls=Command, help=_HELP, epilog=_EPILOG)
@click.argument("lease", metavar="NAMESPACE/NAME")
@input_option
@format_option()
@connection_options
def command(*, lease: str, inputs: tuple[str, ...], output: str, cluster: Cluster) -> int:
    namespace, name = parse_lease_name(lease, f"{lease} is not NAMESPACE/NAME")
    if not inputs:
        print_unread_pipe()
    rights = read_access(inputs, cluster, namespace).find_rights(namespace, name)
    if output == "json":
        print(encode_line({"namespace": namespace, "name": name, **to_builtins(rights)}))
        return 0
    print("\n".join(format_rights(rights, namespace, name)))
    return 0
