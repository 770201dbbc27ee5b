"""`lease-webhook replay`: evaluates recorded reviews again, and says what another policy would change."""

from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import chain

import click

from webhook.api.review import ReviewError
from webhook.cli.evaluation import Evaluation, evaluate_review
from webhook.cli.options import Command, files, format_option, policy_option
from webhook.cli.report import DENIED, UNREADABLE, Outcome, Tally, as_json, finish, show
from webhook.cli.terminal import json_line, table
from webhook.inputs.files import Received, submitted
from webhook.inputs.items import Foreign, Unreadable
from webhook.inputs.kinds import Review, Submitted
from webhook.policy.model import Policy
from webhook.policy_file import load
from webhook.rules.rule import Mode

Counts = Counter[tuple[str, Mode]]
"""The number of reviews with a finding of each rule, by mode."""

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
    """The change that another policy makes to the outcome of a review."""

    NEWLY_DENIED = "newly denied"
    NEWLY_WARNED = "newly warned"
    NO_LONGER_DENIED = "no longer denied"
    NO_LONGER_WARNED = "no longer warned"
    OTHER_RULES = "other rules"
    NONE = ""


@click.command("replay", cls=Command, help=_DESCRIPTION, epilog=_EPILOG)
@click.argument("directories", metavar="DIR...", nargs=-1, required=True, shell_complete=files)
@policy_option("preset or policy file; standard unless given", metavar="A")
@policy_option("the policy to compare with: show what it would change", "--against", metavar="B")
@format_option("json prints one line per review")
def command(*, directories: tuple[str, ...], policy: str | None, against: str | None, output: str) -> int:
    first = load(policy)
    if against is None:
        return _replay(directories, first, policy or first.preset, output)
    return _compare(directories, (first, load(against)), (policy or first.preset, against), output)


def _replay(directories: Sequence[str], policy: Policy, name: str, output: str) -> int:
    tally = Tally()
    rules: Counts = Counter()
    for (outcome,) in _outcomes(directories, policy):
        is_shown = True
        if isinstance(outcome, Evaluation):
            rules.update(_rules_and_modes(outcome))
            # As text, among thousands of reviews, only those that are denied or warned about.
            is_shown = output != "text" or outcome.level > Mode.AUDIT
        tally.count(outcome)
        if is_shown:
            show(outcome, output)
    finish(output, [*_counts([(name, rules)]), *tally.lines()], tally)
    return tally.exit_code


def _compare(directories: Sequence[str], policies: tuple[Policy, Policy], names: tuple[str, str], output: str) -> int:
    changes: Counter[Change] = Counter()
    counts: tuple[Counts, Counts] = (Counter(), Counter())
    unreadable = 0
    for before, after in _outcomes(directories, *policies):
        if isinstance(before, Unreadable):
            unreadable += 1
            show(before, output)
        if not isinstance(before, Evaluation) or not isinstance(after, Evaluation):
            continue
        change = _change(before, after)
        changes[change] += 1
        for counter, outcome in zip(counts, (before, after), strict=True):
            counter.update(_rules_and_modes(outcome))
        if output == "json":
            print(json_line({**as_json(before), "against": as_json(after), "change": change.value}))
        elif change is not Change.NONE:
            show(after, output, change.value)
    summary = ", ".join(f"{changes[change]} {change.value}" for change in Change if change and changes[change])
    total = f"{changes.total()} reviews, {names[0]} against {names[1]}: {summary or 'no change'}"
    finish(output, [*_counts(list(zip(names, counts, strict=True))), total])
    return UNREADABLE if unreadable else DENIED if changes[Change.NEWLY_DENIED] else 0


def _change(before: Evaluation, after: Evaluation) -> Change:
    old, new = before.level, after.level
    if new > old:
        return Change.NEWLY_DENIED if new is Mode.DENY else Change.NEWLY_WARNED
    if new < old:
        return Change.NO_LONGER_DENIED if old is Mode.DENY else Change.NO_LONGER_WARNED
    return Change.NONE if _seen_by_writer(before) == _seen_by_writer(after) else Change.OTHER_RULES


def _outcomes(directories: Sequence[str], *policies: Policy) -> Iterator[list[Outcome]]:
    received = Received(directories)
    for item in chain(received.unreadable, submitted(directories)):
        yield [_evaluate(item, policy, received) for policy in policies]


def _evaluate(item: Submitted, policy: Policy, received: Received) -> Outcome:
    if not isinstance(item, Review):
        # A bare manifest was never sent, so there is nothing to replay.
        return item if isinstance(item, Unreadable | Foreign) else Foreign(item.place, str(item.document["kind"]))
    try:
        return evaluate_review(item.place, item.body, policy, received.of(item.place.path))
    except ReviewError as error:
        return Unreadable(item.place, str(error))


def _rules_and_modes(evaluation: Evaluation) -> set[tuple[str, Mode]]:
    return {(finding.rule, finding.mode) for finding in evaluation.verdict.findings}


def _seen_by_writer(evaluation: Evaluation) -> set[tuple[str, Mode]]:
    """Return what the writer is shown; audit findings are for the log only."""
    return {(rule, mode) for rule, mode in _rules_and_modes(evaluation) if mode > Mode.AUDIT}


def _counts(columns: list[tuple[str, Counts]]) -> list[str]:
    """Return how many reviews each rule denies, warns about or notes; of several columns, where they differ."""
    rules = sorted({rule for _, counter in columns for rule, _ in counter})
    rows = [(rule, *(_count(counter, rule) for _, counter in columns)) for rule in rules]
    shown = [row for row in rows if len(columns) == 1 or len(set(row[1:])) > 1]
    return ["", *table([("rule", *(name for name, _ in columns)), *shown]), ""] if shown else []


def _count(counter: Counts, rule: str) -> str:
    found = (f"{counter[rule, mode]} {mode.word}" for mode in (Mode.DENY, Mode.WARN, Mode.AUDIT) if counter[rule, mode])
    return ", ".join(found) or "-"
