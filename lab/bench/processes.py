"""CPU time, memory and noise, read from the kernel's own counters."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PROC: Final = Path("/proc")
_IDLE_COLUMNS: Final = (3, 4)  # idle and iowait in /proc/stat


def list_tree(pid: int) -> list[int]:
    """Return a process and all its descendants that live now."""
    pids, waiting = [], [pid]
    while waiting:
        parent = waiting.pop()
        pids.append(parent)
        try:
            tasks = list((_PROC / str(parent) / "task").iterdir())
        except FileNotFoundError:
            continue
        for task in tasks:
            try:
                waiting += map(int, (task / "children").read_text().split())
            except FileNotFoundError:
                continue
    return pids


def list_children(pid: int) -> list[int]:
    """Return the processes below a process: for a server of ours, its workers."""
    return list_tree(pid)[1:]


def read_cpu_seconds(pid: int) -> float:
    """Return the run time of a process tree: every thread that lives or has lived, and children that were waited for.

    The clock of a foreign process is named by its pid: `(~pid << 3) | 2` (linux, MAKE_PROCESS_CPUCLOCK); it counts
    nanoseconds and threads that have ended, which `/proc/PID/stat` and `/proc/PID/task` do not both do.
    """
    total = 0.0
    for member in list_tree(pid):
        try:
            total += time.clock_gettime((~member << 3) | 2)
            fields = (_PROC / str(member) / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, OSError):
            continue  # it ended between two reads; its parent counts it from now on
        total += (int(fields[13]) + int(fields[14])) / _TICKS
    return total


def read_memory_mib(pid: int) -> float:
    """Return the proportional set size of a process tree in MiB: shared pages are counted once."""
    total = 0
    for member in list_tree(pid):
        try:
            rollup = (_PROC / str(member) / "smaps_rollup").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        total += next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
    return total / 1024


def read_peak_rss_mib(pid: int) -> float:
    """Return the highest resident set of one process since it started, in MiB."""
    status = (_PROC / str(pid) / "status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) / 1024


def count_open_files(pid: int) -> int:
    """Return how many file descriptors a process holds."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


class Usage(msgspec.Struct):
    """Usage over a period: the tree's CPU seconds, wall seconds, and cores that others kept busy meanwhile."""

    cpu: float = 0.0
    wall: float = 0.0
    foreign_cores: float = 0.0


@contextmanager
def measure_tree(pid: int) -> Iterator[Usage]:
    """Measure a process tree while the block runs; children of this program count as ours, not as foreign."""
    usage = Usage()
    cpu, wall = read_cpu_seconds(pid), time.monotonic()
    busy, ours = _read_machine_busy(), _read_own_seconds()
    yield usage
    usage.cpu, usage.wall = read_cpu_seconds(pid) - cpu, time.monotonic() - wall
    own_cpu = usage.cpu + _read_own_seconds() - ours
    usage.foreign_cores = max(0.0, (_read_machine_busy() - busy - own_cpu) / usage.wall)


def _read_machine_busy() -> float:
    numbers = [int(n) for n in (_PROC / "stat").read_text().split("\n", 1)[0].split()[1:9]]
    return (sum(numbers) - sum(numbers[column] for column in _IDLE_COLUMNS)) / _TICKS


def _read_own_seconds() -> float:
    """Return the CPU of this program and of the loaders it has waited for; servers are reaped only after that."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
