"""Programs that the run starts: each ends by its own process id, and its output stays in a file."""

import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Self


class Process:
    """A program in the background. Its standard output and error go to `log`; as a context manager it is stopped."""

    def __init__(self, command: Sequence[str], log: Path, env: dict[str, str] | None = None) -> None:
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            self._child = subprocess.Popen(
                list(command), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=env
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """Process ID."""
        return self._child.pid

    @property
    def has_ended(self) -> bool:
        """True once the program has ended."""
        return self._child.poll() is not None

    def stop(self, seconds: float = 20) -> int:
        """Send SIGTERM, then SIGKILL after `seconds`. Return the exit status."""
        if self._child.poll() is None:
            self._child.terminate()
        try:
            return self._child.wait(seconds)
        except subprocess.TimeoutExpired:
            return self.kill()

    def kill(self) -> int:
        """Send SIGKILL: a crash."""
        self._child.send_signal(signal.SIGKILL)
        return self._child.wait()

    def check_alive(self) -> None:
        """Raise RuntimeError with the end of the log when it has ended."""
        if self.has_ended:
            end = self.log.read_text(errors="replace")[-2000:]
            raise RuntimeError(f"{self.log.stem} ended with status {self._child.returncode}:\n{end}")
