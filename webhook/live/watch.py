"""Keeps a watch of leases running: kubectl ends whenever the API server ends the watch, and is run again."""

import threading
import time
from collections import deque
from subprocess import Popen
from typing import BinaryIO, Final, cast

from webhook.inputs import InputError
from webhook.inputs import cluster as clusters
from webhook.inputs.cluster import LEASES, Cluster
from webhook.inputs.files import read
from webhook.inputs.kinds import observations
from webhook.live.feed import Feed

FIRST_PAUSE: Final = 0.5
MAX_PAUSE: Final = 15.0
"""Seconds before kubectl is run again; doubled each time, from the first again once it has shown something."""
_END: Final = 5.0


class LiveWatch:
    """The watch; `start` begins a thread, `stop` ends it and kubectl."""

    def __init__(self, feed: Feed, cluster: Cluster) -> None:
        self._feed = feed
        self._cluster = cluster
        self._stopping = threading.Event()
        self._process: Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._keep_running, name="watch", daemon=True)
        self._reason = ""

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End kubectl, and wait for it."""
        self._stopping.set()
        with self._lock:
            process = self._process
        if process is not None:
            process.terminate()
        if self._thread.ident is not None:
            self._thread.join(_END)
        if process is not None and process.poll() is None:
            process.kill()

    def _keep_running(self) -> None:
        pause = FIRST_PAUSE
        while not self._stopping.is_set():
            self._feed.began()
            began = time.monotonic()
            has_shown = self._run_once()
            if self._stopping.is_set():
                return
            pause = FIRST_PAUSE if has_shown else min(pause * 2, MAX_PAUSE)
            lasted = time.monotonic() - began
            why = f": {self._reason}" if self._reason else f" after {lasted:.0f} s"
            self._feed.show_status(f"The watch of {LEASES} ended{why}; kubectl runs again in {pause:g} s.")
            self._stopping.wait(pause)

    def _run_once(self) -> bool:
        """Run kubectl until it ends; return True if it showed anything."""
        self._reason = ""
        try:
            process = clusters.watching(self._cluster)
        except InputError as error:
            self._reason = str(error)
            return False
        with self._lock:
            self._process = process
        if self._stopping.is_set():
            process.terminate()
        errors = threading.Thread(target=self._read_errors, args=(process,), daemon=True)
        errors.start()
        has_shown = self._read(process)
        process.wait()
        errors.join(_END)
        return has_shown

    def _read(self, process: "Popen[bytes]") -> bool:
        has_shown = False
        assert process.stdout is not None
        for item in observations(read(cast("BinaryIO", process.stdout), LEASES)):
            if not has_shown:
                self._feed.show_status("")
            has_shown = True
            self._feed.observe(item)
        return has_shown

    def _read_errors(self, process: "Popen[bytes]") -> None:
        """Remember the last line that kubectl says, which is why it ends."""
        assert process.stderr is not None
        last: deque[str] = deque(maxlen=1)
        for line in process.stderr:
            if line.strip():
                last.append(clusters.reason(line))
        self._reason = last[0] if last else ""
