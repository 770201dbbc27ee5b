"""The cost of one write without a webhook, in the shipped configuration, with one that sees all, and with a peer."""

import os
import statistics
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from lab.bench.processes import read_cpu_seconds
from lab.bench.toolchain import build_go_program
from lab.e2e.api_client import ApiClient
from lab.e2e.control_plane import find_free_port
from lab.e2e.manifests import format_micro_time, make_lease
from lab.e2e.processes import Process
from lab.e2e.quantile import find_quantile
from lab.e2e.webhook_server import WebhookServer
from lab.e2e.world import Row, World, build_lease_path

ROUNDS = 8
WRITES = 100
"""A round has this many writes of each case, one case after the other; the rounds alternate in direction."""
NONE, SHIPPED, EVERYTHING, PEER = "cost-none", "cost-shipped", "cost-everything", "cost-peer"


class _Case:
    """One kind of write in one namespace, measured in blocks."""

    def __init__(self, claim: str, namespace: str, change: Callable[[int], dict[str, Any]], *, reviewed: bool) -> None:
        self.claim = claim
        self.reviewed = reviewed
        self.milliseconds: list[float] = []
        self.cpu: list[float] = []
        self.reviews = 0
        self._path = build_lease_path(namespace)
        self._name = "takeover" if "takeover" in claim else "renewal"
        self._change = change
        self._lease: dict[str, Any] = {}

    def create(self, client: ApiClient) -> None:
        """Create the lease that is written again and again."""
        self._lease = client.send("POST", self._path, make_lease(self._name)).expect(201)

    def run_block(self, client: ApiClient, pid: int) -> None:
        """Send one block of writes, each on top of the last."""
        cpu = read_cpu_seconds(pid)
        for number in range(WRITES):
            self._lease["spec"] |= self._change(number)
            reply = client.send("PUT", f"{self._path}/{self._name}", self._lease)
            self._lease = reply.expect(200)
            self.milliseconds.append(reply.milliseconds)
        self.cpu.append((read_cpu_seconds(pid) - cpu) * 1000 / WRITES)


class _Figures(Struct, frozen=True):
    p50: float
    p99: float
    cpu: float


def run(world: World) -> Iterator[Row]:
    """Measure alone: nothing else talks to this API server meanwhile."""
    world.create_namespace(NONE)
    for route in (SHIPPED, EVERYTHING, PEER):
        world.create_namespace(route, route=route)
    person, _ = world.create_user("writer")
    peer_port = find_free_port()
    # The controller-runtime webhook of the benchmark, with the same rules.
    peer = [str(build_go_program("peers/controller_runtime")), f"-port={peer_port}", f"-tls-dir={world.certs}"]
    with (
        WebhookServer(world.directory, world.certs) as server,
        Process(peer, world.directory / "controller-runtime.log", os.environ | {"GOMAXPROCS": "1"}),
    ):
        world.register(PEER, peer_port)
        world.register(SHIPPED, server.port)
        world.register(EVERYTHING, server.port, renewals=True)
        world.settle()
        cases = [
            _Case("renewal, no webhook", NONE, _make_renewal, reviewed=False),
            _Case("renewal, shipped configuration", SHIPPED, _make_renewal, reviewed=False),
            _Case("renewal, webhook sees everything", EVERYTHING, _make_renewal, reviewed=True),
            _Case("takeover, no webhook", NONE, _make_takeover, reviewed=False),
            _Case("takeover, shipped configuration", SHIPPED, _make_takeover, reviewed=True),
            _Case("takeover, controller-runtime in our place", PEER, _make_takeover, reviewed=False),
        ]
        for case in cases:
            case.create(person)
        reviews = server.count_reviews()
        for number in range(ROUNDS):
            for case in cases if number % 2 else reversed(cases):
                case.run_block(person, world.plane.apiserver_pid)
                reviews, before = server.count_reviews(), reviews
                case.reviews += reviews - before
    milliseconds = {
        case.claim: [find_quantile(case.milliseconds, q) - find_quantile(cases[3].milliseconds, q) for q in (0.5, 0.99)]
        for case in cases[4:]
    }
    observation = "; ".join(
        f"{claim}: p50 +{p50:.2f} ms, p99 +{p99:.2f} ms" for claim, (p50, p99) in milliseconds.items()
    )
    yield Row("what a webhook adds to a takeover without one", observation, passed=True)
    for case in cases:
        figures = _Figures(
            find_quantile(case.milliseconds, 0.5), find_quantile(case.milliseconds, 0.99), statistics.median(case.cpu)
        )
        observation = (
            f"p50 {figures.p50:.1f} ms, p99 {figures.p99:.1f} ms, API server CPU {figures.cpu:.1f} ms; "
            f"{len(case.milliseconds)} writes, {case.reviews} reviews"
        )
        # A retry inside the API server may ask twice about one write.
        passed = case.reviews >= len(case.milliseconds) if case.reviewed else case.reviews == 0
        yield Row(case.claim, observation, passed)


def _make_renewal(number: int) -> dict[str, Any]:
    return {"renewTime": format_micro_time(number / 1000)}


def _make_takeover(number: int) -> dict[str, Any]:
    # Without a renewTime a lease counts as expired, so each of these is an honest takeover.
    return {"holderIdentity": f"holder-{number}", "renewTime": None}
