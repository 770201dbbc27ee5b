"""Verdicts as people and programs read them: some lines for each document, one line of JSON, or a report at the end."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import Struct, field

from webhook.api.text import escape, truncate
from webhook.cli.evaluation import Evaluation
from webhook.cli.reading import Progress
from webhook.cli.terminal import Paint, indent, json_line, paint_for, print_message, width
from webhook.inputs.items import Foreign, Place, Unreadable
from webhook.reports.model import Check, Examination, Finding, Location, Report, Severity
from webhook.rules.election.coordinated import CONFLICT
from webhook.rules.rule import Mode
from webhook.verdict import Result

Outcome = Evaluation | Unreadable | Foreign

REPORTS: Final = ("junit", "sarif")
FORMATS: Final = ("text", "json", *REPORTS)
REQUEST: Final = Check("request", "A review must make sense, and its version must be known.")
UNKNOWN_FIELD: Final = Check("unknown-field", "A manifest has only fields that the API has.")
UNREADABLE: Final = 2
DENIED: Final = 1

_MAX_TEXT: Final = 2000
"""Characters of a message."""
_SEVERITIES: Final = {Mode.DENY: Severity.ERROR, Mode.WARN: Severity.WARNING, Mode.AUDIT: Severity.INFO}
_MARGIN: Final = 11


class Tally(Struct):
    """The counts of a run."""

    allowed: int = 0
    warned: int = 0
    denied: int = 0
    unreadable: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    denying_rules: dict[str, None] = {}

    def count(self, outcome: Outcome) -> None:
        """Add one document."""
        if isinstance(outcome, Unreadable):
            self.unreadable += 1
        elif isinstance(outcome, Foreign):
            self.skipped[outcome.kind] += 1
        elif not outcome.verdict.allowed:
            self.denied += 1
            self.denying_rules |= dict.fromkeys(finding.rule for finding in _denying(outcome))
        elif outcome.warnings:
            self.warned += 1
        else:
            self.allowed += 1

    @property
    def exit_code(self) -> int:
        """2 for something unreadable, over 1 for something denied, over 0."""
        return UNREADABLE if self.unreadable else DENIED if self.denied else 0

    @property
    def evaluated(self) -> int:
        """The number of documents that got a verdict."""
        return self.allowed + self.warned + self.denied

    def lines(self) -> Iterator[str]:
        """Return the summary, and where to read on."""
        counts = ((self.denied, "denied"), (self.warned, "allowed with warnings"), (self.allowed, "allowed"))
        found = ", ".join(f"{count} {word}" for count, word in counts if count)
        text = f"{self.evaluated} evaluated{f': {found}' if found else ''}"
        text += f"; {self.unreadable} unreadable" if self.unreadable else ""
        text += f"; {self.skipped_text()}" if self.skipped else ""
        if not self.evaluated and not self.unreadable:
            text += ": there is no Lease, LeaseCandidate or AdmissionReview here"
        yield text
        if self.denying_rules:
            yield f"Why a rule exists: lease-webhook rules {next(iter(self.denying_rules))}"

    def skipped_text(self) -> str:
        """`3 skipped (Pod 2, Service 1)`."""
        kinds = ", ".join(f"{escape(truncate(kind, 40))} {count}" for kind, count in self.skipped.most_common(5))
        return f"{self.skipped.total()} skipped ({kinds}{', ...' if len(self.skipped) > 5 else ''})"


class Printer:
    """The output of `check` and `replay`, in one of FORMATS; the progress line shows `what` they count."""

    def __init__(self, command: str, output: str, what: str) -> None:
        self.output = output
        self.results: list[Examination] = []
        """What a report will show."""
        self._command = command
        self._progress = Progress(what)
        self._paint = paint_for(sys.stdout)

    def watch(self, items: Iterable[Any]) -> Iterator[Any]:
        """Yield the items, counted on a terminal if they take long."""
        return self._progress.watch(items)

    def show(self, outcome: Outcome, label: str = "") -> None:
        """Print an outcome, or keep it for the report; in text, `label` replaces the word for the verdict."""
        if self.output == "text":
            self._progress.print(*_lines(outcome, self._paint, label))
        elif isinstance(outcome, Foreign):
            return
        elif self.output in REPORTS:
            self.results.append(_result(outcome))
        else:
            self.show_json(error_json(outcome) if isinstance(outcome, Unreadable) else as_json(outcome))

    def show_json(self, line: dict[str, Any]) -> None:
        """Print one line of JSON."""
        self._progress.print(json_line(line))

    def finish(self, lines: Iterable[str], tally: Tally | None = None) -> None:
        """Print the report; or, as text, these lines. With a format for programs, standard error names the skipped."""
        if self.output in REPORTS:
            print_report(self._command, self.results, self.output)
        if self.output == "text":
            print("\n".join(lines))
        elif tally and tally.skipped:
            print_message(tally.skipped_text())


def conflicts(evaluation: Evaluation) -> list[Result]:
    """Return the findings about a set of candidates; no single write is refused for them."""
    return [finding for finding in evaluation.verdict.findings if finding.rule == CONFLICT]


def _denying(evaluation: Evaluation) -> list[Result]:
    return [finding for finding in evaluation.verdict.findings if finding.mode is Mode.DENY]


def _lines(outcome: Outcome, paint: Paint, label: str) -> list[str]:
    if isinstance(outcome, Foreign):
        return []
    where = escape(outcome.place.short)
    if isinstance(outcome, Unreadable):
        return [f"{paint.red('unreadable')} {where}", *_wrapped([escape(outcome.error)], _MARGIN)]
    color, word = (
        (paint.red, "denied")
        if not outcome.verdict.allowed
        else (paint.yellow, "warned")
        if outcome.warnings
        else (paint.green, "allowed")
    )
    margin = max(_MARGIN, len(label) + 2)
    head, subject = color((label or word).ljust(margin)) + paint.bold(where), subject_of(outcome)
    if margin + len(where) + len("  ") + len(subject) <= width():
        lines = [f"{head}  {paint.dim(subject)}"]
    else:
        lines = [head, *map(paint.dim, _wrapped([subject], margin))]
    return lines + _wrapped(_reasons(outcome), margin)


def subject_of(evaluation: Evaluation) -> str:
    """Return what was evaluated: `Lease shop/checkout, takeover`."""
    request = evaluation.request
    name = "/".join(filter(None, (request.namespace, request.name)))
    event = evaluation.verdict.event or request.operation.lower()
    return ", ".join(filter(None, (escape(truncate(f"{request.kind} {name}".strip())), event)))


def _reasons(evaluation: Evaluation) -> Iterable[str]:
    verdict = evaluation.verdict
    found = _denying(evaluation)
    yield from (f"{finding.rule}: {finding.error}" for finding in found)
    if not verdict.allowed and not found:
        yield verdict.message
    yield from (f"warning: {warning}" for warning in evaluation.warnings)
    yield from (f"note: {finding.rule}: {finding.error}" for finding in conflicts(evaluation))


def _wrapped(texts: Iterable[str], margin: int) -> list[str]:
    columns = width()
    return [line for text in texts for line in indent(text, margin, columns).splitlines()]


def as_json(evaluation: Evaluation) -> dict[str, Any]:
    """Return the document and its verdict as a JSON object."""
    request, verdict = evaluation.request, evaluation.verdict
    return {
        "source": str(evaluation.place),
        "uid": request.uid,
        "apiVersion": "/".join(filter(None, (request.group, request.version))),
        "kind": request.kind,
        "operation": request.operation.value,
        "event": verdict.event,
        "namespace": request.namespace,
        "name": request.name,
        "user": request.user.username if request.user else "",
        "allowed": verdict.allowed,
        "code": verdict.code,
        "reason": verdict.reason,
        "message": verdict.message,
        "causes": verdict.causes,
        "warnings": evaluation.warnings,
        "auditAnnotations": dict(verdict.audit_annotations),
        "findings": [
            {
                "rule": one.rule,
                "mode": one.mode.word,
                "type": one.error.type.value,
                "field": one.error.field,
                "value": truncate(one.error.value) if isinstance(one.error.value, str) else one.error.value,
                "detail": one.error.detail,
            }
            for one in verdict.findings
        ],
    }


def error_json(unreadable: Unreadable) -> dict[str, Any]:
    """Return what could not be read, and why, as a JSON object."""
    return {"source": str(unreadable.place), "error": unreadable.error}


def print_report(command: str, results: Iterable[Examination], output: str, *checks: Check) -> None:
    """Print what `--format junit` or `--format sarif` asks for; `checks` are those beside the rules."""
    from webhook import __version__  # noqa: PLC0415 - these are for reports only, and take a while
    from webhook.cli.rules import described  # noqa: PLC0415
    from webhook.reports.junit import junit  # noqa: PLC0415
    from webhook.reports.sarif import sarif  # noqa: PLC0415

    rules = (
        Check(rule.id, rule.texts.summary, " ".join((rule.texts.summary, *rule.texts.details)))
        for rule in described().values()
    )
    report = Report(command, tuple(results), (*rules, REQUEST, UNKNOWN_FIELD, *checks))
    print(junit(report) if output == "junit" else sarif(report, __version__))


def _result(outcome: Evaluation | Unreadable) -> Examination:
    if isinstance(outcome, Unreadable):
        return Examination("", location(outcome.place), error=escape(outcome.error))
    return result_of(outcome, _findings(outcome))


def result_of(evaluation: Evaluation, findings: Iterable[Finding]) -> Examination:
    """Return findings with what was evaluated: its number within the file, too, if there are several."""
    number = "" if evaluation.place.is_only else f" #{evaluation.place.document}"
    return Examination(subject_of(evaluation) + number, location(evaluation.place), tuple(findings))


def location(place: Place) -> Location:
    """Return the file of a document, and its first line."""
    return Location(place.path, place.line)


def finding_of(found: Result) -> Finding:
    """Return a rule's finding: for a denied write what is wrong, for an admitted one what happened."""
    text = str(found.error)
    if found.mode is not Mode.DENY and found.happened is not None:
        text = found.happened.within(_MAX_TEXT, f"lease-webhook rules {found.rule}")
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
