"""Electors in four languages, each a pod with a token, a clock and a network of its own."""

import fcntl
import hashlib
import os
import random
import shutil
import signal
import struct
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from lab.e2e.electors import ASYNCIO_PROGRAM
from lab.e2e.forwarder import Partition
from lab.e2e.processes import Process
from lab.e2e.toolchain import MissingToolchainError, build, build_fence_program, find_cache_directory
from lab.torture.cluster import Cluster

HERE: Final = Path(__file__).parent
DURATION, DEADLINE, RETRY = 6, 4, 1
"""Seconds, of every elector."""
_CLOCK: Final = HERE.parent / "faults" / "clock.c"


class Programs:
    """Command lines of electors; those that cannot be built here are left out, and `missing` says why."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._built, self.missing = build_languages()
        self.clock = _build_preloaded()

    def build_command(
        self, language: str, kubeconfig: Path, namespace: str, lease: str, identity: str
    ) -> list[str] | None:
        """Return the command of an elector, None if it is not here."""
        times = [str(DURATION), str(DEADLINE), str(RETRY)]
        where = [str(kubeconfig), namespace, lease, identity, *times]
        if language == "python":
            return [str(self._cluster.binaries.asyncio_python), str(ASYNCIO_PROGRAM), *where]
        if language in ("java", "rust"):
            return [*self._built[language], *where] if language in self._built else None
        seconds = [f"-{name}={time}s" for name, time in zip(("duration", "deadline", "retry"), times, strict=True)]
        if language == "go":
            flags = [f"-namespaces={namespace}", f"-lease={lease}", f"-identity={identity}", "-release"]
            return [str(self._cluster.binaries.clients), "elector", f"-kubeconfig={kubeconfig}", *flags, *seconds]
        # The controllers that write a shared object; their lease is `operator`.
        flags = [f"-namespace={namespace}", f"-pod={identity}", f"-library={language}", "-pause=40ms"]
        return [str(build_fence_program()), "work", f"-kubeconfig={kubeconfig}", *flags, *seconds]


def build_languages() -> tuple[dict[str, list[str]], dict[str, str]]:
    """Build the electors in Java and Rust that can be built here; return them, and why the others cannot."""
    commands, missing = dict[str, list[str]](), dict[str, str]()
    find_cache_directory().mkdir(parents=True, exist_ok=True)
    # A run beside this one may need the same.
    with (find_cache_directory() / "electors.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for language, build_electors in {"java": _build_java, "rust": _build_rust}.items():
            try:
                commands[language] = build_electors()
            except MissingToolchainError as error:
                missing[language] = str(error)
    return commands, missing


class Elector:
    """One pod: its process, which can be paused and killed, and its way to the API servers, which can be cut."""

    def __init__(
        self, stack: ExitStack, programs: Programs, cluster: Cluster, name: str, command: Sequence[str], offset: int
    ) -> None:
        self.name, self.offset, self._command, self._stack = name, offset, list(command), stack
        self._log = cluster.directory / "electors" / f"{name}.log"
        self._file = self._log.with_suffix(".offset")
        self._log.parent.mkdir(exist_ok=True)
        self._file.write_bytes(struct.pack("q", offset))
        self._env = dict(os.environ)
        if "asyncio_elector" in " ".join(command):
            self._env["CLOCK_AHEAD_SECONDS"] = str(offset)
        elif offset:
            self._env |= {"LD_PRELOAD": str(programs.clock), "CLOCK_OFFSET_FILE": str(self._file)}
        self._process: Process | None = None
        self._read = 0

    def start(self) -> None:
        """Start the process, or start it again."""
        self._process = self._stack.enter_context(Process(self._command, self._log, self._env))

    def kill(self) -> None:
        """Send SIGKILL."""
        assert self._process
        self._process.kill()

    def end(self) -> None:
        """Send SIGTERM, and SIGKILL where that is not enough."""
        assert self._process
        self._process.stop(2)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Send SIGSTOP, and SIGCONT in the end."""
        self._send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._send_signal(signal.SIGCONT)

    def resume(self) -> None:
        """Send SIGCONT."""
        self._send_signal(signal.SIGCONT)

    def has_stopped(self) -> bool:
        """Return whether it reported its end since the last call: a controller without its lease is started again."""
        with self._log.open(errors="replace") as log:
            log.seek(self._read)
            text = log.read()
            self._read = log.tell()
        return '"event":"stopped"' in text or '"event":"ended"' in text

    def _send_signal(self, number: signal.Signals) -> None:
        if self._process:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, number)


def start_network(stack: ExitStack, cluster: Cluster, chance: random.Random) -> Partition:
    """Start a way to one of the API servers after the other, which can be cut."""
    way = Partition(cluster.ports[0])
    way.routed = tuple(chance.sample(cluster.ports, len(cluster.ports)))
    return stack.enter_context(way)


def build_porcupine() -> Path:
    """Build the program that checks histories of registers."""
    return build(HERE / "porcupine", ".", "porcupine")


def _hash_sources(*files: Path) -> str:
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def _require(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise MissingToolchainError(f"there is no `{program}` on the PATH")
    return path


def _make(command: Sequence[str], folder: Path) -> None:
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if result.returncode:
        raise MissingToolchainError(f"{command[0]} failed: {(result.stdout + result.stderr)[-1500:]}")


def _build_java() -> list[str]:
    source = HERE / "java" / "src" / "main" / "java" / "Elector.java"
    pom = HERE / "java" / "pom.xml"
    folder = find_cache_directory() / "java" / _hash_sources(source, pom)
    java = _require("java")
    if not (folder / "Elector.class").exists():
        maven, javac = _require("mvn"), _require("javac")
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(pom, folder)
        _make([maven, "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib"], folder)
        _make([javac, "-cp", "lib/*", "-d", ".", str(source)], folder)
    return [
        java,
        "-Xmx128m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        f"{folder}:{folder}/lib/*",
        "Elector",
    ]


def _build_rust() -> list[str]:
    source, manifest = HERE / "rust" / "src" / "main.rs", HERE / "rust" / "Cargo.toml"
    folder = find_cache_directory() / "rust" / _hash_sources(source, manifest)
    program = folder / "elector"
    if not program.exists():
        cargo = _require("cargo")
        (folder / "src").mkdir(parents=True, exist_ok=True)
        shutil.copy(manifest, folder)
        shutil.copy(source, folder / "src")
        _make([cargo, "generate-lockfile", "--quiet"], folder)
        # The crate accepts several versions of k8s-openapi, and must get that of kube.
        _make([cargo, "update", "--quiet", "k8s-openapi@0.29.0", "--precise", "0.28.0"], folder)
        _make([cargo, "build", "--release", "--quiet"], folder)
        shutil.copy(folder / "target" / "release" / "elector", program)
        shutil.rmtree(folder / "target")
    return [str(program)]


def _build_preloaded() -> Path:
    """Build the library that moves the clock of a process. Raises MissingToolchainError without a compiler."""
    library = find_cache_directory() / "clock" / f"{_hash_sources(_CLOCK)}.so"
    if not library.exists():
        library.parent.mkdir(parents=True, exist_ok=True)
        _make([_require("cc"), "-shared", "-fPIC", "-O2", "-o", str(library), str(_CLOCK), "-ldl"], library.parent)
    return library
