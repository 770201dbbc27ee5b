"""What stands on the disk of a control-plane node is what the base has, but for where it listens and reads."""

import copy
from typing import Any

import pytest

from tests.deploy.sources import DEPLOY, container, documents, pod

STATIC = DEPLOY / "static-manifests"
SUFFIX = ".static.k8s.io"
HOST = "127.0.0.1"


def static_pod() -> dict[str, Any]:
    (document,) = documents(STATIC / "pod.yaml")
    spec: dict[str, Any] = document["spec"]
    return spec


def test_the_container_is_that_of_the_base_on_loopback() -> None:
    expected = copy.deepcopy(container())
    expected["args"] = [argument.replace("0.0.0.0", HOST) for argument in expected["args"]]
    # Nothing routes to a static pod, so it is not asked whether it is ready, and need not wait for that to be known.
    for name in ("ports", "readinessProbe", "lifecycle"):
        del expected[name]
    for name in ("startupProbe", "livenessProbe"):
        expected[name]["httpGet"] |= {"host": HOST, "port": 8081}
    assert static_pod()["containers"] == [expected]


def test_the_pod_is_that_of_the_base_without_objects_of_the_api() -> None:
    expected, static = pod(), static_pod()
    # A kubelet without an API server runs it: no account, no Secret, no ConfigMap, nothing to schedule.
    assert not {"serviceAccountName", "topologySpreadConstraints", "tolerations"} & set(static)
    for name in ("automountServiceAccountToken", "enableServiceLinks", "terminationGracePeriodSeconds"):
        assert static[name] == expected[name]
    assert static["securityContext"] == {
        key: value for key, value in expected["securityContext"].items() if key != "fsGroup"
    }
    assert [volume["name"] for volume in static["volumes"]] == [volume["name"] for volume in expected["volumes"]]
    assert static["volumes"][0] == expected["volumes"][0]
    assert all(set(volume) == {"name", "hostPath"} for volume in static["volumes"][1:])


@pytest.mark.parametrize("folder", ["webhooks", "policies"])
def test_every_name_has_the_suffix_that_api_servers_ask_for(folder: str) -> None:
    (kustomization,) = documents(STATIC / folder / "kustomization.yaml")
    for patch in kustomization["patches"]:
        for line in patch["patch"].splitlines():
            assert line.endswith(f"{SUFFIX}}}")


def test_the_configuration_names_both_directories() -> None:
    (configuration,) = documents(STATIC / "admission-configuration.yaml")
    directories = {one["name"]: one["configuration"]["staticManifestsDir"] for one in configuration["plugins"]}
    assert directories == {
        "ValidatingAdmissionWebhook": "/etc/kubernetes/lease-webhook/webhooks",
        "ValidatingAdmissionPolicy": "/etc/kubernetes/lease-webhook/policies",
    }
