"""The ways in which a leader loses its lease, or in which somebody writes without it."""

import signal
import time
from collections.abc import Callable, Mapping
from typing import Final

from lab.e2e.fence.trial import FIRST, SECOND, Trial

AFTERWARDS: Final = 1.0
"""Seconds in which the old leader meets the new one."""
BRISK: Final = ("-pause=2ms",)
ENDLESS: Final = ("-unit=0", *BRISK)
LONG: Final = ("-unit=600",)


def pause(trial: Trial) -> None:
    """Send SIGSTOP to the leader past its duration, then SIGCONT, in the middle of a unit of work."""
    _start_leader(trial, *LONG)
    trial.send_signal(FIRST, signal.SIGSTOP)
    _start_successor(trial)
    trial.send_signal(FIRST, signal.SIGCONT)
    time.sleep(AFTERWARDS)


def partition(trial: Trial) -> None:
    """Cut the leader's connections until its successor works; then deliver what was held back."""
    _start_leader(trial, *LONG)
    trial.partition.cut()
    _start_successor(trial)
    trial.partition.heal()
    time.sleep(AFTERWARDS)


def release_early(trial: Trial) -> None:
    """Shut down cleanly, which releases the lease before the work has ended."""
    _start_leader(trial, *LONG)
    trial.start(SECOND, *BRISK)
    time.sleep(0.5)
    trial.send_signal(FIRST, signal.SIGUSR1)
    trial.wait_for_writes(SECOND)
    time.sleep(AFTERWARDS)


def write_as_follower(trial: Trial) -> None:
    """Write as a follower that never led."""
    _start_leader(trial)
    trial.start(SECOND, *ENDLESS, library="none")
    time.sleep(2 * AFTERWARDS)


def go_on_unnoticed(trial: Trial) -> None:
    """End the election unnoticed: its requests hang, its callback stops nothing, and the work goes on forever."""
    _start_leader(trial, *ENDLESS)
    trial.start(SECOND, *BRISK)
    trial.send_signal(FIRST, signal.SIGUSR2)
    trial.wait_for_writes(SECOND)
    time.sleep(AFTERWARDS)


def delete_lease(trial: Trial) -> None:
    """Delete the lease; whoever creates it anew leads."""
    _start_leader(trial, *ENDLESS)
    trial.start(SECOND, *BRISK)
    time.sleep(1.5)
    trial.delete_lease()
    time.sleep(3 * AFTERWARDS)


def restart_api_server(trial: Trial) -> None:
    """Crash the API server of the leader; the successor leads by the other one, and the first comes back."""
    _start_leader(trial, *ENDLESS)
    trial.plane.crash_second()
    _start_successor(trial)
    trial.plane.start_second()
    time.sleep(3 * AFTERWARDS)


FAULTS: Final[Mapping[str, tuple[str, Callable[[Trial], None]]]] = {
    "paused": ("SIGSTOP past the duration, SIGCONT", pause),
    "partitioned": ("partition, healed after the takeover", partition),
    "released": ("released before the work has ended", release_early),
    "follower": ("a follower writes by mistake", write_as_follower),
    "never-stopped": ("lost, and nothing stops the work", go_on_unnoticed),
    "deleted": ("the lease is deleted", delete_lease),
}
"""On one API server, and (`never-stopped`) on two."""


def _start_leader(trial: Trial, *flags: str) -> None:
    trial.start(FIRST, *flags)
    trial.wait_for_writes(FIRST)


def _start_successor(trial: Trial) -> None:
    if SECOND not in trial.processes:
        trial.start(SECOND, *BRISK)
    trial.wait_for_writes(SECOND)
