"""Outcomes as lines for people, and as JSON for programs."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec import Struct, field

from webhook.admission.rules.mode import Mode
from webhook.admission.verdict import RatedFinding
from webhook.analysis.inputs.documents import KIND_OF_TEMPLATE
from webhook.analysis.inputs.items import OtherObject, Place, Unreadable
from webhook.cli.checking.evaluation import DocumentOutcome, Evaluation
from webhook.cli.reading import format_skipped
from webhook.cli.terminal import format_table, indent, measure_width, style
from webhook.text.quoting import escape, truncate

Counts = Counter[tuple[str, Mode]]
"""The number of documents with a finding of each rule, by mode."""

_COLORS: Final = {Mode.DENY: "red", Mode.WARN: "yellow", Mode.OFF: "green"}
CHANGES: Final = ("newly denied", "newly warned", "no longer denied", "no longer warned", "other rules")
"""The changes that another policy makes to the outcome of a write, the worst first."""
_MARGIN: Final = 11
_KUBECTL: Final = "kubectl"
"""The path of what kubectl listed, of which only the objects' names say something."""


def describe_change(before: Evaluation, after: Evaluation) -> str:
    """Return the change in words, "" for none."""
    old, new = before.level, after.level
    if new != old:
        return f"newly {after.word}" if new > old else f"no longer {before.word}"
    return "" if _find_rules_shown_to_writer(before) == _find_rules_shown_to_writer(after) else "other rules"


def find_rules_and_modes(evaluation: Evaluation) -> set[tuple[str, Mode]]:
    """Return what each rule did."""
    return {(finding.rule, finding.mode) for finding in evaluation.verdict.findings}


def _find_rules_shown_to_writer(evaluation: Evaluation) -> set[tuple[str, Mode]]:
    """Return what the writer is shown; audit findings are for the log only."""
    return {(rule, mode) for rule, mode in find_rules_and_modes(evaluation) if mode > Mode.AUDIT}


def format_counts(columns: list[tuple[str, Counts]]) -> list[str]:
    """Return how many writes each rule denies, warns about or notes; of several columns, where they differ."""
    rules = sorted({rule for _, counter in columns for rule, _ in counter})
    rows = [(rule, *(_format_count(counter, rule) for _, counter in columns)) for rule in rules]
    shown = [row for row in rows if len(columns) == 1 or len(set(row[1:])) > 1]
    return ["", *format_table([("rule", *(name for name, _ in columns)), *shown]), ""] if shown else []


def _format_count(counter: Counts, rule: str) -> str:
    found = (f"{counter[rule, mode]} {mode.word}" for mode in (Mode.DENY, Mode.WARN, Mode.AUDIT) if counter[rule, mode])
    return ", ".join(found) or "-"


class Tally(Struct):
    """The counts of a run; `skipped` counts objects of other kinds."""

    levels: Counter[Mode] = field(default_factory=Counter)
    unreadable: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    page: str = ""
    """Where the first rule that denied is explained."""

    def count(self, outcome: DocumentOutcome) -> None:
        """Add one document."""
        if isinstance(outcome, Unreadable):
            self.unreadable += 1
        elif isinstance(outcome, OtherObject):
            self.skipped[outcome.kind] += 1
        else:
            self.levels[outcome.level] += 1
            self.page = self.page or next((outcome.policy.find_page(one.rule) for one in _find_denying(outcome)), "")

    def format_lines(self, unknown: int) -> Iterator[str]:
        """Yield the summary, with the number of writes that were not evaluated, and where to read on."""
        counts = ((Mode.DENY, "denied"), (Mode.WARN, "allowed with warnings"), (Mode.OFF, "allowed"))
        found = ", ".join(f"{self.levels[level]} {word}" for level, word in counts if self.levels[level])
        evaluated = self.levels.total()
        text = f"{evaluated} evaluated{f': {found}' if found else ''}"
        text += f"; {self.unreadable} unreadable" if self.unreadable else ""
        text += f"; {unknown} not evaluated" if unknown else ""
        text += f"; {format_skipped(self.skipped)}" if self.skipped else ""
        if not evaluated and not self.unreadable and not unknown:
            text += ": nothing here is a Lease, a LeaseCandidate or an AdmissionReview"
            text += "; render the templates first, as by `helm template`" if self.skipped[KIND_OF_TEMPLATE] else ""
        yield text
        if self.page:
            yield f"Why a rule exists: {self.page}"


def _find_denying(evaluation: Evaluation) -> list[RatedFinding]:
    return [finding for finding in evaluation.verdict.findings if finding.mode is Mode.DENY]


def format_outcome(
    outcome: Evaluation | Unreadable, label: str = "", reasons: Sequence[str] | None = None
) -> list[str]:
    """Return an outcome as lines for people; `label` replaces the word for the verdict, `reasons` its own ones."""
    where = escape(format_place(outcome.place, outcome.line))
    if isinstance(outcome, Unreadable):
        return [f"{style('unreadable', fg='red')} {where}", *_wrap([escape(outcome.error)], _MARGIN)]
    word, color = outcome.word, _COLORS[outcome.level]
    margin = max(_MARGIN, len(label) + 2)
    head = style((label or word).ljust(margin), fg=color) + style(where, bold=True)
    subject = format_subject(outcome)
    if not where:
        lines = [style((label or word).ljust(margin), fg=color) + style(subject, bold=True)]
    elif margin + len(where) + len("  ") + len(subject) <= measure_width():
        lines = [f"{head}  {style(subject, dim=True)}"]
    else:
        lines = [head, *(style(line, dim=True) for line in _wrap([subject], margin))]
    return lines + _wrap(_format_reasons(outcome) if reasons is None else map(escape, reasons), margin)


def format_place(place: Place, line: int) -> str:
    """Return a place as editors and terminals open it, `deploy/lease.yaml:12`; "" for an object of a cluster."""
    if place.path == _KUBECTL:
        return ""
    return f"{place.path}:{line}" if line and not place.is_only else place.short


def format_subject(evaluation: Evaluation) -> str:
    """Return what was evaluated: `Lease shop/checkout, takeover`."""
    event = evaluation.verdict.event or evaluation.request.operation.lower()
    return ", ".join(filter(None, (escape(truncate(evaluation.subject)), event)))


def _format_reasons(evaluation: Evaluation) -> Iterable[str]:
    verdict = evaluation.verdict
    found = _find_denying(evaluation)
    yield from (f"{_format_line_number(evaluation, one.error.field)}{one.rule}: {one.error}" for one in found)
    if not verdict.allowed and not found:
        yield verdict.message
    yield from (f"warning: {warning}" for warning in verdict.warnings)
    yield from (f"warning: {_format_line_number(evaluation, one.path)}{escape(one.text)}" for one in evaluation.unknown)


def _format_line_number(evaluation: Evaluation, path: str) -> str:
    """Return `line 12: ` for a field on another line than its document."""
    line = evaluation.find_line(path)
    return f"line {line}: " if line != evaluation.line else ""


def _wrap(texts: Iterable[str], margin: int) -> list[str]:
    columns = measure_width()
    return [line for text in texts for line in indent(text, margin, columns).splitlines()]


def make_evaluation_json(evaluation: Evaluation | Unreadable) -> dict[str, Any]:
    """Return the document and its verdict, or why it could not be read, as a JSON object."""
    if isinstance(evaluation, Unreadable):
        return {"source": str(evaluation.place), "line": evaluation.line or None, "error": evaluation.error}
    request, verdict = evaluation.request, evaluation.verdict
    return {
        "source": str(evaluation.place),
        "line": evaluation.line or None,
        "uid": request.uid,
        "apiVersion": "/".join(filter(None, (request.group, request.version))),
        "kind": request.kind,
        "operation": request.operation.value,
        "event": verdict.event,
        "namespace": request.namespace,
        "name": request.name,
        "user": request.user.username if request.user else "",
        "verdict": evaluation.word,
        "allowed": verdict.allowed,
        "code": verdict.code,
        "reason": verdict.reason,
        "message": verdict.message,
        "causes": verdict.causes,
        "warnings": verdict.warnings,
        "auditAnnotations": dict(verdict.audit_annotations),
        "findings": [
            {
                "rule": one.rule,
                "mode": one.mode.word,
                "type": one.error.type.value,
                "field": one.error.field,
                "line": evaluation.find_line(one.error.field) or None,
                "value": truncate(one.error.value) if isinstance(one.error.value, str) else one.error.value,
                "detail": one.error.detail,
            }
            for one in verdict.findings
        ],
        "unknownFields": [
            {"field": one.path, "line": evaluation.find_line(one.path) or None, "message": one.text}
            for one in evaluation.unknown
        ],
    }
