"""`lease-webhook replay`: evaluates recorded reviews again, and says what another policy would change."""

import collections
import sys
from collections.abc import Sequence
from enum import StrEnum
from itertools import chain

import click
from msgspec import Struct

from webhook.cli import json_text
from webhook.cli.arguments import files, format_option, policy_option
from webhook.cli.candidate_sets import CandidateSets
from webhook.cli.evaluation import Evaluation, ReviewError, evaluate_review, load_policy
from webhook.cli.lazy_group import Command
from webhook.cli.progress import Progress
from webhook.cli.received import Received
from webhook.cli.report import DENIED, UNREADABLE, Outcome, Tally, conflicts, error_line, json_of, say, text_of
from webhook.cli.sources import Item, Review, Skipped, Unreadable, read
from webhook.cli.terminal import Paint, paint_for, table
from webhook.policy.model import Policy
from webhook.rules.mode import Mode
from webhook.verdict.model import Verdict

Counts = collections.Counter[tuple[str, Mode]]
"""How many reviews have a finding of each rule, by mode."""

_DESCRIPTION = """\
Evaluates recorded AdmissionReviews again, each at the moment when it was received (from index.jsonl, if there is one
beside the files or above them), and shows what is denied or warned about, and by which rules.

With --against, shows only what the second policy would change: try a stricter policy on real traffic first.
"""

_EPILOG = """\
Exit codes:
  0  nothing is denied (with --against: nothing more than before)
  1  something is denied (with --against: newly denied)
  2  something could not be read, or wrong usage

Example:
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

    before: Evaluation
    after: Evaluation

    @property
    def change(self) -> Change:
        """What the second policy changes."""
        before, after = _level(self.before.verdict), _level(self.after.verdict)
        if after > before:
            return Change.NEWLY_DENIED if after is Mode.DENY else Change.NEWLY_WARNED
        if after < before:
            return Change.NO_LONGER_DENIED if before is Mode.DENY else Change.NO_LONGER_WARNED
        return Change.NONE if _seen_by_writer(self.before) == _seen_by_writer(self.after) else Change.OTHER_RULES


@click.command("replay", cls=Command, help=_DESCRIPTION, epilog=_EPILOG)
@click.argument("directories", metavar="DIR...", nargs=-1, required=True, shell_complete=files)
@policy_option("preset or policy file; standard unless given", metavar="A")
@policy_option("the policy to compare with: show what it would change", "--against", metavar="B")
@format_option("json prints one line per review")
def command(*, directories: tuple[str, ...], policy: str | None, against: str | None, output: str) -> int:
    """Evaluate everything and say what came of it."""
    first = load_policy(policy)
    if against is None:
        return _replay(directories, first, policy or first.preset, output)
    return _compare(directories, (first, load_policy(against)), (policy or first.preset, against), output)


def _replay(directories: Sequence[str], policy: Policy, name: str, output: str) -> int:
    paint = paint_for(sys.stdout)
    tally = Tally()
    rules: Counts = collections.Counter()
    candidates = CandidateSets()
    progress = Progress("reviews")
    received = Received(directories)
    for item in progress.watch(chain(received.unreadable, read(directories))):
        outcome = _evaluate(item, policy, received)
        if isinstance(outcome, Evaluation):
            outcome = candidates.follow(outcome, policy)
        tally.count(outcome)
        if isinstance(outcome, Evaluation):
            rules.update(_rules_and_modes(outcome))
            if output == "json":
                progress.print(json_text.line(json_of(outcome)))
            elif conflicts(outcome) or _level(outcome.verdict) > Mode.AUDIT:
                progress.print(*text_of(outcome, paint))
        elif isinstance(outcome, Unreadable):
            progress.print(*_unreadable(outcome, output, paint))
    if output == "json":
        if tally.skipped:
            say(tally.skipped_text())
    else:
        print("\n".join([*_counts([(name, rules)]), *tally.lines()]))
    return tally.exit_code


def _compare(directories: Sequence[str], policies: tuple[Policy, Policy], names: tuple[str, str], output: str) -> int:
    paint = paint_for(sys.stdout)
    changes: collections.Counter[Change] = collections.Counter()
    before: Counts = collections.Counter()
    after: Counts = collections.Counter()
    unreadable = 0
    progress = Progress("reviews")
    received = Received(directories)
    for item in progress.watch(chain(received.unreadable, read(directories))):
        outcome, other = (_evaluate(item, policy, received) for policy in policies)
        if isinstance(outcome, Unreadable):
            unreadable += 1
            progress.print(*_unreadable(outcome, output, paint))
        if not isinstance(outcome, Evaluation) or not isinstance(other, Evaluation):
            continue
        pair = Pair(outcome, other)
        changes[pair.change] += 1
        before.update(_rules_and_modes(outcome))
        after.update(_rules_and_modes(other))
        if output == "json":
            progress.print(json_text.line({**json_of(outcome), "against": json_of(other), "change": pair.change.value}))
        elif pair.change is not Change.NONE:
            progress.print(*text_of(other, paint, pair.change.value))
    if output == "text":
        print("\n".join([*_counts(list(zip(names, (before, after), strict=True))), _summary(changes, names)]))
    return UNREADABLE if unreadable else DENIED if changes[Change.NEWLY_DENIED] else 0


def _evaluate(item: Item, policy: Policy, received: Received) -> Outcome:
    if not isinstance(item, Review):
        # A bare manifest was never sent, so there is nothing to replay.
        return item if isinstance(item, Unreadable | Skipped) else Skipped(item.origin, str(item.document["kind"]))
    try:
        return evaluate_review(item.origin, item.body, policy, received.of(item.origin.path))
    except ReviewError as error:
        return Unreadable(item.origin, str(error))


def _level(verdict: Verdict) -> Mode:
    if not verdict.allowed:
        return Mode.DENY
    return Mode.WARN if verdict.warnings else Mode.OFF


def _rules_and_modes(evaluation: Evaluation) -> set[tuple[str, Mode]]:
    return {(finding.rule, finding.mode) for finding in evaluation.verdict.findings}


def _seen_by_writer(evaluation: Evaluation) -> set[tuple[str, Mode]]:
    """What the writer is shown; audit findings are for the log only."""
    return {(rule, mode) for rule, mode in _rules_and_modes(evaluation) if mode > Mode.AUDIT}


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
