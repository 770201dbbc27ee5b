"""`--format junit` and `--format sarif` of check and doctor: the same findings and exit codes as text."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from tests.doctor.shipped import BASE
from tests.factories import HOLDER, Document, drop, make_lease, put
from tests.reports.test_reports import VALIDATOR
from webhook.cli.main import main
from webhook.cli.report import REQUEST, UNKNOWN_FIELD

BARE = (drop("metadata.uid"), drop("metadata.resourceVersion"), drop("metadata.creationTimestamp"))

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in an empty directory; gives (exit code, standard output)."""
    monkeypatch.chdir(tmp_path)

    def command(*args: str) -> tuple[int, str]:
        return main([*args]), capsys.readouterr().out

    return command


def sarif(text: str) -> list[dict[str, Any]]:
    document = json.loads(text)
    VALIDATOR.validate(document)
    found: list[dict[str, Any]] = document["runs"][0]["results"]
    return found


def write(path: str, *documents: Document) -> str:
    Path(path).write_text(yaml.safe_dump_all(documents))
    return path


def test_check_gives_each_finding_with_its_line(run: Run) -> None:
    unknown = make_lease(*BARE, put("metadata.name", "typo"), put("spec.holderIdentit", "x"))
    bad = make_lease(*BARE, put("spec.leaseDurationSeconds", 0))
    write("a.yaml", make_lease(*BARE, put("metadata.name", "good")), {"kind": "Pod"}, bad, unknown)
    Path("broken.yaml").write_text("# one of ours\nkind: Lease\nspec: {\n")
    code, out = run("check", "a.yaml", "broken.yaml", "--format", "sarif")
    assert code == 2
    found = [
        (one["ruleId"], one["level"], one["locations"][0]["physicalLocation"]["region"]["startLine"])
        for one in sarif(out)
    ]
    starts = [number for number, line in enumerate(Path("a.yaml").read_text().split("\n"), 1) if line == "---"]
    assert found == [
        ("lease-duration", "error", starts[1] + 1),
        (UNKNOWN_FIELD.id, "warning", starts[2] + 1),
        ("unreadable", "error", 2),
    ]
    code, out = run("check", "a.yaml", "broken.yaml", "--format", "junit")
    suites = ET.fromstring(out)
    assert (code, suites.get("tests"), suites.get("failures"), suites.get("errors")) == (2, "4", "1", "1")


def test_a_denial_without_a_rule_is_a_finding_of_the_request(run: Run) -> None:
    write("old.yaml", make_lease(*BARE, put("apiVersion", "coordination.k8s.io/v1beta9")))
    code, out = run("check", "old.yaml", "--format", "sarif")
    (found,) = sarif(out)
    assert (code, found["ruleId"], found["level"]) == (1, REQUEST.id, "error")
    assert "coordination.k8s.io/v1beta9" in found["message"]["text"]


def test_a_policy_that_is_switched_off_is_a_warning(run: Run) -> None:
    Path("off.yaml").write_text('apiVersion: lease-webhook/v1\nmode: "off"\n')
    code, out = run("check", write("a.yaml", make_lease(*BARE)), "--policy", "off.yaml", "--format", "sarif")
    assert code == 0
    assert {(one["ruleId"], one["level"]) for one in sarif(out)} <= {(REQUEST.id, "warning")}


def test_doctor_gives_risk_and_repair(run: Run) -> None:
    Path("configuration.yaml").write_text(BASE.read_text().replace("failurePolicy: Ignore", "failurePolicy: Fail"))
    code, out = run("doctor", "configuration.yaml", "--format", "sarif")
    assert code == 1
    found = {one["ruleId"]: one["message"]["text"] for one in sarif(out)}
    assert "set failurePolicy: Ignore" in found["fails-closed-everywhere"]
    code, out = run("doctor", "configuration.yaml", "--format", "junit")
    assert (code, ET.fromstring(out).get("failures")) == (1, "1")


@pytest.mark.parametrize("output", ["junit", "sarif"])
def test_a_holder_with_control_characters_leaves_the_report_valid(output: str, run: Run) -> None:
    holder = f"{HOLDER}\x00\x1b[31m\ud800\uffff]]>&<"
    Path("a.json").write_text(
        json.dumps(make_lease(*BARE, put("spec.holderIdentity", holder), put("metadata.name", "\x1b")))
    )
    code, out = run("check", "a.json", "--format", output)
    assert code == 1
    assert out.isascii()
    assert out.replace("\n", "").isprintable()
    if output == "sarif":
        sarif(out)
    else:
        ET.fromstring(out)


def test_changed_files_that_are_not_objects_can_be_skipped(run: Run) -> None:
    Path("values.yaml").write_text("replicas: 3\n")
    Path("template.yaml").write_text("kind: {{ .Values.kind }}\n")
    Path("lease.yaml").write_text("kind: Lease\nspec: {\n")
    assert run("check", "values.yaml", "template.yaml")[0] == 2
    code, out = run("check", "--skip-foreign", "values.yaml", "template.yaml")
    assert (code, "2 skipped (" in out, "not a Kubernetes object 1" in out) == (0, True, True)
    assert run("check", "--skip-foreign", "lease.yaml")[0] == 2
