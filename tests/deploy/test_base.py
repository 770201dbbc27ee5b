"""What the manifests promise, and what the code does, are one thing."""

import ipaddress
import re
from typing import Any

import msgspec
import pytest

from tests.deploy.sources import DEPLOY, base, base_object, container, documents, entries, pod, replacements
from tests.doctor.shipped import NOW
from webhook.admission.policy.parse import parse
from webhook.api_server.doctor.checks import LISTED_VERSIONS, examine
from webhook.api_server.doctor.documents import Configuration, Documents
from webhook.certificates.issue import list_service_names
from webhook.cli.serve import command
from webhook.kubernetes.request import GROUP, KIND_OF, Operation, Resource
from webhook.kubernetes.review import REVIEW_PATH
from webhook.server.settings import GRACEFUL_SECONDS, STUCK_WORKER_SECONDS, Guards

NAMESPACE = "lease-webhook"
EXCLUDED = ["kube-system", "kube-node-lease", "kube-public", NAMESPACE]


def configuration() -> Configuration:
    return msgspec.convert(base_object("ValidatingWebhookConfiguration"), Configuration)


def serve_arguments() -> dict[str, Any]:
    name, *arguments = container()["args"]
    assert name == "serve"
    return command.make_context(name, arguments).params


def test_the_files_are_numbered_in_the_order_of_use() -> None:
    (kustomization,) = documents(DEPLOY / "base" / "kustomization.yaml")
    names = kustomization["resources"]
    assert names == sorted(path.name for path in (DEPLOY / "base").glob("[0-9]*.yaml"))
    kinds = [one["kind"] for one in base()]
    assert kinds[0] == "Namespace"
    assert kinds[-1] == "ValidatingWebhookConfiguration"


def test_the_doctor_misses_only_the_bundle_that_an_overlay_adds() -> None:
    reports = list(examine(Documents([base_object("ValidatingWebhookConfiguration")]), None, NOW))
    assert [one.check for report in reports for one in report.findings] == ["ca-bundle-missing"]


def test_rules_name_every_resource_version_and_operation_that_the_code_evaluates() -> None:
    (webhook,) = configuration().webhooks or ()
    for rule in webhook.rules or ():
        assert (rule.api_groups, rule.scope) == ((GROUP,), "Namespaced")
        assert rule.operations == (Operation.CREATE, Operation.UPDATE, Operation.DELETE)
    assert {resource: webhook.list_versions(resource) for resource in Resource} == {
        resource: frozenset(versions) for resource, versions in LISTED_VERSIONS.items()
    }


def test_the_shipped_entry_cannot_hurt_a_leader() -> None:
    (webhook,) = configuration().webhooks or ()
    assert (webhook.failure_policy, webhook.timeout_seconds, webhook.match_policy) == ("Ignore", 2, "Equivalent")
    (entry,) = base_object("ValidatingWebhookConfiguration")["webhooks"]
    assert (entry["sideEffects"], entry["admissionReviewVersions"]) == ("None", ["v1"])
    assert webhook.object_selector is None
    assert [condition.name for condition in webhook.match_conditions or ()] == ["not-a-plain-renewal"]


@pytest.mark.parametrize(("where", "webhook"), entries(), ids=[f"{where}: {one['name']}" for where, one in entries()])
def test_no_entry_waits_long_or_selects_more_than_it_says(where: str, webhook: dict[str, Any]) -> None:
    assert webhook.get("timeoutSeconds", 2) in {1, 2}
    assert (webhook.get("failurePolicy", "Ignore") == "Fail") == (webhook["name"] == "strict.lease-webhook.svc")
    selector = webhook.get("namespaceSelector")
    if selector is None:
        assert where in {"components/all-renewals/webhook.yaml", "overlays/local/url.yaml"}
    elif "matchLabels" in selector:
        assert where.split("/")[1] in {"node-leases", "control-plane"}
    else:
        (names, *_) = selector["matchExpressions"]
        assert names == {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": EXCLUDED}


@pytest.mark.parametrize("name", ["strict", "node-leases", "control-plane"])
def test_entries_of_components_copy_what_the_base_says(name: str) -> None:
    (entry,) = [one["name"] for where, one in entries() if where == f"components/{name}/webhook.yaml"][-1:]
    copied = {one["source"]["fieldPath"]: one["targets"][0]["fieldPaths"] for one in replacements(name)}
    assert copied == {
        f"webhooks.[name=leases.lease-webhook.svc].{field}": [f"webhooks.[name={entry}].{field}"]
        for field in ("clientConfig", "rules", "matchConditions")
    } | {
        "expressions.without-plain-renewals": [
            f"webhooks.[name={entry}].matchConditions.[name=not-a-plain-renewal].expression"
        ]
    }


def test_the_path_is_one_that_the_server_answers_and_so_is_each_kinds_own() -> None:
    (webhook,) = configuration().webhooks or ()
    assert webhook.client_config.service
    assert REVIEW_PATH.fullmatch(webhook.client_config.service.path or "")
    for resource, versions in LISTED_VERSIONS.items():
        for version in versions:
            kind = KIND_OF[resource].lower()
            assert REVIEW_PATH.fullmatch(f"/validate-coordination-k8s-io-{version}-{kind}")


def test_service_port_and_certificate_lead_to_the_server() -> None:
    (webhook,) = configuration().webhooks or ()
    reference = webhook.client_config.service
    assert reference
    service = base_object("Service")
    assert reference.name == service["metadata"]["name"]
    assert reference.namespace == base_object("Namespace")["metadata"]["name"] == NAMESPACE
    assert f"{reference.name}.{reference.namespace}.svc" in list_service_names(reference.name, reference.namespace)
    (port,) = service["spec"]["ports"]
    raw = base_object("ValidatingWebhookConfiguration")["webhooks"][0]["clientConfig"]["service"]
    assert raw["port"] == port["port"]
    ports = {one["name"]: one["containerPort"] for one in container()["ports"]}
    assert serve_arguments()["bind"] == f"0.0.0.0:{ports[port['targetPort']]}"
    assert serve_arguments()["health_bind"] == f"0.0.0.0:{ports['health']}"
    labels = base_object("Deployment")["spec"]["template"]["metadata"]["labels"]
    for kind in ("Service", "Deployment", "PodDisruptionBudget", "NetworkPolicy"):
        spec = base_object(kind)["spec"]
        selector = spec.get("selector") or spec["podSelector"]
        assert selector.get("matchLabels", selector) == labels


def test_the_server_finds_certificate_and_policy_where_they_are_mounted() -> None:
    arguments = serve_arguments()
    mounts = {one["name"]: one for one in container()["volumeMounts"]}
    volumes = {one["name"]: one for one in pod()["volumes"]}
    assert arguments["tls_dir"] == mounts["tls"]["mountPath"]
    assert arguments["policy"] == f"{mounts['policy']['mountPath']}/policy.yaml"
    assert "policy.yaml" in base_object("ConfigMap")["data"]
    assert volumes["policy"]["configMap"]["name"] == base_object("ConfigMap")["metadata"]["name"]
    # A subPath mount never sees a new file.
    assert not [one for one in mounts.values() if "subPath" in one]
    assert volumes["memory"]["emptyDir"]["medium"] == "Memory"
    assert mounts["memory"]["mountPath"] == "/dev/shm"
    # The server refuses keys that others may write; the group must read.
    assert volumes["tls"]["secret"]["defaultMode"] == 0o440
    (secret,) = documents(DEPLOY.parent / "certs" / "kustomization.yaml")[0]["secretGenerator"]
    assert volumes["tls"]["secret"]["secretName"] == secret["name"]
    assert "ca.key" not in secret["files"]


@pytest.mark.parametrize(
    ("path", "preset", "mode"),
    [("base/20-policy.yaml", "standard", "deny"), ("components/observe/policy.yaml", "observe", "warn")],
)
def test_the_shipped_policies_are_accepted(path: str, preset: str, mode: str) -> None:
    (config_map,) = documents(DEPLOY / path)
    policy = parse(config_map["data"]["policy.yaml"])
    assert (policy.preset, policy.mode.word) == (preset, mode)


def test_the_kill_switch_that_the_policy_file_describes_works() -> None:
    (config_map,) = documents(DEPLOY / "base/20-policy.yaml")
    assert parse(f'{config_map["data"]["policy.yaml"]}mode: "off"\n').mode.word == "off"


def test_probes_ask_what_the_health_port_answers() -> None:
    paths = {probe: container()[f"{probe}Probe"]["httpGet"] for probe in ("startup", "liveness", "readiness")}
    assert {probe: one["path"] for probe, one in paths.items()} == {
        "startup": "/livez",
        "liveness": "/livez",
        "readiness": "/readyz",
    }
    assert {one["port"] for one in paths.values()} == {"health"}


def test_a_stuck_worker_is_replaced_before_the_kubelet_restarts_the_container() -> None:
    liveness = container()["livenessProbe"]
    earliest_restart = liveness["periodSeconds"] * (liveness["failureThreshold"] - 1)
    # gunicorn looks once a second, and a new worker starts within a few.
    assert earliest_restart >= STUCK_WORKER_SECONDS + 15


def test_a_pod_leaves_only_after_its_requests() -> None:
    rolling = base_object("Deployment")["spec"]["strategy"]["rollingUpdate"]
    assert rolling == {"maxUnavailable": 0, "maxSurge": 1}
    pause = container()["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pause >= 10
    assert pod()["terminationGracePeriodSeconds"] > pause + GRACEFUL_SECONDS + Guards().drain_seconds
    assert base_object("Deployment")["spec"]["replicas"] == 2
    assert base_object("PodDisruptionBudget")["spec"]["minAvailable"] == 1


def test_the_pod_is_restricted_and_has_no_rights() -> None:
    labels = base_object("Namespace")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    assert pod()["securityContext"]["runAsNonRoot"] is True
    assert pod()["securityContext"]["runAsUser"] > 10000
    assert pod()["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container()["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod()["automountServiceAccountToken"] is False
    assert base_object("ServiceAccount")["automountServiceAccountToken"] is False
    assert not [one["kind"] for one in base() if "Role" in one["kind"]]
    assert "hostNetwork" not in pod()
    # No CPU limit: throttling slows down a client's write.
    assert set(container()["resources"]["limits"]) == {"memory"}


def test_nothing_leaves_the_pod() -> None:
    spec = base_object("NetworkPolicy")["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert spec["egress"] == []
    assert [port["port"] for rule in spec["ingress"] for port in rule["ports"]] == ["webhook"]


def test_addresses_in_the_examples_are_addresses() -> None:
    text = (DEPLOY / "base" / "70-network-policy.yaml").read_text()
    ranges = re.findall(r"cidr: ([0-9./]+)", text)
    assert len(ranges) == 4
    assert all(ipaddress.ip_network(one) for one in ranges)
