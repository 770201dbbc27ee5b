"""Faults of the official Python client: each row is a draft of docs/upstream, and fails when that is fixed."""

import datetime as dt
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from lab.e2e.electors import Elector, kubernetes_python
from lab.e2e.forwarder import Interruption
from lab.e2e.world import Row, World, leases
from tests.waiting import wait_for

PLACE = "python-client"
AIO = "kubernetes.aio"
TIMES = (6, 4, 1)


def run(world: World) -> Iterator[Row]:
    """Each on a lease of its own."""
    world.namespace(PLACE)
    with ExitStack() as stack:
        yield _creates_nothing(world, stack)
        yield _local_time(world, stack)
        yield _whole_seconds(world, stack)
        for package in ("kubernetes", AIO):
            yield _unreachable(world, stack, package)


def _elector(
    world: World, stack: ExitStack, name: str, package: str = AIO, environment: Sequence[str] = (), port: int = 0
) -> Elector:
    config = world.account(PLACE, "elector", name).kubeconfig
    if port:
        text = config.read_text().replace(f":{world.plane.port}", f":{port}")
        config = Path(config.with_suffix(".forwarded"))
        config.write_text(text)
    return kubernetes_python(
        stack,
        world.plane.binaries,
        config,
        *TIMES,
        namespaces=[PLACE],
        lease=name,
        identity=name,
        package=package,
        environment=environment,
    )


def _spec(world: World, name: str) -> dict[str, Any]:
    reply = world.admin.send("GET", leases(PLACE, name))
    found: dict[str, Any] = reply.body.get("spec", {}) if reply.status == 200 else {}
    return found


def _lead(world: World, elector: Elector, name: str) -> None:
    wait_for(f"{name} leads", lambda: any(elector.events("started")) and _spec(world, name).get("renewTime"), 30)


def _last_line(elector: Elector) -> str:
    return next(line for line in reversed(elector.process.log.read_text().splitlines()) if "Error" in line)[:120]


def _creates_nothing(world: World, stack: ExitStack) -> Row:
    elector = _elector(world, stack, "creates", environment=["CREATE_NOTHING=1"])
    wait_for("its end", lambda: elector.process.has_ended, 30)
    seen = _last_line(elector)
    return Row(f"{AIO} cannot create a lease", seen, "ValidationError" in seen and not _spec(world, "creates"))


def _local_time(world: World, stack: ExitStack) -> Row:
    _lead(world, _elector(world, stack, "zone", environment=["TZ=Asia/Tokyo"]), "zone")
    renewed = dt.datetime.fromisoformat(_spec(world, "zone")["renewTime"])
    ahead = (renewed - dt.datetime.now(dt.UTC)).total_seconds() / 3600
    return Row(f"{AIO} writes local time as UTC: in Tokyo", f"{ahead:.1f} h ahead", 8.9 < ahead < 9.1)


def _whole_seconds(world: World, stack: ExitStack) -> Row:
    elector = _elector(world, stack, "seconds", environment=["CLOCK_WHOLE_SECONDS=1"])
    wait_for("its lead", lambda: any(elector.events("started")), 30)
    time.sleep(5)
    log = elector.process.log.read_text()
    lines = log.count("Failed to parse time string")
    seen = f"renewTime is {_spec(world, 'seconds').get('renewTime')}, {lines} times that it cannot read its own time"
    is_led = any(elector.events("started")) and not any(elector.events("stopped"))
    return Row(f"{AIO} renews nothing in a whole second", seen, is_led and lines > 0)


def _unreachable(world: World, stack: ExitStack, package: str) -> Row:
    name = f"unreachable-{package}"
    with Interruption(world.plane.port) as way:
        elector = _elector(world, stack, name, package, port=way.port)
        _lead(world, elector, name)
        way.interrupt()
        wait_for("its end", lambda: elector.process.has_ended, 60)
    seen = _last_line(elector)
    return Row(f"{package}: no connection to the API server", seen, not any(elector.events("stopped")))
