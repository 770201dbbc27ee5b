"""JUnit's XML: a test suite for each file, a test case for each subject.

There is no one specification. This is what Jenkins, GitLab and GitHub's actions read: the counts on each level, one
`failure` or `error` at most in a test case, and the rest in `system-out`.
"""

from collections.abc import Iterable
from itertools import groupby
from typing import Final
from xml.etree import ElementTree as ET

from webhook.api.text import escape, escape_lines
from webhook.reports.model import Finding, Report, Severity, Subject

_DECLARATION: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'
ORDER: Final = (Severity.INFO, Severity.WARNING, Severity.ERROR)


def junit(report: Report, fail_on: Severity = Severity.ERROR) -> str:
    """The report as XML; a subject fails that has a finding of this severity or a higher one."""
    suites = ET.Element("testsuites", {"name": f"lease-webhook {report.command}", **_counts(report.subjects, fail_on)})
    for path, group in groupby(report.subjects, key=lambda subject: subject.location.path):
        subjects = list(group)
        suite = ET.SubElement(suites, "testsuite", {"name": escape(path), **_counts(subjects, fail_on)})
        for subject in subjects:
            _add_case(suite, subject, fail_on)
    ET.indent(suites)
    # In ASCII, the document is right whatever encoding standard output has.
    return f"{_DECLARATION}{ET.tostring(suites, encoding='us-ascii', xml_declaration=False).decode()}"


def _counts(subjects: Iterable[Subject], fail_on: Severity) -> dict[str, str]:
    found = list(subjects)
    errors = sum(bool(subject.error) for subject in found)
    failures = sum(not subject.error and bool(_failing(subject, fail_on)) for subject in found)
    return {"tests": str(len(found)), "failures": str(failures), "errors": str(errors), "skipped": "0", "time": "0"}


def _failing(subject: Subject, fail_on: Severity) -> list[Finding]:
    return [finding for finding in subject.findings if ORDER.index(finding.severity) >= ORDER.index(fail_on)]


def _add_case(suite: ET.Element, subject: Subject, fail_on: Severity) -> None:
    path = escape(subject.location.path)
    attributes = {"classname": path, "name": escape(subject.name) or path, "time": "0", "file": path}
    if subject.location.line:
        attributes["line"] = str(subject.location.line)
    case = ET.SubElement(suite, "testcase", attributes)
    failing = _failing(subject, fail_on)
    if subject.error:
        ET.SubElement(case, "error", type="unreadable", message=escape(subject.error)).text = escape_lines(
            subject.error
        )
    elif failing:
        types = ", ".join(dict.fromkeys(escape(finding.check) for finding in failing))
        failure = ET.SubElement(case, "failure", type=types, message=escape(failing[0].message))
        failure.text = "\n".join(map(_line, failing))
    rest = [finding for finding in subject.findings if subject.error or finding not in failing]
    if rest:
        ET.SubElement(case, "system-out").text = "\n".join(map(_line, rest))


def _line(finding: Finding) -> str:
    repair = f"\n  {finding.repair}" if finding.repair else ""
    return escape_lines(f"{finding.severity}: {finding.check}: {finding.message}{repair}")
