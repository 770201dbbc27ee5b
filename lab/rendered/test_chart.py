"""The Helm chart: it renders what kustomize renders, refuses mistakes, and serves namespaces of other names."""

import copy
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.rendered.chart import CHART, POLICY_SCHEMA, SOURCES, embed_policy_schema, render_chart, run_helm
from tools.rendered.rendering import DEPLOY, Object, compose_overlay, find_object, load_objects, render

NAMES = {
    "observe": "observe",
    "all-renewals": "allRenewals",
    "strict": "strict",
    "bindings": "bindings",
    "node-leases": "nodeLeases",
    "control-plane": "controlPlane",
    "high-availability": "highAvailability",
    "monitoring": "monitoring",
    "audit": "audit",
    "audit-alerts": "auditAlerts",
    "lease-alerts": "leaseAlerts",
    "recorder": "recorder",
    "recorder-metrics": "recorderMetrics",
    "recorder-events": "recorderEvents",
}
LABELS = ("app.kubernetes.io/managed-by", "helm.sh/chart", "app.kubernetes.io/name")
"""Labels of objects that Helm alone gives, or gives to objects that kustomize makes outside of the base too."""


def list_combinations() -> Iterator[tuple[str, ...]]:
    """Yield every set of the components that touch the webhook configuration; the other two come and go beside them."""
    others = (
        (),
        ("high-availability", "audit"),
        ("monitoring", "audit-alerts", "lease-alerts"),
        ("high-availability", "monitoring", "recorder", "recorder-metrics", "recorder-events"),
    )
    inner = ("observe", "all-renewals", "strict", "bindings", "node-leases", "control-plane")
    sets = (components for size in range(len(inner) + 1) for components in itertools.combinations(inner, size))
    for number, components in enumerate(sets):
        yield (*components, *others[number % 4])


def make_comparable(objects: list[Object], *, random: bool) -> dict[tuple[str, str], Object]:
    """Return objects by kind and name, without additions of only Helm or only kustomize, and random values."""
    result = {}
    for original in objects:
        thing = copy.deepcopy(original)
        labels = thing["metadata"].pop("labels", {})
        thing["labels"] = {name: value for name, value in labels.items() if name not in LABELS}
        if thing["kind"] == "Namespace" or thing["metadata"]["name"] == "lease-webhook-ca":
            continue
        if thing["kind"] == "ValidatingWebhookConfiguration":
            thing["webhooks"].sort(key=lambda entry: str(entry["name"]))
            for entry in thing["webhooks"]:
                if random:
                    assert entry["clientConfig"].pop("caBundle")
        if thing["kind"] == "Secret":
            thing["data"] = sorted(thing["data"])
            thing["metadata"].pop("annotations", None)
        if thing["kind"] == "Deployment":
            thing["spec"]["template"]["spec"]["topologySpreadConstraints"].sort(key=str)
        if thing["kind"] == "StatefulSet":
            # With OpenShift the chart leaves out its user; for kustomize docs/record.md has the patch.
            thing["spec"]["template"]["spec"].pop("securityContext")
        if thing["kind"] == "ConfigMap" and "policy.yaml" in thing["data"]:
            # The text is the user's; the policy is what counts.
            thing["data"] = yaml.safe_load(thing["data"]["policy.yaml"])
        result[thing["kind"], thing["metadata"]["name"]] = thing
    return result


@pytest.mark.parametrize("overlay", ["self-signed", "cert-manager", "openshift"])
def test_every_combination_is_that_of_kustomize(overlay: str, tmp_path: Path) -> None:
    for number, components in enumerate(list_combinations()):
        directory = tmp_path / str(number)
        directory.mkdir()
        kustomized = make_comparable(
            load_objects(render(compose_overlay(directory, overlay, *components))), random=overlay == "self-signed"
        )
        values = {
            "certificate": {"source": overlay},
            "components": {NAMES[component]: True for component in components},
        }
        charted = make_comparable(render_chart(values), random=overlay == "self-signed")
        assert charted.keys() == kustomized.keys(), components
        for key, thing in charted.items():
            assert thing == kustomized[key], (components, key)


def test_the_policies_of_stamps_are_those_of_kustomize() -> None:
    suffixed = render(DEPLOY / "stamp").replace("expression: SUFFIX", "expression: \"'1a2b3c4d'\"")
    kustomized = make_comparable(load_objects(suffixed), random=False)
    values = {"certificate": {"source": "openshift"}, "components": {"stamp": True}, "stamp": {"suffix": "1a2b3c4d"}}
    charted = make_comparable(render_chart(values), random=False)
    assert len(kustomized) == 6
    assert {key: charted[key] for key in kustomized} == kustomized


def test_stamps_need_a_suffix() -> None:
    result = run_helm("template", "--kube-version=1.37.0", "--set", "components.stamp=true,image.repository=x")
    assert result.returncode != 0
    assert "components.stamp needs stamp.suffix" in result.stderr


def test_the_charts_copies_are_those_of_the_repository() -> None:
    assert {file.name for file in (CHART / "files").iterdir()} == set(SOURCES)
    for name, source in SOURCES.items():
        assert (CHART / "files" / name).read_bytes() == (DEPLOY / source).read_bytes(), f"{name}: run `make derived`"
    schema = (CHART / "values.schema.json").read_text("utf-8")
    assert embed_policy_schema(schema, POLICY_SCHEMA.read_text("utf-8")) == schema


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        pytest.param({"replica": 3}, "replica", id="an unknown key"),
        pytest.param({"components": {"observer": True}}, "observer", id="an unknown component"),
        pytest.param({"components": {"strict": "yes"}}, "strict", id="a text for a boolean"),
        pytest.param({"certificate": {"source": "selfsigned"}}, "source", id="an unknown source"),
        pytest.param({"image": {"digest": "sha256:1"}}, "digest", id="a digest that is cut off"),
        pytest.param({"image": {"tag": "latest"}}, "tag", id="a tag that changes"),
        pytest.param({"image": {"repository": ""}}, "add --set image.repository=", id="no image"),
        pytest.param({"docsUrl": "http://docs.example.com"}, "docsUrl", id="an address without TLS"),
        pytest.param({"docsUrl": "https://docs.example.com/{id}"}, "docsUrl", id="another word in braces"),
        pytest.param({"extraArgs": ["verbose"]}, "extraArgs", id="an argument that is no flag"),
        pytest.param({"hostNetwork": {"port": 443}}, "port", id="a port that needs a right"),
        pytest.param({"policy": {"inline": {"preset": "lax"}}}, "preset", id="an unknown preset"),
        pytest.param(
            {"policy": {"inline": {"rules": {"takeover-befor-expiry": {"mode": "deny"}}}}},
            "takeover-befor-expiry",
            id="an unknown rule",
        ),
        pytest.param({"networkPolicy": {"from": [{"cidr": "192.0.2.0/24"}]}}, "cidr", id="a peer of no kind"),
        pytest.param({"certificate": {"source": "given"}}, "caBundle", id="a given certificate without its CA"),
        pytest.param(
            {"policy": {"existing": "ours"}, "components": {"observe": True}}, "observe", id="two policies at once"
        ),
    ],
)
def test_a_value_that_nobody_meant_is_refused(values: dict[str, Any], complaint: str, tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    image = {"repository": "registry.example/x"} | values.pop("image", {})
    file.write_text(yaml.safe_dump({**values, "image": image}))
    result = run_helm("template", f"--values={file}", "--kube-version=1.37.0")
    assert result.returncode != 0
    assert complaint in result.stderr


@pytest.mark.parametrize(
    "file", [None, *sorted((CHART / "ci").iterdir())], ids=lambda file: file.stem if file else "no"
)
def test_lint_has_nothing_to_say(file: Path | None) -> None:
    result = run_helm(
        "lint", "--strict", "--set=image.repository=registry.example/x", *([f"--values={file}"] if file else [])
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "[ERROR]" not in result.stdout
    assert "[WARNING]" not in result.stdout


@pytest.mark.parametrize("source", ["self-signed", "cert-manager", "openshift"])
def test_another_namespace_is_named_wherever_ours_was(source: str) -> None:
    everything = dict.fromkeys(NAMES.values(), True) | {"observe": False}
    objects = render_chart({"certificate": {"source": source}, "components": everything}, namespace="guards")
    cluster_wide = {"ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
    cluster_wide |= {"ClusterRole", "ClusterRoleBinding"}
    for thing in objects:
        assert thing["metadata"].get("namespace") == (None if thing["kind"] in cluster_wide else "guards")
    configuration = find_object(objects, "ValidatingWebhookConfiguration")
    for entry in configuration["webhooks"]:
        assert entry["clientConfig"]["service"]["namespace"] == "guards"
        for expression in entry["namespaceSelector"].get("matchExpressions", ()):
            if expression["key"] == "kubernetes.io/metadata.name":
                assert expression["values"] == ["kube-system", "kube-node-lease", "kube-public", "guards"]
    (depth,) = find_object(objects, "ValidatingAdmissionPolicy")["spec"]["matchConstraints"]["namespaceSelector"][
        "matchExpressions"
    ]
    assert depth["values"] == ["kube-public", "guards"]
    if source == "cert-manager":
        (leaf,) = [thing for thing in objects if thing["kind"] == "Certificate" and "dnsNames" in thing["spec"]]
        assert leaf["spec"]["dnsNames"] == [f"lease-webhook.guards{end}" for end in (".svc", "", ".svc.cluster.local")]
        assert configuration["metadata"]["annotations"]["cert-manager.io/inject-ca-from"] == "guards/lease-webhook-ca"


def test_every_object_of_the_chart_carries_its_labels() -> None:
    everything = dict.fromkeys(NAMES.values(), True) | {"observe": False}
    for thing in render_chart({"certificate": {"source": "cert-manager"}, "components": everything}):
        assert set(LABELS) <= thing["metadata"]["labels"].keys()
        # A ServiceMonitor selects the recorder's Service by the name that its pods have.
        assert thing["metadata"]["labels"]["app.kubernetes.io/name"] in {"lease-webhook", "lease-recorder"}


def test_values_reach_the_pods() -> None:
    peers = [{"ipBlock": {"cidr": "192.0.2.10/32"}}]
    policy = {"apiVersion": "lease-webhook/v1", "preset": "strict"}
    values: dict[str, Any] = {
        "image": {"repository": "registry.example/x", "digest": f"sha256:{'0' * 64}"},
        "imagePullSecrets": [{"name": "registry"}],
        "replicas": 5,
        "resources": {"limits": {"memory": "1Gi"}},
        "priorityClassName": "system-cluster-critical",
        "affinity": {"nodeAffinity": {}},
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway"}],
        "docsUrl": "https://docs.example.com/rules/{rule}.html",
        "extraArgs": ["--client-ca=/ca/ca.crt"],
        "extraVolumes": [{"name": "ca", "configMap": {"name": "ca"}}],
        "extraVolumeMounts": [{"name": "ca", "mountPath": "/ca"}],
        "disruptionBudget": {"minAvailable": "50%"},
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}],
        "podAnnotations": {"example/owner": "us"},
        "webhookAnnotations": {"argocd.argoproj.io/sync-wave": "1"},
        "policy": {"inline": policy},
        "networkPolicy": {"from": peers},
    }
    objects = render_chart(values)
    deployment = find_object(objects, "Deployment")["spec"]
    pod = deployment["template"]["spec"]
    assert deployment["replicas"] == 5
    assert pod["containers"][0]["image"] == f"registry.example/x@sha256:{'0' * 64}"
    assert pod["containers"][0]["resources"] == {"limits": {"memory": "1Gi"}}
    assert [pod[name] for name in ("imagePullSecrets", "priorityClassName", "nodeSelector")] == [
        [{"name": "registry"}],
        "system-cluster-critical",
        {"kubernetes.io/os": "linux"},
    ]
    assert len(pod["tolerations"]) == 3
    assert pod["affinity"] == values["affinity"]
    assert pod["topologySpreadConstraints"] == values["topologySpreadConstraints"]
    assert pod["containers"][0]["args"][-3:] == [
        "--workers=2",
        "--docs-url=https://docs.example.com/rules/{rule}.html",
        "--client-ca=/ca/ca.crt",
    ]
    assert pod["containers"][0]["volumeMounts"][-1]["mountPath"] == "/ca"
    assert pod["volumes"][-1]["name"] == "ca"
    assert find_object(objects, "PodDisruptionBudget")["spec"]["minAvailable"] == "50%"
    assert find_object(objects, "ResourceQuota")
    assert deployment["template"]["metadata"]["annotations"] == {"example/owner": "us"}
    annotations = find_object(objects, "ValidatingWebhookConfiguration")["metadata"]["annotations"]
    assert annotations == {"argocd.argoproj.io/sync-wave": "1"}
    assert yaml.safe_load(find_object(objects, "ConfigMap")["data"]["policy.yaml"]) == policy
    assert find_object(objects, "NetworkPolicy")["spec"]["ingress"][0]["from"] == peers


def test_a_given_secret_and_policy_are_used_and_not_made() -> None:
    values = yaml.safe_load((CHART / "ci" / "given-values.yaml").read_text())
    objects = render_chart(values)
    assert not {"Secret", "ConfigMap"} & {thing["kind"] for thing in objects}
    volumes = {
        volume["name"]: volume for volume in find_object(objects, "Deployment")["spec"]["template"]["spec"]["volumes"]
    }
    assert volumes["tls"]["secret"]["secretName"] == "our-certificate"
    assert volumes["policy"]["configMap"]["name"] == "our-policy"


@pytest.mark.parametrize("component", ["host-network", "critical"])
def test_what_is_a_value_of_the_chart_is_a_component_of_kustomize(component: str, tmp_path: Path) -> None:
    values: dict[str, dict[str, Any]] = {
        "host-network": {"hostNetwork": {"enabled": True}},
        "critical": {"priorityClassName": "system-cluster-critical"},
    }
    kustomized = make_comparable(
        load_objects(render(compose_overlay(tmp_path, "cert-manager", component))), random=False
    )
    charted = make_comparable(
        render_chart({**values[component], "certificate": {"source": "cert-manager"}}), random=False
    )
    assert charted == kustomized


@pytest.mark.parametrize("source", ["cert-manager", "openshift"])
def test_the_recorder_runs_as_the_user_that_the_platform_wants(source: str) -> None:
    values: dict[str, Any] = {"certificate": {"source": source}, "components": {"recorder": True}}
    pod = find_object(render_chart(values), "StatefulSet")["spec"]["template"]["spec"]
    names = {"runAsNonRoot", "seccompProfile"}
    keys = set() if source == "openshift" else {"runAsUser", "runAsGroup", "fsGroup"}
    assert set(pod["securityContext"]) == names | keys


def test_the_volume_of_the_recorder_is_the_users_choice() -> None:
    values: dict[str, Any] = {"components": {"recorder": True}, "recorder": {"size": "5Gi", "storageClassName": "slow"}}
    (claim,) = find_object(render_chart(values), "StatefulSet")["spec"]["volumeClaimTemplates"]
    assert claim["spec"]["storageClassName"] == "slow"
    assert claim["spec"]["resources"]["requests"] == {"storage": "5Gi"}


def test_the_host_network_has_ports_of_its_own() -> None:
    ports = {"enabled": True, "port": 20443, "healthPort": 20081}
    pod = find_object(render_chart({"hostNetwork": ports}), "Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert [port["containerPort"] for port in container["ports"]] == [20443, 20081]
    assert container["args"][1:3] == ["--bind=0.0.0.0:20443", "--health-bind=0.0.0.0:20081"]


def test_a_disruption_budget_can_be_left_out() -> None:
    assert "PodDisruptionBudget" not in {one["kind"] for one in render_chart({"disruptionBudget": {"enabled": False}})}


def test_the_authority_that_the_chart_makes_is_kept_where_no_pod_mounts_it() -> None:
    objects = render_chart({})
    secrets = {thing["metadata"]["name"]: set(thing["data"]) for thing in objects if thing["kind"] == "Secret"}
    assert secrets == {"lease-webhook-tls": {"ca.crt", "tls.crt", "tls.key"}, "lease-webhook-ca": {"ca.crt", "ca.key"}}
    volumes = find_object(objects, "Deployment")["spec"]["template"]["spec"]["volumes"]
    assert [volume["secret"]["secretName"] for volume in volumes if "secret" in volume] == ["lease-webhook-tls"]


def list_hooks(*arguments: str) -> list[tuple[str, object]]:
    rendered = run_helm("template", "--set=image.repository=registry.example/x", "--kube-version=1.37.0", *arguments)
    assert rendered.returncode == 0, rendered.stderr
    return [
        (thing["kind"], thing.get("webhooks"))
        for thing in yaml.safe_load_all(rendered.stdout)
        if thing and (thing["metadata"].get("annotations") or {}).get("helm.sh/hook") == "pre-delete"
    ]


def test_what_deletes_the_configuration_at_the_end_needs_no_pod() -> None:
    assert list_hooks("--api-versions=apiregistration.k8s.io/v1") == [("ValidatingWebhookConfiguration", None)]


def test_what_is_rendered_for_kubectl_has_one_configuration() -> None:
    assert list_hooks() == []
