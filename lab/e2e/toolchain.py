"""The real programs: built once from pinned Go modules into a cache, or given by KUBEBUILDER_ASSETS."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from msgspec import Struct

HERE = Path(__file__).parent
MODULES = HERE / "go"
VERSIONS = ("v1.37.1", "v1.36.3", "v1.35.8", "v1.34.10", "v1.31.4")
"""The newest patch of each line whose modules are published in full; 1.31 alone serves LeaseCandidate v1alpha1."""
KUBECTL = "v1.36.3"


class MissingToolchainError(Exception):
    """Raised where neither Go nor prebuilt binaries are installed."""


class Binaries(Struct, frozen=True):
    """Paths of the programs for one Kubernetes version (`v1.36.3`), and of a Python with its clients."""

    version: str
    etcd: Path
    apiserver: Path
    kubectl: Path
    clients: Path
    asyncio_python: Path

    @property
    def minor(self) -> int:
        """Minor version: 36 for `v1.36.3`."""
        return int(self.version.split(".")[1])

    @property
    def client_go(self) -> str:
        """The version of client-go that `clients` was built with."""
        return _find_locked(
            MODULES / "clients" / ("kubernetes-1.31.mod" if self.minor <= 31 else "go.mod"), "k8s.io/client-go "
        )

    @property
    def kubernetes_asyncio(self) -> str:
        """The locked version of kubernetes_asyncio."""
        return _find_locked(HERE / "requirements.txt", "kubernetes-asyncio==")

    @property
    def kubernetes_python(self) -> str:
        """The locked version of the official Python client."""
        return _find_locked(HERE / "requirements.txt", "\nkubernetes==")

    @property
    def candidate_versions(self) -> tuple[str, ...]:
        """Versions in which this API server serves LeaseCandidates, newest first."""
        if self.minor <= 31:
            return ("v1alpha1",)
        return ("v1alpha2",) if self.minor == 32 else ("v1beta1", "v1alpha2")


def _find_locked(file: Path, before: str) -> str:
    """Return the word that follows `before` in a lock file."""
    return file.read_text().partition(before)[2].split()[0]


def find_cache_directory() -> Path:
    """Return `lease-webhook` under XDG_CACHE_HOME, or under ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lease-webhook"


def build_all_binaries(*beginnings: str) -> list[Binaries]:
    """Return the programs of each Kubernetes version that begins like one of these, newest first.

    "" selects every version. Raises MissingToolchainError if something must be built and Go is not installed.
    """
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets:
        binaries = _find_in_assets(Path(assets))
        return [binaries] if binaries.version.startswith(beginnings) else []
    kubectl = _build(
        f"kubernetes-{_find_line(KUBECTL)}", "k8s.io/kubernetes/cmd/kubectl", "kubectl", list_version_flags(KUBECTL)
    )
    etcd = _build("etcd", "go.etcd.io/etcd/server/v3", "etcd", ())
    return [
        Binaries(
            version=version,
            etcd=etcd,
            apiserver=_build(
                f"kubernetes-{_find_line(version)}",
                "k8s.io/kubernetes/cmd/kube-apiserver",
                "kube-apiserver",
                list_version_flags(version),
            ),
            kubectl=kubectl,
            clients=_build_clients(version),
            asyncio_python=_create_client_environment(),
        )
        for version in VERSIONS
        if version.startswith(beginnings)
    ]


def build_promtool() -> Path:
    """Build Prometheus' own tool without service discovery, which takes most of the time and tests no rule.

    Raises MissingToolchainError where it would have to be built without Go and is not on the PATH either.
    """
    try:
        return _build(
            "prometheus",
            "github.com/prometheus/prometheus/cmd/promtool",
            "promtool",
            ("-tags", "remove_all_sd", "-ldflags", "-s -w"),
        )
    except MissingToolchainError:
        path = shutil.which("promtool")
        if path is None:
            raise
        return Path(path)


def build_prometheus() -> Path:
    """Build Prometheus itself, with the discovery of Kubernetes alone and without its pages for people.

    Raises MissingToolchainError without Go.
    """
    tags = "remove_all_sd,enable_kubernetes_sd"
    return _build(
        "prometheus",
        "github.com/prometheus/prometheus/cmd/prometheus",
        "prometheus",
        ("-tags", tags, "-ldflags", "-s -w"),
    )


def build_fence_program() -> Path:
    """Build controllers that append to a shared object, elected by client-go or by controller-runtime."""
    return _build("fence", ".", "fence", ())


def _find_in_assets(directory: Path) -> Binaries:
    output = _run([str(directory / "kube-apiserver"), "--version"]).strip()
    version = output.rpartition(" ")[2]
    etcd, apiserver, kubectl = (directory / name for name in ("etcd", "kube-apiserver", "kubectl"))
    return Binaries(version, etcd, apiserver, kubectl, _build_clients(version), _create_client_environment())


def _build_clients(version: str) -> Path:
    if int(version.split(".")[1]) <= 31:
        return _build("clients", ".", "clients-1.31", ("-modfile=kubernetes-1.31.mod", "-tags=v1alpha1"))
    return _build("clients", ".", "clients", ())


def _find_line(version: str) -> str:
    return ".".join(version.removeprefix("v").split(".")[:2])


def list_version_flags(version: str) -> tuple[str, ...]:
    """Return flags that make the program know its version, which a build from modules alone does not tell it."""
    major, minor, _ = version.removeprefix("v").split(".")
    package = "k8s.io/component-base/version"
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    return ("-ldflags", "-s -w " + " ".join(f"-X {package}.{name}={value}" for name, value in values.items()))


def _build(module: str, package: str, name: str, flags: tuple[str, ...]) -> Path:
    """Build a program of one of the modules of this folder."""
    return build(MODULES / module, package, name, flags)


def build(source: Path, package: str, name: str, flags: tuple[str, ...] = ()) -> Path:
    """Build the program `name` of `package` in the Go module `source` into the cache, once for its sources and flags.

    Raises MissingToolchainError without Go, RuntimeError if the build fails.
    """
    digest = hashlib.sha256(repr((package, flags)).encode())
    for file in sorted(path for path in source.iterdir() if path.suffix in {".go", ".mod", ".sum"}):
        digest.update(file.name.encode() + file.read_bytes())
    target = find_cache_directory() / "bin" / digest.hexdigest()[:16] / name
    if target.exists():
        return target
    go = shutil.which("go")
    if go is None:
        raise MissingToolchainError(f"{name} must be built from Go modules, and there is no `go` on the PATH")
    print(f"building {name} from {source.name} into {target.parent} (once)", file=sys.stderr, flush=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    # Another process may build the same.
    unfinished = target.with_suffix(f".{os.getpid()}")
    command = [go, "build", "-mod=readonly", "-buildvcs=false", *flags, "-o", str(unfinished), package]
    _run(command, cwd=source, env={**os.environ, "CGO_ENABLED": "0"})
    unfinished.rename(target)
    return target


def _create_client_environment() -> Path:
    """Return the Python of a separate virtual environment with the locked clients."""
    lock = HERE / "requirements.txt"
    digest = hashlib.sha256(lock.read_bytes() + sys.version.encode()).hexdigest()[:16]
    directory = find_cache_directory() / "python" / digest
    python, ready = directory / "bin" / "python", directory / "ready"
    if not ready.exists():
        print(f"installing clients of Python into {directory} (once)", file=sys.stderr, flush=True)
        _run([sys.executable, "-m", "venv", "--clear", str(directory)])
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _run([*pip, "--require-hashes", "--only-binary", ":all:", "-r", str(lock)])
        ready.touch()
    return python


def _run(command: list[str], cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    result = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if result.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit {result.returncode}\n{result.stderr[-4000:]}")
    return result.stdout
