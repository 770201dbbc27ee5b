"""`lease-webhook rules [ID]`: every rule with its mode in each preset, or one rule explained."""

import argparse
import difflib
import inspect
import sys
from typing import Final

from webhook.api.request import Resource
from webhook.cli.failure import Failure
from webhook.cli.terminal import indent, paint_for, table
from webhook.rules.registry import RULES
from webhook.rules.rule import Rule

RESOURCES: Final = {Resource.LEASES: "Lease", Resource.LEASECANDIDATES: "LeaseCandidate"}


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "rules",
        help="list the rules, or explain one",
        description="Lists every rule, or explains one: what it says, why, and where it comes from.",
        epilog="example: lease-webhook rules takeover-before-expiry",
    )
    parser.add_argument("id", nargs="?", metavar="ID", help="the rule to explain")
    parser.add_argument(
        "--format", choices=("text", "markdown"), default="text", help="markdown prints the table of the README"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the list or one rule."""
    if args.id is None:
        print("\n".join(markdown() if args.format == "markdown" else _listed()))
    else:
        print("\n".join(_explained(_find(args.id))))
    return 0


def markdown() -> list[str]:
    """The table of the README, as lines."""
    head = ["| rule | on | it says |", "|---|---|---|"]
    return head + [f"| `{rule.id}` | {_kinds(rule)} | {_cell(rule.summary)} |" for rule in RULES.values()]


def _listed() -> list[str]:
    return table([(rule.id, _kinds(rule), rule.summary) for rule in RULES.values()], by=0)


def _explained(rule: Rule) -> list[str]:
    paint = paint_for(sys.stdout)
    operations = ", ".join(sorted(operation.value for operation in rule.operations))
    facts = [("on", f"{_kinds(rule)}, {operations}"), ("source", rule.source)]
    lines = [paint.bold(rule.id), indent(rule.summary, 2), "", *table(facts)]
    more = inspect.cleandoc(rule.check.__doc__ or "").partition("\n")[2].strip()
    for paragraph in filter(None, more.split("\n\n")):
        lines += ["", indent(" ".join(paragraph.split()), 2)]
    return lines


def _find(name: str) -> Rule:
    if name in RULES:
        return RULES[name]
    near = difflib.get_close_matches(name, RULES, n=1)
    hint = f"did you mean {near[0]}?" if near else "`lease-webhook rules` lists them"
    raise Failure(f'there is no rule "{name}"; {hint}')


def _kinds(rule: Rule) -> str:
    return ", ".join(word for resource, word in RESOURCES.items() if resource in rule.resources)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
