"""The load generator and its report."""

import json
import math
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec

from lab.bench import toolchain
from lab.bench.reviews import Case
from lab.bench.servers import Running


class Report(msgspec.Struct, frozen=True):
    """The results of a load; `statuses` counts answers by HTTP status.

    `lost` are reviews without any HTTP answer; of these, `broken` had a connection, the others got none.
    Latencies are those of answers with status 200, and NaN where there was none, so that they meet no bar.
    """

    sent: int
    right: int
    wrong_verdicts: int
    wrong_uids: int
    unreadable: int
    statuses: dict[str, int]
    lost: int
    broken: int
    errors: dict[str, int]
    connections: int
    seconds: float
    first_error_seconds: float
    last_error_seconds: float
    client_cpu_seconds: float
    p50_ms: float = math.nan
    p90_ms: float = math.nan
    p99_ms: float = math.nan
    p999_ms: float = math.nan
    max_ms: float = math.nan

    @property
    def wrong(self) -> int:
        """Number of answers that were worse than none: another verdict, another review's uid, or no AdmissionReview."""
        return self.wrong_verdicts + self.wrong_uids + self.unreadable

    @property
    def not_answered(self) -> int:
        """Number of reviews without a verdict, whether by a broken connection or by an HTTP error."""
        return self.sent - self.statuses.get("200", 0)

    @property
    def wrong_or_missing(self) -> int:
        """Number of reviews without the right answer."""
        return self.sent - self.right

    def compute_micros(self, cpu: float) -> float:
        """Return the microseconds of a right answer, of the server's CPU seconds: a refusal is cheaper than an answer.

        Raises RuntimeError if no answer was right.
        """
        if not self.right:
            raise RuntimeError(f"no answer was right: {self}")
        return cpu / self.right * 1e6


def write_cases(cases: Sequence[Case], directory: Path) -> Path:
    """Write reviews to files, with the list that the loader reads."""
    directory.mkdir(parents=True, exist_ok=True)
    listed = []
    for number, case in enumerate(cases):
        file = directory / f"{number:04d}.json"
        file.write_bytes(case.body)
        listed.append({"file": str(file), "uid": case.uid, "allowed": case.allowed, "code": case.code})
    index = directory / "cases.json"
    index.write_text(json.dumps(listed))
    return index


def start_load(server: Running, mode: str, cases: Path, *flags: str, cpus: str = "") -> subprocess.Popen[bytes]:
    """Start the loader (`mode` closed or open, flags as `loader -h` lists them); `wait_for_load` waits for it."""
    command = [
        str(toolchain.build_go_program("loader")),
        mode,
        "-url",
        server.url,
        "-ca",
        str(server.certificate_authority),
    ]
    command += ["-cases", str(cases), *flags]
    if server.server.constant_answer:
        command.append("-constant-answer")
    if cpus and shutil.which("taskset"):
        command = ["taskset", "--cpu-list", cpus, *command]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def wait_for_load(loader: subprocess.Popen[bytes]) -> Report:
    """Wait for a loader and read its report.

    Raises:
        RuntimeError: the loader failed; its message is on standard error.

    """
    out, _ = loader.communicate()
    if loader.returncode:
        raise RuntimeError(f"the loader ended with {loader.returncode}")
    return msgspec.json.decode(out, type=Report)


def run_load(server: Running, mode: str, cases: Path, *flags: str, cpus: str = "") -> Report:
    """Start the loader and wait for it."""
    return wait_for_load(start_load(server, mode, cases, *flags, cpus=cpus))
