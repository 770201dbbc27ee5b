"""`lease-webhook policy check`: is a policy file good, and what about it is odd."""

import sys
import time

import click

from webhook.api.text import escape
from webhook.cli import json_text
from webhook.cli.arguments import files, format_option
from webhook.cli.evaluation import load_policy
from webhook.cli.failure import Failure
from webhook.cli.lazy_group import Command
from webhook.cli.policy_summary import head, summary
from webhook.cli.terminal import paint_for
from webhook.policy.lint import notes
from webhook.policy.model import Policy


@click.command(
    "check",
    cls=Command,
    help="Checks policy files as `serve` does when it starts, and notes what is valid but odd: exemptions that have "
    "ended or soon will, modes that change nothing.",
    epilog="""\
Exit codes:
  0  good          2  refused

Example:
  lease-webhook policy check policy.yaml
""",
)
@click.argument("paths", nargs=-1, required=True, metavar="FILE...", shell_complete=files)
@format_option("json prints one line per file")
def command(paths: tuple[str, ...], output: str) -> int:
    """Say of each file whether it is good, and what about it is odd."""
    refused = []
    for path in paths:
        try:
            _print(path, load_policy(path), output)
        except Failure as failure:
            refused.append(str(failure))
    if refused:
        raise Failure("; ".join(refused))
    return 0


def _print(path: str, policy: Policy, output: str) -> None:
    odd = notes(policy, time.time_ns() // 1000)
    if output == "json":
        print(json_text.line(head(policy) | {"file": path, "good": True, "notes": odd}))
        return
    paint = paint_for(sys.stdout)
    document = policy.document
    counts = [
        f"{name}: {len(entries)}"
        for name, entries in (
            ("exemptions", document.exempt),
            ("overrides", document.overrides),
            ("bindings", document.bindings),
            ("fences", policy.fences),
        )
        if entries
    ]
    print(f"{escape(path)}: {paint.green('good')}, {', '.join([summary(policy), *counts])}")
    for note in odd:
        print(f"  {paint.yellow('note')}: {escape(note)}")
