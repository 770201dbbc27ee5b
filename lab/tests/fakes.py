"""A server and loads that do nothing, for what the programs of faults and costs make of a result."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from lab.bench.load import Report
from lab.bench.processes import Usage
from lab.bench.servers import Server
from tests.server.harness import make_certificates

REPORT: Final = Report(
    sent=100,
    right=100,
    wrong_verdicts=0,
    wrong_uids=0,
    unreadable=0,
    statuses={"200": 100},
    lost=0,
    broken=0,
    errors={},
    connections=1,
    seconds=1.0,
    first_error_seconds=0.0,
    last_error_seconds=0.0,
    client_cpu_seconds=0.1,
    p50_ms=1.0,
    p90_ms=1.0,
    p99_ms=1.0,
    p999_ms=1.0,
    max_ms=1.0,
)
"""Every review got its right answer."""
WRONG_VERDICT: Final = replace(REPORT, right=99, wrong_verdicts=1)


class FakeServer(Struct):
    """A server with two workers while its block runs; nobody listens at its port."""

    certificate_authority: Path
    port: int = 1
    log: str = ""
    pid: int = 0
    workers: list[int] = []
    server: Server = Server("lease-webhook", Path, str, lambda *_: [])

    def replace_worker(self, pid: int, _signal: int) -> None:
        """Do what a master does when a worker is killed."""
        self.workers = [*(one for one in self.workers if one != pid), max(self.workers) + 1]


class FakeLoad(Struct):
    """A load that has ended."""

    report: Report = REPORT
    spent: Usage = field(default_factory=Usage)


def make_fake_server(directory: Path) -> FakeServer:
    """Return a server whose authority clients can read."""
    make_certificates(directory / "fake-authority")
    return FakeServer(directory / "fake-authority" / "ca.crt")


def make_run_server(server: FakeServer) -> Callable[..., AbstractContextManager[FakeServer]]:
    """Return what runs this one instead of any other."""

    @contextmanager
    def run_server(*_: object, **__: object) -> Iterator[FakeServer]:
        server.workers = [2, 3]
        try:
            yield server
        finally:
            server.workers = []

    return run_server


@contextmanager
def run_no_load(*_: object, **__: object) -> Iterator[FakeLoad]:
    yield FakeLoad()
