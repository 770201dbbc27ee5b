"""The formats in which other programs read what a command found: JUnit's XML and SARIF."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, Final
from urllib.parse import quote
from xml.etree import ElementTree as ET

from webhook import __version__
from webhook.api.text import escape, escape_lines
from webhook.findings import Check, Examination, Finding, Severity

SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
UNREADABLE: Final = Check("unreadable", "What is examined must be readable.")

_DECLARATION: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'
_LEVELS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}

Object = dict[str, Any]


def junit(command: str, examined: Sequence[Examination]) -> str:
    """Return JUnit's XML: a test suite for each file, a test case for each result, findings or not.

    The format has no specification. This is what Jenkins, GitLab and GitHub's actions read: the counts on each level,
    at most one `failure` or `error` in a test case, and the rest in `system-out`.
    """
    suites = ET.Element("testsuites", {"name": f"lease-webhook {command}", **_counts(examined)})
    for path, group in groupby(examined, key=lambda result: result.place.path):
        results = list(group)
        suite = ET.SubElement(suites, "testsuite", {"name": escape(path), **_counts(results)})
        for result in results:
            _add_case(suite, result)
    ET.indent(suites)
    # In ASCII, the document is right whatever encoding standard output has.
    return f"{_DECLARATION}{ET.tostring(suites, encoding='us-ascii', xml_declaration=False).decode()}"


def _counts(results: Sequence[Examination]) -> dict[str, str]:
    errors = sum(bool(result.error) for result in results)
    failures = sum(not result.error and bool(_failing(result)) for result in results)
    return {"tests": str(len(results)), "failures": str(failures), "errors": str(errors), "skipped": "0", "time": "0"}


def _failing(result: Examination) -> list[Finding]:
    return [finding for finding in result.findings if finding.severity is Severity.ERROR]


def _add_case(suite: ET.Element, result: Examination) -> None:
    path = escape(result.place.path)
    attributes = {"classname": path, "name": escape(result.name) or path, "time": "0", "file": path}
    if result.place.line:
        attributes["line"] = str(result.place.line)
    case = ET.SubElement(suite, "testcase", attributes)
    failing = _failing(result)
    if result.error:
        ET.SubElement(case, "error", type="unreadable", message=escape(result.error)).text = escape_lines(result.error)
    elif failing:
        types = ", ".join(dict.fromkeys(escape(finding.check) for finding in failing))
        failure = ET.SubElement(case, "failure", type=types, message=escape(failing[0].message))
        failure.text = "\n".join(map(_line_of, failing))
    rest = [finding for finding in result.findings if result.error or finding not in failing]
    if rest:
        ET.SubElement(case, "system-out").text = "\n".join(map(_line_of, rest))


def _line_of(finding: Finding) -> str:
    fix = f"\n  {finding.fix}" if finding.fix else ""
    return escape_lines(f"{finding.severity}: {finding.check}: {finding.message}{fix}")


def sarif(command: str, examined: Sequence[Examination], checks: Iterable[Check]) -> str:
    """Return SARIF 2.1.0, the format of code scanning; `checks` describes those that may have found something.

    https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/sarif-v2.1.0-errata01-os-complete.html
    """
    found = [(result, finding) for result in examined for finding in _findings(result)]
    ids = list(dict.fromkeys(finding.check for _, finding in found))
    known = {check.id: check for check in (*checks, UNREADABLE)}
    seen: Counter[str] = Counter()
    run = {
        "tool": {
            "driver": {
                "name": "lease-webhook",
                "semanticVersion": __version__,
                "rules": [_rule(known.get(name) or Check(name, name)) for name in ids],
            }
        },
        "automationDetails": {"id": f"lease-webhook/{command}/"},
        "invocations": [{"executionSuccessful": not any(result.error for result in examined)}],
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
    line = {"region": {"startLine": result.place.line}} if result.place.line else {}
    return {
        "ruleId": escape(finding.check),
        "ruleIndex": index,
        "level": _LEVELS[finding.severity],
        "message": {"text": escape_lines(f"{name}{finding.message}{fix}")},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": uri(result.place.path)}, **line}}],
        "partialFingerprints": {"finding/v1": _fingerprint(result, finding, seen)},
    }


def uri(path: str) -> str:
    """Return a path as a relative reference, or as a file: URI if it is absolute; standard input is `-`."""
    quoted = quote(path.encode("utf-8", "surrogatepass"))
    return f"file://{quoted}" if path.startswith("/") else quoted.removeprefix("./")


def _fingerprint(result: Examination, finding: Finding, seen: Counter[str]) -> str:
    """Return the same text for the same (n-th) problem in the next run; messages have times and numbers."""
    key = "\0".join((finding.check, result.place.path, result.name))
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    seen[digest] += 1
    return f"{digest}:{seen[digest]}"
