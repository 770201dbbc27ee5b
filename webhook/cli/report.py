"""Verdicts as people and programs read them: some lines for each document, or one line of JSON."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import Struct, field

from webhook.api.text import escape, truncate
from webhook.cli.evaluation import Evaluation
from webhook.cli.terminal import indent, json_line, print_message, style, width
from webhook.inputs.items import Foreign, Unreadable
from webhook.rules.rule import Mode
from webhook.verdict import Result

Outcome = Evaluation | Unreadable | Foreign

UNREADABLE: Final = 2
DENIED: Final = 1

WORDS: Final = {Mode.DENY: ("denied", "red"), Mode.WARN: ("warned", "yellow"), Mode.OFF: ("allowed", "green")}
"""For a verdict and its color."""
_MARGIN: Final = 11


class Tally(Struct):
    """The counts of a run; `skipped` counts objects of other kinds, `unknown` writes that were not evaluated."""

    levels: Counter[Mode] = field(default_factory=Counter)
    unreadable: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    unknown: int = 0
    denying_rule: str = ""

    def count(self, outcome: Outcome) -> None:
        """Add one document."""
        if isinstance(outcome, Unreadable):
            self.unreadable += 1
        elif isinstance(outcome, Foreign):
            self.skipped[outcome.kind] += 1
        else:
            self.levels[outcome.level] += 1
            self.denying_rule = self.denying_rule or next((one.rule for one in _denying(outcome)), "")

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
        text += f"; {self.unknown} not evaluated" if self.unknown else ""
        text += f"; {self.skipped_text()}" if self.skipped else ""
        if not self.evaluated and not self.unreadable:
            text += ": no Lease, LeaseCandidate or AdmissionReview here can be"
        yield text
        if self.denying_rule:
            yield f"Why a rule exists: lease-webhook rules {self.denying_rule}"

    def skipped_text(self) -> str:
        """`3 skipped (Pod 2, Service 1)`."""
        kinds = ", ".join(f"{escape(truncate(kind, 40))} {count}" for kind, count in self.skipped.most_common(5))
        return f"{self.skipped.total()} skipped ({kinds}{', ...' if len(self.skipped) > 5 else ''})"


def show(outcome: Outcome, output: str, label: str = "") -> None:
    """Print an outcome as text or JSON; in text, `label` replaces the word for the verdict."""
    if isinstance(outcome, Foreign):
        return
    for line in [json_line(as_json(outcome))] if output == "json" else _lines(outcome, label):
        print(line)


def finish(output: str, lines: Iterable[str], tally: Tally | None = None) -> None:
    """Print these lines at the end of text; with a format for programs, name on standard error what was skipped."""
    if output == "text":
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
    word, color = WORDS[outcome.level]
    margin = max(_MARGIN, len(label) + 2)
    head = style((label or word).ljust(margin), fg=color) + style(where, bold=True)
    subject = _subject(outcome)
    if margin + len(where) + len("  ") + len(subject) <= width():
        lines = [f"{head}  {style(subject, dim=True)}"]
    else:
        lines = [head, *(style(line, dim=True) for line in _wrapped([subject], margin))]
    return lines + _wrapped(_reasons(outcome), margin)


def _subject(evaluation: Evaluation) -> str:
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
    yield from (f"warning: {warning}" for warning in verdict.warnings)


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
        "warnings": verdict.warnings,
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
