"""What the doctor says about rules that are policies: each finding by one change of a cluster that is in order."""

import copy
from pathlib import Path
from typing import Any

import pytest

from tests.factories import Document
from webhook.admission.policy.parse import parse
from webhook.api_server.doctor.checks import Report
from webhook.api_server.doctor.documents import Documents
from webhook.api_server.doctor.rules import examine_rules
from webhook.api_server.fence.objects import BINDING, POLICY
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


def selecting(*expressions: Document, at: int = 1, **labels: str) -> list[Document]:
    selector = {"matchLabels": labels, "matchExpressions": list(expressions)}
    return changed(at, selector, "matchConstraints", "namespaceSelector")


def named(operator: str, *values: str) -> Document:
    return {"key": "kubernetes.io/metadata.name", "operator": operator, "values": list(values)}


SHIPPED = ("kube-system", "kube-node-lease", "kube-public", "lease-webhook")
COPY = {
    "kind": BINDING,
    "metadata": {"name": "lease-webhook-rules-leases-warn-copy"},
    "spec": {"policyName": "lease-webhook-rules-leases-warn"},
}
RENAMED = {
    "kind": POLICY,
    "metadata": {
        "name": "acme-leases-deny",
        "labels": {"app.kubernetes.io/component": "rules", "app.kubernetes.io/managed-by": "lease-webhook"},
    },
    "spec": {},
}


def checks(objects: list[Document], more: str = "", now: int = 0) -> list[str]:
    reports = examine_rules(Documents(objects), parse(HEAD + more), "policy.yaml", now)
    return [one.check for report in reports for one in report.findings]


@pytest.mark.parametrize(
    ("objects", "more", "expected"),
    [
        pytest.param([], "", [], id="no policies: nothing is said"),
        pytest.param(applied(), "", [], id="as printed, for other namespaces"),
        pytest.param(applied("mode: warn"), "", ["rules-not-applied", "rules-drift"], id="of another mode"),
        pytest.param(applied(BOUND), "", ["rules-drift"], id="a binding that was removed"),
        pytest.param(applied(), BOUND, ["rules-not-applied", "rules-drift"], id="a binding that was added"),
        pytest.param(applied('mode: "off"'), 'mode: "off"', ["kill-switch-on"], id="switched off"),
        pytest.param(applied()[:-1], "", ["rules-not-applied"], id="a binding of a policy is gone"),
        pytest.param(applied()[:2], "", ["rules-not-applied"], id="most are gone"),
        pytest.param(changed(2, ["Audit"], "validationActions"), "", ["rules-drift"], id="it audits only"),
        pytest.param(changed(1, 5, "matchConstraints"), "", ["rules-namespaces", "rules-drift"], id="odd constraints"),
        pytest.param(
            changed(1, ["CREATE"], "matchConstraints", "resourceRules"), "", ["rules-drift"], id="odd resources"
        ),
        pytest.param(
            [*applied(), {"kind": POLICY, "metadata": {"name": "lease-webhook-rules-old-deny"}, "spec": {}}],
            "",
            ["rules-left-over"],
            id="one that no file leads to",
        ),
        pytest.param([*applied(), RENAMED], "", ["rules-left-over"], id="a copy under another name"),
        pytest.param([*applied(), COPY], "", [], id="another binding, which is a finding about bindings"),
        pytest.param(selecting(), "", ["rules-namespaces"], id="one selects every namespace"),
        pytest.param(selecting(named("In", "nowhere")), "", ["rules-namespaces"], id="one selects no namespace"),
        pytest.param(selecting(named("DoesNotExist")), "", ["rules-namespaces"], id="one cannot select any"),
        pytest.param(
            selecting(named("NotIn", *SHIPPED), team="a"), "", ["rules-namespaces"], id="one asks for a label"
        ),
        pytest.param(selecting(named("NotIn", *SHIPPED)), "", ["rules-namespaces"], id="one differs from the others"),
        pytest.param(
            selecting(named("NotIn", *SHIPPED, "shop"), at=3), "", ["rules-namespaces"], id="one leaves out one more"
        ),
        pytest.param(
            changed(2, {"namespaceSelector": {"matchLabels": {"a": "b"}}}, "matchResources"),
            "",
            ["rules-namespaces", "rules-drift"],
            id="a binding selects",
        ),
        pytest.param(changed(2, {}, "matchResources"), "", ["rules-drift"], id="a binding could select"),
        pytest.param(
            [*applied('mode: "off"'), *(one for one in applied() if one["kind"] == POLICY)],
            'mode: "off"',
            ["kill-switch-on"],
            id="policies of modes that were used, to which no binding leads",
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


def report(objects: list[Document], more: str | None = "") -> Report:
    policy = None if more is None else parse(HEAD + more)
    (found,) = examine_rules(Documents(objects, ()), policy, "policy.yaml", 0)
    return found


def namespace(name: str, **labels: str) -> Document:
    return {"kind": "Namespace", "metadata": {"name": name, "labels": labels}}


NAMESPACES = [namespace("kube-node-lease"), namespace("kube-system"), namespace("pay"), namespace("shop", team="a")]


@pytest.mark.parametrize("included", [(), ("kube-system",), ("kube-node-lease",), ("kube-system", "kube-node-lease")])
def test_the_namespaces_that_install_leaves_out_are_a_fact(included: tuple[str, ...]) -> None:
    found = report(make_shipped_manifests(parse(HEAD), 0, included))
    assert not found.findings
    left_out = ", ".join(name for name in SHIPPED if name not in included)
    assert found.note == f"the rules that are policies leave out, as `install --policies-only` has it: {left_out}"


@pytest.mark.parametrize(
    ("changes", "left_out"),
    [
        pytest.param([named("In", "nowhere")], "kube-node-lease, pay, shop, 3 of the 4", id="all that were read"),
        pytest.param(
            [named("NotIn", "kube-system", "kube-public", "lease-webhook", "pay")], "pay, 1 of the 4", id="one"
        ),
    ],
)
def test_what_is_left_out_is_named_without_a_file_too(changes: list[Document], left_out: str) -> None:
    (finding,) = report([*selecting(*changes), *NAMESPACES], None).findings
    assert finding.check == "rules-namespaces"
    assert finding.message.startswith(f"rules are not in force in {left_out} namespaces that were read.")


@pytest.mark.parametrize(
    ("selector", "place"),
    [
        pytest.param(
            {"matchExpressions": [named("In", "nowhere")]},
            "spec.matchConstraints.namespaceSelector: kubernetes.io/metadata.name in (nowhere)",
            id="another",
        ),
        pytest.param({}, "no namespaceSelector, which selects every namespace", id="none"),
        pytest.param({"matchLabels": 5}, "spec.matchConstraints.namespaceSelector: ", id="one that cannot be read"),
    ],
)
def test_a_selector_is_shown_as_kubectl_takes_it(selector: Document, place: str) -> None:
    objects = changed(1, selector, "matchConstraints", "namespaceSelector")
    (finding,) = report([*objects, *NAMESPACES], None).findings
    assert finding.place == f"{POLICY} lease-webhook-rules-leases-deny: {place}"


def test_without_a_file_nothing_else_is_compared() -> None:
    assert not report(applied("mode: warn"), None).findings


def test_an_exemption_that_has_ended_is_in_force_until_the_policies_are_printed_again() -> None:
    assert checks(applied(ENDING), ENDING, DAY - 1) == []
    assert checks(applied(ENDING), ENDING, DAY) == ["rules-drift"]
    assert checks(applied(ENDING, DAY), ENDING, DAY) == []


def test_the_fix_of_a_drift_has_a_step_that_works_whoever_wrote_the_objects() -> None:
    (report,) = examine_rules(Documents(applied("mode: warn")), parse(HEAD), "policy.yaml", 0)
    finding = report.findings[-1]
    apply, replace = "kubectl apply --server-side --force-conflicts -f -", "kubectl replace -f -"
    assert 0 < finding.fix.index(apply) < finding.fix.index(replace), "an apply makes what a replacement needs"


def test_a_long_difference_is_cut() -> None:
    (report,) = examine_rules(Documents(applied("mode: warn")), parse(HEAD), "policy.yaml", 0)
    finding = report.findings[-1]
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
