"""Whole lives of elections: elect, renew, crash, fail over, release. TimeoutError where a step never comes."""

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from lab.e2e.electors import Elector, start_client_go, start_kubernetes_asyncio, start_kubernetes_python
from lab.e2e.world import World, build_lease_path
from tests.waiting import wait_for

TIMES = ("-duration=6s", "-deadline=4s", "-retry=1s", "-release")
ASYNCIO_TIMES = (6, 4, 1)
PATIENCE_SECONDS = 45.0


def _read_holder(world: World, namespace: str, lease: str) -> str:
    reply = world.admin.send("GET", build_lease_path(namespace, lease))
    if reply.status != 200:
        return ""
    return str(reply.body.get("spec", {}).get("holderIdentity") or "")


def _wait_for_next_holder(world: World, namespace: str, lease: str, before: str, what: str) -> tuple[str, float]:
    """Return who holds the lease next, and the seconds until then."""
    begin = time.monotonic()

    def find_other() -> str:
        holder = _read_holder(world, namespace, lease)
        return holder if holder != before else ""

    return wait_for(what, find_other, PATIENCE_SECONDS), time.monotonic() - begin


def _wait_for_renewals(world: World, namespace: str, lease: str, times: int) -> None:
    """Wait until the API server has stored that many renewals."""
    times_of_renewals: set[str] = set()

    def has_renewed() -> bool:
        times_of_renewals.add(str(world.admin.get(build_lease_path(namespace, lease))["spec"].get("renewTime")))
        return len(times_of_renewals) > times

    wait_for(f"{times} renewals of {namespace}/{lease}", has_renewed, PATIENCE_SECONDS)


def elect_client_go(world: World, stack: ExitStack, namespace: str) -> str:
    """Run three client-go electors; return what happened, with times."""
    lease, electors = "client-go", dict[str, Elector]()
    for name in ("red", "green", "blue"):
        account = world.create_account(namespace, name)
        electors[name] = start_client_go(
            stack, world.plane.binaries, account.kubeconfig, *TIMES, namespaces=[namespace], lease=lease, identity=name
        )
    first, _ = _wait_for_next_holder(world, namespace, lease, "", "a first client-go leader")
    _wait_for_renewals(world, namespace, lease, 3)
    electors[first].process.kill()
    second, crash = _wait_for_next_holder(world, namespace, lease, first, "fail-over of client-go")
    _wait_for_renewals(world, namespace, lease, 2)
    electors[second].process.stop()
    third, release = _wait_for_next_holder(world, namespace, lease, second, "a leader after the release")
    _wait_for_renewals(world, namespace, lease, 2)
    if len({first, second, third}) != 3:
        raise RuntimeError(f"leaders were {first}, {second}, {third}")
    return f"elected, renewed, failed over {crash:.1f} s after a crash, {release:.1f} s after a release"


def _fail_over(world: World, namespace: str, lease: str, electors: Mapping[str, Elector], client: str) -> str:
    """Wait for a leader, kill it, and wait for the next one; return what happened, with times."""
    first, _ = _wait_for_next_holder(world, namespace, lease, "", f"a first leader of {client}")
    _wait_for_renewals(world, namespace, lease, 3)
    electors[first].process.kill()
    _, crash = _wait_for_next_holder(world, namespace, lease, first, f"fail-over of {client}")
    _wait_for_renewals(world, namespace, lease, 2)
    return f"elected, renewed, failed over {crash:.1f} s after a crash"


def elect_asyncio(world: World, stack: ExitStack, namespace: str) -> str:
    """Run two kubernetes_asyncio electors (they cannot release); return what happened, with times."""
    lease, electors = "kubernetes-asyncio", dict[str, Elector]()
    for name in ("cyan", "pink"):
        account = world.create_account(namespace, name)
        electors[name] = start_kubernetes_asyncio(
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
    """Run two electors of the official Python client (they cannot release); return what happened, with times."""
    lease, electors = f"{package.replace('.', '-')}-python", dict[str, Elector]()
    # Other elections run in this namespace at the same time, by pods of other names.
    for name in (f"{lease}-lime", f"{lease}-plum"):
        config = world.create_account(namespace, name).kubeconfig
        electors[name] = start_kubernetes_python(
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
    """Run two electors of its asyncio half, nine hours east of Greenwich."""
    return elect_python(world, stack, namespace, "kubernetes.aio", "Asia/Tokyo")


def elect_coordinated(world: World, stack: ExitStack, namespace: str) -> str:
    """Let the API server elect the candidate with the oldest emulation version that answers its ping."""
    lease, pairs = "coordinated", dict[str, list[Elector]]()
    accounts = {name: world.create_account(namespace, name) for name in ("older", "newer")}

    def start(name: str, emulation: str) -> None:
        pairs[name] = [
            start_client_go(
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
        "the oldest emulation version leads", lambda: _read_holder(world, namespace, lease) == "older", PATIENCE_SECONDS
    )
    _wait_for_renewals(world, namespace, lease, 3)
    for process in pairs["older"]:
        process.process.kill()
    _, crash = _wait_for_next_holder(world, namespace, lease, "older", "fail-over of the coordinated election")
    _wait_for_renewals(world, namespace, lease, 2)
    start("older", "1.35.0")
    for process in reversed(pairs["newer"]):
        process.process.stop()
    _, release = _wait_for_next_holder(world, namespace, lease, "newer", "a coordinated leader after the release")
    _wait_for_renewals(world, namespace, lease, 2)
    return f"elected, renewed, failed over {crash:.1f} s after a crash, {release:.1f} s after a release"


def elect_each(world: World, stack: ExitStack, namespace: str) -> Iterator[tuple[str, str]]:
    """Run all of these elections side by side; yield which one, and what happened."""
    lives = {
        "client-go, 3 electors": elect_client_go,
        "kubernetes_asyncio, 2 electors": elect_asyncio,
        "kubernetes for Python, 2 electors": elect_python,
        "coordinated, 2 LeaseCandidates": elect_coordinated,
    }
    with ThreadPoolExecutor(len(lives)) as pool:
        yield from zip(lives, pool.map(lambda elect: elect(world, stack, namespace), lives.values()), strict=True)
