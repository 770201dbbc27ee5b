"""`check --format junit | sarif | github`: the same problems and exit codes as text, whatever was checked."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft4Validator

from tests.factories import HOLDER, drop, make_lease, put, to_bytes
from webhook.admission.rules.mode import Mode
from webhook.analysis.inputs.items import Place, Unreadable
from webhook.cli.checking.annotations import format_annotations
from webhook.cli.checking.junit import format_junit
from webhook.cli.checking.sarif import format_sarif
from webhook.cli.main import main

SCHEMA: Final = Path(__file__).parents[1] / "data" / "sarif-schema-2.1.0.json"
VALIDATOR: Final = Draft4Validator(json.loads(SCHEMA.read_text()), format_checker=Draft4Validator.FORMAT_CHECKER)
BARE: Final = (drop("metadata.uid"), drop("metadata.resourceVersion"), drop("metadata.creationTimestamp"))
SHORT: Final = put("spec.leaseDurationSeconds", 0)
TYPO: Final = put("spec.renewTim", "x")
COMMAND: Final = re.compile(r"::(error|warning) file=[^:,]*(,line=[0-9]+)?,title=lease-webhook%3A [a-z-]+::.*")

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Check a denied, a warned and a broken file in one format; gives (exit code, output)."""
    monkeypatch.chdir(tmp_path)
    for name, change in (("denied.json", SHORT), ("warned.json", TYPO), ("good.json", put("metadata.name", "good"))):
        Path(name).write_bytes(json.dumps(json.loads(to_bytes(make_lease(*BARE, change))), indent=1).encode())
    Path("broken.yaml").write_text("kind: Lease\nspec: {\n")

    def command(output: str, *args: str) -> tuple[int, str]:
        code = main(["check", *(args or ("denied.json", "warned.json", "good.json")), "--format", output])
        return code, capsys.readouterr().out

    return command


def results(text: str) -> list[dict[str, Any]]:
    document = json.loads(text)
    VALIDATOR.validate(document)
    results: list[dict[str, Any]] = document["runs"][0]["results"]
    return results


def line_of(file: str, text: str) -> int:
    return next(number for number, line in enumerate(Path(file).read_text().splitlines(), 1) if text in line)


def test_sarif_has_each_problem_with_its_rule_level_and_line(check: Run) -> None:
    code, out = check("sarif")
    places = [(one["ruleId"], one["level"], one["locations"][0]["physicalLocation"]) for one in results(out)]
    assert code == 1
    assert places == [
        (
            "lease-duration",
            "error",
            {
                "artifactLocation": {"uri": "denied.json"},
                "region": {"startLine": line_of("denied.json", '"leaseDurationSeconds"')},
            },
        ),
        (
            "unknown-field",
            "warning",
            {"artifactLocation": {"uri": "warned.json"}, "region": {"startLine": line_of("warned.json", 'renewTim"')}},
        ),
    ]


def test_junit_has_a_case_for_each_document_and_fails_what_the_command_fails(check: Run) -> None:
    code, out = check("junit", "--fail-on=warn", "denied.json", "warned.json", "good.json", "broken.yaml")
    root = ET.fromstring(out)
    assert code == 2
    assert {name: root.get(name) for name in ("tests", "failures", "errors")} == {
        "tests": "4",
        "failures": "2",
        "errors": "1",
    }
    cases = [(case.get("classname"), [child.tag for child in case]) for case in root.iter("testcase")]
    assert cases == [
        ("denied.json", ["failure"]),
        ("warned.json", ["failure"]),
        ("good.json", []),
        ("broken.yaml", ["error"]),
    ]
    _, out = check("junit")
    assert [child.tag for case in ET.fromstring(out).iter("testcase") for child in case] == ["failure", "system-out"]


def test_github_has_a_command_for_each_problem(check: Run) -> None:
    _, out = check("github")
    first, second = out.splitlines()
    at = line_of("denied.json", '"leaseDurationSeconds"')
    assert first == (
        f"::error file=denied.json,line={at},title=lease-webhook%3A lease-duration::Lease shop/checkout: "
        "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"
    )
    assert second.startswith("::warning file=warned.json,line=")


HOSTILE: Final = st.lists(
    st.sampled_from([*"a:,%#[]<>&\"'", "\n", "\r", "\0", "\x1b", "\x85", "\u2028", "\ufffe", "\ud800", "::error::"])
).map("".join)


@given(path=HOSTILE, error=HOSTILE)
def test_no_text_ends_a_line_a_property_or_an_element(path: str, error: str) -> None:
    outcome = Unreadable(Place(path or "-"), error, line=3)
    (line,) = format_annotations(outcome)
    assert COMMAND.fullmatch(line), line
    assert len(line.splitlines()) == 1
    assert len(results(format_sarif([outcome]))) == 1
    root = ET.fromstring(format_junit([outcome], Mode.DENY).encode("utf-8", "strict"))
    assert len(list(root.iter("error"))) == 1


@pytest.mark.parametrize("output", ["junit", "sarif", "github"])
def test_values_of_a_manifest_cannot_inject(output: str, check: Run, capsys: pytest.CaptureFixture[str]) -> None:
    name = "x\n::error::e\r\n##[error]e\u0001<a>"
    hostile = make_lease(
        *BARE, put("metadata.name", name), put(HOLDER, f"{name}{'y' * 2000}"), put(f"spec.{'z' * 9}\n::x::", 1)
    )
    Path("hostile.json").write_bytes(to_bytes(hostile))
    code, out = check(output, "hostile.json")
    assert code == 1
    if output == "github":
        assert all(COMMAND.fullmatch(line) for line in out.splitlines()), out
    elif output == "sarif":
        assert {one["ruleId"] for one in results(out)} >= {"object-name", "unknown-field"}
    else:
        assert ET.fromstring(out).find(".//failure") is not None


def test_two_policies_have_no_report(check: Run) -> None:
    assert check("sarif", "--against=strict", "good.json")[0] == 2
