"""`lease-webhook top`: the leases of a cluster as they are now, the worst first."""

from typing import Final

import click

from webhook.analysis.inputs.cluster import Cluster
from webhook.cli.options import Command
from webhook.cli.reading import cluster_options, find_namespace, stamps_and_numbers_option, widen_to_all_namespaces
from webhook.cli.selection import Selection, selection_options
from webhook.cli.watching import watch_all

_DESCRIPTION: Final = """\
Shows the leases of a cluster in the terminal, drawn again each second: who holds each, when it was renewed last and how
often it usually is, how often the holder changed since this began, and what is wrong. The worst come first. It says of
a lease what `why` says of it.

It runs kubectl to watch leases, with your own credentials. Ctrl-C ends it.
"""
_EPILOG: Final = """\
Examples:
  kubectl lease top
  kubectl lease top -n shop --state expired,frozen
  kubectl lease top --policy policy.yaml    # with stamps of the API server
  kubectl lease why -w shop/checkout        # one lease, and what happened to it
"""


@click.command("top", cls=Command, help=_DESCRIPTION, epilog=_EPILOG)
@stamps_and_numbers_option
@cluster_options
@selection_options("worst unless given")
def command(*, policy: str | None, cluster: Cluster, selection: Selection) -> int:
    return watch_all(widen_to_all_namespaces(cluster), selection, policy, find_namespace(cluster))
