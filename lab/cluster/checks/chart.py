"""The Helm chart in the cluster: installed, tested, upgraded and uninstalled, with writes that fail closed."""

import os
import subprocess
import time
from collections.abc import Iterator
from functools import partial

import yaml

from lab.cluster.load import Load
from lab.cluster.world import NAMESPACE, ROOT, World
from lab.e2e.world import Row
from tests.waiting import wait_for
from tools.rendered.chart import find_helm

CHART = ROOT / "deploy" / "chart"
SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/lease-webhook-tls"


def check_lifetime(world: World) -> Iterator[Row]:
    """Run the whole life of a chart, with the component strict."""
    name, _, tag = world.image.rpartition(":")
    values = {"image": {"repository": name, "tag": tag}, "components": {"strict": True}}
    file = world.directory / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    installation = _run_helm(world, "install", "guard", str(CHART), "--create-namespace", f"--values={file}", "--wait")
    wait_for("the proof is refused", world.is_enforced, 60, 0.5)
    yield Row(
        "helm install --wait, the certificate made by the chart",
        "the proof is refused",
        passed="helm test" in installation,
    )
    certificate = world.client.get(SECRET)["data"]
    output = _run_helm(world, "test", "guard", "--logs")
    is_refused = "422" in output and "rule time-unreadable" in output
    yield Row("helm test", "shows a refusal" if is_refused else output[-200:], passed=is_refused)
    with Load(world) as load:
        changes = ["--set=podAnnotations.turn=two", "--set=components.audit=true"]
        _run_helm(world, "upgrade", "guard", str(CHART), f"--values={file}", *changes, "--wait")
        world.wait_for_rollout()
        is_kept = world.client.get(SECRET)["data"] == certificate
        report = load.report()
        observation = f"rolled out, {'the' if is_kept else 'ANOTHER'} certificate kept; {report}"
        yield Row("helm upgrade under load, failing closed", observation, passed=is_kept and report.passed)
        _run_helm(world, "uninstall", "guard", "--wait")
        report = load.report()
    wait_for("the pods have ended", partial(_has_no_webhook, world), 90, 0.5)
    objects = [
        kind
        for kind in ("validatingwebhookconfiguration", "validatingadmissionpolicy", "clusterrole", "clusterrolebinding")
        if "lease-webhook" in world.kubectl.run_checked("get", kind, "-o", "name")
    ]
    objects += world.kubectl.run_checked("-n", NAMESPACE, "get", "all,cm,secret,pdb,netpol", "-o", "name").split()
    # The first is made by Kubernetes, the second holds what `helm test --logs` prints.
    ours = [one for one in objects if one not in {"configmap/kube-root-ca.crt", "pod/lease-webhook-test"}]
    observation = f"{', '.join(ours) or 'nothing'} left; {report}"
    yield Row("helm uninstall under load, failing closed", observation, passed=not ours and report.passed)
    yield _uninstall_without_pods(world)


def _uninstall_without_pods(world: World) -> Row:
    """Uninstall where the image cannot be pulled, which is when people uninstall."""
    image = ("--set=image.repository=registry.invalid/nothing", "--set=image.tag=v1")
    _run_helm(world, "install", "guard", str(CHART), "--create-namespace", *image)
    begin = time.monotonic()
    _run_helm(world, "uninstall", "guard")
    seconds = time.monotonic() - begin
    is_left = "lease-webhook" in world.kubectl.run_checked("get", "validatingwebhookconfiguration", "-o", "name")
    wait_for("the pods have ended", partial(_has_no_webhook, world), 90, 0.5)
    return Row("helm uninstall while no image can be pulled", f"{seconds:.0f} s", passed=seconds < 30 and not is_left)


def _has_no_webhook(world: World) -> bool:
    return "pod/lease-webhook-" not in world.kubectl.run_checked("-n", NAMESPACE, "get", "pods", "-o", "name").replace(
        "pod/lease-webhook-test", ""
    )


def _run_helm(world: World, *arguments: str) -> str:
    """Return the output of helm. Raises RuntimeError with its complaint."""
    environment = {**os.environ, "KUBECONFIG": str(world.kubeconfig), "HOME": str(world.directory)}
    command = [str(find_helm()), *arguments, f"--namespace={NAMESPACE}", "--timeout=3m"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if result.returncode:
        raise RuntimeError(
            f"helm {arguments[0]}: exit {result.returncode}\n{result.stdout[-500:]}{result.stderr[-1500:]}"
        )
    return result.stdout
