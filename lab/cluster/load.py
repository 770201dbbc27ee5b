"""Writers that never stop: each owns a lease in a namespace that fails closed, so a missed review is seen."""

import threading
import time
from typing import Self

from msgspec import Struct

from lab.cluster.world import CLOSED, World
from lab.e2e.manifests import format_micro_time, make_lease
from lab.e2e.quantile import find_quantile
from lab.e2e.world import build_lease_path

WRITERS = 4
PAUSE = 0.04


class Report(Struct, frozen=True):
    """The results of the writers: `failed` are texts of refusals and errors, times are in milliseconds."""

    writes: int
    failed: tuple[str, ...]
    median: float
    worst: float

    def __str__(self) -> str:
        times = f"p50 {self.median:.0f} ms, worst {self.worst:.0f} ms"
        return f"{self.writes} writes, {len(self.failed)} failed, {times}"

    @property
    def passed(self) -> bool:
        """True when there were writes, and none failed."""
        return self.writes > 0 and not self.failed


class Load:
    """The writers; a context manager that ends them."""

    def __init__(self, world: World, namespace: str = CLOSED) -> None:
        self._world = world
        self._namespace = namespace
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._times: list[float] = []
        self._failed: list[str] = []
        start = int(time.time())
        names = [f"writer-{start}-{number}" for number in range(WRITERS)]
        self._threads = [threading.Thread(target=self._write, args=(name,)) for name in names]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def report(self) -> Report:
        """Return what happened since the last report."""
        with self._lock:
            times, self._times = sorted(self._times), []
            failures, self._failed = self._failed, []
        if not times:
            return Report(0, tuple(failures), 0, 0)
        return Report(len(times), tuple(failures), find_quantile(times, 0.5), times[-1])

    def _write(self, name: str) -> None:
        path, acquired, count = build_lease_path(self._namespace, name), format_micro_time(), 0
        while not self._ended.is_set():
            count += 1
            # A changed annotation is not a plain renewal: this write is reviewed.
            body = make_lease(name, acquireTime=acquired)
            body["metadata"]["annotations"] = {"count": str(count)}
            try:
                media = "application/apply-patch+yaml"
                reply = self._world.client.send("PATCH", path, body, media=media, fieldManager=name, force="true")
                failure = "" if reply.status in (200, 201) else f"HTTP {reply.status}: {reply.message}"
                milliseconds = reply.milliseconds
            except OSError as error:
                failure, milliseconds = str(error), 0.0
            with self._lock:
                self._times.append(milliseconds)
                if failure:
                    self._failed.append(failure)
            time.sleep(PAUSE)
