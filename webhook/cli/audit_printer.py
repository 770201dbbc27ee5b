"""What an audit prints: text and JSON lines as findings come, or one document at the end."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct, field

from webhook import __version__
from webhook.api.text import cut, escape
from webhook.audit.finding import RANK, Finding
from webhook.audit.rules import NOT_APPLICABLE
from webhook.cli import json_text
from webhook.cli.audit_reports import reports_of
from webhook.cli.audit_run import Audit
from webhook.cli.report import say
from webhook.cli.terminal import Paint, indent
from webhook.reports.junit import junit
from webhook.reports.model import Check, Location, Report, Severity
from webhook.reports.model import Finding as ReportFinding
from webhook.reports.model import Subject as ReportSubject
from webhook.reports.sarif import sarif
from webhook.rules.registry import RULES

_LONGEST_NAME: Final = 400
"""More than a kind, a namespace and a name that an API server stored."""


class Printer(Struct):
    """What is printed, in each format; `kept` are findings of a format that is one document."""

    output: str
    fail_on: Severity
    paint: Paint
    kept: list[Finding] = field(default_factory=list)

    def lines(self, finding: Finding) -> Iterator[str]:
        """One finding, in a format that needs no others."""
        if self.output == "json":
            yield json_text.line(finding)
        elif finding.is_at_least(self.fail_on):
            color = self.paint.red if finding.severity is Severity.ERROR else self.paint.yellow
            who = escape(cut(f"{finding.kind} {finding.namespace}/{finding.name}", _LONGEST_NAME))
            yield f"{color(f'{finding.severity.value:<8}')} {self.paint.bold(who)}  {finding.check}"
            yield indent(escape(finding.message), 9)
            # Not wrapped: it is there to be copied.
            yield f"         -> {escape(finding.repair)}"

    def finish(self, audit: Audit) -> None:
        """The summary, or the document."""
        if self.output == "text":
            print("\n".join(_summary(audit)))
        elif self.output == "json":
            say(_not_applicable())
        elif self.output == "openreports":
            for report in reports_of(self.kept, audit.stock.now):
                print(json_text.line(report))
        else:
            whole = _report(self.kept, audit)
            print(sarif(whole, __version__) if self.output == "sarif" else junit(whole, self.fail_on))


def _summary(audit: Audit) -> Iterator[str]:
    found = [f"{audit.counts[one.value]} {one.value}" for one in Severity if audit.counts[one.value]]
    known = f", {audit.passed_over} known from the baseline" if audit.passed_over else ""
    skipped = f"; {sum(audit.skipped.values())} other objects skipped" if audit.skipped else ""
    yield f"{len(audit.examined)} examined: {', '.join(found) or 'nothing found'}{known}{skipped}"
    hidden = sum(audit.counts[one.value] for one in Severity if RANK[one] < RANK[audit.fail_on])
    if hidden:
        yield f"{hidden} below {audit.fail_on.value} not shown: --fail-on info shows all"
    yield indent(_not_applicable(), 2).strip()


def _not_applicable() -> str:
    return (
        f"not applicable to what is stored: {len(NOT_APPLICABLE)} rules about a change or its writer, which "
        f"lease-webhook replay applies to recorded reviews: {', '.join(NOT_APPLICABLE)}"
    )


def _report(findings: Sequence[Finding], audit: Audit) -> Report:
    """Everything that was examined, including objects without findings."""
    by_object: dict[str, list[Finding]] = {}
    for one in findings:
        by_object.setdefault(f"{one.kind} {one.namespace}/{one.name}", []).append(one)
    subjects = [
        ReportSubject(
            name,
            Location(path),
            tuple(ReportFinding(one.check, one.severity, one.message, one.repair) for one in by_object.pop(name, ())),
        )
        for name, path in audit.examined
    ]
    subjects += [ReportSubject("", Location(one.source.path), error=one.error) for one in audit.unreadable]
    checks = [Check(id_, RULES[id_].summary) for id_ in sorted({one.check for one in findings} & RULES.keys())]
    return Report("audit", tuple(subjects), tuple(checks))
