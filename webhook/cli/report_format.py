"""Outcomes as a report for other programs: `--format junit` and `--format sarif`."""

from collections.abc import Iterable
from typing import Final

from webhook.api.text import escape
from webhook.cli.evaluation import Evaluation
from webhook.cli.report import Outcome, subject_of
from webhook.cli.sources import Origin, Skipped, Unreadable
from webhook.reports.model import Check, Finding, Location, Report, Severity, Subject
from webhook.rules.finding import Finding as RuleFinding
from webhook.rules.mode import Mode

REPORTS: Final = ("junit", "sarif")

REQUEST: Final = Check("request", "A review must make sense, and its version must be known.")
UNKNOWN_FIELD: Final = Check("unknown-field", "A manifest has only fields that the API has.")
LONGEST_TEXT: Final = 2000
"""Characters of a message."""
_SEVERITIES: Final = {Mode.DENY: Severity.ERROR, Mode.WARN: Severity.WARNING, Mode.AUDIT: Severity.INFO}


def document(command: str, subjects: Iterable[Subject], output: str, *checks: Check) -> str:
    """What `--format junit` or `--format sarif` prints; `checks` are those beside the rules."""
    from webhook import __version__  # noqa: PLC0415 - these are for reports only, and take a while
    from webhook.cli.rules import described  # noqa: PLC0415
    from webhook.reports.junit import junit  # noqa: PLC0415
    from webhook.reports.sarif import sarif  # noqa: PLC0415

    rules = (Check(rule.id, rule.summary, " ".join(rule.text.split())) for rule in described().values())
    report = Report(command, tuple(subjects), (*rules, REQUEST, UNKNOWN_FIELD, *checks))
    return junit(report) if output == "junit" else sarif(report, __version__)


def subjects_of(outcome: Outcome) -> list[Subject]:
    """An outcome with all its findings; nothing for what was skipped."""
    if isinstance(outcome, Skipped):
        return []
    if isinstance(outcome, Unreadable):
        return [Subject("", location(outcome.origin), error=escape(outcome.error))]
    return [Subject(name_of(outcome), location(outcome.origin), tuple(_findings(outcome)))]


def name_of(evaluation: Evaluation) -> str:
    """What was evaluated, with its number within the file if there are several."""
    number = "" if evaluation.origin.alone else f" #{evaluation.origin.number}"
    return subject_of(evaluation) + number


def location(origin: Origin) -> Location:
    """Where a document is: its file, and its number in it."""
    return Location(origin.path, origin.line)


def finding_of(found: RuleFinding) -> Finding:
    """What a rule found: for a denied write what is wrong, for an admitted one what happened."""
    page = f"lease-webhook rules {found.rule}"
    admitted = found.mode is not Mode.DENY and found.happened is not None
    text = found.happened.within(LONGEST_TEXT, page) if admitted and found.happened else str(found.error)
    return Finding(found.rule, _SEVERITIES[found.mode], text)


def _findings(evaluation: Evaluation) -> Iterable[Finding]:
    verdict = evaluation.verdict
    found = [one for one in verdict.findings if one.mode is not Mode.OFF]
    yield from map(finding_of, found)
    worst = max((one.mode for one in found), default=Mode.OFF)
    if not verdict.allowed and worst is not Mode.DENY:
        yield Finding(REQUEST.id, Severity.ERROR, verdict.message)
    if verdict.allowed and worst < Mode.WARN:
        yield from (Finding(REQUEST.id, Severity.WARNING, warning) for warning in verdict.warnings)
    yield from (Finding(UNKNOWN_FIELD.id, Severity.WARNING, text) for text in evaluation.unknown_fields)
