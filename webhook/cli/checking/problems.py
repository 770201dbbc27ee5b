"""The problems of a document, each with a rule, a level and a line: what reports for programs consist of."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from webhook.admission.policy.model import Policy
from webhook.admission.rules.mode import Mode
from webhook.admission.verdict import RatedFinding
from webhook.analysis.inputs.items import Unreadable
from webhook.cli.checking.evaluation import Evaluation
from webhook.text.quoting import escape

REQUEST: Final = "request"
UNREADABLE: Final = "unreadable"
UNKNOWN_FIELD: Final = "unknown-field"
NOT_RULES: Final = {
    REQUEST: "A review must make sense, and its version must be known.",
    UNREADABLE: "What is examined must be readable.",
    UNKNOWN_FIELD: "A manifest may have only fields that the API has.",
}
_MAX_TEXT: Final = 2000
"""Characters of a message."""


class Problem(Struct, frozen=True):
    """One problem; `rule` is a rule or one of NOT_RULES, `level` what comes of it, `line` 0 if it is not known."""

    rule: str
    level: Mode
    text: str
    line: int = 0


def list_problems(outcome: Evaluation | Unreadable) -> Iterator[Problem]:
    """Yield the problems of a document, those that deny it first; each text is one line without hidden characters."""
    if isinstance(outcome, Unreadable):
        yield Problem(UNREADABLE, Mode.DENY, escape(outcome.error), outcome.line)
        return
    verdict = outcome.verdict
    findings = [one for one in verdict.findings if one.mode is not Mode.OFF]
    for finding in sorted(findings, key=lambda one: -one.mode):
        text, line = escape(_describe(finding, outcome.policy)), outcome.find_line(finding.error.field)
        yield Problem(rule=finding.rule, level=finding.mode, text=text, line=line)
    worst = max((one.mode for one in findings), default=Mode.OFF)
    if not verdict.allowed and worst is not Mode.DENY:
        yield Problem(REQUEST, Mode.DENY, escape(verdict.message), outcome.line)
    if verdict.allowed and worst < Mode.WARN:
        yield from (Problem(REQUEST, Mode.WARN, escape(text), outcome.line) for text in verdict.warnings)
    for field in outcome.unknown:
        yield Problem(UNKNOWN_FIELD, Mode.WARN, escape(field.text), outcome.find_line(field.path))


def _describe(finding: RatedFinding, policy: Policy) -> str:
    """Say of a denied write what is wrong, of an admitted one what happened."""
    if finding.mode is not Mode.DENY and finding.happened is not None:
        return finding.happened.shorten(_MAX_TEXT, policy.find_page(finding.rule))
    return str(finding.error)
