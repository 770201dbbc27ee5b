"""Faults of the official Python client: each row is a draft of docs/upstream, and fails when that is fixed."""

import datetime as dt
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from lab.e2e.electors import Elector, start_kubernetes_python
from lab.e2e.forwarder import Interruption
from lab.e2e.world import Row, World, build_lease_path
from tests.waiting import wait_for

PLACE = "python-client"
AIO = "kubernetes.aio"
TIMES = (6, 4, 1)


def run(world: World) -> Iterator[Row]:
    """Check each fault on a lease of its own."""
    world.create_namespace(PLACE)
    with ExitStack() as stack:
        yield _check_creation(world, stack)
        yield _check_local_time(world, stack)
        yield _check_whole_seconds(world, stack)
        for package in ("kubernetes", AIO):
            yield _check_unreachable(world, stack, package)


def _start_elector(
    world: World, stack: ExitStack, name: str, package: str = AIO, environment: Sequence[str] = (), port: int = 0
) -> Elector:
    config = world.create_account(PLACE, "elector", name).kubeconfig
    if port:
        text = config.read_text().replace(f":{world.plane.port}", f":{port}")
        config = Path(config.with_suffix(".forwarded"))
        config.write_text(text)
    return start_kubernetes_python(
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


def _read_spec(world: World, name: str) -> dict[str, Any]:
    reply = world.admin.send("GET", build_lease_path(PLACE, name))
    spec: dict[str, Any] = reply.body.get("spec", {}) if reply.status == 200 else {}
    return spec


def _wait_until_leading(world: World, elector: Elector, name: str) -> None:
    wait_for(
        f"{name} leads", lambda: any(elector.list_events("started")) and _read_spec(world, name).get("renewTime"), 30
    )


def _read_last_line(elector: Elector) -> str:
    return next(line for line in reversed(elector.process.log.read_text().splitlines()) if "Error" in line)[:120]


def _check_creation(world: World, stack: ExitStack) -> Row:
    elector = _start_elector(world, stack, "creates", environment=["CREATE_NOTHING=1"])
    wait_for("its end", lambda: elector.process.has_ended, 30)
    last_line = _read_last_line(elector)
    return Row(
        f"{AIO} cannot create a lease", last_line, "ValidationError" in last_line and not _read_spec(world, "creates")
    )


def _check_local_time(world: World, stack: ExitStack) -> Row:
    _wait_until_leading(world, _start_elector(world, stack, "zone", environment=["TZ=Asia/Tokyo"]), "zone")
    renew_time = dt.datetime.fromisoformat(_read_spec(world, "zone")["renewTime"])
    ahead = (renew_time - dt.datetime.now(dt.UTC)).total_seconds() / 3600
    return Row(f"{AIO} writes local time as UTC: in Tokyo", f"{ahead:.1f} h ahead", 8.9 < ahead < 9.1)


def _check_whole_seconds(world: World, stack: ExitStack) -> Row:
    elector = _start_elector(world, stack, "seconds", environment=["CLOCK_WHOLE_SECONDS=1"])
    wait_for("its lead", lambda: any(elector.list_events("started")), 30)
    time.sleep(5)
    log = elector.process.log.read_text()
    lines = log.count("Failed to parse time string")
    observation = (
        f"renewTime is {_read_spec(world, 'seconds').get('renewTime')}, {lines} times that it cannot read its own time"
    )
    is_led = any(elector.list_events("started")) and not any(elector.list_events("stopped"))
    return Row(f"{AIO} renews nothing in a whole second", observation, is_led and lines > 0)


def _check_unreachable(world: World, stack: ExitStack, package: str) -> Row:
    name = f"unreachable-{package}"
    with Interruption(world.plane.port) as way:
        elector = _start_elector(world, stack, name, package, port=way.port)
        _wait_until_leading(world, elector, name)
        way.interrupt()
        wait_for("its end", lambda: elector.process.has_ended, 60)
    last_line = _read_last_line(elector)
    return Row(f"{package}: no connection to the API server", last_line, not any(elector.list_events("stopped")))
