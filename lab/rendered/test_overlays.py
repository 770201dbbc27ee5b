"""The output of kustomize for deploy/. Needs kubectl or Go, and certs/ as `make certs` leaves it: `make manifests`."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tools.rendered.rendering import DEPLOY, ROOT, compose_overlay, find_object, load_objects, render
from webhook.cli.main import main

OVERLAYS = ("self-signed", "cert-manager", "openshift", "local")
INSTALLATION = {
    "Namespace",
    "ServiceAccount",
    "ConfigMap",
    "Deployment",
    "Service",
    "PodDisruptionBudget",
    "NetworkPolicy",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
}
CLUSTER_WIDE = {
    "Namespace",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
}
ENTRIES = {
    "strict": "strict.lease-webhook.svc",
    "node-leases": "nodes.lease-webhook.svc",
    "control-plane": "control-plane.lease-webhook.svc",
    "bindings": "renewals.lease-webhook.svc",
}
COMPONENTS = (*ENTRIES, "observe", "all-renewals", "monitoring", "high-availability", "critical", "host-network")


def assert_safe(text: str, directory: Path) -> None:
    path = directory / "rendered.yaml"
    path.write_text(text)
    assert main(["doctor", "--input", str(path)]) == 0


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_an_overlay_is_complete_ordered_and_safe(overlay: str, tmp_path: Path) -> None:
    text = render(DEPLOY / "overlays" / overlay)
    kinds = [each["kind"] for each in load_objects(text)]
    more = {"self-signed": {"Secret"}, "cert-manager": {"Issuer", "Certificate"}}.get(overlay, set())
    if overlay == "local":
        assert kinds == ["ValidatingWebhookConfiguration"]
    else:
        assert set(kinds) == INSTALLATION | more
        assert (kinds[0], kinds[-1]) == ("Namespace", "ValidatingWebhookConfiguration")
        assert {each["kind"] for each in load_objects(text) if "namespace" not in each["metadata"]} == CLUSTER_WIDE
    assert_safe(text, tmp_path)


@pytest.mark.parametrize("component", COMPONENTS)
@pytest.mark.parametrize("overlay", OVERLAYS[:3])
def test_a_component_on_top_is_safe(component: str, overlay: str, tmp_path: Path) -> None:
    text = render(compose_overlay(tmp_path, overlay, component))
    assert_safe(text, tmp_path)
    entries = find_object(load_objects(text), "ValidatingWebhookConfiguration")["webhooks"]
    assert {entry["name"] for entry in entries} == {
        "leases.lease-webhook.svc",
        ENTRIES.get(component, entries[0]["name"]),
    }


def test_the_authority_is_in_the_bundle_and_its_key_is_nowhere() -> None:
    text = render(DEPLOY / "overlays" / "self-signed")
    objects = load_objects(text)
    secret = find_object(objects, "Secret")
    assert set(secret["data"]) == {"ca.crt", "tls.crt", "tls.key"}
    (entry,) = find_object(objects, "ValidatingWebhookConfiguration")["webhooks"]
    assert entry["clientConfig"]["caBundle"] == secret["data"]["ca.crt"]


def test_local_calls_the_process_that_make_run_started() -> None:
    (configuration,) = load_objects(render(DEPLOY / "overlays" / "local"))
    (entry,) = configuration["webhooks"]
    assert entry["clientConfig"]["url"] == "https://127.0.0.1:8443/validate"
    assert "service" not in entry["clientConfig"]
    assert entry["clientConfig"]["caBundle"]


def test_openshift_chooses_the_uid() -> None:
    pod = find_object(load_objects(render(DEPLOY / "overlays" / "openshift")), "Deployment")["spec"]["template"]["spec"]
    assert set(pod["securityContext"]) == {"runAsNonRoot", "seccompProfile"}


def test_observe_denies_nothing_and_leaves_the_webhook_configuration_as_it_is(tmp_path: Path) -> None:
    objects = load_objects(render(compose_overlay(tmp_path, "self-signed", "observe")))
    shipped = load_objects(render(compose_overlay(tmp_path, "self-signed")))
    kind = "ValidatingWebhookConfiguration"
    assert find_object(objects, kind) == find_object(shipped, kind)
    assert "preset: observe" in find_object(objects, "ConfigMap")["data"]["policy.yaml"]


def test_all_renewals_sees_everything(tmp_path: Path) -> None:
    objects = load_objects(render(compose_overlay(tmp_path, "self-signed", "all-renewals")))
    (entry,) = find_object(objects, "ValidatingWebhookConfiguration")["webhooks"]
    assert [one["expression"] for one in entry["matchConditions"]] == ["true"]


def test_high_availability_keeps_two_of_three(tmp_path: Path) -> None:
    objects = load_objects(render(compose_overlay(tmp_path, "self-signed", "high-availability")))
    assert find_object(objects, "Deployment")["spec"]["replicas"] == 3
    assert find_object(objects, "PodDisruptionBudget")["spec"]["minAvailable"] == 2


def test_the_script_says_how_it_is_used() -> None:
    result = subprocess.run([DEPLOY / "kustomize"], capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stderr.startswith("usage: ")


def test_without_certificates_the_script_says_what_to_run(tmp_path: Path) -> None:
    copied = shutil.copytree(DEPLOY, tmp_path / "deploy")
    (tmp_path / "certs").mkdir()
    shutil.copy(ROOT / "certs" / "kustomization.yaml", tmp_path / "certs")
    command = [copied / "kustomize", copied / "overlays" / "self-signed"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr.endswith("run make certs\n")


def test_the_runbooks_address_can_be_ones_own(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "runbook.md").read_text()
    example = yaml.safe_load(text.partition("```yaml\n")[2].partition("```")[0])
    compose_overlay(tmp_path, "cert-manager", "monitoring")
    document = yaml.safe_load((tmp_path / "kustomization.yaml").read_text())
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(document | example))
    objects = load_objects(render(tmp_path))
    (group,) = find_object(objects, "PrometheusRule")["spec"]["groups"]
    for rule in group["rules"]:
        address = f"https://git.example/platform/lease-webhook/docs/runbook.md#{rule['alert'].lower()}"
        assert rule["annotations"]["runbook_url"] == address
    assert "runbook" not in [each["metadata"]["name"] for each in objects]
