"""`lease-webhook check`: judges files as the webhook would, before they reach a cluster."""

import argparse
import sys
from collections.abc import Iterator

from msgspec.structs import replace

from webhook.cli.failure import Failure
from webhook.cli.judging import ReviewError, judge, load_policy, moment
from webhook.cli.manifest import Key, Writer, key_of, review_of
from webhook.cli.report import Outcome, Tally, json_of, print_error, print_json, say, text_of
from webhook.cli.sources import Document, Item, Manifest, Review, Skipped, Unreadable, read
from webhook.cli.terminal import paint_for
from webhook.cli.unknown_fields import unknown_fields
from webhook.policy.model import Policy

_DESCRIPTION = """\
Judges Leases and LeaseCandidates as the webhook would. A PATH is a file, a directory or - for standard input, and
holds AdmissionReviews (.json, or .jsonl with one in each line) or bare manifests (YAML or JSON, several documents,
Lists). Other kinds are skipped and counted.
"""

_EPILOG = """\
A bare manifest is judged as created, or as updating what stands under its name in --old. Without a namespace it goes
to "default". Nobody writes it: rules about the writer run with --user only.

exit codes:
  0  everything is allowed, warnings included
  1  something is denied
  2  something could not be read, or wrong usage

examples:
  lease-webhook check lease.yaml
  lease-webhook check --policy strict --old live.yaml --user system:serviceaccount:shop:checkout lease.yaml
  kubectl get leases -A -o yaml | lease-webhook check -
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "check",
        help="judge files: reviews and manifests",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("paths", nargs="+", metavar="PATH", help="file, directory, or - for standard input")
    parser.add_argument("--old", metavar="PATH", help="what is stored now; bare manifests are judged as updates of it")
    parser.add_argument("--policy", metavar="NAME|FILE", help="observe, standard (default), strict, or a policy file")
    parser.add_argument("--user", metavar="NAME", help="who writes the bare manifests")
    parser.add_argument("--group", metavar="G", action="append", default=[], help="a group of --user; may be repeated")
    parser.add_argument(
        "--now", metavar="RFC3339", help="judge at this time; else at the latest time stamped into the document"
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="json prints one line per document")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Judge everything and say what came of it."""
    policy = load_policy(args.policy)
    now = moment(args.now) if args.now else None
    if args.group and not args.user:
        raise Failure("--group needs --user: a group alone writes nothing")
    writer = Writer(args.user, tuple(args.group)) if args.user else None
    tally = Tally()
    paint = paint_for(sys.stdout)
    for outcome in _outcomes(args, policy, now, writer):
        tally.count(outcome)
        if args.format == "text":
            for line in text_of(outcome, paint):
                print(line)
        elif isinstance(outcome, Unreadable):
            print_error(outcome)
        elif not isinstance(outcome, Skipped):
            print_json(json_of(outcome))
    if args.format == "text":
        print("\n".join(tally.lines()))
    elif tally.skipped:
        say(tally.skipped_text())
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
        # An update judged as if it were a creation could look harmless.
        return
    for item in read(args.paths):
        yield _outcome(item, policy, now, writer, stored)


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
