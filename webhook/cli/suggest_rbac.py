"""`lease-webhook suggest rbac`: the smallest Roles for what service accounts did with leases."""

import time
from typing import Final

import click

from webhook.cli.failure import Failure
from webhook.cli.lazy_group import Command
from webhook.cli.suggestion_input import as_account, observe_each, paths_argument
from webhook.suggestions.rights import Rights
from webhook.suggestions.suspicion import Suspicions

_DESCRIPTION: Final = """\
Reads what service accounts did with leases and prints the smallest Role and RoleBinding for each: only verbs that were
seen, for the names of the leases; only create cannot be limited to a name. Comments say what each rule rests on and
what the input does not show. A write that looks like an attack is not granted; a comment names it.

PATH is the audit log of the API server (files, directories, gzipped ones, also at level Metadata) or what the webhook
captured, which shows writes only.
"""
_EPILOG: Final = """\
Exit codes:
  0  printed
  2  something could not be read, or wrong usage

Examples:
  lease-webhook suggest rbac /var/log/kubernetes/audit --writer shop/checkout
  lease-webhook suggest rbac audit.log | kubectl apply --dry-run=server -f -
"""


@click.command("rbac", cls=Command, help=_DESCRIPTION, epilog=_EPILOG)
@paths_argument
@click.option("--writer", metavar="NAMESPACE/NAME", help="this service account only")
def command(*, paths: tuple[str, ...], writer: str | None) -> int:
    """Print the roles; raises Failure."""
    rights = Rights(Suspicions(time.time_ns() // 1000), as_account(writer))
    exit_code = observe_each(paths, rights.observe)
    text = rights.text()
    if not text:
        who = f"service account {writer}" if writer else "any service account"
        raise Failure(f"no request of {who} about leases is in the input; dumps and watches do not name writers")
    print(text, end="")
    return exit_code
