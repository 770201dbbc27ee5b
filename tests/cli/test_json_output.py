"""The JSON of every command is what docs/json-output.md says."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.json_contract import problems, problems_of_lines
from tools.docs import json_output
from webhook.analysis.claims.claim import ARGUMENTS
from webhook.analysis.claims.registry import KINDS
from webhook.cli.main import main

SEEDED = "tests/data/leases/seeded.json"
NOW = ("--now", "2025-11-20T12:00:04Z")
RBAC = "docs/examples/rbac.json"
RECORDINGS = "tests/data/recordings/1.36.3/kubectl-unusual"
REVIEWS = "docs/examples/reviews"
LOGS = sorted(str(path) for path in Path("tests/data/measured-incidents").glob("*/audit.jsonl.gz"))
"""An audit log of each incident that was measured."""

INCIDENTS = [
    pytest.param(str(path), marks=[] if path.name == "leader-killed" else [pytest.mark.slow], id=path.name)
    for folder in ("incidents", "further-incidents")
    for path in sorted(Path("tests/data", folder).iterdir())
]


def _case_from_log(command: str, log: str) -> Any:
    words = (command, "--input", log, "-o", "json")
    return pytest.param(command, words, id=f"{command}: {Path(log).parent.name}", marks=_mark(log))


def _mark(log: str) -> list[pytest.MarkDecorator]:
    """Leave most logs to slower runs: what `make test` says of all of them is in `tests/claims`."""
    return [] if log in LOGS[::4] else [pytest.mark.slow]


CASES = [
    *[_case_from_log("why", log) for log in LOGS],
    *[_case_from_log("audit", log) for log in LOGS[::4]],
    pytest.param("why", ("why", "--input", SEEDED, *NOW, "-o", "json"), id="why: a list"),
    pytest.param("audit", ("audit", "--input", SEEDED, *NOW, "-o", "json"), id="audit: a list"),
    pytest.param(
        "check", ("check", RECORDINGS, "--policy", "strict", "--format", "json"), id="check: recorded reviews"
    ),
    pytest.param("check", ("check", "docs/examples", "--skip-foreign", "--format", "json"), id="check: manifests"),
    pytest.param(
        "check",
        ("check", RECORDINGS, "--policy", "standard", "--against", "strict", "--format", "json"),
        id="check: two policies",
    ),
    pytest.param(
        "check", ("check", REVIEWS, "--expect", f"{REVIEWS}/expected.jsonl", "--format", "json"), id="check: expected"
    ),
    pytest.param("rules", ("rules", "-o", "json"), id="rules"),
    pytest.param("claims", ("claims", "-o", "json"), id="claims"),
    pytest.param("policy", ("policy", "check", "docs/examples/bound.yaml", "-o", "json"), id="policy check"),
    pytest.param("policy", ("policy", "show", "docs/examples/bound.yaml", "-o", "json"), id="policy show"),
    pytest.param("doctor", ("doctor", "--input", "tests/data/doctor/catch-all.yaml", "-o", "json"), id="doctor"),
    pytest.param("writers", ("writers", "shop/checkout", "--input", RBAC, "-o", "json"), id="writers"),
]


@pytest.mark.parametrize(("command", "words"), CASES)
def test_what_a_command_prints_is_in_the_contract(
    command: str, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    main(list(words))
    assert problems_of_lines(command, capsys.readouterr().out) == []


@pytest.mark.parametrize("command", ["why", "audit"])
@pytest.mark.parametrize("incident", INCIDENTS)
def test_yaml_is_the_json_in_another_form(command: str, incident: str, capsys: pytest.CaptureFixture[str]) -> None:
    main([command, "--input", incident, "-o", "yaml"])
    written = [*yaml.safe_load_all(capsys.readouterr().out)]
    main([command, "--input", incident, "-o", "json"])
    assert written == [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("log", [pytest.param(log, marks=_mark(log), id=Path(log).parent.name) for log in LOGS])
def test_a_timeline_is_in_the_contract(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["timeline", "--input", log, "--format", "json"])
    assert problems("timeline", json.loads(capsys.readouterr().out)) == []


@pytest.mark.parametrize("name", ["audit", "claim"])
def test_each_argument_of_each_claim_is_in_the_contract(name: str) -> None:
    listed = json_output.make_schema()["$defs"][name]["properties"].keys()
    assert {argument for kind in KINDS.values() for argument in kind.arguments} <= ARGUMENTS.keys() <= listed, (
        "add the argument to ARGUMENTS in webhook/analysis/claims/claim.py, then: make docs"
    )


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        pytest.param({"colour": 1}, "Additional properties are not allowed", id="a field that is not listed"),
        pytest.param({"severity": "fatal"}, "is not one of", id="an id that is not listed"),
        pytest.param({"text": 1}, "is not of type", id="another type"),
    ],
)
def test_what_is_not_in_the_contract_is_found(change: dict[str, Any], problem: str) -> None:
    claim = {"claim": "holder", "severity": "info", "identity": "checkout-0", "text": "checkout-0 holds it"}
    assert problems("claim", claim) == []
    (flaw,) = problems("claim", {**claim, **change})
    assert problem in flaw


def test_the_page_is_what_the_schema_says() -> None:
    assert json_output.SCHEMA.read_text(encoding="utf-8") == json_output.make_text(), "write it again: make docs"
    assert json_output.PAGE.read_text(encoding="utf-8") == json_output.make_page(), "write it again: make docs"
