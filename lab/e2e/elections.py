"""Whole lives of elections: elect, renew, crash, fail over, release. TimeoutError where a step never comes."""

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from lab.e2e.electors import Elector, client_go, kubernetes_asyncio, kubernetes_python
from lab.e2e.world import World, leases
from tests.waiting import wait_for

TIMES = ("-duration=6s", "-deadline=4s", "-retry=1s", "-release")
ASYNCIO_TIMES = (6, 4, 1)
PATIENCE_SECONDS = 45.0


def _holder(world: World, namespace: str, lease: str) -> str:
    reply = world.admin.send("GET", leases(namespace, lease))
    if reply.status != 200:
        return ""
    return str(reply.body.get("spec", {}).get("holderIdentity") or "")


def _next_holder(world: World, namespace: str, lease: str, before: str, what: str) -> tuple[str, float]:
    """(who holds the lease next, seconds until then)."""
    begin = time.monotonic()

    def other() -> str:
        holder = _holder(world, namespace, lease)
        return holder if holder != before else ""

    return wait_for(what, other, PATIENCE_SECONDS), time.monotonic() - begin


def _renews(world: World, namespace: str, lease: str, times: int) -> None:
    """Wait until the API server has stored that many renewals."""
    seen: set[str] = set()

    def often_enough() -> bool:
        seen.add(str(world.admin.get(leases(namespace, lease))["spec"].get("renewTime")))
        return len(seen) > times

    wait_for(f"{times} renewals of {namespace}/{lease}", often_enough, PATIENCE_SECONDS)


def elect_client_go(world: World, stack: ExitStack, namespace: str) -> str:
    """Three client-go electors; returns what happened, with times."""
    lease, electors = "client-go", dict[str, Elector]()
    for name in ("red", "green", "blue"):
        account = world.account(namespace, name)
        electors[name] = client_go(
            stack, world.plane.binaries, account.kubeconfig, *TIMES, namespaces=[namespace], lease=lease, identity=name
        )
    first, _ = _next_holder(world, namespace, lease, "", "a first client-go leader")
    _renews(world, namespace, lease, 3)
    electors[first].process.kill()
    second, crash = _next_holder(world, namespace, lease, first, "fail-over of client-go")
    _renews(world, namespace, lease, 2)
    electors[second].process.stop()
    third, release = _next_holder(world, namespace, lease, second, "a leader after the release")
    _renews(world, namespace, lease, 2)
    if len({first, second, third}) != 3:
        raise RuntimeError(f"leaders were {first}, {second}, {third}")
    return f"elected, renewed, failed over {crash:.1f} s after a crash, {release:.1f} s after a release"


def _fail_over(world: World, namespace: str, lease: str, electors: Mapping[str, Elector], client: str) -> str:
    """Wait for a leader, kill it, and wait for the next one; return what happened, with times."""
    first, _ = _next_holder(world, namespace, lease, "", f"a first leader of {client}")
    _renews(world, namespace, lease, 3)
    electors[first].process.kill()
    _, crash = _next_holder(world, namespace, lease, first, f"fail-over of {client}")
    _renews(world, namespace, lease, 2)
    return f"elected, renewed, failed over {crash:.1f} s after a crash"


def elect_asyncio(world: World, stack: ExitStack, namespace: str) -> str:
    """Two kubernetes_asyncio electors (they cannot release); returns what happened, with times."""
    lease, electors = "kubernetes-asyncio", dict[str, Elector]()
    for name in ("cyan", "pink"):
        account = world.account(namespace, name)
        electors[name] = kubernetes_asyncio(
            stack,
            world.plane.binaries,
            account.kubeconfig,
            *ASYNCIO_TIMES,
            namespaces=[namespace],
            lease=lease,
            identity=name,
        )
    return _fail_over(world, namespace, lease, electors, "kubernetes_asyncio")


def elect_python(world: World, stack: ExitStack, namespace: str, package: str = "kubernetes", zone: str = "UTC") -> str:
    """Two electors of the official Python client (they cannot release); returns what happened, with times."""
    lease, electors = f"{package.replace('.', '-')}-python", dict[str, Elector]()
    # Other elections run in this namespace at the same time, by pods of other names.
    for name in (f"{lease}-lime", f"{lease}-plum"):
        config = world.account(namespace, name).kubeconfig
        electors[name] = kubernetes_python(
            stack,
            world.plane.binaries,
            config,
            *ASYNCIO_TIMES,
            namespaces=[namespace],
            lease=lease,
            identity=name,
            package=package,
            environment=[f"TZ={zone}"],
        )
    return _fail_over(world, namespace, lease, electors, f"the Python client {package}")


def elect_python_aio(world: World, stack: ExitStack, namespace: str) -> str:
    """The same by its asyncio half, nine hours east of Greenwich."""
    return elect_python(world, stack, namespace, "kubernetes.aio", "Asia/Tokyo")


def elect_coordinated(world: World, stack: ExitStack, namespace: str) -> str:
    """The API server elects the candidate with the oldest emulation version that answers its ping."""
    lease, pairs = "coordinated", dict[str, list[Elector]]()
    accounts = {name: world.account(namespace, name) for name in ("older", "newer")}

    def start(name: str, emulation: str) -> None:
        pairs[name] = [
            client_go(
                stack,
                world.plane.binaries,
                accounts[name].kubeconfig,
                *flags,
                namespaces=[namespace],
                lease=lease,
                identity=name,
                mode=mode,
            )
            for mode, flags in (
                ("candidate", ("-binary=1.36.0", f"-emulation={emulation}")),
                ("elector", (*TIMES, "-coordinated")),
            )
        ]

    start("older", "1.35.0")
    start("newer", "1.36.0")
    wait_for(
        "the oldest emulation version leads", lambda: _holder(world, namespace, lease) == "older", PATIENCE_SECONDS
    )
    _renews(world, namespace, lease, 3)
    for process in pairs["older"]:
        process.process.kill()
    _, crash = _next_holder(world, namespace, lease, "older", "fail-over of the coordinated election")
    _renews(world, namespace, lease, 2)
    start("older", "1.35.0")
    for process in reversed(pairs["newer"]):
        process.process.stop()
    _, release = _next_holder(world, namespace, lease, "newer", "a coordinated leader after the release")
    _renews(world, namespace, lease, 2)
    return f"elected, renewed, failed over {crash:.1f} s after a crash, {release:.1f} s after a release"


def elect_each(world: World, stack: ExitStack, namespace: str) -> Iterator[tuple[str, str]]:
    """All of these elections side by side: (which, what happened)."""
    lives = {
        "client-go, 3 electors": elect_client_go,
        "kubernetes_asyncio, 2 electors": elect_asyncio,
        "kubernetes for Python, 2 electors": elect_python,
        "coordinated, 2 LeaseCandidates": elect_coordinated,
    }
    with ThreadPoolExecutor(len(lives)) as pool:
        yield from zip(lives, pool.map(lambda elect: elect(world, stack, namespace), lives.values()), strict=True)
