"""`python -m tests.lab.e2e.record_load`: what a recorder costs beside 15,000 leases on a real API server.

As many of them as this computer manages are renewed every ten seconds; what counts is the CPU for each renewal, which
gives the share of a core at the 1,500 renewals a second of 15,000 nodes, and the bytes for each lease.
"""

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.lab.e2e.manifests import micro_time, sample_lease
from tests.lab.e2e.toolchain import all_binaries
from tests.lab.e2e.topics.live_timeline import Plane
from tests.lab.e2e.topics.recorder import Recording, shipped_account
from tests.lab.e2e.world import World, leases

WRITERS = 8
NAMESPACE = "load"
EVERY = 10.0
"""Seconds between the renewals of a lease."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.e2e.record_load", description=__doc__)
    parser.add_argument("--leases", type=int, default=15_000)
    parser.add_argument("--renewed", type=int, default=2_000, help="so many of them are renewed")
    parser.add_argument("--seconds", type=float, default=600)
    options = parser.parse_args(arguments)
    [binaries] = all_binaries("v1.37")
    with tempfile.TemporaryDirectory(prefix="lease-webhook-load-") as name, Plane(binaries, Path(name)) as plane:
        world = World(plane)
        world.namespace(NAMESPACE)
        account = shipped_account(world)
        bodies = [
            sample_lease(f"node-{number:05d}", holderIdentity=f"node-{number:05d}") for number in range(options.leases)
        ]
        _write(world, "POST", bodies, options.leases)
        print(f"{options.leases} leases are there", flush=True)
        recording = Recording(plane, account, Path(name) / "history")
        recording.save_every = "60"
        with recording:
            time.sleep(40)
            history = recording.directory
            size, began, spent = _size(history), time.monotonic(), _cpu(recording.process.pid)
            renewed = _write(
                world, "PUT", bodies[: options.renewed], int(options.renewed * options.seconds / EVERY), EVERY
            )
            took, spent = time.monotonic() - began, _cpu(recording.process.pid) - spent
            status = Path(f"/proc/{recording.process.pid}/status").read_text()
            memory = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
            grown = _size(history) - size
        each = spent / renewed * 1e6
        print(f"{renewed} renewals in {took:.0f} s ({renewed / took:.0f}/s): {spent:.1f} s of CPU, {each:.0f} us each")
        rate = options.leases / EVERY
        print(f"at {rate:.0f}/s {each * rate / 1e6:.2f} of a core; memory at most {int(memory) / 1024:.0f} MiB")
        daily = grown / took * 86_400 * options.leases / options.renewed / 1e6
        print(f"the history grew by {grown} bytes: {daily:.1f} MB a day if all were renewed")
    return 0


def _write(world: World, method: str, bodies: list[dict[str, Any]], number: int, every: float = 0) -> int:
    """Write so many bodies, round after round, each round in so many seconds; return how many there were."""
    began = time.monotonic()
    numbers = iter(range(number))

    def work() -> None:
        for one in numbers:
            time.sleep(max(0, began + one * every / len(bodies) - time.monotonic()))
            body = bodies[one % len(bodies)]
            body["spec"]["renewTime"] = micro_time()
            path = leases(NAMESPACE, "" if method == "POST" else body["metadata"]["name"])
            # The next write replaces what this one has stored.
            bodies[one % len(bodies)] = world.admin.send(method, path, body).expect()

    threads = [threading.Thread(target=work) for _ in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return number


def _cpu(process: int) -> float:
    user, system = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("leases-*"))


if __name__ == "__main__":
    sys.exit(main())
