"""`lease-webhook replay`: evaluates recorded reviews again, and says what another policy would change."""

import argparse
import collections
import sys
from enum import StrEnum
from itertools import chain

from msgspec import Struct

from webhook.cli import json_text
from webhook.cli.arguments import add_format
from webhook.cli.candidate_sets import CandidateSets
from webhook.cli.evaluation import Judged, ReviewError, judge, load_policy
from webhook.cli.progress import Progress
from webhook.cli.received import Received
from webhook.cli.report import DENIED, UNREADABLE, Tally, conflicts, error_line, json_of, say, text_of
from webhook.cli.sources import Item, Review, Skipped, Unreadable, read
from webhook.cli.terminal import Paint, paint_for, table
from webhook.policy.model import Policy
from webhook.rules.mode import Mode
from webhook.verdict.model import Verdict

Counts = collections.Counter[tuple[str, Mode]]
"""How often each rule spoke, by mode."""

_DESCRIPTION = """\
Evaluates recorded AdmissionReviews again, each at the moment when it was received (from index.jsonl, if there is one
beside the files or above them), and shows what is denied or warned about, and by which rules.
"""

_EPILOG = """\
With --against, shows only what the second policy would change: try a stricter policy on real traffic first.

exit codes:
  0  nothing is denied (with --against: nothing more than before)
  1  something is denied (with --against: newly denied)
  2  something could not be read, or wrong usage

example:
  lease-webhook replay captured --policy standard --against strict
"""


class Change(StrEnum):
    """What another policy makes of a review."""

    NEWLY_DENIED = "newly denied"
    NEWLY_WARNED = "newly warned"
    NO_LONGER_DENIED = "no longer denied"
    NO_LONGER_WARNED = "no longer warned"
    OTHER_RULES = "other rules"
    NONE = ""


class Pair(Struct, frozen=True):
    """A review under two policies."""

    before: Judged
    after: Judged

    @property
    def change(self) -> Change:
        """What the second policy changes."""
        before, after = _level(self.before.verdict), _level(self.after.verdict)
        if after > before:
            return Change.NEWLY_DENIED if after is Mode.DENY else Change.NEWLY_WARNED
        if after < before:
            return Change.NO_LONGER_DENIED if before is Mode.DENY else Change.NO_LONGER_WARNED
        return Change.NONE if _told(self.before) == _told(self.after) else Change.OTHER_RULES


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "replay",
        help="evaluate recorded reviews again; compare two policies",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    parser.add_argument("directories", nargs="+", metavar="DIR", help="recorded reviews: files or directories")
    parser.add_argument("--policy", metavar="A", help="preset or policy file; standard unless given")
    parser.add_argument("--against", metavar="B", help="the policy to compare with: show what it would change")
    add_format(parser, "json prints one line per review")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Evaluate everything and say what came of it."""
    policy = load_policy(args.policy)
    received = Received(args.directories)
    if args.against is None:
        return _replay(args, policy, received)
    return _compare(args, policy, load_policy(args.against), received)


def _replay(args: argparse.Namespace, policy: Policy, received: Received) -> int:
    paint = paint_for(sys.stdout)
    tally = Tally()
    rules: Counts = collections.Counter()
    candidates = CandidateSets()
    progress = Progress("reviews")
    for item in progress.watch(chain(received.unreadable, read(args.directories))):
        outcome = _judged(item, policy, received)
        if isinstance(outcome, Judged):
            outcome = candidates.follow(outcome, policy)
        tally.count(outcome)
        if isinstance(outcome, Judged):
            rules.update(_rules_and_modes(outcome))
            if args.format == "json":
                progress.print(json_text.line(json_of(outcome)))
            elif conflicts(outcome) or _level(outcome.verdict) > Mode.AUDIT:
                progress.print(*text_of(outcome, paint))
        elif isinstance(outcome, Unreadable):
            progress.print(*_unreadable(outcome, args.format, paint))
    if args.format == "json":
        if tally.skipped:
            say(tally.skipped_text())
    else:
        print("\n".join([*_counts([(args.policy or policy.preset, rules)]), *tally.lines()]))
    return tally.exit_code


def _compare(args: argparse.Namespace, policy: Policy, against: Policy, received: Received) -> int:
    paint = paint_for(sys.stdout)
    changes: collections.Counter[Change] = collections.Counter()
    before: Counts = collections.Counter()
    after: Counts = collections.Counter()
    unreadable = 0
    progress = Progress("reviews")
    for item in progress.watch(chain(received.unreadable, read(args.directories))):
        outcome, other = _judged(item, policy, received), _judged(item, against, received)
        if isinstance(outcome, Unreadable):
            unreadable += 1
            progress.print(*_unreadable(outcome, args.format, paint))
        if not isinstance(outcome, Judged) or not isinstance(other, Judged):
            continue
        pair = Pair(outcome, other)
        changes[pair.change] += 1
        before.update(_rules_and_modes(outcome))
        after.update(_rules_and_modes(other))
        if args.format == "json":
            progress.print(json_text.line({**json_of(outcome), "against": json_of(other), "change": pair.change.value}))
        elif pair.change is not Change.NONE:
            progress.print(*text_of(other, paint, pair.change.value))
    if args.format == "text":
        names = (args.policy or policy.preset, args.against)
        print("\n".join([*_counts(list(zip(names, (before, after), strict=True))), _summary(changes, names)]))
    return UNREADABLE if unreadable else DENIED if changes[Change.NEWLY_DENIED] else 0


def _judged(item: Item, policy: Policy, received: Received) -> Judged | Unreadable | Skipped:
    if not isinstance(item, Review):
        # A bare manifest was never sent by anybody, so there is nothing to replay.
        return item if isinstance(item, Unreadable | Skipped) else Skipped(item.origin, str(item.document["kind"]))
    try:
        return judge(item.origin, item.body, policy, received.of(item.origin.path))
    except ReviewError as error:
        return Unreadable(item.origin, str(error))


def _level(verdict: Verdict) -> Mode:
    if not verdict.allowed:
        return Mode.DENY
    return Mode.WARN if verdict.warnings else Mode.OFF


def _rules_and_modes(judged: Judged) -> set[tuple[str, Mode]]:
    return {(finding.rule, finding.mode) for finding in judged.verdict.findings}


def _told(judged: Judged) -> set[tuple[str, Mode]]:
    """What the writer hears of; audit findings are for the log only."""
    return {(rule, mode) for rule, mode in _rules_and_modes(judged) if mode > Mode.AUDIT}


def _unreadable(unreadable: Unreadable, form: str, paint: Paint) -> list[str]:
    return [error_line(unreadable)] if form == "json" else text_of(unreadable, paint)


def _counts(columns: list[tuple[str, Counts]]) -> list[str]:
    """A table: how many reviews each rule denies, warns about or notes; of several columns, where they differ."""
    rules = sorted({rule for _, counter in columns for rule, _ in counter})
    rows = [(rule, *(_count(counter, rule) for _, counter in columns)) for rule in rules]
    shown = [row for row in rows if len(columns) == 1 or len(set(row[1:])) > 1]
    return ["", *table([("rule", *(name for name, _ in columns)), *shown]), ""] if shown else []


def _count(counter: Counts, rule: str) -> str:
    found = (f"{counter[rule, mode]} {mode.word}" for mode in (Mode.DENY, Mode.WARN, Mode.AUDIT) if counter[rule, mode])
    return ", ".join(found) or "-"


def _summary(changes: collections.Counter[Change], names: tuple[str, str]) -> str:
    counts = ", ".join(f"{changes[change]} {change.value}" for change in Change if change and changes[change])
    return f"{changes.total()} reviews, {names[0]} against {names[1]}: {counts or 'no change'}"
