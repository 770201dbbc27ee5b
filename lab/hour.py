"""The live timeline over an hour of 1,000 renewals a second, into docs/figures.md: `make hour`.

The real command reads the hour from standard input, as fast as it can or at its own pace (`--in-real-time`), while a
listener follows the page as a browser does. Exit code 1 if a bar is missed.
"""

import argparse
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any, Final

import msgspec

from lab.reading_costs import Row, publish

LEASES: Final = 1_000
SECONDS: Final = 3_600
RESULTS: Final = Path(__file__).with_name("hour.json")
SAMPLES: Final = 24
MAX_MEMORY: Final = 200
"""MiB."""
MAX_GROWTH: Final = 5
"""MiB, from the middle of the hour to its end."""
_PATIENCE: Final = 30.0
_STAMPS: Final = "%Y-%m-%dT%H:%M:%S"


def make_renewals(second: int, begins: datetime) -> bytes:
    """Return one second of a watch: a renewal of every lease, each a thousandth of a second after the other."""
    lines = []
    for number in range(LEASES):
        at = begins + timedelta(seconds=second, microseconds=number * 1_000_000 // LEASES)
        lines.append(_make_event(number, second * LEASES + number + 1, at, is_first=second == 0))
    return b"".join(lines)


def read_memory(pid: int) -> float:
    """Return what a process holds in memory now, in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"/proc/{pid}/status has no VmRSS")


class Listener(threading.Thread):
    """A listener to the page's events; `received` are bytes."""

    def __init__(self, address: str) -> None:
        super().__init__(name="listener", daemon=True)
        self.received = 0
        self._address = address

    def run(self) -> None:
        """Read until the server ends."""
        with urllib.request.urlopen(f"{self._address}events", timeout=_PATIENCE) as events:
            for line in events:
                self.received += len(line)


def measure_whole_timeline(address: str) -> int:
    """Return how many bytes are sent to a page that is opened now: the events up to the first that has content."""
    size = 0
    with urllib.request.urlopen(f"{address}events", timeout=_PATIENCE) as events:
        for line in events:
            size += len(line)
            if line.startswith(b"data:"):
                return size
    raise RuntimeError("no timeline was sent")


def end(process: subprocess.Popen[bytes], patience: float = _PATIENCE) -> None:
    """End the command, by force if it does not in time."""
    process.terminate()
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise


def measure_rows(*, in_real_time: bool) -> Iterator[Row]:
    """Run the command and measure it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "webhook", "timeline", "--serve", "--input", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        address = process.stdout.readline().decode().strip()
        listener = Listener(address)
        listener.start()
        sizes = [*_write_hour(process.pid, process.stdin, in_real_time=in_real_time)]
        page = measure_whole_timeline(address)
    finally:
        end(process)
    growth = sizes[-1] - sizes[len(sizes) // 2]
    pace = "in real time" if in_real_time else "read as fast as possible"
    what = f"`timeline --serve`, {LEASES:,} renewals a second for an hour, {pace}: memory"
    yield Row(what, f"{max(sizes):.0f} MiB", f"<= {MAX_MEMORY} MiB", max(sizes) <= MAX_MEMORY)
    yield Row("its growth in the second half", f"{growth:.1f} MiB", f"<= {MAX_GROWTH} MiB", growth <= MAX_GROWTH)
    megabytes = page / 1e6
    yield Row("sent to a page that is opened after it", f"{megabytes:.1f} MB", "<= 3 MB", megabytes <= 3)
    yield Row("sent to the page meanwhile", f"{listener.received / 1e6:.0f} MB", "> 1 MB", listener.received > 1e6)


def main() -> int:
    """Measure, print the table, and write it into docs/figures.md."""
    parser = argparse.ArgumentParser(prog="python -m lab.hour", description=__doc__.partition("\n")[0])
    parser.add_argument("--in-real-time", action="store_true", help="take the hour that it is about")
    measured = [*measure_rows(in_real_time=parser.parse_args().in_real_time)]
    publish(measured, RESULTS, "hour")
    return 0 if all(row.is_met for row in measured) else 1


def _write_hour(pid: int, stream: IO[bytes], *, in_real_time: bool) -> Iterator[float]:
    """Write the hour; yield the memory of the process now and then.

    The pipe keeps the writer at the reader's pace.
    """
    began = time.monotonic()
    begins = datetime.now(UTC) - (timedelta() if in_real_time else timedelta(seconds=SECONDS))
    for second in range(SECONDS):
        stream.write(make_renewals(second, begins))
        if (second + 1) % (SECONDS // SAMPLES) == 0:
            yield read_memory(pid)
        if in_real_time:
            time.sleep(max(0.0, began + second + 1 - time.monotonic()))
    stream.flush()


def _make_event(number: int, version: int, at: datetime, *, is_first: bool) -> bytes:
    renewed = at.strftime(_STAMPS)
    owned = ("acquireTime", "holderIdentity", "leaseTransitions", "renewTime")
    lease: dict[str, Any] = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": f"lease-{number}",
            "namespace": "shop",
            "resourceVersion": str(version),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "managedFields": [
                {
                    "manager": "shop",
                    "operation": "Update",
                    "apiVersion": "coordination.k8s.io/v1",
                    "time": f"{renewed}Z",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:spec": {f"f:{name}": {} for name in owned}},
                }
            ],
        },
        "spec": {
            "holderIdentity": f"pod-{number}_1",
            "leaseDurationSeconds": 15,
            "leaseTransitions": 1,
            "acquireTime": "2026-01-01T00:00:00.000000Z",
            "renewTime": f"{renewed}.{at.microsecond:06}Z",
        },
    }
    kind = "ADDED" if is_first else "MODIFIED"
    return msgspec.json.encode({"type": kind, "object": lease}) + b"\n"


if __name__ == "__main__":
    raise SystemExit(main())
