"""JUnit's XML: a test suite for each file, a test case for each result.

There is no one specification. This is what Jenkins, GitLab and GitHub's actions read: the counts on each level, one
`failure` or `error` at most in a test case, and the rest in `system-out`.
"""

from collections.abc import Iterable
from itertools import groupby
from typing import Final
from xml.etree import ElementTree as ET

from webhook.api.text import escape, escape_lines
from webhook.reports.model import Examination, Finding, Report, Severity

_DECLARATION: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'


def junit(report: Report, fail_on: Severity = Severity.ERROR) -> str:
    """Return the report as XML; a result fails that has a finding of this severity or a higher one."""
    suites = ET.Element("testsuites", {"name": f"lease-webhook {report.command}", **_counts(report.results, fail_on)})
    for path, group in groupby(report.results, key=lambda result: result.location.path):
        results = list(group)
        suite = ET.SubElement(suites, "testsuite", {"name": escape(path), **_counts(results, fail_on)})
        for result in results:
            _add_case(suite, result, fail_on)
    ET.indent(suites)
    # In ASCII, the document is right whatever encoding standard output has.
    return f"{_DECLARATION}{ET.tostring(suites, encoding='us-ascii', xml_declaration=False).decode()}"


def _counts(results: Iterable[Examination], fail_on: Severity) -> dict[str, str]:
    found = list(results)
    errors = sum(bool(result.error) for result in found)
    failures = sum(not result.error and bool(_failing(result, fail_on)) for result in found)
    return {"tests": str(len(found)), "failures": str(failures), "errors": str(errors), "skipped": "0", "time": "0"}


def _failing(result: Examination, fail_on: Severity) -> list[Finding]:
    return [finding for finding in result.findings if finding.severity.is_at_least(fail_on)]


def _add_case(suite: ET.Element, result: Examination, fail_on: Severity) -> None:
    path = escape(result.location.path)
    attributes = {"classname": path, "name": escape(result.name) or path, "time": "0", "file": path}
    if result.location.line:
        attributes["line"] = str(result.location.line)
    case = ET.SubElement(suite, "testcase", attributes)
    failing = _failing(result, fail_on)
    if result.error:
        ET.SubElement(case, "error", type="unreadable", message=escape(result.error)).text = escape_lines(result.error)
    elif failing:
        types = ", ".join(dict.fromkeys(escape(finding.check) for finding in failing))
        failure = ET.SubElement(case, "failure", type=types, message=escape(failing[0].message))
        failure.text = "\n".join(map(_line, failing))
    rest = [finding for finding in result.findings if result.error or finding not in failing]
    if rest:
        ET.SubElement(case, "system-out").text = "\n".join(map(_line, rest))


def _line(finding: Finding) -> str:
    fix = f"\n  {finding.fix}" if finding.fix else ""
    return escape_lines(f"{finding.severity}: {finding.check}: {finding.message}{fix}")
