"""Verdicts as people and programs read them: a few lines for each document, or one line of JSON."""

import collections
import sys
from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import Struct

from webhook.api.text import cut, escape
from webhook.cli import json_text
from webhook.cli.evaluation import Evaluation
from webhook.cli.sources import Skipped, Unreadable
from webhook.cli.terminal import Paint, indent, width
from webhook.rules.election import candidate_strategy_conflict
from webhook.rules.finding import Finding
from webhook.rules.mode import Mode

Outcome = Evaluation | Unreadable | Skipped

UNREADABLE: Final = 2
DENIED: Final = 1

_MARGIN: Final = 11


class Tally(Struct):
    """What a run came to."""

    allowed: int = 0
    warned: int = 0
    denied: int = 0
    unreadable: int = 0
    skipped: collections.Counter[str] = msgspec.field(default_factory=collections.Counter)
    denying_rules: dict[str, None] = {}

    def count(self, outcome: Outcome) -> None:
        """Add one document."""
        if isinstance(outcome, Unreadable):
            self.unreadable += 1
        elif isinstance(outcome, Skipped):
            self.skipped[outcome.kind] += 1
        elif not outcome.verdict.allowed:
            self.denied += 1
            self.denying_rules |= dict.fromkeys(finding.rule for finding in denying(outcome))
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
        """How many documents got a verdict."""
        return self.allowed + self.warned + self.denied

    def lines(self) -> list[str]:
        """The summary, and where to read on."""
        counts = [
            (self.denied, "denied"),
            (self.warned, "allowed with warnings"),
            (self.allowed, "allowed"),
        ]
        found = ", ".join(f"{count} {word}" for count, word in counts if count)
        text = f"{self.evaluated} evaluated: {found}" if found else "0 evaluated"
        if self.unreadable:
            text += f"; {self.unreadable} unreadable"
        if self.skipped:
            text += f"; {self.skipped_text()}"
        if not self.evaluated and not self.unreadable:
            text += ": there is no Lease, LeaseCandidate or AdmissionReview here"
        lines = [text]
        if self.denying_rules:
            lines.append(f"Why a rule exists: lease-webhook rules {next(iter(self.denying_rules))}")
        return lines

    def skipped_text(self) -> str:
        """What was left out: `3 skipped (Pod 2, Service 1)`."""
        kinds = ", ".join(f"{escape(cut(kind, 40))} {count}" for kind, count in self.skipped.most_common(5))
        return f"{self.skipped.total()} skipped ({kinds}{', ...' if len(self.skipped) > 5 else ''})"


def denying(evaluation: Evaluation) -> list[Finding]:
    """The findings that deny."""
    return [finding for finding in evaluation.verdict.findings if finding.mode is Mode.DENY]


def conflicts(evaluation: Evaluation) -> list[Finding]:
    """The findings about a set of candidates; no single write is refused for them."""
    return [finding for finding in evaluation.verdict.findings if finding.rule == candidate_strategy_conflict.ID]


def text_of(outcome: Outcome, paint: Paint, label: str = "") -> list[str]:
    """The lines for one document, none for a skipped one; `label` stands in place of the verdict's word."""
    if isinstance(outcome, Skipped):
        return []
    where = escape(outcome.origin.short)
    if isinstance(outcome, Unreadable):
        return [f"{paint.red('unreadable')} {where}", *_wrapped([escape(outcome.error)], _MARGIN)]
    verdict = outcome.verdict
    margin = max(_MARGIN, len(label) + 2)
    if not verdict.allowed:
        word = paint.red((label or "denied").ljust(margin))
    elif outcome.warnings:
        word = paint.yellow((label or "warned").ljust(margin))
    else:
        word = paint.green((label or "allowed").ljust(margin))
    subject = subject_of(outcome)
    if margin + len(where) + len("  ") + len(subject) <= width():
        head = [f"{word}{paint.bold(where)}  {paint.dim(subject)}"]
    else:
        head = [f"{word}{paint.bold(where)}", *map(paint.dim, _wrapped([subject], margin))]
    return head + _wrapped(_reasons(outcome), margin)


def subject_of(evaluation: Evaluation) -> str:
    """What was evaluated: `Lease shop/checkout, takeover`."""
    request = evaluation.request
    name = "/".join(filter(None, (request.namespace, request.name)))
    event = evaluation.verdict.event or request.operation.lower()
    return ", ".join(filter(None, (escape(cut(f"{request.kind} {name}".strip())), event)))


def _reasons(evaluation: Evaluation) -> Iterable[str]:
    verdict = evaluation.verdict
    found = denying(evaluation)
    yield from (f"{finding.rule}: {finding.error}" for finding in found)
    if not verdict.allowed and not found:
        yield verdict.message
    yield from (f"warning: {warning}" for warning in evaluation.warnings)
    yield from (f"note: {finding.rule}: {finding.error}" for finding in conflicts(evaluation))


def _wrapped(texts: Iterable[str], margin: int) -> list[str]:
    columns = width()
    return [line for text in texts for line in indent(text, margin, columns).splitlines()]


def json_of(evaluation: Evaluation) -> dict[str, Any]:
    """The document and its verdict as the JSON line says it."""
    request, verdict = evaluation.request, evaluation.verdict
    return {
        "source": str(evaluation.origin),
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
                "rule": finding.rule,
                "mode": finding.mode.word,
                "type": finding.error.type.value,
                "field": finding.error.field,
                "value": _short(finding.error.value),
                "detail": finding.error.detail,
            }
            for finding in verdict.findings
        ],
    }


def error_line(unreadable: Unreadable) -> str:
    """The JSON line of something that could not be read."""
    return json_text.line({"source": str(unreadable.origin), "error": unreadable.error})


def say(text: str) -> None:
    """A remark beside JSON on standard output: one line, whatever is in it."""
    print(escape(text), file=sys.stderr)


def _short(value: object) -> object:
    return cut(value) if isinstance(value, str) else value
