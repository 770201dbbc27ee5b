"""JUnit's XML, which GitLab, Jenkins and Azure Pipelines show: a suite for each file, a case for each document.

There is no specification; the elements and attributes are those that Jenkins and GitLab document, and no others.
"""

import re
from collections.abc import Iterable
from typing import Final
from xml.etree import ElementTree as ET

from webhook.admission.rules.mode import Mode
from webhook.analysis.inputs.items import OtherObject, Unreadable
from webhook.cli.checking.evaluation import DocumentOutcome, Evaluation
from webhook.cli.checking.problems import list_problems
from webhook.cli.checking.text import format_place
from webhook.text.quoting import escape, truncate

_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold, whatever the escape."""


def format_junit(outcomes: Iterable[DocumentOutcome], fails_on: Mode | None) -> str:
    """Return the document; what is at least as severe as `fails_on` is a failure, and anything else a note."""
    root = ET.Element("testsuites", name="lease-webhook check")
    suites: dict[str, ET.Element] = {}
    for outcome in outcomes:
        if isinstance(outcome, OtherObject):
            continue
        path = outcome.place.path
        if path not in suites:
            suites[path] = ET.SubElement(root, "testsuite", name=_escape_for_xml(path))
        _add_case(suites[path], outcome, fails_on)
    for suite in (*suites.values(), root):
        cases = list(suite.iter("testcase"))
        suite.set("tests", str(len(cases)))
        for attribute, tag in (("failures", "failure"), ("errors", "error")):
            suite.set(attribute, str(sum(1 for case in cases if case.find(tag) is not None)))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=False)


def _add_case(suite: ET.Element, outcome: Evaluation | Unreadable, fails_on: Mode | None) -> None:
    place = format_place(outcome.place, outcome.line)
    name = f"{truncate(outcome.subject)} ({place})" if isinstance(outcome, Evaluation) else place
    case = ET.SubElement(suite, "testcase", name=_escape_for_xml(name), classname=_escape_for_xml(outcome.place.path))
    is_unreadable = isinstance(outcome, Unreadable)
    failures: list[str] = []
    notes: list[str] = []
    problems = [*list_problems(outcome)]
    for problem in problems:
        at = f"line {problem.line}: " if problem.line else ""
        is_failure = is_unreadable or (fails_on is not None and problem.level >= fails_on)
        (failures if is_failure else notes).append(f"{at}{problem.rule}: {problem.text}")
    if failures:
        tag = "error" if is_unreadable else "failure"
        failure = ET.SubElement(case, tag, message=_escape_for_xml(failures[0]), type=problems[0].rule)
        failure.text = _escape_for_xml("\n".join(failures), is_one_line=False)
    if notes:
        ET.SubElement(case, "system-out").text = _escape_for_xml("\n".join(notes), is_one_line=False)


def _escape_for_xml(text: str, *, is_one_line: bool = True) -> str:
    shown = escape(text) if is_one_line else "\n".join(map(escape, text.split("\n")))
    return _NOT_XML.sub("\ufffd", shown)
