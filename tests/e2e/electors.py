"""Real election clients as processes, and what they report."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.e2e.processes import Process
from tests.e2e.toolchain import Binaries

ASYNCIO_PROGRAM = Path(__file__).parent / "asyncio_elector.py"


class Elector:
    """An election client in a process of its own; `events` are the JSON lines that it prints."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self.process = Process(command, log)

    def events(self, event: str = "") -> Iterator[dict[str, Any]]:
        """What it has reported so far, of one kind (`started`, `stopped`, `leader`, `write`) or all."""
        for line in self.process.log.read_text(errors="replace").splitlines():
            if line.startswith("{") and line.endswith("}"):
                entry = json.loads(line)
                if event in ("", entry["event"]):
                    yield entry


def client_go(
    binaries: Binaries,
    kubeconfig: Path,
    log: Path,
    *,
    mode: str = "elector",
    namespaces: Sequence[str],
    lease: str,
    identity: str,
    flags: Sequence[str] = (),
) -> Elector:
    """A client-go elector (or `mode="candidate"`), one in each of `namespaces`, all in one process."""
    command = [
        *(str(binaries.clients), mode, f"-kubeconfig={kubeconfig}", f"-namespaces={','.join(namespaces)}"),
        *(f"-lease={lease}", f"-identity={identity}", *flags),
    ]
    return Elector(command, log)


def kubernetes_asyncio(
    binaries: Binaries, kubeconfig: Path, log: Path, *, namespace: str, lease: str, identity: str, times: Sequence[int]
) -> Elector:
    """A kubernetes_asyncio elector; `times` = lease duration, renew deadline, retry period in seconds."""
    command = [str(binaries.asyncio_python), str(ASYNCIO_PROGRAM), str(kubeconfig), namespace, lease, identity]
    return Elector([*command, *map(str, times)], log)
