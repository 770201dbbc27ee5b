"""JUnit and SARIF: what other programs read of a report, and that they can read it whatever it says."""

import json
import unicodedata
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft4Validator

from webhook import __version__
from webhook.findings import Check, Examination, Finding, Severity
from webhook.inputs.items import Place
from webhook.reports import junit, sarif, uri

SCHEMA: Final = Path(__file__).parents[1] / "data" / "sarif-schema-2.1.0.json"
VALIDATOR: Final = Draft4Validator(json.loads(SCHEMA.read_text()), format_checker=Draft4Validator.FORMAT_CHECKER)

DENIED = Finding("lease-duration", Severity.ERROR, "must be greater than 0", "write 15")
WARNED = Finding("takeover-before-expiry", Severity.WARNING, "two may lead")
NOTED = Finding("lease-without-stamps", Severity.INFO, "no stamps")
GOOD = Examination("Lease shop/a", Place("a.yaml", line=3))
BAD = Examination("Lease shop/b", Place("a.yaml", line=9), (DENIED, WARNED, NOTED))
BROKEN = Examination("", Place("b c.yaml"), (), "line 1: not YAML")
REPORT = (GOOD, BAD, BROKEN)
CHECK = Check("lease-duration", "A duration must be positive.", "Or else.")


def results(examined: tuple[Examination, ...], *checks: Check) -> list[dict[str, Any]]:
    document = json.loads(sarif("check", examined, checks))
    VALIDATOR.validate(document)
    found: list[dict[str, Any]] = document["runs"][0]["results"]
    return found


def test_sarif_names_rule_level_place_and_repair() -> None:
    duration, takeover, stamps, unreadable = results(REPORT)
    assert duration["ruleId"] == "lease-duration"
    assert duration["message"]["text"] == "Lease shop/b: must be greater than 0\nwrite 15"
    place = duration["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "a.yaml"}, "region": {"startLine": 9}}
    assert [one["level"] for one in (duration, takeover, stamps, unreadable)] == ["error", "warning", "note", "error"]
    assert unreadable["ruleId"] == "unreadable"
    assert unreadable["locations"] == [{"physicalLocation": {"artifactLocation": {"uri": "b%20c.yaml"}}}]


def test_sarif_describes_the_rules_that_were_broken() -> None:
    (run,) = json.loads(sarif("check", REPORT, [CHECK]))["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [*(one.check for one in BAD.findings), "unreadable"]
    assert rules[0]["shortDescription"] == {"text": "A duration must be positive."}
    assert rules[0]["help"] == {"text": "Or else."}
    assert [result["ruleIndex"] for result in run["results"]] == [0, 1, 2, 3]
    assert run["tool"]["driver"]["semanticVersion"] == __version__
    assert run["invocations"] == [{"executionSuccessful": False}]


def test_a_fingerprint_does_not_depend_on_lines_and_numbers() -> None:
    def fingerprints(*subjects: Examination) -> list[str]:
        return [result["partialFingerprints"]["finding/v1"] for result in results(subjects)]

    later = Finding("lease-duration", Severity.ERROR, "must be greater than 0, is -7")
    first, second = fingerprints(BAD, BAD)[0], fingerprints(BAD, BAD)[3]
    assert first != second
    assert fingerprints(Examination(BAD.name, Place("a.yaml", line=77), (later,))) == [first]
    assert fingerprints(Examination("Lease shop/c", BAD.place, (DENIED,))) != [first]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("deploy/a.yaml", "deploy/a.yaml"),
        ("./a.yaml", "a.yaml"),
        ("/tmp/a b.yaml", "file:///tmp/a%20b.yaml"),
        ("a:b#c?.yaml", "a%3Ab%23c%3F.yaml"),
        ("-", "-"),
        ("\u00e4\udcff", "%C3%A4%ED%B3%BF"),
    ],
)
def test_a_path_as_a_reference(path: str, expected: str) -> None:
    assert uri(path) == expected


def test_junit_has_a_suite_for_each_file_and_a_case_for_each_subject() -> None:
    suites = ET.fromstring(junit("check", REPORT))
    assert suites.attrib == {
        "name": "lease-webhook check",
        "tests": "3",
        "failures": "1",
        "errors": "1",
        "skipped": "0",
        "time": "0",
    }
    assert [suite.get("name") for suite in suites] == ["a.yaml", "b c.yaml"]
    good, bad = suites[0]
    assert (good.get("name"), good.get("line"), list(good)) == ("Lease shop/a", "3", [])
    failure, rest = bad
    assert (failure.tag, failure.get("type"), failure.get("message")) == ("failure", DENIED.check, DENIED.message)
    assert failure.text == "error: lease-duration: must be greater than 0\n  write 15"
    assert (rest.tag, rest.text) == (
        "system-out",
        "warning: takeover-before-expiry: two may lead\ninfo: lease-without-stamps: no stamps",
    )
    (broken,) = suites[1]
    assert (broken.get("name"), broken[0].tag, broken[0].text) == ("b c.yaml", "error", "line 1: not YAML")


def test_nothing_examined_is_a_report_too() -> None:
    assert results(()) == []
    assert ET.fromstring(junit("check", ())).get("tests") == "0"


# Control characters, surrogates and what XML forbids come often.
HOSTILE = st.text(
    st.one_of(st.characters(), st.sampled_from('\0\x1b\x7f\x85\u2028\ud800\udc80\ufffe\uffff<&"]>\n\r\t'))
)
FINDINGS = st.builds(Finding, HOSTILE, st.sampled_from(Severity), HOSTILE, HOSTILE)
SUBJECTS = st.builds(
    Examination,
    HOSTILE,
    st.builds(Place, HOSTILE, line=st.integers(0, 9)),
    st.lists(FINDINGS, max_size=3).map(tuple),
    HOSTILE,
)


@given(st.lists(SUBJECTS, max_size=4).map(tuple), st.builds(Check, HOSTILE, HOSTILE, HOSTILE))
def test_hostile_text_gives_valid_documents(subjects: tuple[Examination, ...], check: Check) -> None:
    suites = ET.fromstring(junit("check", subjects).encode())
    assert len(list(suites.iter("testcase"))) == len(subjects)
    found = results(subjects, check)
    assert len(found) == sum(len(subject.findings) + bool(subject.error) for subject in subjects)
    text = sarif("check", subjects, [check]) + junit("check", subjects)
    assert not {unicodedata.category(character) for character in text.replace("\n", "")} & {
        "Cc",
        "Cf",
        "Cs",
        "Cn",
        "Co",
    }
    for result in found:
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].isascii()
