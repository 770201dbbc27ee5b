"""SARIF 2.1.0, the format of code scanning.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/sarif-v2.1.0-errata01-os-complete.html
"""

import hashlib
import json
from collections import Counter
from typing import Any, Final
from urllib.parse import quote

from webhook.api.text import escape, escape_lines
from webhook.reports.model import Check, Finding, Report, Severity, Subject

SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
UNREADABLE: Final = Check("unreadable", "What is examined must be readable.")
_LEVELS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}

Object = dict[str, Any]


def sarif(report: Report, version: str) -> str:
    """The report as JSON; `version` is that of this program."""
    found = [(subject, finding) for subject in report.subjects for finding in _findings(subject)]
    ids = list(dict.fromkeys(finding.check for _, finding in found))
    checks = {check.id: check for check in (*report.checks, UNREADABLE)}
    seen: Counter[str] = Counter()
    run = {
        "tool": {
            "driver": {
                "name": "lease-webhook",
                "semanticVersion": version,
                "rules": [_rule(checks.get(name) or Check(name, name)) for name in ids],
            }
        },
        "automationDetails": {"id": f"lease-webhook/{report.command}/"},
        "invocations": [{"executionSuccessful": not any(subject.error for subject in report.subjects)}],
        "columnKind": "utf16CodeUnits",
        "results": [_result(subject, finding, ids.index(finding.check), seen) for subject, finding in found],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _findings(subject: Subject) -> tuple[Finding, ...]:
    unreadable = (Finding(UNREADABLE.id, Severity.ERROR, subject.error),) if subject.error else ()
    return (*unreadable, *subject.findings)


def _rule(check: Check) -> Object:
    text = {"help": {"text": escape_lines(check.text)}} if check.text else {}
    return {"id": escape(check.id), "shortDescription": {"text": escape_lines(check.summary)}, **text}


def _result(subject: Subject, finding: Finding, index: int, seen: Counter[str]) -> Object:
    name = f"{subject.name}: " if subject.name else ""
    repair = f"\n{finding.repair}" if finding.repair else ""
    line = {"region": {"startLine": subject.location.line}} if subject.location.line else {}
    return {
        "ruleId": escape(finding.check),
        "ruleIndex": index,
        "level": _LEVELS[finding.severity],
        "message": {"text": escape_lines(f"{name}{finding.message}{repair}")},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": uri(subject.location.path)}, **line}}],
        "partialFingerprints": {"finding/v1": _fingerprint(subject, finding, seen)},
    }


def uri(path: str) -> str:
    """A path as a relative reference, or as a file: URI if it is absolute; standard input is `-`."""
    quoted = quote(path.encode("utf-8", "surrogatepass"))
    return f"file://{quoted}" if path.startswith("/") else quoted.removeprefix("./")


def _fingerprint(subject: Subject, finding: Finding, seen: Counter[str]) -> str:
    """The same for the same problem in the next run, whatever stands above it; the n-th of the same kind has number n.

    The message is left out: it holds times and numbers that differ from run to run.
    """
    key = "\0".join((finding.check, subject.location.path, subject.name))
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    seen[digest] += 1
    return f"{digest}:{seen[digest]}"
