"""`lease-webhook suggest bindings`: the writers and holder names that would have allowed everything that was seen."""

import time
from typing import Final

import click

from webhook.cli.lazy_group import Command
from webhook.cli.suggestion_input import as_lease, checked, observe_each, paths_argument
from webhook.suggestions.bindings import Bindings
from webhook.suggestions.suspicion import Suspicions

_DESCRIPTION: Final = """\
Reads who wrote leases and prints a policy file with a binding for each of them: the writers and holder names that would
have allowed everything that was seen. Comments say what each entry rests on and what the input does not show. A writer
whose first write looks like an attack is not listed; a comment names it.

PATH is anything that shows leases: the audit log of the API server (at level Metadata it hides the holders; add
a list of the leases), what the webhook captured, a watch or a list of leases with their pods, whose service accounts
are taken for the writers.
"""
_EPILOG: Final = """\
Exit codes:
  0  printed
  2  something could not be read, or wrong usage

Examples:
  lease-webhook suggest bindings /var/log/kubernetes/audit --lease shop/checkout
  kubectl get leases,pods -n shop -o json --show-managed-fields | lease-webhook suggest bindings -
"""


@click.command("bindings", cls=Command, help=_DESCRIPTION, epilog=_EPILOG)
@paths_argument
@click.option("--lease", metavar="NAMESPACE/NAME", help="this lease only")
def command(*, paths: tuple[str, ...], lease: str | None) -> int:
    """Print the bindings; raises Failure."""
    bindings = Bindings(Suspicions(time.time_ns() // 1000), as_lease(lease))
    exit_code = observe_each(paths, bindings.observe)
    print(checked(bindings.text(), f"nothing was seen of {f'lease {lease}' if lease else 'any lease'}"), end="")
    return exit_code
