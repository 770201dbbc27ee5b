"""What `audit`, `why` and the reader cost for large inputs, beside their bars: `python -m tests.cli.reading_costs`.

About three minutes. Times are those of the processor; exit code 1 if a bar is missed.
"""

import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from tests.factories import make_lease, put
from tests.observations.events import make_event

LEASES: Final = 100_000
FEW: Final = 10_000
LOG_MEGABYTES: Final = 1000
NOW: Final = "2025-11-20T12:00:04Z"


class Cost(Struct, frozen=True):
    """What one run took."""

    seconds: float
    mebibytes: float


def dump(count: int) -> Iterator[str]:
    """What kubectl prints of so many leases."""
    item = json.dumps(make_lease(put("metadata.name", "NAME")), indent=4).replace("\n", "\n        ")
    yield '{\n    "apiVersion": "v1",\n    "items": [\n        '
    for number in range(count):
        yield ("" if number == 0 else ",\n        ") + item.replace("NAME", f"checkout-{number}")
    yield '\n    ],\n    "kind": "List",\n    "metadata": {"resourceVersion": ""}\n}\n'


def mixed_log(megabytes: int) -> Iterator[str]:
    """An audit log in which one event of ten is about a lease."""
    lease = json.dumps(make_event(), separators=(",", ":")) + "\n"
    pod = json.dumps(make_event(put("objectRef", {"resource": "pods", "apiGroup": ""})), separators=(",", ":"))
    pod = pod.replace("coordination.k8s.io", "apps") + "\n"
    block = pod * 9 + lease
    for _ in range(megabytes * 1_000_000 // len(block)):
        yield block


def lease_log(megabytes: int) -> Iterator[str]:
    """An audit log about nothing but leases, at level RequestResponse."""
    block = (json.dumps(make_event(), separators=(",", ":")) + "\n") * 10
    for _ in range(megabytes * 1_000_000 // len(block)):
        yield block


def measure(words: list[str]) -> Cost:
    """Run one command."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen([sys.executable, "-m", "webhook", *words], stdout=output, stderr=output)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        if process.returncode not in {0, 1}:
            raise RuntimeError(f"{' '.join(words)}: {output.read()[-500:]!r}")
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def written(path: Path, content: Iterator[str], opened: Callable[..., object] = open) -> float:
    """Write a file; gives its size in megabytes, unzipped."""
    size = 0
    with opened(path, "wt") as file:  # type: ignore[attr-defined]
        for text in content:
            file.write(text)
            size += len(text)
    return size / 1e6


def main() -> int:
    """Measure everything and print a table."""
    rows: list[tuple[str, str, str, bool]] = []
    with tempfile.TemporaryDirectory() as name:
        large, few = Path(name, "large.json"), Path(name, "few.json")
        written(large, dump(LEASES))
        written(few, dump(FEW))
        cost = measure(["audit", str(large), "--now", NOW])
        rows.append((f"audit of {LEASES} leases", f"{cost.seconds:.1f} s", "20 s", cost.seconds <= 20))
        rows.append((f"audit of {LEASES} leases", f"{cost.mebibytes:.0f} MiB", "400 MiB", cost.mebibytes <= 400))
        cost = min(
            (measure(["why", "shop/checkout-7", "--input", str(few), "--now", NOW]) for _ in range(3)), key=_seconds
        )
        rows.append((f"why of one of {FEW} leases", f"{cost.seconds:.2f} s", "1.5 s", cost.seconds <= 1.5))
        large.unlink()
        for what, content in (("one lease in ten events", mixed_log), ("nothing but leases", lease_log)):
            log = Path(name, "audit.log")
            size = written(log, content(LOG_MEGABYTES))
            cost = measure(["why", "--input", str(log), "--now", NOW])
            speed = size / cost.seconds
            rows.append((f"audit log of {size:.0f} MB, {what}", f"{speed:.0f} MB/s", "40 MB/s", speed >= 40))
            rows.append(
                (f"audit log of {size:.0f} MB, {what}", f"{cost.mebibytes:.0f} MiB", "100 MiB", cost.mebibytes <= 100)
            )
            log.unlink()
        zipped = Path(name, "audit.log.gz")
        size = written(zipped, mixed_log(LOG_MEGABYTES // 10), gzip.open)
        cost = measure(["why", "--input", str(zipped), "--now", NOW])
        rows.append(
            (
                f"the same, gzipped, {size:.0f} MB",
                f"{size / cost.seconds:.0f} MB/s",
                "40 MB/s",
                size / cost.seconds >= 40,
            )
        )
    print("| input | measured | bar |\n|---|---|---|")
    for what, found, bar, is_good in rows:
        print(f"| {what} | {found}{'' if is_good else ' (missed)'} | {bar} |")
    return 0 if all(is_good for *_, is_good in rows) else 1


def _seconds(cost: Cost) -> float:
    return cost.seconds


if __name__ == "__main__":
    raise SystemExit(main())
