"""`lease-webhook policy check`: is a policy file good, and what about it is odd."""

import sys
import time

import click

from webhook.api.text import escape
from webhook.cli import json_text
from webhook.cli.arguments import files, format_option
from webhook.cli.evaluation import load_policy
from webhook.cli.lazy_group import Command
from webhook.cli.policy_summary import head, summary
from webhook.cli.terminal import paint_for
from webhook.policy.lint import notes


@click.command(
    "check",
    cls=Command,
    help="Checks a policy file as `serve` does when it starts, and says what is legal but odd: exemptions that have "
    "ended or soon will, modes that change nothing.",
    epilog="""\
Exit codes:
  0  good          2  refused

Example:
  lease-webhook policy check policy.yaml
""",
)
@click.argument("file", metavar="FILE", shell_complete=files)
@format_option()
def command(file: str, output: str) -> int:
    """Say whether the file is good, and what about it is odd."""
    policy = load_policy(file)
    odd = notes(policy, time.time_ns() // 1000)
    if output == "json":
        print(json_text.line(head(policy) | {"file": file, "good": True, "notes": odd}))
        return 0
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
    print(f"{escape(file)}: {paint.green('good')}, {', '.join([summary(policy), *counts])}")
    for note in odd:
        print(f"  {paint.yellow('note')}: {escape(note)}")
    return 0
