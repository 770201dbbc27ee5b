"""The webhook, a fence and the audit's CronJob in one cluster, with an operator of two pods that share a Lease."""

import json
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import yaml

from lab.cluster.load import Load
from lab.cluster.world import CLOSED, NAMESPACE, PYTHON, SECONDS_PAST_EXPIRY, Object, World
from lab.e2e.fence.trial import export_fence
from lab.e2e.manifests import make_lease
from lab.e2e.world import Row, build_lease_path
from tests.waiting import wait_for

SHOP = "cluster-shop"
DURATION = 6
EVERY_MINUTE = """
patches:
- target: {kind: CronJob, name: lease-audit}
  patch: |-
    - {op: replace, path: /spec/schedule, value: "* * * * *"}
"""
RIGHTS = "rbac.authorization.k8s.io"
OPERATOR: list[Object] = [
    {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "operator", "namespace": SHOP}},
    {
        "apiVersion": f"{RIGHTS}/v1",
        "kind": "Role",
        "metadata": {"name": "operator", "namespace": SHOP},
        "rules": [
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]},
            {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create", "update"]},
        ],
    },
    {
        "apiVersion": f"{RIGHTS}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "operator", "namespace": SHOP},
        "roleRef": {"apiGroup": RIGHTS, "kind": "Role", "name": "operator"},
        "subjects": [{"kind": "ServiceAccount", "name": "operator", "namespace": SHOP}],
    },
]
SEND = """
import json, os, ssl, sys, urllib.error, urllib.request
mounted = "/var/run/secrets/kubernetes.io/serviceaccount/"
method, path, body = sys.argv[1:]
request = urllib.request.Request(
    f"https://{os.environ['KUBERNETES_SERVICE_HOST']}:{os.environ['KUBERNETES_SERVICE_PORT']}{path}",
    body.encode(), {"Authorization": "Bearer " + open(mounted + "token").read(), "Content-Type": "application/json"},
    method=method)
try:
    with urllib.request.urlopen(request, context=ssl.create_default_context(cafile=mounted + "ca.crt")) as answer:
        print(answer.status)
except urllib.error.HTTPError as error:
    print(error.code, json.load(error)["message"])
"""
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:lease-audit"


def check_together(world: World) -> Iterator[Row]:
    """Run all of them; needs a cluster whose leases are otherwise in order."""
    world.remove()
    world.kubectl.run("-n", CLOSED, "delete", "leases", "--all")
    world.create_namespace(SHOP, {"lease-webhook/fail": "closed"})
    world.apply("self-signed", "strict", "audit", edit=EVERY_MINUTE)
    time.sleep(5)
    try:
        with Load(world) as load:
            yield from _check_fence(world)
            yield from _check_audit(world)
            report = load.report()
        yield Row("writes under load meanwhile, failing closed", str(report), passed=report.passed)
        # No one renews these any more.
        world.kubectl.run_checked("-n", CLOSED, "delete", "leases", "--all")
        yield from _check_rights(world)
    finally:
        for kind in ("clusterrole", "clusterrolebinding"):
            world.kubectl.run("delete", kind, "lease-audit", "--ignore-not-found")
        world.kubectl.run("-n", NAMESPACE, "delete", "cronjob", "lease-audit", "--ignore-not-found")
        world.kubectl.run("delete", "namespace", SHOP, "--ignore-not-found", "--wait=false")


def _check_fence(world: World) -> Iterator[Row]:
    fence = export_fence("operator", f"{SHOP}/operator", writers=[f"{SHOP}/operator"], resources=["configmaps"])
    pods = [_make_pod(world, name) for name in ("op-a", "op-b")]
    for thing in (*OPERATOR, *pods):
        world.kubectl.run_checked("apply", "--server-side", "-f", "-", manifest=thing)
    for name in ("op-a", "op-b"):
        world.kubectl.run_checked("-n", SHOP, "wait", "--for=condition=Ready", f"pod/{name}", "--timeout=60s")
    world.kubectl.run_checked("apply", "--server-side", "-f", "-", manifest=fence)
    election = _send(world, "op-a", "POST", build_lease_path(SHOP), _make_lease("op-a", 0))
    wait_for("the fence is in force", lambda: _describe_writes(world, "op-b").startswith(("403", "422")), 30, 0.5)
    before = [_describe_writes(world, name) for name in ("op-a", "op-b")]
    time.sleep(DURATION + 1)
    path = build_lease_path(SHOP, "operator")
    newer = _make_lease("op-b", 1)
    newer["metadata"]["resourceVersion"] = world.client.get(path)["metadata"]["resourceVersion"]
    takeover = _send(world, "op-b", "PUT", path, newer)
    wait_for("the fence has seen the new holder", lambda: _describe_writes(world, "op-b") == "201", 30, 0.5)
    after = [_describe_writes(world, name) for name in ("op-a", "op-b")]
    passed = (election, takeover) == ("201", "200") and before[0] == after[1] == "201"
    passed = passed and all("only the holder may write" in one for one in (before[1], after[0]))
    codes = " and ".join(one[:3] for one in (*before, *after))
    observation = f"elected {election}, taken over after expiry {takeover}; holder and other, before and after: {codes}"
    yield Row(
        "a fence, with tokens that the kubelet mounts", observation if passed else f"{before} {after}", passed=passed
    )
    for thing in yaml.safe_load_all(fence):
        world.kubectl.run_checked("delete", thing["kind"].lower(), thing["metadata"]["name"])


def _make_pod(world: World, name: str) -> Object:
    container: Object = {"name": "main", "image": world.image, "imagePullPolicy": "IfNotPresent"}
    container |= {"command": [PYTHON, "-c", "import time; time.sleep(3600)"]}
    spec: Object = {"serviceAccountName": "operator", "containers": [container], "terminationGracePeriodSeconds": 1}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": SHOP}, "spec": spec}


def _make_lease(holder: str, transitions: int) -> Object:
    fields = {"holderIdentity": f"{holder}_1", "leaseDurationSeconds": DURATION, "leaseTransitions": transitions}
    return make_lease("operator", **fields)


def _describe_writes(world: World, pod: str) -> str:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": f"{pod}-"}}
    return _send(world, pod, "POST", f"/api/v1/namespaces/{SHOP}/configmaps", body)


def _send(world: World, pod: str, method: str, path: str, body: Object) -> str:
    """Return the status, and the message of a refusal, of a write with the token of a pod."""
    return world.run_python(pod, SEND, method, path, json.dumps(body), namespace=SHOP).strip()


def _check_audit(world: World) -> Iterator[Row]:
    """Check that the lease whose holder no longer renews it is the one finding; renewed, there is none."""
    time.sleep(DURATION + SECONDS_PAST_EXPIRY)  # a job that begins before the lease has expired finds nothing
    status, output = _wait_for_next_job(world)
    severe = {f"{one['kind']} {one['namespace']}/{one['name']} {one['check']}" for one in _list_severe(output)}
    expected = {f"Lease {SHOP}/operator expired"}
    observation = f"the job {status}; found: {', '.join(sorted(severe)) or output[-200:]}"
    yield Row("the CronJob of the component audit", observation, passed=(status, severe) == ("failed", expected))
    world.kubectl.run_checked("-n", SHOP, "delete", "lease", "operator")
    status, output = _wait_for_next_job(world)
    findings = _list_severe(output)
    observation = f"the job {status}, {len(findings)} findings"
    is_late = status == "failed" and '"timing-tight"' in output
    yield Row(
        "the same with the lease in order", observation, passed=not findings and (status == "succeeded" or is_late)
    )


def _list_severe(output: str) -> list[dict[str, Any]]:
    """Return the findings that make the job fail, but for late renewals: a loaded machine makes those true."""
    # What is no finding goes to standard error, and into the same log.
    findings = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return [one for one in findings if one["severity"] in {"error", "warning"} and one["check"] != "timing-tight"]


def _wait_for_next_job(world: World) -> tuple[str, str]:
    """Return how the next job of the schedule ends, and its output."""
    former_jobs = {job["metadata"]["name"] for job in world.client.get(JOBS)["items"]}

    def find_end(name: str) -> str:
        status = world.client.get(f"{JOBS}/{name}")["status"]
        return next((ending for ending in ("succeeded", "failed") if status.get(ending)), "")

    def find_new() -> str | None:
        names = {job["metadata"]["name"] for job in world.client.get(JOBS)["items"]} - former_jobs
        return min(names, default=None)

    name = wait_for("the CronJob makes a job", find_new, 90, 0.5)
    status = wait_for(f"{name} ends", partial(find_end, name), 90, 0.5)
    return status, world.kubectl.run_checked("-n", NAMESPACE, "logs", f"job/{name}")


def _check_rights(world: World) -> Iterator[Row]:
    """Check the rights of the job's account against the API server; and the losses without either right."""
    group = "coordination.k8s.io"
    rights = [(group, kind, verb) for kind in ("leases", "leasecandidates") for verb in ("list", "get", "watch")]
    rights += [(group, kind, verb) for kind in ("leases", "leasecandidates") for verb in ("create", "update", "delete")]
    rights += [("", "pods", "list"), ("", "secrets", "list"), ("", "configmaps", "get"), ("", "nodes", "list")]
    allowed = []
    for api, kind, verb in rights:
        attributes = {"group": api, "resource": kind, "verb": verb}
        body = {"spec": {"user": ACCOUNT, "resourceAttributes": attributes}}
        answer = world.client.send("POST", REVIEWS, body).expect(201)
        allowed += [f"{verb} {kind}"] if answer["status"]["allowed"] else []
    passed = allowed == ["list leases", "list leasecandidates"]
    yield Row(f"rights of the job's account, of {len(rights)} asked for", ", ".join(allowed) or "none", passed=passed)
    for kind, outcome, message in (
        ("leases", "succeeded", "candidates were not read"),
        ("leasecandidates", "failed", "returned 403 for /apis/coordination.k8s.io/v1/leases"),
    ):
        patch = json.dumps([{"op": "replace", "path": "/rules/0/resources", "value": [kind]}])
        world.kubectl.run_checked("patch", "clusterrole", "lease-audit", "--type=json", f"--patch={patch}")
        status, output = _wait_for_next_job(world)
        line = next((line for line in output.splitlines() if message in line), output.strip()[-160:])
        observation = f"the job {status}: {line}"
        yield Row(
            f"the job with the right to list {kind} alone", observation, passed=status == outcome and message in output
        )
