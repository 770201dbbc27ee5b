"""`lease-webhook test`: compares verdicts with the expected ones in test files."""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final

import click
from msgspec import UNSET, Struct, to_builtins

from webhook.api.review import ReviewError
from webhook.api.text import escape, truncate
from webhook.cli.cases import SUFFIXES, Case, Expectation, case_files
from webhook.cli.evaluation import Evaluation, evaluate_review, load_policy
from webhook.cli.manifest import Writer, review_of, stamped
from webhook.cli.options import Command, files, format_option, moment, policy_option
from webhook.cli.reading import Progress
from webhook.cli.report import FORMATS, REPORTS, error_json, location, print_report
from webhook.cli.terminal import Failure, indent, json_line, paint_for
from webhook.explanation.words import count
from webhook.inputs import kinds
from webhook.inputs.documents import Value, encoded, parsed
from webhook.inputs.files import submitted
from webhook.inputs.items import Foreign, Place, Unreadable
from webhook.inputs.kinds import Manifest, Review, Submitted
from webhook.policy.schema import PRESETS
from webhook.reports.model import Check, Examination, Finding, Severity
from webhook.rules.rule import Mode

_EXPECTATION: Final = Check("expectation", "A verdict must be the one that the test file expects.")

_DESCRIPTION: Final = f"""\
Evaluates the cases of test files and compares each verdict with the expected one. A PATH is a test file, or a directory
that is searched for names ending in {" or ".join(SUFFIXES)}. A case is a recorded review, or the manifest of a lease
before (old) and after (new) a write, with the user who writes, a policy and a time:

\b
  policy: strict
  stamped: true
  cases:
  - name: a live lease is not taken
    old: live.yaml
    new: taken.yaml
    now: 2026-01-31T12:00:05Z
    user: system:serviceaccount:shop:checkout
    expect:
      allowed: false
      event: steal
      rules: {{takeover-before-expiry: deny}}

`stamped` gives manifests without managedFields the stamps of an API server: the old object was written at its
renewTime, the new one at `now`. What `expect` leaves out is not compared.
"""
_EPILOG: Final = """\
Exit codes:
  0  every verdict is the expected one
  1  at least one verdict is different
  2  something could not be read, no case was found, or wrong usage

Examples:
  lease-webhook test tests/leases
  lease-webhook test tests/leases --policy policy.yaml
  lease-webhook test tests/leases --format junit > report.xml
"""


@click.command("test", cls=Command, help=_DESCRIPTION, epilog=_EPILOG)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, shell_complete=files)
@policy_option("a preset or a policy file instead of those that the test files name")
@click.option("--verbose", "-v", is_flag=True, help="list also the cases that pass")
@format_option("json prints one line per case", FORMATS)
def command(*, paths: tuple[str, ...], policy: str | None, verbose: bool, output: str) -> int:
    """Evaluate all cases and print the results; raises Failure."""
    printer = _Printer(output, verbose=verbose)
    for file in Progress("files").watch(case_files(paths)):
        if isinstance(file, Unreadable):
            printer.show_unreadable(file)
            continue
        for case in file:
            printer.show(_outcome_of(case, policy))
    return printer.finish()


class _Outcome(Struct, frozen=True):
    """The verdict of a case with each difference from the expected one, or why there is none (`error`)."""

    case: Case
    evaluation: Evaluation | None = None
    differences: tuple[str, ...] = ()
    error: str = ""

    @property
    def passed(self) -> bool:
        return not self.error and not self.differences


class _Printer:
    def __init__(self, output: str, *, verbose: bool) -> None:
        self.counts: Counter[str] = Counter()
        self._output = output
        self._verbose = verbose
        self._paint = paint_for(sys.stdout)
        self._results: list[Examination] = []

    def show_unreadable(self, file: Unreadable) -> None:
        self.counts["unreadable"] += 1
        if self._output in REPORTS:
            self._results.append(Examination("", location(file.place), error=file.error))
        elif self._output == "json":
            print(json_line(error_json(file)))
        else:
            print(f"{self._paint.red('unreadable')}  {escape(file.place.path)}")
            print(indent(escape(file.error), 12))

    def show(self, outcome: _Outcome) -> None:
        word = "passed" if outcome.passed else "unreadable" if outcome.error else "failed"
        self.counts[word] += 1
        case = outcome.case
        if self._output in REPORTS:
            found = tuple(Finding(_EXPECTATION.id, Severity.ERROR, text) for text in outcome.differences)
            self._results.append(Examination(case.text.name, location(case.place), found, outcome.error))
        elif self._output == "json":
            print(json_line(_as_json(outcome)))
        elif not outcome.passed or self._verbose:
            paint = self._paint.green if outcome.passed else self._paint.red
            place = escape(f"{case.place.path}:{case.place.line}")
            print(f"{paint(word.ljust(12))}{self._paint.bold(place)}  {escape(truncate(case.text.name))}")
            for text in [*outcome.differences, *_reasons(outcome)]:
                print(indent(escape(text), 12))

    def finish(self) -> int:
        """Print the summary or the report; return the exit code."""
        counts = self.counts
        if self._output in REPORTS:
            print_report("test", self._results, self._output, _EXPECTATION)
        if not counts:
            raise Failure(f"no case found; test files end in {' or '.join(SUFFIXES)}")
        if self._output == "text":
            words = ("failed", "unreadable", "passed")
            found = ", ".join(f"{counts[word]} {word}" for word in words if counts[word])
            print(f"{count(counts.total(), 'case')}: {found}")
        return 2 if counts["unreadable"] else 1 if counts["failed"] else 0


def _reasons(outcome: _Outcome) -> list[str]:
    """Return the reasons for the verdict of a case that failed."""
    if outcome.passed or not outcome.evaluation:
        return [outcome.error] if outcome.error else []
    verdict = outcome.evaluation.verdict
    return [verdict.message] if not verdict.allowed else list(verdict.warnings)


def _as_json(outcome: _Outcome) -> dict[str, Any]:
    case = outcome.case
    head = {"source": f"{case.place.path}:{case.place.line}", "name": case.text.name}
    if outcome.error or not outcome.evaluation:
        return {**head, "error": outcome.error}
    return {
        **head,
        "passed": outcome.passed,
        "expected": to_builtins(case.text.expect),
        "actual": to_builtins(_actual(outcome.evaluation)),
        "differences": list(outcome.differences),
    }


def _outcome_of(case: Case, policy: str | None) -> _Outcome:
    """Evaluate one case; `policy` replaces that of the case."""
    try:
        evaluation = _evaluate(case, policy)
    except (Failure, ReviewError, ValueError) as error:
        return _Outcome(case, error=str(error))
    return _Outcome(case, evaluation, tuple(_differences(case.text.expect, evaluation)))


def _actual(evaluation: Evaluation) -> Expectation:
    """Return the verdict as a file expects it: with every rule that denies or warns."""
    modes = {rule: mode for rule, mode in _modes(evaluation).items() if mode in ("deny", "warn")}
    return Expectation(evaluation.verdict.allowed, evaluation.verdict.event or UNSET, modes)  # type: ignore[arg-type]  # a Literal is not narrowed by `in`


def _evaluate(case: Case, policy: str | None) -> Evaluation:
    around, text = case.circumstances, case.text
    folder = Path(case.place.path).parent
    name = policy or around.policy or None
    if name and not policy and name not in PRESETS:
        name = str(folder / name)
    now = moment(around.now) if around.now else None
    if text.review is not None:
        if text.old is not None or text.new is not None:
            raise Failure("a case has a review, or old and new")
        return evaluate_review(case.place, _review(text.review, folder), load_policy(name), now)
    if text.new is None and text.old is None:
        raise Failure("a case needs a review, or new, or old, or both")
    if around.groups and not around.user:
        raise Failure("groups need a user: a group alone writes nothing")
    writer = Writer(around.user, around.groups) if around.user else None
    new, old = (None if one is None else _object(one, folder) for one in (text.new, text.old))
    if around.stamped:
        new, old = new and stamped(new, now), old and stamped(old)
    body = review_of(new, old, writer)
    return evaluate_review(case.place, body, load_policy(name), now, writer_known=writer is not None)


def _object(given: str | Value, folder: Path) -> Value:
    item = _only(given, folder)
    if not isinstance(item, Manifest):
        raise Failure(f"{_shown(given)}: not a Lease or LeaseCandidate")
    return item.document


def _review(given: str | Value, folder: Path) -> bytes:
    if not isinstance(given, str):
        return encoded(given)
    item = _only(given, folder)
    if not isinstance(item, Review):
        raise Failure(f"{_shown(given)}: not an AdmissionReview")
    return item.body


def _only(given: str | Value, folder: Path) -> Submitted:
    """Return the one document of a file, or the one that is written in the case."""
    if not isinstance(given, str):
        item = kinds.submitted(parsed(Place("the object in the case"), given))
        if isinstance(item, Unreadable):
            raise Failure(item.error)
        return item
    items = [item for item in submitted([str(folder / given)]) if not isinstance(item, Foreign)]
    if len(items) != 1:
        raise Failure(f"{given}: one object is needed, {len(items)} found")
    if isinstance(items[0], Unreadable):
        raise Failure(f"{given}: {items[0].error}")
    return items[0]


def _differences(expected: Expectation | None, evaluation: Evaluation) -> list[str]:
    if expected is None:
        return ["nothing is expected"]
    verdict = evaluation.verdict
    found = []
    if expected.allowed is not verdict.allowed:
        found.append(f"allowed: expected {json.dumps(expected.allowed)}, got {json.dumps(verdict.allowed)}")
    if expected.event is not UNSET and expected.event != verdict.event:
        found.append(f"event: expected {expected.event or 'none'}, got {verdict.event or 'none'}")
    if expected.rules is not UNSET:
        got = _modes(evaluation)
        for rule, mode in expected.rules.items():
            if got.get(rule) != mode:
                found.append(f"rules: {rule}: expected {mode}, got {got.get(rule, 'nothing')}")
        found += [
            f"rules: {rule}: expected nothing, got {mode}"
            for rule, mode in got.items()
            if rule not in expected.rules and mode != Mode.AUDIT.word
        ]
    return found


def _modes(evaluation: Evaluation) -> dict[str, str]:
    """Return the strongest mode of each rule that found something."""
    modes: dict[str, Mode] = {}
    for finding in evaluation.verdict.findings:
        modes[finding.rule] = max(finding.mode, modes.get(finding.rule, Mode.OFF))
    return {rule: mode.word for rule, mode in modes.items() if mode is not Mode.OFF}


def _shown(given: str | Value) -> str:
    return given if isinstance(given, str) else "the object in the case"
