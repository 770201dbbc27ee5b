"""Real election clients as processes, and their reports."""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from lab.e2e.processes import Process
from lab.e2e.toolchain import Binaries

ASYNCIO_PROGRAM = Path(__file__).parent / "asyncio_elector.py"
THREADS_PROGRAM = Path(__file__).parent / "python_elector.py"


class Elector:
    """An election client in a process of its own, stopped when `stack` ends."""

    def __init__(self, stack: ExitStack, command: Sequence[str], log: Path) -> None:
        self.process = stack.enter_context(Process(command, log))

    def list_events(self, event: str) -> Iterator[dict[str, Any]]:
        """Yield its reports so far, of one kind: `started`, `stopped`, `leader` or `write`."""
        return (entry for entry in self.list_reports() if entry["event"] == event)

    def list_reports(self) -> Iterator[dict[str, Any]]:
        """Yield all its reports so far."""
        for line in self.process.log.read_text(errors="replace").splitlines():
            if line.startswith("{") and line.endswith("}"):
                yield json.loads(line)


def start_client_go(
    stack: ExitStack,
    binaries: Binaries,
    kubeconfig: Path,
    *flags: str,
    namespaces: Sequence[str],
    lease: str,
    identity: str,
    mode: str = "elector",
) -> Elector:
    """Start a client-go elector (or `mode="candidate"`), one in each of `namespaces`, all in one process."""
    command = [
        *(str(binaries.clients), mode, f"-kubeconfig={kubeconfig}", f"-namespaces={','.join(namespaces)}"),
        *(f"-lease={lease}", f"-identity={identity}", *flags),
    ]
    return Elector(stack, command, kubeconfig.with_name(f"{mode}-{namespaces[0]}-{lease}-{identity}.log"))


def start_kubernetes_python(
    stack: ExitStack,
    binaries: Binaries,
    kubeconfig: Path,
    *times: int,
    namespaces: Sequence[str],
    lease: str,
    identity: str,
    package: str = "kubernetes",
    environment: Sequence[str] = (),
) -> Elector:
    """Start an elector of the official Python client, with threads or by asyncio (`kubernetes.aio`).

    `times`: lease duration, renew deadline, retry period.
    """
    program = ["env", f"ASYNCIO_PACKAGE={package}", *environment, str(binaries.asyncio_python)]
    program.append(str(THREADS_PROGRAM if package == "kubernetes" else ASYNCIO_PROGRAM))
    command = [*program, str(kubeconfig), ",".join(namespaces), lease, identity, *map(str, times)]
    return Elector(stack, command, kubeconfig.with_name(f"{package}-{namespaces[0]}-{lease}-{identity}.log"))


def start_kubernetes_asyncio(
    stack: ExitStack,
    binaries: Binaries,
    kubeconfig: Path,
    *times: int,
    namespaces: Sequence[str],
    lease: str,
    identity: str,
) -> Elector:
    """Start a kubernetes_asyncio elector in each of `namespaces`.

    `times`: lease duration, renew deadline, retry period.
    """
    command = [
        *(str(binaries.asyncio_python), str(ASYNCIO_PROGRAM), str(kubeconfig), ",".join(namespaces)),
        *(lease, identity, *map(str, times)),
    ]
    return Elector(stack, command, kubeconfig.with_name(f"asyncio-{namespaces[0]}-{lease}-{identity}.log"))
