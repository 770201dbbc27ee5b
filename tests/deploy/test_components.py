"""Metrics, names and annotations in components and overlays are those of the code."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.parser import text_string_to_metric_families

from tests.deploy.sources import DEPLOY, base_object, documents
from tools.docs import lease_alerts
from webhook.analysis.live.leases import LiveLeases
from webhook.analysis.live.metrics import LeaderMetrics
from webhook.api_server.doctor.certificate import FILLED_IN_LATER, SOON
from webhook.api_server.doctor.checks import CHOICES
from webhook.certificates.issue import list_service_names
from webhook.server.metrics import Metrics

MONITORING = DEPLOY / "components" / "monitoring"
API_SERVER = {
    "apiserver_admission_webhook_fail_open_count": {"name", "type"},
    "apiserver_admission_webhook_rejection_count": {"name", "type", "operation", "error_type", "rejection_code"},
    "apiserver_admission_webhook_admission_duration_seconds_bucket": {"name", "type", "operation", "rejected", "le"},
}
"""kubernetes/apiserver, pkg/admission/metrics/metrics.go."""


def our_metrics() -> dict[str, set[str]]:
    """Every series of the code with its labels."""
    metrics = Metrics()
    families = {one.name: one.type for one in text_string_to_metric_families(metrics.render().decode())}
    series = {f"{name}_bucket": {"le"} for name, kind in families.items() if kind == "histogram"}
    for collector in vars(metrics)["_registry"]._collector_to_names:
        if collector._name in families:  # what only another family is made of is not
            series[f"{collector._name}{'_total' if collector._type == 'counter' else ''}"] = set(collector._labelnames)
    return series


def recorder_metrics() -> dict[str, set[str]]:
    """Every series of the recorder with its labels."""
    return {
        f"{family.name}{'_total' if family.type == 'counter' else ''}": set(family._labelnames)
        for family in LeaderMetrics(LiveLeases()).collect()
        if isinstance(family, CounterMetricFamily | GaugeMetricFamily)
    }


def rules() -> list[dict[str, Any]]:
    (document,) = documents(MONITORING / "prometheus-rule.yaml")
    return [rule for group in document["spec"]["groups"] for rule in group["rules"]]


def recorder_rules() -> list[dict[str, Any]]:
    (document,) = documents(DEPLOY / "components" / "recorder-metrics" / "prometheus-rule.yaml")
    return [rule for group in document["spec"]["groups"] for rule in group["rules"]]


def dashboard() -> dict[str, Any]:
    dashboard: dict[str, Any] = json.loads((MONITORING / "dashboard.json").read_text())
    return dashboard


def expressions() -> Iterator[tuple[str, str]]:
    yield from ((rule["alert"], rule["expr"]) for rule in rules())
    yield from ((rule["alert"], rule["expr"]) for rule in recorder_rules())
    for panel in dashboard()["panels"]:
        yield from ((panel["title"], target["expr"]) for target in panel["targets"])


@pytest.mark.parametrize(("name", "expression"), [pytest.param(*one, id=one[0]) for one in expressions()])
def test_expressions_use_series_and_labels_that_exist(name: str, expression: str) -> None:
    known = {**our_metrics(), **recorder_metrics(), **API_SERVER}
    series = set(re.findall(r"\b(?:lease|apiserver)_\w+", expression))
    assert series
    assert series <= set(known)
    grouped = {label for group in re.findall(r"(?:by|on) \(([^)]*)\)", expression) for label in group.split(", ")}
    matched = set(re.findall(r"[{,](\w+)[=!]", expression))
    allowed = set().union(*(known[one] for one in series))
    assert grouped | matched <= allowed


def test_every_metric_is_shown_somewhere() -> None:
    drawn = {series for _, expression in expressions() for series in re.findall(r"lease_webhook_\w+", expression)}
    # What was dropped concerns logs and captures only.
    assert set(our_metrics()) - drawn <= {"lease_webhook_dropped_total"}
    # Alerts would have to know each duration again: the state of a lease is known where that is measured.
    assert set(recorder_metrics()) - drawn == {"lease_webhook_leader_duration_seconds"}


def test_alerts_say_what_happened_and_what_to_do() -> None:
    for rule in rules():
        assert rule["labels"]["severity"] in {"info", "warning", "critical"}
        assert set(rule["annotations"]) == {"runbook_url", "summary", "description"}
    (ends,) = [rule for rule in rules() if rule["alert"] == "LeaseWebhookCertificateEnds"]
    assert f"< {SOON.days} * 86400" in ends["expr"]


def test_each_alert_leads_to_a_section_that_says_what_to_do() -> None:
    sections = re.split(r"^## ", (DEPLOY.parent / "docs" / "runbook.md").read_text(), flags=re.MULTILINE)[1:]
    titles = [section.splitlines()[0] for section in sections]
    assert titles == [rule["alert"] for rule in rules()]
    for rule in rules():
        address = rule["annotations"]["runbook_url"]
        assert address == f"https://lease-webhook.example/docs/runbook.md#{rule['alert'].lower()}"
    for section in sections:
        assert re.search(r"^(1\. |- )", section, re.MULTILINE), section


def test_each_alert_of_the_recorder_leads_to_its_section() -> None:
    titles = re.findall(r"^### (.+)$", (DEPLOY.parent / "docs" / "alerts.md").read_text(), re.MULTILINE)
    assert titles == [rule["alert"] for rule in recorder_rules()]
    for rule in recorder_rules():
        assert rule["annotations"]["runbook_url"].endswith(f"/docs/alerts.md#{rule['alert'].lower()}")


def test_the_alerts_of_the_recorder_are_those_of_the_code() -> None:
    written = lease_alerts.RECORDER.read_text()
    assert written == lease_alerts.make_recorder_text(), "write it again: make docs"


def test_nobody_is_told_to_delete_a_frozen_lease_unseen() -> None:
    (lost,) = [rule for rule in recorder_rules() if rule["alert"] == "LeaderLost"]
    said = lost["annotations"]["description"]
    assert (
        said.index("its holder may still lead") < said.index("lease-webhook why") < said.index("Delete the lease only")
    )


def test_prometheus_reaches_the_recorder() -> None:
    component = DEPLOY / "components" / "recorder-metrics"
    (service,), (monitor,) = documents(component / "service.yaml"), documents(component / "service-monitor.yaml")
    argument, ports, _ = yaml.safe_load((component / "stateful-set-patch.yaml").read_text())
    (of_service,), (of_pod,), (endpoint,) = service["spec"]["ports"], ports["value"], monitor["spec"]["endpoints"]
    (stateful_set,) = documents(DEPLOY / "components" / "recorder" / "stateful-set.yaml")
    assert argument["value"] == f"--metrics=0.0.0.0:{of_pod['containerPort']}"
    assert endpoint["port"] == of_service["name"]
    assert of_service["targetPort"] == of_pod["name"]
    assert service["spec"]["selector"] == stateful_set["spec"]["template"]["metadata"]["labels"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()


def test_the_only_right_to_write_is_that_to_create_events() -> None:
    writing = {}
    for path in DEPLOY.glob("components/*/rights.yaml"):
        for role in (one for one in documents(path) if one["kind"] == "ClusterRole"):
            for rule in role["rules"]:
                if not {"get", "list", "watch"}.issuperset(rule["verbs"]):
                    writing[path.parent.name] = (rule["resources"], rule["verbs"])
    assert writing == {"recorder-events": (["events"], ["create"])}


def test_alerts_know_the_names_of_our_entries() -> None:
    pattern = re.compile(r".*[.]lease-webhook[.]svc")
    text = (MONITORING / "prometheus-rule.yaml").read_text()
    assert text.count(pattern.pattern) == text.count("{name=~") == 6
    for path in (path for path in DEPLOY.glob("**/webhook.yaml") if DEPLOY / "chart" not in path.parents):
        for document in documents(path):
            assert all(pattern.fullmatch(entry["name"]) for entry in document.get("webhooks", ()))


def test_panels_do_not_overlap() -> None:
    places = [tuple(panel["gridPos"].values()) for panel in dashboard()["panels"]]
    assert len(set(places)) == len(places)
    assert len({panel["id"] for panel in dashboard()["panels"]}) == len(places)


def test_prometheus_reaches_the_health_port() -> None:
    (service,) = documents(MONITORING / "service.yaml")
    (monitor,) = documents(MONITORING / "service-monitor.yaml")
    (policy,) = documents(MONITORING / "network-policy.yaml")
    (port,) = service["spec"]["ports"]
    (endpoint,) = monitor["spec"]["endpoints"]
    assert (endpoint["port"], endpoint["path"]) == (port["name"], "/metrics")
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert service["spec"]["selector"] == base_object("Service")["spec"]["selector"]
    # The patch replaces the list, so the reviews' port must be in it.
    assert policy["spec"]["ingress"][0] == base_object("NetworkPolicy")["spec"]["ingress"][0]
    assert policy["spec"]["ingress"][1]["ports"][0]["port"] == port["targetPort"]


def test_cert_manager_issues_the_name_that_the_api_server_checks() -> None:
    issued = {
        one["metadata"]["name"]: one["spec"]
        for one in documents(DEPLOY / "overlays" / "cert-manager" / "certificates.yaml")
        if one["kind"] == "Certificate"
    }
    leaf, authority = issued["lease-webhook"], issued["lease-webhook-ca"]
    reference = base_object("ValidatingWebhookConfiguration")["webhooks"][0]["clientConfig"]["service"]
    assert f"{reference['name']}.{reference['namespace']}.svc" in leaf["dnsNames"]
    assert set(leaf["dnsNames"]) <= set(list_service_names(reference["name"], reference["namespace"]))
    volumes = base_object("Deployment")["spec"]["template"]["spec"]["volumes"]
    assert leaf["secretName"] in [one["secret"]["secretName"] for one in volumes if "secret" in one]
    assert "server auth" in leaf["usages"]
    assert leaf["duration"] == f"{90 * 24}h"
    # A leaf that is its own CA has a window at each renewal.
    assert authority["isCA"] is True
    (inject,) = documents(DEPLOY / "overlays" / "cert-manager" / "inject.yaml")
    annotations = inject["metadata"]["annotations"]
    assert annotations == {FILLED_IN_LATER[0]: "lease-webhook/lease-webhook-ca"}


def test_openshift_uses_the_secret_that_is_mounted() -> None:
    (service,) = documents(DEPLOY / "overlays" / "openshift" / "service.yaml")
    (webhook,) = documents(DEPLOY / "overlays" / "openshift" / "webhook.yaml")
    volumes = base_object("Deployment")["spec"]["template"]["spec"]["volumes"]
    assert list(service["metadata"]["annotations"].values()) == [
        one["secret"]["secretName"] for one in volumes if "secret" in one
    ]
    assert webhook["metadata"]["annotations"] == {FILLED_IN_LATER[1]: "true"}


def test_choices_are_written_as_the_doctor_reads_them() -> None:
    written = {
        annotation: value
        for path in DEPLOY.glob("components/*/webhook.yaml")
        for document in documents(path)
        for annotation, value in document["metadata"].get("annotations", {}).items()
    }
    assert written == {f"lease-webhook/{choice}": "reviewed" for choice in [*CHOICES.values(), "renewals"]}
