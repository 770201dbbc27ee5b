"""A year of disruptions of pods, under load, where a missed review is a failed write."""

import time
from collections.abc import Callable, Iterator

from lab.cluster.load import WRITERS, Load, Report
from lab.cluster.world import NAMESPACE, PODS, PYTHON, World
from lab.e2e.world import Row
from tests.waiting import wait_for

FILL = """
import os
with open("/dev/shm/filler", "wb", buffering=0) as filler:
    written = 0
    try:
        while True:
            written += filler.write(bytes(1 << 16))
    except OSError as error:
        print(written >> 20, error.strerror)
"""
EMPTY = 'import os; os.unlink("/dev/shm/filler")'
WORKERS = """
import os
def parent(pid):
    return int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
workers = sorted(int(pid) for pid in os.listdir("/proc") if pid.isdigit() and parent(pid) == 1)
"""
EXHAUST = (
    WORKERS
    + """
import signal, time
chosen = workers[0]
# The kernel ends the process with the highest score. Many small ones take the memory, so that it is the worker.
open(f"/proc/{chosen}/oom_score_adj", "w").write("1000")
def alive():
    try:
        return parent(chosen) == 1 and open(f"/proc/{chosen}/stat").read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
children = []
while alive() and len(children) < 60:
    child = os.fork()
    if not child:
        held = bytearray(os.urandom(1 << 20) * 20)
        time.sleep(60)
        os._exit(0)
    children.append(child)
    time.sleep(0.15)
print(chosen, len(children), alive())
for child in children:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""
)
STOP_ALL = (
    WORKERS
    + """
import signal
for worker in workers:
    os.kill(worker, signal.SIGSTOP)
print(*workers)
"""
)
LIST = WORKERS + "print(*workers)"
Disruption = Callable[[World], tuple[str, str, bool]]
"""Causes it and waits; returns what was done, what was seen, and whether that is as it should be."""


def run_short_disruptions(world: World) -> Iterator[Row]:
    """Run the disruptions that take seconds."""
    yield from _disrupt(world, roll_out, force_deletion, evict_pods)


def run_long_disruptions(world: World) -> Iterator[Row]:
    """Run those that take a minute and more, and those that a process cannot survive."""
    yield from _disrupt(world, delete_pod, fill_memory, exhaust_memory, stop_loops)


def _disrupt(world: World, *disruptions: Disruption) -> Iterator[Row]:
    """Run each disruption under load; between them the installation comes back to two ready pods."""
    with Load(world) as load:
        for disruption in disruptions:
            wait_for("two ready pods", world.is_ready, 120, 0.5)
            time.sleep(1)
            load.report()
            claim, observation, is_harmless = disruption(world)
            wait_for("two ready pods", world.is_ready, 120, 0.5)
            yield _make_row(claim, observation, load.report(), held=is_harmless, cost=COSTS.get(disruption, 0))


def drain(world: World) -> Iterator[Row]:
    """Drain the node of a pod. On a single node the budget must hold it up for as long as it takes."""
    with Load(world) as load:
        wait_for("two ready pods", world.is_ready, 120, 0.5)
        node = world.list_pods()[0]["spec"]["nodeName"]
        selector = f"--pod-selector=app.kubernetes.io/name={NAMESPACE}"
        flags = ["--ignore-daemonsets", "--delete-emptydir-data", selector]
        try:
            limit = "--timeout=20s"
            result = world.kubectl.run("drain", node, *flags, limit)
            pods = [pod for pod in world.list_pods() if pod["spec"].get("nodeName") == node]
        finally:
            world.kubectl.run_checked("uncordon", node)
        wait_for("two ready pods", world.is_ready, 120, 0.5)
        alone = len(world.client.get("/api/v1/nodes")["items"]) == 1
        if alone:
            is_harmless = result.status != 0 and "disruption budget" in result.stderr and len(pods) == 1
            observation = f"one pod evicted, the other kept by the budget for the {limit[10:]} that the drain was given"
        else:
            is_harmless, observation = result.status == 0 and not pods, "every pod moved"
        observation = observation if is_harmless else result.stderr[-200:]
        yield _make_row(
            "kubectl drain of the only node" if alone else "kubectl drain of a node",
            observation,
            load.report(),
            held=is_harmless,
        )


def roll_out(world: World) -> tuple[str, str, bool]:
    """Roll out the same revision."""
    before = world.list_pod_names()
    world.kubectl.run_checked("-n", NAMESPACE, "rollout", "restart", "deployment/lease-webhook")
    world.wait_for_rollout()
    return "kubectl rollout restart", "both pods replaced", not before & world.list_pod_names()


def delete_pod(world: World) -> tuple[str, str, bool]:
    """Delete a pod with the pause that it asks for."""
    (name, *_) = world.list_pod_names()
    result = world.kubectl.run("-n", NAMESPACE, "delete", "pod", name, seconds=90)
    return "kubectl delete pod", "replaced", result.status == 0 and name not in world.list_pod_names()


def force_deletion(world: World) -> tuple[str, str, bool]:
    """Delete a pod without any pause: the endpoint may outlive the process for a moment."""
    (name, *_) = world.list_pod_names()
    world.kubectl.run("-n", NAMESPACE, "delete", "pod", name, "--grace-period=0", "--force")
    return "kubectl delete pod --grace-period=0 --force", "replaced", name not in world.list_pod_names()


def evict_pods(world: World) -> tuple[str, str, bool]:
    """Evict two pods at once: the budget admits one."""
    answers = []
    for name in sorted(world.list_pod_names()):
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": NAMESPACE}}
        answers.append(world.client.send("POST", f"{PODS}/{name}/eviction", body).status)
    return "both pods evicted at once", f"the API server answered {answers}", sorted(answers) == [201, 429]


def fill_memory(world: World) -> tuple[str, str, bool]:
    """Fill /dev/shm, which takes the heartbeats and the metrics of the workers."""
    (name, *_) = world.list_pod_names()
    restarts = world.count_restarts()
    output = world.run_python(name, FILL).strip()
    time.sleep(12)
    world.run_python(name, EMPTY)
    is_harmless = world.count_restarts() == restarts
    return (
        "/dev/shm full for 12 s",
        f"after {output.split()[0]} MiB: no restart",
        is_harmless and "No space left" in output,
    )


def exhaust_memory(world: World) -> tuple[str, str, bool]:
    """Let the container reach its limit: the kernel ends a worker of it."""
    (name, *_) = world.list_pod_names()
    restarts = world.count_restarts()
    result = world.kubectl.run("-n", NAMESPACE, "exec", name, "--", PYTHON, "-c", EXHAUST)
    # With control groups of version 2 the kubelet lets the kernel end the whole container, and us with it.
    whole = result.status != 0 and wait_for("the restart", lambda: world.count_restarts() > restarts, 30)
    process, _, alive = result.stdout.split() if result.status == 0 else ("", "", "")
    wait_for("two ready pods", world.is_ready, 120, 0.5)
    is_replaced = alive == "False" and process not in world.run_python(name, LIST).split()
    how = "the container was restarted" if whole else "gunicorn replaced the worker, no restart"
    return "a process killed by the kernel at the memory limit", how, bool(whole) or is_replaced


def stop_loops(world: World) -> tuple[str, str, bool]:
    """Stop every loop of a pod; nothing in it answers a review or a probe."""
    (name, *_) = world.list_pod_names()
    restarts = world.count_restarts()
    workers = set(world.run_python(name, STOP_ALL).split())
    begin = time.monotonic()

    def is_replaced() -> bool:
        try:
            return not workers & set(world.run_python(name, LIST).split()) or world.count_restarts() > restarts
        except RuntimeError:
            # While the container is restarted, nothing can be run in it.
            return world.count_restarts() > restarts

    wait_for("the stuck workers are replaced", is_replaced, 120, 0.5)
    seconds = time.monotonic() - begin
    # The kubelet would restart the container after a minute; what it decided shows after the pause of preStop.
    time.sleep(max(0.0, SETTLED - seconds))
    wait_for("two ready pods", world.is_ready, 120, 0.5)
    is_harmless = world.count_restarts() == restarts
    also = "no restart" if is_harmless else "the kubelet restarted the container"
    return "every worker of a pod stopped (SIGSTOP)", f"replaced after {seconds:.0f} s; {also}", is_harmless


COSTS: dict[Disruption, int] = {
    # Until the endpoint is gone, calls to the pod fail.
    exhaust_memory: WRITERS * 10,
    # The same, and two failed readiness probes come first, in which each call waits for 2 s.
    stop_loops: WRITERS * 10,
}
"""How many writes may fail that fail closed."""
SETTLED = 80.0


def _make_row(claim: str, observation: str, report: Report, *, held: bool, cost: int = 0) -> Row:
    """Return a row.

    `cost`: as many writes may fail, because no process can answer a review in the middle of which it ends.
    """
    if len(report.failed) > cost:
        observation += f"; the first failure: {report.failed[0][:200]}"
    passed = held and report.writes > 0 and len(report.failed) <= cost
    return Row(claim, f"{observation}; {report}", passed=passed)
