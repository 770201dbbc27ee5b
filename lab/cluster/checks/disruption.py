"""What happens to pods in a year, under load, where a review that is missed is a failed write."""

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


def short_ones(world: World) -> Iterator[Row]:
    """Yield what takes seconds."""
    yield from _disrupt(world, roll_out, forced_deletion, eviction)


def disruptions(world: World) -> Iterator[Row]:
    """Yield what takes a minute and more, and what a process cannot survive."""
    yield from _disrupt(world, deletion, full_memory, out_of_memory, stuck)


def _disrupt(world: World, *chosen: Disruption) -> Iterator[Row]:
    """Each disruption under load; between them the installation comes back to two ready pods."""
    with Load(world) as load:
        for disruption in chosen:
            wait_for("two ready pods", world.all_ready, 120, 0.5)
            time.sleep(1)
            load.report()
            claim, seen, held = disruption(world)
            wait_for("two ready pods", world.all_ready, 120, 0.5)
            yield _row(claim, seen, load.report(), held=held, cost=COSTS.get(disruption, 0))


def drain(world: World) -> Iterator[Row]:
    """The drain of the node of a pod. On a single node the budget must hold it up for as long as it takes."""
    with Load(world) as load:
        wait_for("two ready pods", world.all_ready, 120, 0.5)
        node = world.pods()[0]["spec"]["nodeName"]
        selector = f"--pod-selector=app.kubernetes.io/name={NAMESPACE}"
        flags = ["--ignore-daemonsets", "--delete-emptydir-data", selector]
        try:
            limit = "--timeout=20s"
            done = world.kubectl.run("drain", node, *flags, limit)
            left = [pod for pod in world.pods() if pod["spec"].get("nodeName") == node]
        finally:
            world.kubectl.run_checked("uncordon", node)
        wait_for("two ready pods", world.all_ready, 120, 0.5)
        alone = len(world.client.get("/api/v1/nodes")["items"]) == 1
        if alone:
            held = done.status != 0 and "disruption budget" in done.stderr and len(left) == 1
            seen = f"one pod evicted, the other kept by the budget for the {limit[10:]} that the drain was given"
        else:
            held, seen = done.status == 0 and not left, "every pod moved"
        seen = seen if held else done.stderr[-200:]
        yield _row(
            "kubectl drain of the only node" if alone else "kubectl drain of a node", seen, load.report(), held=held
        )


def roll_out(world: World) -> tuple[str, str, bool]:
    """A roll-out of the same revision."""
    before = world.names()
    world.kubectl.run_checked("-n", NAMESPACE, "rollout", "restart", "deployment/lease-webhook")
    world.rolled_out()
    return "kubectl rollout restart", "both pods replaced", not before & world.names()


def deletion(world: World) -> tuple[str, str, bool]:
    """A deletion with the pause that the pod asks for."""
    (name, *_) = world.names()
    done = world.kubectl.run("-n", NAMESPACE, "delete", "pod", name, seconds=90)
    return "kubectl delete pod", "replaced", done.status == 0 and name not in world.names()


def forced_deletion(world: World) -> tuple[str, str, bool]:
    """Without any pause: the endpoint may outlive the process for a moment."""
    (name, *_) = world.names()
    world.kubectl.run("-n", NAMESPACE, "delete", "pod", name, "--grace-period=0", "--force")
    return "kubectl delete pod --grace-period=0 --force", "replaced", name not in world.names()


def eviction(world: World) -> tuple[str, str, bool]:
    """Two evictions at once: the budget admits one."""
    answers = []
    for name in sorted(world.names()):
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": NAMESPACE}}
        answers.append(world.client.send("POST", f"{PODS}/{name}/eviction", body).status)
    return "both pods evicted at once", f"the API server answered {answers}", sorted(answers) == [201, 429]


def full_memory(world: World) -> tuple[str, str, bool]:
    """/dev/shm takes the heartbeats and the metrics of the workers."""
    (name, *_) = world.names()
    restarts = world.restarts()
    filled = world.python(name, FILL).strip()
    time.sleep(12)
    world.python(name, EMPTY)
    held = world.restarts() == restarts
    return "/dev/shm full for 12 s", f"after {filled.split()[0]} MiB: no restart", held and "No space left" in filled


def out_of_memory(world: World) -> tuple[str, str, bool]:
    """The container reaches its limit and the kernel ends a worker of it."""
    (name, *_) = world.names()
    restarts = world.restarts()
    done = world.kubectl.run("-n", NAMESPACE, "exec", name, "--", PYTHON, "-c", EXHAUST)
    # With control groups of version 2 the kubelet lets the kernel end the whole container, and us with it.
    whole = done.status != 0 and wait_for("the restart", lambda: world.restarts() > restarts, 30)
    chosen, _, alive = done.stdout.split() if done.status == 0 else ("", "", "")
    wait_for("two ready pods", world.all_ready, 120, 0.5)
    replaced = alive == "False" and chosen not in world.python(name, LIST).split()
    how = "the container was restarted" if whole else "gunicorn replaced the worker, no restart"
    return "a process killed by the kernel at the memory limit", how, bool(whole) or replaced


def stuck(world: World) -> tuple[str, str, bool]:
    """Every loop of a pod stands still; nothing in it answers a review or a probe."""
    (name, *_) = world.names()
    restarts = world.restarts()
    stopped = set(world.python(name, STOP_ALL).split())
    begin = time.monotonic()

    def replaced() -> bool:
        try:
            return not stopped & set(world.python(name, LIST).split()) or world.restarts() > restarts
        except RuntimeError:
            # While the container is restarted, nothing can be run in it.
            return world.restarts() > restarts

    wait_for("the stuck workers are replaced", replaced, 120, 0.5)
    took = time.monotonic() - begin
    # The kubelet would restart the container after a minute; what it decided shows after the pause of preStop.
    time.sleep(max(0.0, SETTLED - took))
    wait_for("two ready pods", world.all_ready, 120, 0.5)
    held = world.restarts() == restarts
    also = "no restart" if held else "the kubelet restarted the container"
    return "every worker of a pod stopped (SIGSTOP)", f"replaced after {took:.0f} s; {also}", held


COSTS: dict[Disruption, int] = {
    # Until the endpoint is gone, calls to the pod fail.
    out_of_memory: WRITERS * 10,
    # The same, and two failed readiness probes come first, in which each call waits for 2 s.
    stuck: WRITERS * 10,
}
"""How many writes may fail that fail closed."""
SETTLED = 80.0


def _row(claim: str, seen: str, report: Report, *, held: bool, cost: int = 0) -> Row:
    """`cost`: as many writes may fail, because no process can answer a review in the middle of which it ends."""
    if len(report.failed) > cost:
        seen += f"; the first failure: {report.failed[0][:200]}"
    passed = held and report.writes > 0 and len(report.failed) <= cost
    return Row(claim, f"{seen}; {report}", passed=passed)
