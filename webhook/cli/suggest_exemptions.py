"""`lease-webhook suggest exemptions`: the narrowest exemptions for what was denied."""

import time
from datetime import UTC, date, datetime, timedelta
from typing import Final

import click

from webhook.cli.arguments import policy_option
from webhook.cli.evaluation import load_policy
from webhook.cli.failure import Failure
from webhook.cli.lazy_group import Command
from webhook.cli.suggestion_input import checked, observe_each, paths_argument
from webhook.suggestions.exemptions import OWNER, Exemptions
from webhook.suggestions.suspicion import Suspicions

DAYS: Final = 30

_DESCRIPTION: Final = """\
Reads what was denied, or would be denied without the cap of the policy, and prints a policy file with the narrowest
exemptions for it: one user, exact leases, only the rules and operations that were seen, and an end. For what looks like
an attack, such as taking another's live lease, nothing is suggested; a comment names it.

PATH is the audit log of the API server, in which the webhook records what it denied, or what the webhook captured,
which is evaluated again by --policy.
"""
_EPILOG: Final = """\
Exit codes:
  0  printed
  2  something could not be read, or wrong usage

Examples:
  lease-webhook suggest exemptions captured --policy strict
  lease-webhook suggest exemptions /var/log/kubernetes/audit --owner "backup team" --until 2027-01-31
"""


@click.command("exemptions", cls=Command, help=_DESCRIPTION, epilog=_EPILOG)
@paths_argument
@policy_option("preset or policy file by which reviews are evaluated; standard unless given")
@click.option("--owner", metavar="TEXT", default=OWNER, help="who is responsible for the exemptions")
@click.option("--until", metavar="DATE", help=f"the last day of the exemptions; {DAYS} days from today unless given")
def command(*, paths: tuple[str, ...], policy: str | None, owner: str, until: str | None) -> int:
    """Print the exemptions; raises Failure."""
    exemptions = Exemptions(load_policy(policy), _last_day(until), Suspicions(time.time_ns() // 1000), _line(owner))
    exit_code = observe_each(paths, exemptions.observe)
    nothing = "the input has no verdict of the webhook: it needs an audit log of the API server, or captured reviews"
    print(checked(exemptions.text(), nothing), end="")
    return exit_code


def _last_day(until: str | None) -> date:
    if until is None:
        return datetime.now(UTC).date() + timedelta(days=DAYS)
    try:
        return date.fromisoformat(until)
    except ValueError:
        raise Failure(f'--until "{until}" is not a date such as 2027-01-31') from None


def _line(owner: str) -> str:
    if not owner.strip() or not owner.isprintable():
        raise Failure("--owner must be one line of text")
    return owner
