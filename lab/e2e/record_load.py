"""`python -m lab.e2e.record_load`: the cost of a recorder beside 15,000 leases on a real API server.

Each is renewed every ten seconds. The renewals are written into etcd, as the API server would store them: two cores are
too few for an API server that accepts so many writes, but enough for one that sends them to watchers.
"""

import argparse
import base64
import http.client
import json
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from lab.bench.processes import read_cpu_seconds, read_peak_rss_mib
from lab.e2e.etcd import encode, find_range_end
from lab.e2e.manifests import format_micro_time, make_lease
from lab.e2e.toolchain import build_all_binaries
from lab.e2e.topics.live_timeline import Plane
from lab.e2e.topics.recorder import Recording, create_shipped_account
from lab.e2e.world import World, build_lease_path

WRITERS: Final = 8
_TOGETHER: Final = 10
"""Renewals in each transaction of etcd; ten transactions would cost more than one."""
NAMESPACE: Final = "load"
EVERY: Final = 10.0
"""Seconds between the renewals of a lease."""
STRETCH: Final = 600.0
"""Seconds after which what it cost until then is printed."""
_TIME: Final = re.compile(rb'("renewTime":"|"time":")[^"]*')


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m lab.e2e.record_load", description=__doc__)
    parser.add_argument("--leases", type=int, default=15_000)
    parser.add_argument("--seconds", type=float, default=3600)
    options = parser.parse_args(arguments)
    [binaries] = build_all_binaries("v1.37")
    flags = ("--storage-media-type=application/json",)
    with (
        tempfile.TemporaryDirectory(prefix="lease-webhook-load-") as name,
        Plane(binaries, Path(name), flags=flags) as plane,
    ):
        world = World(plane)
        world.create_namespace(NAMESPACE)
        account = create_shipped_account(world)
        _create(world, options.leases)
        stored = _list_stored(plane)
        print(f"{len(stored)} leases are there", flush=True)
        recording = Recording(plane, account, Path(name) / "history")
        recording.save_every = "60"
        with recording:
            _renew(plane, stored, 60)
            pid, renewals, late, seconds_left = recording.process.pid, 0, 0.0, options.seconds
            began, cpu, size = time.monotonic(), read_cpu_seconds(pid), _measure_size(recording)
            while seconds_left > 0:
                number, latest = _renew(plane, stored, min(STRETCH, seconds_left))
                renewals, late, seconds_left = renewals + number, max(late, latest), seconds_left - STRETCH
                seconds, usage = time.monotonic() - began, read_cpu_seconds(pid) - cpu
                cost = f"{usage / seconds:.3f} of a core, {usage / renewals * 1e6:.0f} us each"
                grown, memory = _measure_size(recording) - size, read_peak_rss_mib(pid)
                print(f"{renewals} renewals in {seconds:.0f} s, the latest {late:.2f} s late: {cost}; ", end="")
                print(f"memory at most {memory:.0f} MiB; the history grew by {grown} bytes", flush=True)
            log = recording.log.read_text()
    print(log, end="")
    return 0


def _create(world: World, number: int) -> None:
    def create(index: int) -> None:
        body = make_lease(f"node-{index:05d}", holderIdentity=f"node-{index:05d}")
        world.admin.send("POST", build_lease_path(NAMESPACE), body).expect()

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(create, range(number)))


def _list_stored(plane: Plane) -> list[tuple[bytes, bytes]]:
    """Return the keys and values of the leases in etcd."""
    prefix = f"/registry/leases/{NAMESPACE}/".encode()
    answer = _send(_connect(plane), "range", {"key": encode(prefix), "range_end": encode(find_range_end(prefix))})
    return [(base64.b64decode(one["key"]), base64.b64decode(one["value"])) for one in json.loads(answer)["kvs"]]


def _renew(plane: Plane, stored: list[tuple[bytes, bytes]], seconds: float) -> tuple[int, float]:
    """Renew each lease in turn; return how many renewals there were, and how late the latest began, in seconds."""
    number, began = int(len(stored) * seconds / EVERY) // _TOGETHER * _TOGETHER, time.monotonic()

    def renew(writer: int) -> float:
        connection, late = _connect(plane), 0.0
        for first in range(writer * _TOGETHER, number, WRITERS * _TOGETHER):
            wait = began + first * EVERY / len(stored) - time.monotonic()
            late = max(late, -wait)
            time.sleep(max(0.0, wait))
            now, puts = rb"\g<1>" + format_micro_time().encode(), []
            for index in range(first, first + _TOGETHER):
                key, value = stored[index % len(stored)]
                puts.append({"request_put": {"key": encode(key), "value": encode(_TIME.sub(now, value))}})
            _send(connection, "txn", {"success": puts})
        return late

    with ThreadPoolExecutor(WRITERS) as pool:
        return number, max(pool.map(renew, range(WRITERS)))


def _connect(plane: Plane) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", plane.etcd_port, timeout=60)


def _send(connection: http.client.HTTPConnection, what: str, body: dict[str, Any]) -> bytes:
    connection.request("POST", f"/v3/kv/{what}", json.dumps(body))
    with connection.getresponse() as response:
        answer = response.read()
    if response.status != HTTPStatus.OK:
        raise ConnectionError(f"etcd: {response.status} {answer[:200]!r}")
    return answer


def _measure_size(recording: Recording) -> int:
    return sum(path.stat().st_size for path in recording.directory.glob("leases-*"))


if __name__ == "__main__":
    sys.exit(main())
