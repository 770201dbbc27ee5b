"""What kustomize makes of deploy/. Needs kubectl or Go, and certs/ as `make certs` leaves it: run `make manifests`."""

import subprocess
from pathlib import Path

import pytest

from tests.rendered.rendering import DEPLOY, composed, objects, one, render
from webhook.cli.main import main

OVERLAYS = ("self-signed", "cert-manager", "openshift", "local")
INSTALLATION = {
    "Namespace",
    "ServiceAccount",
    "ConfigMap",
    "ResourceQuota",
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
COMPONENTS = (*ENTRIES, "observe", "monitoring", "high-availability")


def assert_safe(text: str, directory: Path) -> None:
    path = directory / "rendered.yaml"
    path.write_text(text)
    assert main(["doctor", str(path)]) == 0


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_an_overlay_is_complete_ordered_and_safe(overlay: str, tmp_path: Path) -> None:
    text = render(DEPLOY / "overlays" / overlay)
    kinds = [each["kind"] for each in objects(text)]
    more = {"self-signed": {"Secret"}, "cert-manager": {"Issuer", "Certificate"}}.get(overlay, set())
    if overlay == "local":
        assert kinds == ["ValidatingWebhookConfiguration"]
    else:
        assert set(kinds) == INSTALLATION | more
        assert (kinds[0], kinds[-1]) == ("Namespace", "ValidatingWebhookConfiguration")
        assert {each["kind"] for each in objects(text) if "namespace" not in each["metadata"]} == CLUSTER_WIDE
    assert_safe(text, tmp_path)


@pytest.mark.parametrize("component", COMPONENTS)
@pytest.mark.parametrize("overlay", OVERLAYS[:3])
def test_a_component_on_top_is_safe(component: str, overlay: str, tmp_path: Path) -> None:
    text = render(composed(tmp_path, overlay, component))
    assert_safe(text, tmp_path)
    entries = one(objects(text), "ValidatingWebhookConfiguration")["webhooks"]
    assert {entry["name"] for entry in entries} == {
        "leases.lease-webhook.svc",
        ENTRIES.get(component, entries[0]["name"]),
    }


def test_all_components_but_observe_together_are_safe(tmp_path: Path) -> None:
    text = render(composed(tmp_path, "self-signed", *(each for each in COMPONENTS if each != "observe")))
    assert_safe(text, tmp_path)
    entries = {entry["name"]: entry for entry in one(objects(text), "ValidatingWebhookConfiguration")["webhooks"]}
    assert set(entries) == {"leases.lease-webhook.svc", *ENTRIES.values()}
    shipped = entries["leases.lease-webhook.svc"]
    for entry in entries.values():
        assert entry["clientConfig"] == shipped["clientConfig"]
        assert (entry["failurePolicy"] == "Fail") == (entry["name"] == ENTRIES["strict"])
    for name in ("strict", "node-leases", "control-plane"):
        assert entries[ENTRIES[name]]["matchConditions"] == shipped["matchConditions"]
        assert entries[ENTRIES[name]]["rules"] == shipped["rules"]


def test_fail_closed_cannot_be_built_on_observe(tmp_path: Path) -> None:
    done = subprocess.run(
        [DEPLOY / "kustomize", composed(tmp_path, "self-signed", "observe", "strict")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "matchConditions" in done.stderr


def test_the_authority_is_in_the_bundle_and_its_key_is_nowhere() -> None:
    text = render(DEPLOY / "overlays" / "self-signed")
    found = objects(text)
    secret = one(found, "Secret")
    assert set(secret["data"]) == {"ca.crt", "tls.crt", "tls.key"}
    (entry,) = one(found, "ValidatingWebhookConfiguration")["webhooks"]
    assert entry["clientConfig"]["caBundle"] == secret["data"]["ca.crt"]


def test_local_calls_the_process_that_make_run_started() -> None:
    (configuration,) = objects(render(DEPLOY / "overlays" / "local"))
    (entry,) = configuration["webhooks"]
    assert entry["clientConfig"]["url"] == "https://127.0.0.1:8443/validate"
    assert "service" not in entry["clientConfig"]
    assert entry["clientConfig"]["caBundle"]


def test_openshift_chooses_the_uid() -> None:
    pod = one(objects(render(DEPLOY / "overlays" / "openshift")), "Deployment")["spec"]["template"]["spec"]
    assert set(pod["securityContext"]) == {"runAsNonRoot", "seccompProfile"}


def test_observe_denies_nothing_and_sees_everything(tmp_path: Path) -> None:
    found = objects(render(composed(tmp_path, "self-signed", "observe")))
    (entry,) = one(found, "ValidatingWebhookConfiguration")["webhooks"]
    assert "matchConditions" not in entry
    assert "preset: observe" in one(found, "ConfigMap")["data"]["policy.yaml"]


def test_high_availability_keeps_two_of_three(tmp_path: Path) -> None:
    found = objects(render(composed(tmp_path, "self-signed", "high-availability")))
    assert one(found, "Deployment")["spec"]["replicas"] == 3
    assert one(found, "PodDisruptionBudget")["spec"]["minAvailable"] == 2
