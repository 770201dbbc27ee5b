"""Verdicts as people and programs read them: some lines for each document, one line of JSON, or a report at the end."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final

from msgspec import Struct, field

from webhook.api.text import escape, truncate
from webhook.cli.evaluation import Evaluation
from webhook.cli.terminal import indent, json_line, print_message, style, width
from webhook.findings import Check, Examination, Finding, Severity
from webhook.inputs.items import Foreign, Unreadable
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
_WORDS: Final = {Mode.DENY: ("denied", "red"), Mode.WARN: ("warned", "yellow"), Mode.OFF: ("allowed", "green")}
"""For a verdict and its color."""
_SEVERITIES: Final = {Mode.DENY: Severity.ERROR, Mode.WARN: Severity.WARNING, Mode.AUDIT: Severity.INFO}
_MARGIN: Final = 11


class Tally(Struct):
    """The counts of a run; `skipped` counts objects of other kinds."""

    levels: Counter[Mode] = field(default_factory=Counter)
    unreadable: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    denying_rules: dict[str, None] = {}

    def count(self, outcome: Outcome) -> None:
        """Add one document."""
        if isinstance(outcome, Unreadable):
            self.unreadable += 1
        elif isinstance(outcome, Foreign):
            self.skipped[outcome.kind] += 1
        else:
            self.levels[outcome.level] += 1
            if outcome.level is Mode.DENY:
                self.denying_rules |= dict.fromkeys(finding.rule for finding in _denying(outcome))

    @property
    def exit_code(self) -> int:
        """2 for something unreadable, over 1 for something denied, over 0."""
        return UNREADABLE if self.unreadable else DENIED if self.levels[Mode.DENY] else 0

    @property
    def evaluated(self) -> int:
        """The number of documents that got a verdict."""
        return self.levels.total()

    def lines(self) -> Iterator[str]:
        """Return the summary, and where to read on."""
        counts = ((Mode.DENY, "denied"), (Mode.WARN, "allowed with warnings"), (Mode.OFF, "allowed"))
        found = ", ".join(f"{self.levels[level]} {word}" for level, word in counts if self.levels[level])
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
    """What a command prints in one of FORMATS: text and JSON line by line, a report when it ends."""

    def __init__(self, command: str, output: str, *checks: Check) -> None:
        self.output = output
        self.results: list[Examination] = []
        self._command = command
        self._checks = checks

    def print(
        self,
        lines: Callable[[], Iterable[str]],
        document: Callable[[], dict[str, Any]],
        examination: Callable[[], Examination],
    ) -> None:
        """Print one of three forms of a result, or keep the last one for the report."""
        if self.output in REPORTS:
            self.results.append(examination())
        elif self.output == "json":
            print(json_line(document()))
        else:
            for line in lines():
                print(line)

    def show(self, outcome: Outcome, label: str = "") -> None:
        """Print an outcome; in text, `label` replaces the word for the verdict."""
        if not isinstance(outcome, Foreign):
            self.print(partial(_lines, outcome, label), partial(as_json, outcome), partial(_examined, outcome))

    def finish(self, lines: Iterable[str], tally: Tally | None = None) -> None:
        """Print the report; or, as text, these lines. With a format for programs, standard error names the skipped."""
        if self.output in REPORTS:
            print_report(self._command, self.results, self.output, *self._checks)
        if self.output == "text":
            for line in lines:
                print(line)
        elif tally and tally.skipped:
            print_message(tally.skipped_text())


def _denying(evaluation: Evaluation) -> list[Result]:
    return [finding for finding in evaluation.verdict.findings if finding.mode is Mode.DENY]


def _lines(outcome: Evaluation | Unreadable, label: str) -> list[str]:
    where = escape(outcome.place.short)
    if isinstance(outcome, Unreadable):
        return [f"{style('unreadable', fg='red')} {where}", *_wrapped([escape(outcome.error)], _MARGIN)]
    word, color = _WORDS[outcome.level]
    margin = max(_MARGIN, len(label) + 2)
    head = style((label or word).ljust(margin), fg=color) + style(where, bold=True)
    subject = subject_of(outcome)
    if margin + len(where) + len("  ") + len(subject) <= width():
        lines = [f"{head}  {style(subject, dim=True)}"]
    else:
        lines = [head, *(style(line, dim=True) for line in _wrapped([subject], margin))]
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


def _wrapped(texts: Iterable[str], margin: int) -> list[str]:
    columns = width()
    return [line for text in texts for line in indent(text, margin, columns).splitlines()]


def as_json(evaluation: Evaluation | Unreadable) -> dict[str, Any]:
    """Return the document and its verdict, or why it could not be read, as a JSON object."""
    if isinstance(evaluation, Unreadable):
        return {"source": str(evaluation.place), "error": evaluation.error}
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


def print_report(command: str, results: Iterable[Examination], output: str, *checks: Check) -> None:
    """Print what `--format junit` or `--format sarif` asks for; `checks` are those beside the rules."""
    from webhook.cli.rules import described  # noqa: PLC0415 - these are for reports only, and take a while
    from webhook.reports import junit, sarif  # noqa: PLC0415

    rules = (
        Check(rule.id, rule.texts.summary, " ".join((rule.texts.summary, *rule.texts.details)))
        for rule in described().values()
    )
    found = list(results)
    if output == "junit":
        print(junit(command, found))
    else:
        print(sarif(command, found, (*rules, REQUEST, UNKNOWN_FIELD, *checks)))


def _examined(outcome: Evaluation | Unreadable) -> Examination:
    if isinstance(outcome, Unreadable):
        return Examination("", outcome.place, error=escape(outcome.error))
    number = "" if outcome.place.is_only else f" #{outcome.place.document}"
    return Examination(subject_of(outcome) + number, outcome.place, tuple(_findings(outcome)))


def _finding_of(found: Result) -> Finding:
    """Return a rule's finding: for a denied write what is wrong, for an admitted one what happened."""
    text = str(found.error)
    if found.mode is not Mode.DENY and found.happened is not None:
        text = found.happened.within(_MAX_TEXT, f"lease-webhook rules {found.rule}")
    return Finding(found.rule, _SEVERITIES[found.mode], text)


def _findings(evaluation: Evaluation) -> Iterable[Finding]:
    verdict = evaluation.verdict
    found = [one for one in verdict.findings if one.mode is not Mode.OFF]
    yield from map(_finding_of, found)
    worst = max((one.mode for one in found), default=Mode.OFF)
    if not verdict.allowed and worst is not Mode.DENY:
        yield Finding(REQUEST.id, Severity.ERROR, verdict.message)
    if verdict.allowed and worst < Mode.WARN:
        yield from (Finding(REQUEST.id, Severity.WARNING, warning) for warning in verdict.warnings)
    yield from (Finding(UNKNOWN_FIELD.id, Severity.WARNING, text) for text in evaluation.unknown_fields)
