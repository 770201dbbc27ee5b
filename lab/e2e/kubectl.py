"""kubectl, run as a person runs it."""

import json
import os
import subprocess
from pathlib import Path

from msgspec import Struct


class Completed(Struct, frozen=True):
    """The output and exit status of one kubectl command."""

    status: int
    stdout: str
    stderr: str


class Kubectl:
    """One user's kubectl."""

    def __init__(self, program: Path, kubeconfig: Path) -> None:
        self._program = program
        # A cache of its own: discovery of another run's API server must not leak into this one.
        self._flags = [f"--kubeconfig={kubeconfig}", f"--cache-dir={kubeconfig.parent / 'kubectl-cache'}"]

    def run(self, *arguments: str, manifest: object = None, seconds: float = 60) -> Completed:
        """Run a command. `manifest` (text, or anything JSON) goes to standard input; add `-f -` yourself.

        Raises TimeoutExpired after `seconds`.
        """
        text = manifest if isinstance(manifest, str) else json.dumps(manifest)
        command = [str(self._program), *self._flags, *arguments]
        environment = {"PATH": os.environ["PATH"], "HOME": str(Path.home())}
        result = subprocess.run(
            command,
            input=None if manifest is None else text,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
        )
        return Completed(result.returncode, result.stdout, result.stderr)

    def run_checked(self, *arguments: str, manifest: object = None) -> str:
        """Return the standard output. Raises RuntimeError when the command fails or complains."""
        result = self.run(*arguments, manifest=manifest)
        if result.status or result.stderr:
            raise RuntimeError(f"kubectl {' '.join(arguments)}: status {result.status}\n{result.stderr}")
        return result.stdout
