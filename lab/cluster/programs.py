"""The programs of a node: Kubernetes' from Go modules, the container runtime's from Debian packages."""

from pathlib import Path

from msgspec import Struct

from lab.cluster.debian import unpack
from lab.e2e.toolchain import Binaries, build, build_all_binaries, build_prometheus, list_version_flags

MODULES = Path(__file__).parent / "go"
VERSION = "v1.37.1"
STRIPPED = ("-ldflags", "-s -w")
PARTS = ("kubelet", "kube-controller-manager", "kube-scheduler", "kube-proxy")


class Programs(Struct, frozen=True):
    """Paths of the programs. `packages` is the tree of the Debian packages, `pause` a static program."""

    plane: Binaries
    kubelet: Path
    controller_manager: Path
    scheduler: Path
    proxy: Path
    pause: Path
    packages: Path


class Neighbors(Struct, frozen=True):
    """Programs that people run in the cluster beside us: Prometheus and its operator, cert-manager's controllers."""

    prometheus: Path
    operator: Path
    cert_manager: Path


def build_node_programs() -> Programs:
    """Build or fetch programs that are not in the cache. Raises MissingToolchainError without Go or without apt."""
    (plane,) = build_all_binaries(VERSION)
    source = MODULES / "kubernetes-1.37"
    kubelet, manager, scheduler, proxy = (
        build(source, f"k8s.io/kubernetes/cmd/{name}", name, list_version_flags(VERSION)) for name in PARTS
    )
    pause = build(MODULES / "pause", ".", "pause")
    return Programs(plane, kubelet, manager, scheduler, proxy, pause, unpack_node_packages())


def build_neighbors() -> Neighbors:
    """Build programs that are not in the cache. Raises MissingToolchainError without Go."""
    operator = "github.com/prometheus-operator/prometheus-operator/cmd/operator"
    return Neighbors(
        build_prometheus(),
        build(MODULES / "prometheus-operator", operator, "operator", STRIPPED),
        build(MODULES / "cert-manager", ".", "cert-manager", STRIPPED),
    )


def unpack_node_packages() -> Path:
    """Return the tree of Debian packages. Raises MissingToolchainError if they cannot be had."""
    return unpack("containerd", "runc", "containernetworking-plugins", "iptables", "conntrack", "iproute2")
