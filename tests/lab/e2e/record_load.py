"""`python -m tests.lab.e2e.record_load`: what a recorder costs beside 15,000 leases on a real API server.

Each is renewed every ten seconds. The renewals are written into etcd, as the API server would store them: this computer
has no CPU for the API server to take so many, but it has for what it shows to who watches.
"""

import argparse
import base64
import http.client
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from tests.lab.e2e.manifests import micro_time, sample_lease
from tests.lab.e2e.processes import Process
from tests.lab.e2e.toolchain import all_binaries
from tests.lab.e2e.topics.live_timeline import Plane
from tests.lab.e2e.topics.recorder import Recording, shipped_account
from tests.lab.e2e.world import World, leases

WRITERS: Final = 8
_TOGETHER: Final = 10
"""Renewals in one transaction of etcd, which costs less than ten."""
NAMESPACE: Final = "load"
EVERY: Final = 10.0
"""Seconds between the renewals of a lease."""
_PREFIX: Final = f"/registry/leases/{NAMESPACE}/".encode()
_TIME: Final = re.compile(rb'("renewTime":"|"time":")[^"]*')


class _Storage(Plane):
    """One that stores JSON, and whose etcd is written to."""

    def send(self, connection: http.client.HTTPConnection, what: str, body: dict[str, Any]) -> bytes:
        connection.request("POST", f"/v3/kv/{what}", json.dumps(body))
        with connection.getresponse() as response:
            answer = response.read()
        if response.status != 200:
            raise ConnectionError(f"etcd: {response.status} {answer[:200]!r}")
        return answer

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self._etcd, timeout=60)

    def _run(self, name: str, *command: str) -> Process:
        if name == "etcd":
            [client] = (part for part in command if part.startswith("--listen-client-urls="))
            self._etcd = int(client.rpartition(":")[2])
        return super()._run(name, *command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.e2e.record_load", description=__doc__)
    parser.add_argument("--leases", type=int, default=15_000)
    parser.add_argument("--seconds", type=float, default=3600)
    options = parser.parse_args(arguments)
    [binaries] = all_binaries("v1.37")
    flags = ("--storage-media-type=application/json",)
    with (
        tempfile.TemporaryDirectory(prefix="lease-webhook-load-") as name,
        _Storage(binaries, Path(name), flags=flags) as plane,
    ):
        world = World(plane)
        world.namespace(NAMESPACE)
        account = shipped_account(world)
        _create(world, options.leases)
        stored = _stored(plane)
        print(f"{len(stored)} leases are there", flush=True)
        recording = Recording(plane, account, Path(name) / "history")
        recording.save_every = "60"
        with recording:
            began = time.monotonic()
            _renew(plane, stored, 60)
            before = _measured(recording)
            renewed, late = _renew(plane, stored, options.seconds)
            size, spent = (after - first for after, first in zip(_measured(recording), before, strict=True))
            took = time.monotonic() - began - 60
            status = Path(f"/proc/{recording.process.pid}/status").read_text()
            memory = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
            log = recording.log.read_text()
    print(f"{renewed} renewals in {took:.0f} s, the latest {late:.2f} s late: {spent:.1f} s of CPU")
    cost = f"{spent / took:.3f} of a core, {spent / renewed * 1e6:.0f} us each"
    print(f"{cost}; memory at most {int(memory) / 1024:.0f} MiB")
    print(f"the history grew by {size:.0f} bytes: {size / took * 86_400 / 1e6:.2f} MB a day")
    print(log, end="")
    return 0


def _create(world: World, number: int) -> None:
    def create(one: int) -> None:
        body = sample_lease(f"node-{one:05d}", holderIdentity=f"node-{one:05d}")
        world.admin.send("POST", leases(NAMESPACE), body).expect()

    _side_by_side(iter(range(number)), lambda: create)


def _stored(plane: _Storage) -> list[tuple[bytes, bytes]]:
    """Return the keys and values of the leases in etcd."""
    end = _PREFIX[:-1] + bytes([_PREFIX[-1] + 1])
    answer = json.loads(plane.send(plane.connect(), "range", {"key": _text(_PREFIX), "range_end": _text(end)}))
    return [(base64.b64decode(one["key"]), base64.b64decode(one["value"])) for one in answer["kvs"]]


def _renew(plane: _Storage, stored: list[tuple[bytes, bytes]], seconds: float) -> tuple[int, float]:
    """Renew each lease in turn; return how many renewals there were, and how late the latest began, in seconds."""
    number, began = int(len(stored) * seconds / EVERY) // _TOGETHER * _TOGETHER, time.monotonic()
    late = [0.0]

    def writer() -> Callable[[int], None]:
        connection = plane.connect()

        def renew(first: int) -> None:
            wait = began + first * EVERY / len(stored) - time.monotonic()
            late[0] = max(late[0], -wait)
            time.sleep(max(0.0, wait))
            now = micro_time().encode()
            times = {b'"renewTime":"': now, b'"time":"': now[:19] + b"Z"}
            puts = []
            for one in range(first, first + _TOGETHER):
                key, value = stored[one % len(stored)]
                value = _TIME.sub(lambda found: found[1] + times[found[1]], value)
                puts.append({"request_put": {"key": _text(key), "value": _text(value)}})
            plane.send(connection, "txn", {"success": puts})

        return renew

    _side_by_side(iter(range(0, number, _TOGETHER)), writer)
    return number, late[0]


def _side_by_side(numbers: Iterator[int], worker: Callable[[], Callable[[int], None]]) -> None:
    """Call what `worker` makes for each thread with each number once."""

    def work(_: int) -> None:
        call = worker()
        for one in numbers:
            call(one)

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(work, range(WRITERS)))


def _measured(recording: Recording) -> tuple[float, float]:
    """Return the bytes of the history, and the seconds of CPU of the recorder."""
    user, system = Path(f"/proc/{recording.process.pid}/stat").read_text().rpartition(") ")[2].split()[11:13]
    size = sum(path.stat().st_size for path in recording.directory.glob("leases-*"))
    return size, (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


if __name__ == "__main__":
    sys.exit(main())
