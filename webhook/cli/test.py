"""`lease-webhook test`: compares verdicts with the expected ones in test files."""

import sys
from collections import Counter
from collections.abc import Sequence
from typing import Final

import click
from msgspec import to_builtins

from webhook.api.text import cut, escape
from webhook.cli import json_text
from webhook.cli.arguments import files, format_option, policy_option
from webhook.cli.case_result import CaseResult, actual, result_of
from webhook.cli.case_update import update
from webhook.cli.cases import SUFFIXES, CaseFile, case_files
from webhook.cli.failure import Failure
from webhook.cli.lazy_group import Command
from webhook.cli.progress import Progress
from webhook.cli.report import error_line
from webhook.cli.report_format import REPORTS, document, location
from webhook.cli.sources import Unreadable
from webhook.cli.terminal import indent, paint_for
from webhook.reports.model import Check, Finding, Severity, Subject

EXPECTATION: Final = Check("expectation", "A verdict must be the one that the test file expects.")
PASSED: Final = 0
FAILED: Final = 1
UNREADABLE: Final = 2

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
renewTime, the new one at `now`. What `expect` leaves out is not compared. --update writes the actual verdicts into
the files, and keeps comments.
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
@click.option(
    "--update", "wanted_update", is_flag=True, help="write the actual verdicts into the files as the expected ones"
)
@click.option("--verbose", "-v", is_flag=True, help="list also the cases that pass")
@format_option("json prints one line per case", ("text", "json", *REPORTS))
def command(*, paths: tuple[str, ...], policy: str | None, wanted_update: bool, verbose: bool, output: str) -> int:
    """Evaluate all cases and print the results; raises Failure."""
    if wanted_update and policy:
        raise Failure("--update writes what the policies of the files give; leave --policy out")
    printer = _Printer(output, verbose=verbose)
    for file in Progress("files").watch(case_files(paths)):
        if isinstance(file, Unreadable):
            printer.unreadable(file)
            continue
        results = [result_of(case, policy) for case in file.cases]
        if wanted_update:
            results = _updated(file, results, printer)
        for result in results:
            printer.case(result)
    return printer.finish()


def _updated(file: CaseFile, results: Sequence[CaseResult], printer: "_Printer") -> list[CaseResult]:
    """Write what differs; gives the results that are left."""
    verdicts = {
        number: actual(result.evaluation)
        for number, result in enumerate(results)
        if result.evaluation and result.differences
    }
    if verdicts:
        try:
            update(file, verdicts)
        except Failure as failure:
            raise Failure(f"{file.path}: {failure}") from failure
        printer.counts["updated"] += len(verdicts)
    return [result for number, result in enumerate(results) if number not in verdicts]


class _Printer:
    def __init__(self, output: str, *, verbose: bool) -> None:
        self.counts: Counter[str] = Counter()
        self._output = output
        self._verbose = verbose
        self._paint = paint_for(sys.stdout)
        self._subjects: list[Subject] = []

    def unreadable(self, file: Unreadable) -> None:
        self.counts["unreadable"] += 1
        if self._output in REPORTS:
            self._subjects.append(Subject("", location(file.origin), error=file.error))
        elif self._output == "json":
            print(error_line(file))
        else:
            print(f"{self._paint.red('unreadable')}  {escape(file.origin.path)}")
            print(indent(escape(file.error), 12))

    def case(self, result: CaseResult) -> None:
        word = "passed" if result.passed else "unreadable" if result.error else "failed"
        self.counts[word] += 1
        if self._output in REPORTS:
            self._subjects.append(_subject(result))
        elif self._output == "json":
            print(json_text.line(_as_json(result)))
        elif not result.passed or self._verbose:
            paint = self._paint.green if result.passed else self._paint.red
            place = escape(f"{result.case.at.path}:{result.case.at.line}")
            print(f"{paint(word.ljust(12))}{self._paint.bold(place)}  {escape(cut(result.case.text.name))}")
            for text in [*result.differences, *_reasons(result)]:
                print(indent(escape(text), 12))

    def finish(self) -> int:
        """Print the summary or the report; gives the exit code."""
        counts = self.counts
        if self._output in REPORTS:
            print(document("test", self._subjects, self._output, EXPECTATION))
        if not counts:
            raise Failure(f"no case found; test files end in {' or '.join(SUFFIXES)}")
        if self._output == "text":
            words = ("failed", "unreadable", "updated", "passed")
            total = counts.total()
            print(
                f"{total} {'case' if total == 1 else 'cases'}: "
                + ", ".join(f"{counts[word]} {word}" for word in words if counts[word])
            )
        return UNREADABLE if counts["unreadable"] else FAILED if counts["failed"] else PASSED


def _reasons(result: CaseResult) -> list[str]:
    """The reasons for the verdict of a case that failed."""
    if result.passed or not result.evaluation:
        return [result.error] if result.error else []
    verdict = result.evaluation.verdict
    return [verdict.message] if not verdict.allowed else list(verdict.warnings)


def _subject(result: CaseResult) -> Subject:
    findings = tuple(Finding(EXPECTATION.id, Severity.ERROR, text) for text in result.differences)
    return Subject(result.case.text.name, location(result.case.at), findings, result.error)


def _as_json(result: CaseResult) -> dict[str, object]:
    case = result.case
    head = {"source": f"{case.at.path}:{case.at.line}", "name": case.text.name}
    if result.error or not result.evaluation:
        return {**head, "error": result.error}
    return {
        **head,
        "passed": result.passed,
        "expected": to_builtins(case.text.expect),
        "actual": to_builtins(actual(result.evaluation)),
        "differences": list(result.differences),
    }
