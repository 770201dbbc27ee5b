"""Helm, and the manifests of the chart, copied by `make derived` from where kustomize reads them."""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from lab.e2e.toolchain import build
from tools.release.reproducible import normalize, read_moment
from tools.rendered.rendering import DEPLOY, Object

CHART = DEPLOY / "chart"
SOURCES = {
    "service-account.yaml": "base/10-service-account.yaml",
    "policy.yaml": "base/20-policy.yaml",
    "quota.yaml": "components/critical/quota.yaml",
    "deployment.yaml": "base/40-deployment.yaml",
    "service.yaml": "base/50-service.yaml",
    "disruption-budget.yaml": "base/60-disruption-budget.yaml",
    "network-policy.yaml": "base/70-network-policy.yaml",
    "webhook.yaml": "base/90-webhook.yaml",
    "depth-policy.yaml": "depth-policy/policy.yaml",
    "stamp-policies.yaml": "stamp/policies.yaml",
    "certificates.yaml": "overlays/cert-manager/certificates.yaml",
    "openshift-service.yaml": "overlays/openshift/service.yaml",
    "observe-policy.yaml": "components/observe/policy.yaml",
    "all-renewals-webhook.yaml": "components/all-renewals/webhook.yaml",
    "strict-webhook.yaml": "components/strict/webhook.yaml",
    "bindings-webhook.yaml": "components/bindings/webhook.yaml",
    "node-leases-webhook.yaml": "components/node-leases/webhook.yaml",
    "control-plane-webhook.yaml": "components/control-plane/webhook.yaml",
    "high-availability-deployment.yaml": "components/high-availability/deployment.yaml",
    "high-availability-disruption-budget.yaml": "components/high-availability/disruption-budget.yaml",
    "monitoring-service.yaml": "components/monitoring/service.yaml",
    "service-monitor.yaml": "components/monitoring/service-monitor.yaml",
    "prometheus-rule.yaml": "components/monitoring/prometheus-rule.yaml",
    "monitoring-network-policy.yaml": "components/monitoring/network-policy.yaml",
    "audit-rights.yaml": "components/audit/rights.yaml",
    "audit-cron-job.yaml": "components/audit/cron-job.yaml",
    "audit-prometheus-rule.yaml": "components/audit-alerts/prometheus-rule.yaml",
    "lease-prometheus-rule.yaml": "lease-alerts/prometheus-rule.yaml",
    "recorder-rights.yaml": "components/recorder/rights.yaml",
    "recorder-stateful-set.yaml": "components/recorder/stateful-set.yaml",
    "recorder-metrics-patch.yaml": "components/recorder-metrics/stateful-set-patch.yaml",
    "recorder-metrics-service.yaml": "components/recorder-metrics/service.yaml",
    "recorder-metrics-service-monitor.yaml": "components/recorder-metrics/service-monitor.yaml",
    "recorder-metrics-prometheus-rule.yaml": "components/recorder-metrics/prometheus-rule.yaml",
    "recorder-events-rights.yaml": "components/recorder-events/rights.yaml",
    "recorder-events-patch.yaml": "components/recorder-events/stateful-set-patch.yaml",
    "dashboard.json": "components/monitoring/dashboard.json",
}
"""Name in the chart's `files`, and where it comes from in deploy/."""
POLICY_SCHEMA = DEPLOY.parent / "webhook/admission/policy/policy.schema.json"
_DEFINITIONS = '  "$defs": {\n'


def find_helm() -> Path:
    """Return Helm, built from its Go module. Raises MissingToolchainError without Go."""
    source = Path(__file__).parent / "go" / "helm"
    return build(source, "helm.sh/helm/v3/cmd/helm", "helm", ("-ldflags", "-s -w"))


def run_helm(*arguments: str, chart: Path = CHART) -> "subprocess.CompletedProcess[str]":
    """Run one Helm command on the chart, with no cluster and no settings of the person who runs it."""
    command, *rest = arguments
    with tempfile.TemporaryDirectory() as home:
        environment = {"HOME": home, "PATH": "/nonexistent"}
        whole = [str(find_helm()), command, *rest, str(chart)]
        return subprocess.run(whole, env=environment, capture_output=True, text=True, check=False)


def render_chart(values: dict[str, Any], namespace: str = "lease-webhook") -> list[Object]:
    """Return the rendered chart for some values, with the image of the base; hooks are left out."""
    values = {"image": {"repository": "lease-webhook", "tag": "name-your-image"}, **values}
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump(values, file)
        file.flush()
        done = run_helm(
            "template", "--namespace", namespace, "--values", file.name, "--kube-version=1.37.0", "--no-hooks"
        )
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.safe_load_all(done.stdout) if one]


def copy_manifests() -> None:
    """Copy the manifests, and the schema of policies, into the chart."""
    target = CHART / "files"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    for name, source in SOURCES.items():
        shutil.copyfile(DEPLOY / source, target / name)
    schema = CHART / "values.schema.json"
    schema.write_text(embed_policy_schema(schema.read_text("utf-8"), POLICY_SCHEMA.read_text("utf-8")), "utf-8")


def embed_policy_schema(values_schema: str, policy_schema: str) -> str:
    """Return the schema of the chart's values with the definitions of the policy's at its end, by which Helm checks it.

    Helm's regular expressions have no lookahead, so patterns stay out; the pods check them when they load the policy.
    """
    rest = values_schema.partition(f",\n{_DEFINITIONS}")[0].rstrip().removesuffix("\n}")
    definitions = _drop_patterns(json.loads(policy_schema)["$defs"])
    lines = (f"    {json.dumps(name)}: {json.dumps(schema)}" for name, schema in definitions.items())
    return f"{rest},\n{_DEFINITIONS}" + ",\n".join(lines) + "\n  }\n}\n"


def _drop_patterns(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: _drop_patterns(value) for key, value in schema.items() if key not in {"pattern", "propertyNames"}}
    return [_drop_patterns(value) for value in schema] if isinstance(schema, list) else schema


def fill_addresses(text: str, url: str, image: str) -> str:
    """Return Chart.yaml with the publisher's values: the repository, the image, and the fields of Artifact Hub."""
    chart = yaml.safe_load(text)
    notes: dict[str, str] = chart["annotations"]
    if url:
        pages = f"{url}/blob/v{chart['version']}"
        chart |= {"home": url, "sources": [url]}
        names = {"Documentation": "docs/README.md", "Rules": "docs/rules/README.md", "Changes": "CHANGELOG.md"}
        links = [{"name": name, "url": f"{pages}/{path}"} for name, path in names.items()]
        notes["artifacthub.io/links"] = yaml.safe_dump(links, sort_keys=False)
    if image:
        notes["artifacthub.io/images"] = yaml.safe_dump([{"name": chart["name"], "image": image}], sort_keys=False)
    return yaml.safe_dump(chart, sort_keys=False)


def main(arguments: Sequence[str] | None = None) -> int:
    """Pack the chart into a folder. Return the exit status of Helm."""
    parser = argparse.ArgumentParser(prog="python -m tools.rendered.chart", description=__doc__)
    parser.add_argument("into", type=Path)
    parser.add_argument("--url", default="", help="the repository")
    parser.add_argument("--image", default="", help="the image of the release")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as directory:
        chart = Path(directory) / CHART.name
        shutil.copytree(CHART, chart)
        described = chart / "Chart.yaml"
        described.write_text(fill_addresses(described.read_text(), options.url, options.image))
        packed = run_helm("package", f"--destination={options.into.absolute()}", chart=chart)
    print(packed.stdout + packed.stderr, end="")
    for archive in options.into.glob("lease-webhook-*.tgz"):
        normalize(archive, read_moment())
    return packed.returncode


if __name__ == "__main__":
    sys.exit(main())
