"""`lease-webhook check`: evaluates files as the webhook would, before they reach a cluster."""

from collections.abc import Iterator

import click

from webhook.api.review import ReviewError
from webhook.cli.evaluation import evaluate_review
from webhook.cli.manifests import Key, Writer, key_of, review_of
from webhook.cli.options import Command, files, format_option, moment, policy_option
from webhook.cli.report import Outcome, Tally, finish, show
from webhook.cli.terminal import Failure
from webhook.inputs.documents import Value
from webhook.inputs.files import submitted
from webhook.inputs.items import Foreign, Unreadable
from webhook.inputs.kinds import Manifest, Review, Submitted
from webhook.policy.model import Policy
from webhook.policy_file import load

_DESCRIPTION = """\
Evaluates Leases and LeaseCandidates as the webhook would. A PATH is a file, a directory or - for standard input, and
contains AdmissionReviews (.json, or .jsonl with one per line) or bare manifests (YAML or JSON, several documents,
Lists). Other kinds are skipped and counted, and so is whatever else a directory contains: hidden folders, templates.

A bare manifest is evaluated as a creation, or as an update of the object of its name in --old, which compares whole
objects: a field that the manifest leaves out counts as removed. Without a namespace it goes to "default". Rules
about the writer are evaluated only with --user.
"""

_EPILOG = """\
Exit codes:
  0  everything is allowed, warnings included
  1  something is denied
  2  something could not be read, too little found (--require), or wrong usage

Examples:
  lease-webhook check lease.yaml
  lease-webhook check --ignore charts --require 1 deploy
  lease-webhook check --policy strict --old live.yaml --user system:node:worker-1 lease.yaml
  kubectl get leases -A -o json --show-managed-fields | lease-webhook check -
"""

_OLD = "what is stored now; bare manifests are evaluated as updates of it"
_IGNORE = "leave out what matches, by name or by path below a directory; may be repeated"
_SKIP = "skip files that are not Kubernetes objects even if they are named, for a list of changed files"
_NOW = "evaluate at this time; else at the latest time in managedFields, else now"


@click.command("check", cls=Command, help=_DESCRIPTION, epilog=_EPILOG)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, shell_complete=files)
@click.option("--old", metavar="PATH", help=_OLD, shell_complete=files)
@click.option("--ignore", metavar="GLOB", multiple=True, help=_IGNORE)
@click.option("--skip-foreign", is_flag=True, help=_SKIP)
@click.option(
    "--require", metavar="N", type=click.IntRange(1), help="fail if fewer than N documents are evaluated (exit code 2)"
)
@policy_option("observe, standard (default), strict, or a policy file")
@click.option("--user", metavar="NAME", help="who writes the bare manifests")
@click.option("--group", "groups", metavar="G", multiple=True, help="a group of --user; may be repeated")
@click.option("--now", type=moment, metavar="RFC3339", help=_NOW)
@format_option("json prints one line per document")
def command(
    *,
    paths: tuple[str, ...],
    old: str | None,
    ignore: tuple[str, ...],
    skip_foreign: bool,
    require: int | None,
    policy: str | None,
    user: str | None,
    groups: tuple[str, ...],
    now: int | None,
    output: str,
) -> int:
    if groups and not user:
        raise Failure("--group needs --user: a group alone writes nothing")
    writer = Writer(user, groups) if user else None
    rules = load(policy)
    tally = Tally()
    items = submitted(paths, ignore, skip_found=True, skip_named=skip_foreign)
    for outcome in _outcomes(items, old, rules, now, writer):
        tally.count(outcome)
        show(outcome, output)
    finish(output, tally.lines(), tally)
    if tally.evaluated < (require or 0):
        raise Failure(f"{tally.evaluated} evaluated, and --require asks for {require} at least")
    return tally.exit_code


def _outcomes(
    items: Iterator[Submitted], old: str | None, policy: Policy, now: int | None, writer: Writer | None
) -> Iterator[Outcome]:
    stored: dict[Key, Value] = {}
    unreadable = False
    for item in submitted([old]) if old else ():
        if isinstance(item, Manifest):
            stored[key_of(item.document)] = item.document
        elif isinstance(item, Unreadable):
            unreadable = True
            yield item
    if unreadable:
        # An update evaluated as if it were a creation could look harmless.
        return
    for item in items:
        if isinstance(item, Unreadable | Foreign):
            yield item
            continue
        try:
            if isinstance(item, Review):
                evaluation = evaluate_review(item.place, item.body, policy, now)
            else:
                body = review_of(item.document, stored.get(key_of(item.document)), writer)
                evaluation = evaluate_review(item.place, body, policy, now, writer_known=writer is not None)
        except (ReviewError, ValueError) as error:
            yield Unreadable(item.place, str(error))
        else:
            yield evaluation
