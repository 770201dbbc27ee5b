"""SARIF 2.1.0, the format of code scanning.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/sarif-v2.1.0-errata01-os-complete.html
"""

import hashlib
import json
from collections import Counter
from typing import Any, Final
from urllib.parse import quote

from webhook.api.text import escape, escape_lines
from webhook.reports.model import Check, Examination, Finding, Report, Severity

SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
UNREADABLE: Final = Check("unreadable", "What is examined must be readable.")
_LEVELS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}

Object = dict[str, Any]


def sarif(report: Report, version: str) -> str:
    """Return the report as JSON; `version` is that of this program."""
    found = [(result, finding) for result in report.results for finding in _findings(result)]
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
        "invocations": [{"executionSuccessful": not any(result.error for result in report.results)}],
        "columnKind": "utf16CodeUnits",
        "results": [_result(result, finding, ids.index(finding.check), seen) for result, finding in found],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _findings(result: Examination) -> tuple[Finding, ...]:
    unreadable = (Finding(UNREADABLE.id, Severity.ERROR, result.error),) if result.error else ()
    return (*unreadable, *result.findings)


def _rule(check: Check) -> Object:
    text = {"help": {"text": escape_lines(check.text)}} if check.text else {}
    return {"id": escape(check.id), "shortDescription": {"text": escape_lines(check.summary)}, **text}


def _result(result: Examination, finding: Finding, index: int, seen: Counter[str]) -> Object:
    name = f"{result.name}: " if result.name else ""
    fix = f"\n{finding.fix}" if finding.fix else ""
    line = {"region": {"startLine": result.location.line}} if result.location.line else {}
    return {
        "ruleId": escape(finding.check),
        "ruleIndex": index,
        "level": _LEVELS[finding.severity],
        "message": {"text": escape_lines(f"{name}{finding.message}{fix}")},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": uri(result.location.path)}, **line}}],
        "partialFingerprints": {"finding/v1": _fingerprint(result, finding, seen)},
    }


def uri(path: str) -> str:
    """Return a path as a relative reference, or as a file: URI if it is absolute; standard input is `-`."""
    quoted = quote(path.encode("utf-8", "surrogatepass"))
    return f"file://{quoted}" if path.startswith("/") else quoted.removeprefix("./")


def _fingerprint(result: Examination, finding: Finding, seen: Counter[str]) -> str:
    """Return the same text for the same problem in the next run, whatever stands above it; the n-th has number n.

    The message is left out: it holds times and numbers that differ from run to run.
    """
    key = "\0".join((finding.check, result.location.path, result.name))
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    seen[digest] += 1
    return f"{digest}:{seen[digest]}"
