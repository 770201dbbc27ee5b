"""The ways in which a leader loses its lease, or somebody writes without it."""

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


def paused(trial: Trial) -> None:
    """SIGSTOP of the leader past its duration, then SIGCONT, in the middle of a unit of work."""
    _lead(trial, *LONG)
    trial.signal(FIRST, signal.SIGSTOP)
    _successor(trial)
    trial.signal(FIRST, signal.SIGCONT)
    time.sleep(AFTERWARDS)


def partitioned(trial: Trial) -> None:
    """The leader's connections pass nothing until its successor works; then what was held back is delivered."""
    _lead(trial, *LONG)
    trial.partition.cut()
    _successor(trial)
    trial.partition.heal()
    time.sleep(AFTERWARDS)


def released(trial: Trial) -> None:
    """A clean shutdown releases the lease before the work has ended."""
    _lead(trial, *LONG)
    trial.start(SECOND, *BRISK)
    time.sleep(0.5)
    trial.signal(FIRST, signal.SIGUSR1)
    trial.writes(SECOND)
    time.sleep(AFTERWARDS)


def follower(trial: Trial) -> None:
    """A follower writes although it never led."""
    _lead(trial)
    trial.start(SECOND, *ENDLESS, library="none")
    time.sleep(2 * AFTERWARDS)


def never_stopped(trial: Trial) -> None:
    """The election ends unnoticed: its requests hang, its callback stops nothing, and the work goes on for ever."""
    _lead(trial, *ENDLESS)
    trial.start(SECOND, *BRISK)
    trial.signal(FIRST, signal.SIGUSR2)
    trial.writes(SECOND)
    time.sleep(AFTERWARDS)


def deleted(trial: Trial) -> None:
    """Somebody deletes the lease; whoever creates it anew leads."""
    _lead(trial, *ENDLESS)
    trial.start(SECOND, *BRISK)
    time.sleep(1.5)
    trial.delete_lease()
    time.sleep(3 * AFTERWARDS)


def restarted(trial: Trial) -> None:
    """The API server of the leader crashes, the successor leads by the other one, and the first comes back."""
    _lead(trial, *ENDLESS)
    trial.plane.crash_second()
    _successor(trial)
    trial.plane.start_second()
    time.sleep(3 * AFTERWARDS)


FAULTS: Final[Mapping[str, tuple[str, Callable[[Trial], None]]]] = {
    "paused": ("SIGSTOP past the duration, SIGCONT", paused),
    "partitioned": ("partition, healed after the takeover", partitioned),
    "released": ("released before the work has ended", released),
    "follower": ("a follower writes by mistake", follower),
    "never-stopped": ("lost, and nothing stops the work", never_stopped),
    "deleted": ("the lease is deleted", deleted),
}
"""On one API server, and (`never-stopped`) on two."""


def _lead(trial: Trial, *flags: str) -> None:
    trial.start(FIRST, *flags)
    trial.writes(FIRST)


def _successor(trial: Trial) -> None:
    if SECOND not in trial.processes:
        trial.start(SECOND, *BRISK)
    trial.writes(SECOND)
