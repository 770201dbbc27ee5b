"""What the doctor says about rules that are policies: each finding by one change of a cluster that is in order."""

import copy
from pathlib import Path
from typing import Any

import pytest

from tests.factories import Document
from webhook.admission.policy.parse import parse
from webhook.api_server.doctor.documents import Documents
from webhook.api_server.doctor.rules import examine_rules
from webhook.api_server.fence.objects import POLICY
from webhook.api_server.rule_policies import is_never_evaluated, make_shipped_manifests
from webhook.cli.main import main

HEAD = "apiVersion: lease-webhook/v1\n"
BOUND = "bindings: [{namespace: shop, lease: checkout, writers: [shop/op], holder: ['*']}]"
ENDING = "exempt: [{owner: o, reason: r, users: [ann], until: 1970-01-01}]"
DAY = 86_400 * 1_000_000


def applied(more: str = "", now: int = 0) -> list[Document]:
    return copy.deepcopy(make_shipped_manifests(parse(HEAD + more), now, ["kube-node-lease"]))


def changed(number: int, value: object, *path: str) -> list[Document]:
    objects = applied()
    place: Any = objects[number]["spec"]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return objects


def checks(objects: list[Document], more: str = "", now: int = 0) -> list[str]:
    reports = examine_rules(Documents(objects), parse(HEAD + more), "policy.yaml", now)
    return [one.check for report in reports for one in report.findings]


@pytest.mark.parametrize(
    ("objects", "more", "expected"),
    [
        pytest.param([], "", [], id="no policies: nothing is said"),
        pytest.param(applied(), "", [], id="as printed, for other namespaces"),
        pytest.param(applied("mode: warn"), "", ["rules-drift"], id="of another mode"),
        pytest.param(applied(BOUND), "", ["rules-drift"], id="a binding that was removed"),
        pytest.param(applied(), BOUND, ["rules-drift"], id="a binding that was added"),
        pytest.param(applied('mode: "off"'), 'mode: "off"', ["kill-switch-on"], id="switched off"),
        pytest.param(applied()[:-1], "", ["rules-not-applied"], id="a binding of a policy is gone"),
        pytest.param(applied()[:2], "", ["rules-not-applied"], id="most are gone"),
        pytest.param(changed(1, ["Audit"], "validationActions"), "", ["rules-drift"], id="it audits only"),
        pytest.param(changed(0, 5, "matchConstraints"), "", ["rules-drift"], id="odd constraints"),
        pytest.param(
            changed(0, ["CREATE"], "matchConstraints", "resourceRules"), "", ["rules-drift"], id="odd resources"
        ),
        pytest.param(
            [*applied(), {"kind": POLICY, "metadata": {"name": "lease-webhook-rules-old-deny"}, "spec": {}}],
            "",
            ["rules-left-over"],
            id="one that no file leads to",
        ),
        pytest.param(
            applied(),
            "overrides:\n" + "- {rules: {transitions-jump: {mode: warn}}}\n" * 101,
            ["rules-not-exported"],
            id="a file that no policy can say",
        ),
    ],
)
def test_a_finding_by_one_change(objects: list[Document], more: str, expected: list[str]) -> None:
    assert checks(objects, more) == expected


def test_an_exemption_that_has_ended_is_in_force_until_the_policies_are_printed_again() -> None:
    assert checks(applied(ENDING), ENDING, DAY - 1) == []
    assert checks(applied(ENDING), ENDING, DAY) == ["rules-drift"]
    assert checks(applied(ENDING, DAY), ENDING, DAY) == []


def test_a_long_difference_is_cut() -> None:
    (report,) = examine_rules(Documents(applied("mode: warn")), parse(HEAD), "policy.yaml", 0)
    (finding,) = report.findings
    assert len(finding.place) < 300
    assert finding.place.endswith(" more")


@pytest.mark.parametrize(("more", "code"), [("", 0), ("mode: warn", 1), ('mode: "off"', 1)])
def test_doctor_compares_with_the_file_that_is_named(
    more: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, printed = (tmp_path / name for name in ("first.yaml", "second.yaml", "cluster.yaml"))
    first.write_text(HEAD)
    second.write_text(HEAD + more)
    assert main(["install", "--policies-only", "--policy", str(first)]) == 0
    printed.write_text(capsys.readouterr().out)
    assert main(["doctor", "--input", str(printed), "--policy", str(second)]) == code
    out, err = capsys.readouterr()
    assert ("rules-drift" in out) is bool(code)
    assert "what --policy compares" not in err
    assert main(["doctor", "--input", str(printed)]) == 0
    assert "what --policy compares" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"matchConstraints": {"resourceRules": [{"operations": ["CONNECT"]}]}}, True, id="no operation"),
        pytest.param({"matchConstraints": {"resourceRules": [{"operations": ["CREATE"]}]}}, False, id="an operation"),
        pytest.param({"matchConstraints": {"resourceRules": [1]}}, False, id="an odd rule"),
        pytest.param({"matchConstraints": {"resourceRules": 1}}, False, id="odd rules"),
        pytest.param({"matchConstraints": 1}, False, id="odd constraints"),
        pytest.param({}, False, id="nothing"),
    ],
)
def test_a_policy_that_is_never_evaluated(spec: Document, expected: bool) -> None:
    assert is_never_evaluated(spec) is expected
