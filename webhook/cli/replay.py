"""`lease-webhook replay`: evaluates recorded reviews again, and says what another policy would change."""

import collections
from collections.abc import Sequence
from enum import StrEnum
from itertools import chain

import click
from msgspec import Struct

from webhook.api.review import ReviewError
from webhook.cli.arguments import files, format_option, policy_option
from webhook.cli.candidate_sets import CandidateSets
from webhook.cli.evaluation import Evaluation, evaluate_review, load_policy
from webhook.cli.lazy_group import Command
from webhook.cli.outcome_printer import FORMATS, OutcomePrinter
from webhook.cli.received import Received
from webhook.cli.report import DENIED, UNREADABLE, Outcome, Tally, conflicts, json_of
from webhook.cli.report_format import REPORTS, finding_of, location, name_of
from webhook.cli.sources import Item, Review, Skipped, Unreadable, read
from webhook.cli.terminal import table
from webhook.policy.model import Policy
from webhook.reports.model import Finding, Subject
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
    """How another policy changes the outcome of a review."""

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

    @property
    def new_findings(self) -> tuple[Finding, ...]:
        """What the writer is shown under the second policy, and not under the first."""
        shown = _seen_by_writer(self.after) - _seen_by_writer(self.before)
        found = self.after.verdict.findings
        return tuple(finding_of(one) for one in found if (one.rule, one.mode) in shown)


@click.command("replay", cls=Command, help=_DESCRIPTION, epilog=_EPILOG)
@click.argument("directories", metavar="DIR...", nargs=-1, required=True, shell_complete=files)
@policy_option("preset or policy file; standard unless given", metavar="A")
@policy_option("the policy to compare with: show what it would change", "--against", metavar="B")
@format_option("json prints one line per review", FORMATS)
def command(*, directories: tuple[str, ...], policy: str | None, against: str | None, output: str) -> int:
    """Evaluate everything and print the result."""
    first = load_policy(policy)
    if against is None:
        return _replay(directories, first, policy or first.preset, output)
    return _compare(directories, (first, load_policy(against)), (policy or first.preset, against), output)


def _replay(directories: Sequence[str], policy: Policy, name: str, output: str) -> int:
    tally = Tally()
    rules: Counts = collections.Counter()
    candidates = CandidateSets()
    received = Received(directories)
    printer = OutcomePrinter("replay", output, "reviews")
    for item in printer.watch(chain(received.unreadable, read(directories))):
        outcome = _evaluate(item, policy, received)
        if isinstance(outcome, Evaluation):
            outcome = candidates.follow(outcome, policy)
            rules.update(_rules_and_modes(outcome))
        tally.count(outcome)
        if output != "text" or _concerns_people(outcome):
            printer.show(outcome)
    printer.finish([*_counts([(name, rules)]), *tally.lines()], tally)
    return tally.exit_code


def _concerns_people(outcome: Outcome) -> bool:
    """Whether a review is shown as text: among thousands, only those that are denied or warned about."""
    if not isinstance(outcome, Evaluation):
        return True
    return bool(conflicts(outcome)) or _level(outcome.verdict) > Mode.AUDIT


def _compare(directories: Sequence[str], policies: tuple[Policy, Policy], names: tuple[str, str], output: str) -> int:
    changes: collections.Counter[Change] = collections.Counter()
    before: Counts = collections.Counter()
    after: Counts = collections.Counter()
    unreadable = 0
    received = Received(directories)
    printer = OutcomePrinter("replay", output, "reviews")
    for item in printer.watch(chain(received.unreadable, read(directories))):
        outcome, other = (_evaluate(item, policy, received) for policy in policies)
        if isinstance(outcome, Unreadable):
            unreadable += 1
            printer.show(outcome)
        if not isinstance(outcome, Evaluation) or not isinstance(other, Evaluation):
            continue
        pair = Pair(outcome, other)
        changes[pair.change] += 1
        before.update(_rules_and_modes(outcome))
        after.update(_rules_and_modes(other))
        _show(pair, printer)
    printer.finish([*_counts(list(zip(names, (before, after), strict=True))), _summary(changes, names)])
    return UNREADABLE if unreadable else DENIED if changes[Change.NEWLY_DENIED] else 0


def _show(pair: Pair, printer: OutcomePrinter) -> None:
    if printer.output == "json":
        printer.show_json({**json_of(pair.before), "against": json_of(pair.after), "change": pair.change.value})
    elif printer.output in REPORTS:
        printer.keep(Subject(name_of(pair.after), location(pair.after.origin), pair.new_findings))
    elif pair.change is not Change.NONE:
        printer.show(pair.after, pair.change.value)


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
