"""The loader and the peers, built into the user's cache; missing ones are reported instead of hidden."""

import functools
import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lease-webhook" / "bench"


class MissingError(Exception):
    """Raised when a program that a measurement needs is not on this machine; the text says which."""


def _require_peers() -> None:
    """Raise MissingError if BENCH_PEERS=no leaves the other servers out, as if they could not be built."""
    if os.environ.get("BENCH_PEERS") == "no":
        raise MissingError("left out by BENCH_PEERS=no")


def build_go_program(name: str) -> Path:
    """Build `lab/bench/<name>` (a Go module with its own go.sum) unless the cache has this very source.

    Raises:
        MissingError: Go is not installed, the build failed, or the program is left out.

    """
    if name.startswith("peers/"):
        _require_peers()
    source = HERE / name
    go = shutil.which("go")
    if go is None:
        raise MissingError("no go on PATH")
    files = sorted(path for path in source.iterdir() if path.is_file())
    digest = hashlib.sha256(b"\0".join(path.name.encode() + b"\0" + path.read_bytes() for path in files))
    digest.update(find_go_version().encode())
    binary = CACHE / f"{source.name}-{digest.hexdigest()[:12]}"
    if not binary.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        print(f"building {source.name} ...", flush=True)
        unfinished = binary.with_suffix(f".{os.getpid()}")
        command = ["nice", "-n", "10", go, "build", "-o", str(unfinished), "."]
        # As all other programs of lab are built, so that what they share is compiled once.
        environment = {**os.environ, "CGO_ENABLED": "0"}
        result = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=False)
        if result.returncode:
            last = (result.stderr.strip().splitlines() or ["no message"])[-1]
            raise MissingError(f"go could not build {source.name}: {last[:150]}")
        unfinished.rename(binary)
    return binary


DEBIAN_PYTHON: Final = Path("/usr/bin/python3")


@functools.cache
def find_server_python() -> Path:
    """Return Debian's Python, built with PGO like the image's, in an environment of the locked requirements.

    Where there is none, this program's own, which may be built without: that costs about a tenth.
    """
    environment, requirements = CACHE / "server", HERE.parents[1] / "requirements.txt"
    mark = environment / "installed"
    if not DEBIAN_PYTHON.exists():
        return Path(sys.executable)
    if not mark.exists() or mark.read_bytes() != requirements.read_bytes():
        result = subprocess.run([DEBIAN_PYTHON, "-m", "venv", "--clear", "--without-pip", environment], check=False)
        if result.returncode:
            return Path(sys.executable)
        pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python"), "install", "--quiet"]
        subprocess.run([*pip, "--disable-pip-version-check", "--require-hashes", "-r", str(requirements)], check=True)
        # The server is run from the repository; only its version must be known.
        metadata = Path(str(importlib.metadata.distribution("lease-webhook").locate_file("")))
        for distribution in metadata.glob("lease_webhook-*.dist-info"):
            (libraries,) = environment.glob("lib/python*/site-packages")
            shutil.copytree(distribution, libraries / distribution.name)
        mark.write_bytes(requirements.read_bytes())
    subprocess.run([environment / "bin" / "python", "-m", "compileall", "-q", HERE.parents[1] / "webhook"], check=True)
    return environment / "bin" / "python"


def find_go_version() -> str:
    """Return `go1.26.8`, or "no go"."""
    go = shutil.which("go")
    if go is None:
        return "no go"
    return subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=True).stdout.strip()


def find_nginx() -> Path:
    """Return the nginx on PATH, else the distribution's package unpacked into the cache (nothing is installed).

    Raises:
        MissingError: neither is available, or it is left out.

    """
    _require_peers()
    installed = shutil.which("nginx")
    if installed:
        return Path(installed)
    binary = CACHE / "nginx" / "usr" / "sbin" / "nginx"
    if binary.exists():
        return binary
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise MissingError("no nginx on PATH, and no apt-get to fetch it")
    (CACHE / "nginx").mkdir(parents=True, exist_ok=True)
    result = subprocess.run(
        ["apt-get", "download", "--quiet", "nginx"], cwd=CACHE / "nginx", capture_output=True, text=True, check=False
    )
    packages = sorted((CACHE / "nginx").glob("nginx_*.deb"))
    if result.returncode or not packages:
        raise MissingError("no nginx on PATH, and apt-get could not fetch it")
    subprocess.run(["dpkg-deb", "--extract", str(packages[-1]), str(CACHE / "nginx")], check=True)
    return binary


def find_module_version(peer: str, module: str) -> str:
    """Return the version of a module that a peer's go.mod requires."""
    for line in (HERE / "peers" / peer / "go.mod").read_text().splitlines():
        words = line.removeprefix("require ").split()
        if words[:1] == [module]:
            return words[1].removeprefix("v")
    raise MissingError(f"{peer} does not require {module}")
