"""The date, commit and machine of a measurement, as each page of figures states them."""

import datetime as dt
import os
import platform
import subprocess
from pathlib import Path
from typing import Final

from msgspec import Struct

ROOT: Final = Path(__file__).parents[1]


class Circumstances(Struct, frozen=True):
    """The day and time in UTC, the commit, with ` and changes` if files differed from it, and the machine."""

    date: str
    commit: str
    machine: str

    def __str__(self) -> str:
        """Return `on 2026-11-29 17:39 UTC, of commit 60d55a5703f2, on 2 x Some CPU, 8 GiB, Linux 6.1`."""
        return f"on {self.date}, of commit {self.commit}, on {self.machine}"


def find_circumstances() -> Circumstances:
    """Return the circumstances of a measurement that begins or ends now."""
    return Circumstances(f"{dt.datetime.now(dt.UTC):%Y-%m-%d %H:%M UTC}", describe_commit(), describe_machine())


def describe_commit() -> str:
    """Return the commit that is checked out, with ` and changes` if the code differs from it; `unknown` without git.

    Pages and results are what a measurement writes: that they differ changes nothing.
    """
    code = ["--", "webhook", "deploy", "lab", "tests", "tools", ":!*.md", ":!*.json", ":!*.svg"]
    try:
        commit = _read_git("rev-parse", "--short=12", "HEAD").strip()
        is_changed = bool(_read_git("status", "--porcelain", *code).strip())
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{commit} and changes" if is_changed else commit


def describe_machine() -> str:
    """Return `2 x Some CPU, 8 GiB, Linux 6.1`."""
    with Path("/proc/cpuinfo").open() as file:
        model = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "unknown CPU")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} x {model}, {memory:.0f} GiB, Linux {platform.release()}"


def _read_git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout
