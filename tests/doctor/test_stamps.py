"""What the doctor says about stamps: each finding by one change of a cluster that is in order."""

import copy
import inspect
import json
import re
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from msgspec.structs import replace

from tests.doctor.shipped import DATA
from tests.factories import NOW, STAMP_ENTRY
from webhook.admission.policy.file import load
from webhook.admission.policy.model import Policy
from webhook.admission.policy.parse import parse
from webhook.admission.rules.stamps import Stamps
from webhook.api_server.doctor import fences_and_stamps as policies_module
from webhook.api_server.doctor.documents import Documents
from webhook.api_server.doctor.fences_and_stamps import examine_stamps
from webhook.api_server.rule_policies import make_manifests, make_stamp_policies
from webhook.cli.main import main
from webhook.text.yaml_reader import LOADER

Document = dict[str, Any]
SUFFIX = "1a2b3c4d"
STAMPS = {"shop": Stamps(SUFFIX)}
SOURCE = Path(__file__).parents[2] / "deploy" / "stamp" / "policies.yaml"
FIELD: Document = {"f:spec": {"f:renewTime": {}}}
TRACKED = STAMP_ENTRY | {"manager": "checkout", "time": "2026-11-21T00:00:00Z", "fieldsV1": FIELD}


@cache
def read_shipped() -> list[Document]:
    text = SOURCE.read_text(encoding="utf-8").replace("expression: SUFFIX", f"expression: \"'{SUFFIX}'\"")
    return list(yaml.load_all(text, LOADER))


def applied() -> list[Document]:
    """The policies as an API server stores them, with its defaults."""
    objects = copy.deepcopy(read_shipped())
    for document in objects:
        document["metadata"]["creationTimestamp"] = "2026-11-21T00:00:00Z"
        if "matchConstraints" in document["spec"]:
            document["spec"]["matchConstraints"] |= {"matchPolicy": "Equivalent", "objectSelector": {}}
    return objects


def changed(at: int, **fields: Any) -> list[Document]:
    objects = applied()
    objects[at]["spec"] |= fields
    return objects


def constrained(at: int, **fields: Any) -> list[Document]:
    return changed(at, matchConstraints=applied()[at]["spec"]["matchConstraints"] | fields)


def suffixed(suffix: str) -> list[Document]:
    objects = applied()
    objects[0]["spec"]["variables"][0]["expression"] = f"'{suffix}'"
    return objects


def namespace(name: str = "shop", **labels: str) -> Document:
    labels = {f"lease-webhook/{key.replace('_', '-')}": value for key, value in labels.items()}
    return {"kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def lease(*entries: Document, written: str = "", writer: str = "- op", place: str = "shop", **spec: Any) -> Document:
    annotations = {f"lease-webhook/writer-{SUFFIX}": writer, f"lease-webhook/written-{SUFFIX}": written}
    metadata = {
        "name": "checkout",
        "namespace": place,
        "annotations": annotations if written else {"a": "b"},
        "managedFields": list(entries),
    }
    return {"kind": "Lease", "metadata": metadata, "spec": {"holderIdentity": "a"} | spec}


def like_stamped() -> Document:
    unstamped = lease(TRACKED)
    unstamped["metadata"]["annotations"] = {f"lease-webhook/x-{SUFFIX}": "y"}
    return unstamped


def policy(name: str, *rules: Document, **spec: Any) -> Document:
    spec = {"matchConstraints": {"resourceRules": list(rules)}} if rules else spec
    return {"kind": "MutatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec}


ALL_RULES = {"apiGroups": ["*"], "resources": ["*"], "operations": ["*"]}
STAMPED = lease(STAMP_ENTRY, written="2026-11-21T00:00:05Z")
ADOPTED: Document = {**namespace(stamp="required")["metadata"], "annotations": {"lease-webhook/stamp-adopters": "jane"}}


def with_stamps(stamps: dict[str, Stamps]) -> Policy:
    return replace(load("standard"), stamps=stamps)


def checks(objects: list[Document], stamps: dict[str, Stamps] | None = None) -> list[str]:
    reports = examine_stamps(Documents(objects), with_stamps(STAMPS if stamps is None else stamps), NOW)
    return [one.check for report in reports for one in report.findings]


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([], [], id="no policies of the API server: nothing is said of them"),
        pytest.param(applied(), [], id="as applied"),
        pytest.param([*applied(), namespace(stamp="required"), STAMPED], [], id="with its namespace and a lease"),
        pytest.param(applied()[2:], ["stamp-not-applied"] * 2, id="an API server without the kind"),
        pytest.param(applied()[:5], ["stamp-not-applied"], id="a binding is not there"),
        pytest.param(suffixed("ffffffff"), ["stamp-drift"], id="another suffix"),
        pytest.param(changed(0, failurePolicy="Ignore"), ["stamp-drift"], id="the stamp fails open"),
        pytest.param(changed(2, matchConditions=[]), ["stamp-drift"], id="a condition is missing"),
        pytest.param(changed(3, validationActions=["Warn"]), ["stamp-drift"], id="the guard only warns"),
        pytest.param(changed(1, matchResources={"objectSelector": {}}), ["stamp-drift"], id="a narrower binding"),
        pytest.param(constrained(2, matchPolicy="Exact"), ["stamp-drift"], id="another match policy"),
        pytest.param(
            constrained(0, objectSelector={"matchLabels": {"a": "b"}}), ["stamp-drift"], id="leases with a label only"
        ),
        pytest.param(
            constrained(0, excludeResourceRules=[ALL_RULES]), ["stamp-drift"], id="with rules that exclude everything"
        ),
        pytest.param([namespace("pay", stamp="required")], ["stamp-namespace-not-listed"], id="labeled, not listed"),
        pytest.param([namespace("kube-node-lease", stamp="required")], [], id="node leases are never stamped"),
        pytest.param([namespace("pay", stamp="yes")], [], id="a label of another value"),
        pytest.param([namespace()], ["stamp-namespace-not-labeled"], id="listed, not labeled"),
        pytest.param(
            [namespace(stamp="required", stamp_writer="user")], ["stamp-writer-differs"], id="another kind of writer"
        ),
        pytest.param([*applied(), policy("other", ALL_RULES)], ["stamp-may-be-changed"], id="another mutating policy"),
        pytest.param([*applied(), policy("other", matchConstraints={"resourceRules": [1]})], [], id="an odd one"),
        pytest.param([*applied(), policy("other")], [], id="one without rules"),
        pytest.param([lease(TRACKED)], [], id="held and not stamped, which audit says"),
        pytest.param([lease(TRACKED, place="pay")], [], id="a lease of another namespace"),
        pytest.param([lease()], [], id="managedFields were left out"),
        pytest.param(
            [lease(TRACKED, written="2026-11-21T00:00:05Z")], ["stamp-planted"], id="annotations beside other entries"
        ),
        pytest.param([like_stamped()], [], id="an annotation that nothing reads as a stamp"),
        pytest.param(
            [*applied(), lease(STAMP_ENTRY, written="2026-11-20T23:59:59Z")],
            ["stamp-planted"],
            id="a stamp from before the policies",
        ),
        pytest.param(
            [lease(STAMP_ENTRY, written="2026-11-20T23:59:59Z")], [], id="a stamp, and no policies in the input"
        ),
    ],
)
def test_a_finding_by_one_change(objects: list[Document], expected: list[str]) -> None:
    assert checks(objects) == expected


def test_pods_of_a_user_are_one_writer_in_both_places() -> None:
    by_user = {"shop": Stamps(SUFFIX, by_user=True)}
    assert checks([namespace(stamp="required", stamp_writer="user")], by_user) == []
    assert checks([namespace(stamp="required")], by_user) == ["stamp-writer-differs"]


def test_node_leases_are_never_stamped_though_they_are_listed() -> None:
    listed = {"kube-node-lease": Stamps(SUFFIX)}
    (report,) = examine_stamps(Documents([namespace("kube-node-lease", stamp="required")]), with_stamps(listed), NOW)
    assert "remove it from `stamps`" in report.findings[0].fix


def test_a_policy_of_two_suffixes_cannot_be_applied() -> None:
    two = {"shop": Stamps(SUFFIX), "pay": Stamps("ffffffff")}
    assert set(checks(applied(), two)) == {"stamp-drift"}


@pytest.mark.parametrize("mode", ["deny", "warn", "off"])
def test_the_policies_without_the_webhook_may_have_been_applied(
    mode: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(
        "apiVersion: lease-webhook/v1\n"
        f"stamps: [{{suffix: {SUFFIX}, namespaces: [shop]}}]\n"
        f"rules: {{foreign-writer: {{mode: '{mode}'}}}}\n"
        "exempt: [{users: [boss], reason: repairs, owner: me, rules: [foreign-writer]}]\n"
    )
    assert main(["install", "--policies-only", "--kubernetes", "1.36", "--policy", str(file)]) == 0
    written = [one for one in yaml.load_all(capsys.readouterr().out, LOADER) if one]
    cluster = tmp_path / "cluster.yaml"

    def code(objects: list[Document]) -> int:
        shipped = (DATA / "safe-as-shipped.yaml").read_text()
        written = map(json.dumps, [*objects, namespace(stamp="required"), STAMPED])
        cluster.write_text("\n---\n".join([shipped, *written]))
        return main(["doctor", "--input", str(cluster), "--policy", str(file)])

    assert code(written) == code(applied()) == 0
    assert code(changed(3, validationActions=["Warn", "Audit"])) == 1
    assert code([one for one in applied() if "guard" not in one["metadata"]["name"]]) == 1
    guard = next(one for one in written if one["metadata"]["name"] == "lease-webhook-stamp-guard")
    guard["spec"]["failurePolicy"] = "Ignore"
    assert code(written) == 1


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("deny", set()), ("warn", {"stamp-drift", "stamp-not-applied"}), ("off", {"stamp-drift"})],
)
def test_without_a_webhook_the_guard_is_that_of_the_file(mode: str, expected: set[str]) -> None:
    policy = parse(
        "apiVersion: lease-webhook/v1\n"
        f"stamps: [{{suffix: {SUFFIX}, namespaces: [shop]}}]\n"
        f"rules: {{foreign-writer: {{mode: '{mode}'}}}}\n"
    )
    there = Documents([*make_manifests(policy, 0, "true", []), *applied(), namespace(stamp="required")])
    assert {one.check for report in examine_stamps(there, policy, 0) for one in report.findings} == expected


WARNING = (
    f"apiVersion: lease-webhook/v1\nstamps: [{{suffix: {SUFFIX}, namespaces: [shop]}}]\n"
    "rules: {foreign-writer: {mode: warn}}\n"
)


def without(*names: str) -> list[Document]:
    """What policies only leave in a cluster, of a file that has the guard warn, without these objects."""
    objects = [*make_manifests(parse(WARNING), 0, "true", []), *make_stamp_policies(parse(WARNING), 0)]
    return [one for one in objects if one["metadata"]["name"] not in names]


WEBHOOKS = [one for one in yaml.load_all((DATA / "safe-as-shipped.yaml").read_text(), LOADER) if one]


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param(without(), [], id="as printed"),
        pytest.param(without("lease-webhook-stamp-guard-warn"), ["stamp-not-applied"], id="the guard has no binding"),
        pytest.param(
            [*without("lease-webhook-stamp-guard-warn"), *WEBHOOKS],
            ["stamp-not-applied"],
            id="the guard has no binding, beside a webhook",
        ),
        pytest.param(without("lease-webhook-stamp-guard-audit"), [], id="a binding that this file does not use"),
    ],
)
def test_the_guard_has_the_binding_of_its_mode(objects: list[Document], expected: list[str]) -> None:
    reports = examine_stamps(Documents(objects), parse(WARNING), 0)
    assert [one.check for report in reports for one in report.findings] == expected


def test_the_fix_of_a_drift_has_a_step_that_works_whoever_wrote_the_objects() -> None:
    (report,) = examine_stamps(Documents(suffixed("ffffffff")), with_stamps(STAMPS), NOW)
    (finding,) = report.findings
    assert finding.fix.startswith("apply the component `stamp`")
    assert "kubectl replace -f" in finding.fix


def test_a_policy_without_stamps_has_no_findings() -> None:
    assert list(examine_stamps(Documents(applied()), with_stamps({}), NOW)) == []


def test_a_long_expression_is_shown_where_it_differs() -> None:
    objects = applied()
    validation = objects[2]["spec"]["validations"][3]
    validation["expression"] = validation["expression"].replace("!variables.held && ", "")
    (report,) = examine_stamps(Documents(objects), with_stamps(STAMPS), NOW)
    (finding,) = report.findings
    assert "spec.validations[3].expression: ..." in finding.place
    assert len(finding.place) < 200


def test_every_check_of_stamps_is_found_here() -> None:
    named = set(re.findall(r'"(stamp-[a-z-]+)"', inspect.getsource(policies_module))) - {"stamp-writer"}
    rows = re.findall(r'"(stamp-[a-z-]+)"', Path(__file__).read_text(encoding="utf-8"))
    assert named <= set(rows)


def test_the_command_reads_the_policy_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "policy.yaml").write_text(
        f"apiVersion: lease-webhook/v1\nstamps: [{{suffix: {SUFFIX}, namespaces: [shop]}}]\n"
    )
    shipped = (DATA / "safe-as-shipped.yaml").read_text()
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(f"{shipped}\n---\n{yaml.safe_dump_all([*applied(), namespace(stamp='required'), STAMPED])}")
    assert main(["doctor", "--input", str(cluster), "--policy", str(tmp_path / "policy.yaml")]) == 0
    assert not capsys.readouterr().err
    cluster.write_text(f"{shipped}\n---\n{yaml.safe_dump_all([*suffixed('ffffffff'), namespace()])}")
    assert main(["doctor", "--input", str(cluster), "--policy", str(tmp_path / "policy.yaml")]) == 1
    output = capsys.readouterr().out
    assert "stamp-drift" in output
    assert "stamp-namespace-not-labeled" in output
    assert (
        main(["doctor", "--input", str(DATA / "safe-as-shipped.yaml"), "--policy", str(tmp_path / "policy.yaml")]) == 0
    )
    assert "not known whether stamps are in force" in capsys.readouterr().err


def test_without_the_policy_a_labeled_namespace_is_said_to_be_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shipped = (DATA / "safe-as-shipped.yaml").read_text()
    (tmp_path / "policy.yaml").write_text("apiVersion: lease-webhook/v1\n")
    cluster = tmp_path / "cluster.yaml"
    doctor = ["doctor", "--input", str(cluster)]
    asked = "not known: whether the policy lists under `stamps` what is labeled lease-webhook/stamp=required"

    def label(*names: str, value: str = "required") -> None:
        cluster.write_text(f"{shipped}\n---\n{yaml.safe_dump_all([namespace(name, stamp=value) for name in names])}")

    label("shop")
    assert main(doctor) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[-1].startswith(f"{asked} (shop); where it does not, ")
    assert main([*doctor, "--format", "json"]) == 0
    printed = capsys.readouterr()
    assert asked in printed.err
    assert asked not in printed.out
    assert main([*doctor, "--policy", str(tmp_path / "policy.yaml")]) == 1
    assert asked not in capsys.readouterr().out
    label("a", "b", "c", "d", "e", "f")
    main(doctor)
    assert f"{asked} (a, b, c, d, e and 1 more)" in capsys.readouterr().out
    label("shop", value="pending")
    assert main(doctor) == 0
    assert asked not in capsys.readouterr().out


LIVE: Document = {"leaseDurationSeconds": 15, "renewTime": "2025-11-20T12:00:00.000000Z"}
"""It was renewed at NOW."""


def test_leases_with_an_owner_are_noted_where_their_owner_ends() -> None:
    """A plugin of the API server, which no document shows, asks whoever ends it for the right to delete the lease."""
    held = live(STAMP_ENTRY, written="2026-11-21T00:00:05Z")
    owned = held | {"metadata": held["metadata"] | {"ownerReferences": [{"kind": "ConfigMap"}]}}
    (note,) = notes(namespace(stamp="required"), owned)
    assert note.startswith("Namespace shop: these leases have an owner, which ends with the tenure of their holder: ch")
    assert "OwnerReferencesPermissionEnforcement" in note
    assert not notes(namespace(stamp="required"), held)
    assert not notes(namespace(), owned), "not labeled, which is a finding"
    elsewhere = owned | {"metadata": owned["metadata"] | {"namespace": "pay"}}
    assert not notes(namespace(stamp="required"), namespace("pay", stamp="required"), elsewhere), "not listed, likewise"


MANY: Final = {f"a{at}": "" for at in range(1, 201)}


def notes(*objects: Document) -> list[str]:
    return [one.note for one in examine_stamps(Documents([*applied(), *objects]), with_stamps(STAMPS), NOW) if one.note]


def live(*entries: Document, written: str = "", **spec: Any) -> Document:
    return lease(*entries, written=written, **(LIVE | spec))


@pytest.mark.parametrize(
    ("objects", "noted"),
    [
        pytest.param(
            [namespace(stamp="required"), live(STAMP_ENTRY, written="2026-11-21T00:00:05Z")], "", id="stamped"
        ),
        pytest.param(
            [namespace(stamp="required"), live(STAMP_ENTRY)],
            "Lease shop/checkout is held and has no stamp",
            id="not stamped",
        ),
        pytest.param([namespace(stamp="required"), live(STAMP_ENTRY, holderIdentity="")], "", id="free"),
        pytest.param([namespace(stamp="required"), lease(STAMP_ENTRY)], "", id="without a duration"),
        pytest.param([namespace(stamp="required"), live(STAMP_ENTRY, renewTime="soon")], "", id="an odd renewTime"),
        pytest.param(
            [namespace(stamp="required"), live(STAMP_ENTRY, renewTime="2025-11-20T11:00:00.000000Z")], "", id="expired"
        ),
        pytest.param([namespace(), live(STAMP_ENTRY)], "", id="not labeled, which is a finding"),
        pytest.param(
            [namespace(stamp="required", stamp_metadata="open")],
            "lease-webhook/stamp-metadata=open",
            id="open metadata",
        ),
        pytest.param(
            [{**namespace(stamp="required"), "metadata": ADOPTED}],
            'owners of leases that others hold: "jane"',
            id="adopters",
        ),
    ],
)
def test_what_lets_others_write_held_leases_is_noted(objects: list[Document], noted: str) -> None:
    found = notes(*objects)
    assert len(found) == bool(noted)
    assert noted in "".join(found)
    assert checks(objects) in ([], ["stamp-namespace-not-labeled"])


@pytest.mark.parametrize(
    ("metadata", "patch"),
    [
        pytest.param({"annotations": MANY | {"a201": ""}}, '{"annotations":null}', id="annotations"),
        pytest.param({"annotations": {"a": "x" * 49_152}}, '{"annotations":null}', id="characters"),
        pytest.param({"labels": {f"a{at}": "" for at in range(1_001)}}, '{"labels":null}', id="labels"),
        pytest.param({"finalizers": [*MANY, "a.b/c"]}, '{"finalizers":null}', id="finalizers"),
        pytest.param({"ownerReferences": [{}] * 101}, '{"ownerReferences":null}', id="owners"),
        pytest.param(
            {"finalizers": [*MANY, "a.b/c"], "deletionTimestamp": "2026-11-21T00:00:00Z"}, "", id="while being deleted"
        ),
        pytest.param({"annotations": MANY, "finalizers": [*MANY], "ownerReferences": [{}] * 100}, "", id="the limits"),
    ],
)
def test_a_note_cuts_only_what_leaves_no_room_for_a_stamp(metadata: Document, patch: str) -> None:
    held = live(STAMP_ENTRY)
    found = notes(namespace(stamp="required"), held | {"metadata": held["metadata"] | metadata})
    (note,) = [one for one in found if one.startswith("Lease ")]
    command = "kubectl --namespace shop patch lease checkout --type merge --patch"
    assert note.endswith(f"{command} '{{\"metadata\":{patch}}}'" if patch else " or 100 owners")
    assert (command in note) == bool(patch)


def test_a_note_has_the_limits_of_a_lease_with_stamps() -> None:
    (note,) = notes(namespace(stamp="required"), live(STAMP_ENTRY))
    assert "200 annotations, 49,152 characters of them, 1,000 labels, 200 finalizers (while it is" in note
