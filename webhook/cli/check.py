"""`lease-webhook check`: evaluates files as the webhook would, before they reach a cluster."""

import argparse
import sys
from collections.abc import Iterator

from msgspec.structs import replace

from webhook.cli import json_text
from webhook.cli.arguments import add_format, count
from webhook.cli.candidate_sets import CandidateSets
from webhook.cli.evaluation import Judged, ReviewError, judge, load_policy
from webhook.cli.failure import Failure
from webhook.cli.manifest import Key, Writer, key_of, review_of
from webhook.cli.moment import moment
from webhook.cli.progress import Progress
from webhook.cli.report import Outcome, Tally, error_line, json_of, say, text_of
from webhook.cli.sources import Document, Item, Manifest, Review, Skipped, Unreadable, read
from webhook.cli.terminal import paint_for
from webhook.cli.unknown_fields import unknown_fields
from webhook.policy.model import Policy

_DESCRIPTION = """\
Evaluates Leases and LeaseCandidates as the webhook would. A PATH is a file, a directory or - for standard input, and
holds AdmissionReviews (.json, or .jsonl with one in each line) or bare manifests (YAML or JSON, several documents,
Lists). Other kinds are skipped and counted, and so is whatever else a directory holds: hidden folders, templates.

A bare manifest is evaluated as created, or as updating what stands under its name in --old, which compares whole
objects: a field that the manifest leaves out counts as removed. Without a namespace it goes to "default". Nobody
writes it: rules about the writer run with --user only.
"""

_EPILOG = """\
exit codes:
  0  everything is allowed, warnings included
  1  something is denied
  2  something could not be read, too little was there (--require), or wrong usage

examples:
  lease-webhook check lease.yaml
  lease-webhook check --ignore charts --require 1 deploy
  lease-webhook check --policy strict --old live.yaml --user system:serviceaccount:shop:checkout lease.yaml
  kubectl get leases -A -o json --show-managed-fields | lease-webhook check -
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "check",
        help="evaluate files: reviews and manifests",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    parser.add_argument("paths", nargs="+", metavar="PATH", help="file, directory, or - for standard input")
    parser.add_argument(
        "--old", metavar="PATH", help="what is stored now; bare manifests are evaluated as updates of it"
    )
    parser.add_argument(
        "--ignore",
        metavar="GLOB",
        action="append",
        default=[],
        help="leave out what matches, by name or by path below a directory; may be repeated",
    )
    parser.add_argument(
        "--require", metavar="N", type=count, default=0, help="fewer evaluated documents are an error (exit code 2)"
    )
    parser.add_argument("--policy", metavar="NAME|FILE", help="observe, standard (default), strict, or a policy file")
    parser.add_argument("--user", metavar="NAME", help="who writes the bare manifests")
    parser.add_argument("--group", metavar="G", action="append", default=[], help="a group of --user; may be repeated")
    parser.add_argument(
        "--now",
        metavar="RFC3339",
        help="evaluate at this time; else at the latest time in managedFields, else now",
    )
    add_format(parser, "json prints one line per document")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Evaluate everything and say what came of it."""
    policy = load_policy(args.policy)
    now = moment(args.now) if args.now else None
    if args.group and not args.user:
        raise Failure("--group needs --user: a group alone writes nothing")
    writer = Writer(args.user, tuple(args.group)) if args.user else None
    tally = Tally()
    paint = paint_for(sys.stdout)
    progress = Progress("documents")
    for outcome in progress.watch(_outcomes(args, policy, now, writer)):
        tally.count(outcome)
        if args.format == "text":
            progress.print(*text_of(outcome, paint))
        elif isinstance(outcome, Unreadable):
            progress.print(error_line(outcome))
        elif not isinstance(outcome, Skipped):
            progress.print(json_text.line(json_of(outcome)))
    if args.format == "text":
        print("\n".join(tally.lines()))
    elif tally.skipped:
        say(tally.skipped_text())
    if tally.evaluated < args.require:
        raise Failure(f"{tally.evaluated} evaluated, and --require asks for {args.require} at least")
    return tally.exit_code


def _outcomes(args: argparse.Namespace, policy: Policy, now: int | None, writer: Writer | None) -> Iterator[Outcome]:
    stored: dict[Key, Document] = {}
    unreadable = False
    for item in read([args.old]) if args.old else ():
        if isinstance(item, Manifest):
            stored[key_of(item.document)] = item.document
        elif isinstance(item, Unreadable):
            unreadable = True
            yield item
    if unreadable:
        # An update evaluated as if it were a creation could look harmless.
        return
    candidates = CandidateSets()
    for item in read(args.paths, args.ignore, skip_foreign=True):
        outcome = _outcome(item, policy, now, writer, stored)
        yield candidates.follow(outcome, policy) if isinstance(outcome, Judged) else outcome


def _outcome(
    item: Item, policy: Policy, now: int | None, writer: Writer | None, stored: dict[Key, Document]
) -> Outcome:
    if isinstance(item, Unreadable | Skipped):
        return item
    try:
        if isinstance(item, Review):
            return judge(item.origin, item.body, policy, now)
        body = review_of(item.document, stored.get(key_of(item.document)), writer)
        judged = judge(item.origin, body, policy, now, judge_writer=writer is not None)
    except (ReviewError, ValueError) as error:
        return Unreadable(item.origin, str(error))
    warnings = (*judged.verdict.warnings, *unknown_fields(item.document))
    return replace(judged, verdict=replace(judged.verdict, warnings=warnings))
