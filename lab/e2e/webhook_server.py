"""The real webhook, started as a person starts it: `lease-webhook serve`."""

import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

from lab.e2e.control_plane import find_free_port
from lab.e2e.processes import Process
from tests.waiting import wait_for

SAMPLE = re.compile(r"^(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})? (?P<value>\S+)$")


def make_certificates(directory: Path, *flags: str) -> None:
    """Run `lease-webhook certs`: a CA and a leaf, or a new leaf under the same CA. Raises CalledProcessError."""
    subprocess.run([sys.executable, "-m", "webhook", "certs", str(directory), *flags], check=True, capture_output=True)


SHOWN_AFTER_SECONDS: Final = 2.2


class WebhookServer:
    """One `lease-webhook serve` on loopback; a context manager that waits until it is ready and stops it by SIGTERM."""

    def __init__(
        self,
        directory: Path,
        certs: Path,
        *,
        policy: str = "standard",
        port: int = 0,
        capture: Path | None = None,
        flags: Sequence[str] = (),
    ) -> None:
        """Set up the server.

        `policy` is a preset's name or a file; `directory` takes the log; `flags` are further ones of `serve`.
        """
        self.port = port or find_free_port()
        self._health = find_free_port()
        self._log = directory / f"serve-{self.port}.log"
        self._command = [
            *(sys.executable, "-m", "webhook", "serve", f"--bind=127.0.0.1:{self.port}", f"--tls-dir={certs}"),
            *(f"--policy={policy}", "--workers=1", f"--health-bind=127.0.0.1:{self._health}"),
            *([f"--capture={capture}"] if capture else []),
            *flags,
        ]
        self._process: Process | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start and wait for /readyz."""
        process = self._process = Process(self._command, self._log)

        def is_ready() -> bool:
            process.check_alive()
            return self._get("/readyz")[0] == 200

        try:
            wait_for(f"lease-webhook on port {self.port} ready", is_ready, 120)
        except BaseException:
            process.stop()
            raise

    def stop(self) -> None:
        """Send SIGTERM, as a kubelet would; raises RuntimeError unless it ended well by itself."""
        if self._process is None:
            return
        status = self._process.stop()
        self._process = None
        if status:
            raise RuntimeError(f"lease-webhook on port {self.port} ended with status {status}; see {self._log}")

    def read_metric(self, metric: str, **labels: str) -> float:
        """Return the sum of a metric's samples whose labels include `labels`."""
        status, text = self._get("/metrics")
        if status != 200:
            raise RuntimeError(f"/metrics: HTTP {status}")
        label_set = {f'{key}="{value}"' for key, value in labels.items()}
        total = 0.0
        for line in text.splitlines():
            sample = SAMPLE.match(line)
            if sample and sample["name"] == metric and label_set <= set((sample["labels"] or "").split(",")):
                total += float(sample["value"])
        return total

    def count_reviews(self, **labels: str) -> int:
        """Return the number of reviews that it has answered; workers write their counts once a second."""
        time.sleep(SHOWN_AFTER_SECONDS)
        return int(self.read_metric("lease_webhook_reviews_total", **labels))

    def _get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._health}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""
