"""Everything of the node in namespaces of its own, so that the kernel takes it away however the run ends.

Processes, containers, mounts, bridges and firewall chains live in a PID, mount, network, IPC and UTS namespace whose
first process dies with the run. Control groups are the exception: they have a name of their own and are removed after.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from lab.cluster.debian import format_overlay

CONTROL_GROUPS = Path("/sys/fs/cgroup")
PREFIX = "lease-webhook-cluster-"
PRIVATE = ("/run", "/var/log")
"""Where the programs of a node write in spite of their options; in the namespace each is an empty tmpfs."""
SETTINGS = (
    *("kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxbytes", "kernel/keys/root_maxkeys"),
    *("vm/overcommit_memory", "vm/panic_on_oom"),
)
"""Settings of the whole machine that a kubelet writes: in the namespace it writes to copies."""
ADDRESS = "10.88.0.1"
PODS = "10.88.0.0/24"
BRIDGE = "cni0"
LAST_LINES = 8


def run_isolated(tree: Path, command: Callable[[Path], Sequence[str]], seconds: float) -> int:
    """Run the command in separate namespaces, with the tree's programs; return its exit status.

    `command` is made for a new directory, which is deleted at the end. Everything ends when this process ends, even by
    SIGKILL; what only this process could remove is then removed by the next run. Raises TimeoutError after `seconds`,
    with the ends of the logs that were written in the directory.
    """
    _remove_leftovers()
    group = f"{PREFIX}{os.getpid()}"
    directory = Path(tempfile.gettempdir(), group)
    try:
        directory.mkdir(mode=0o700)
        for controller in list_controllers():
            (controller / group).mkdir(exist_ok=True)
        child = subprocess.Popen(
            _wrap_in_namespaces(tree, command(directory)), env={**os.environ, "CLUSTER_CONTROL_GROUP": group}
        )
        try:
            return child.wait(seconds)
        except BaseException as error:
            child.send_signal(signal.SIGKILL)
            child.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                raise TimeoutError(f"no end after {seconds / 60:.0f} minutes\n{_read_log_ends(directory)}") from error
            raise
    finally:
        _remove(group)


def explain_refusal(tree: Path) -> str:
    """Return why a node's namespaces cannot be made here, or their firewall cannot be read; "" if they can."""
    trial = _wrap_in_namespaces(tree, ["/usr/sbin/xtables-nft-multi", "iptables", "-t", "nat", "-S"])
    try:
        result = subprocess.run(trial, capture_output=True, text=True, check=False, timeout=60)
    except subprocess.TimeoutExpired:
        return "namespaces could not be made within a minute"
    complaint = (result.stderr.strip().splitlines() or [f"exit {result.returncode}"])[-1]
    return f"the namespaces of a node cannot be made here: {complaint}" if result.returncode else ""


def _wrap_in_namespaces(tree: Path, command: Sequence[str]) -> list[str]:
    script = "; ".join(
        (
            "set -e",
            format_overlay(tree),
            *(f"mount -t tmpfs -o mode=755 tmpfs {path}" for path in PRIVATE),
            *(_copy(f"/proc/sys/{name}") for name in SETTINGS),
            "mount --make-rshared /",
            "ip link set lo up",
            f"ip link add {BRIDGE} type bridge",
            f"ip address add {ADDRESS}/24 dev {BRIDGE}",
            f"ip link set {BRIDGE} up",
            # Without any route the kernel refuses the address of a Service before kube-proxy's rules could change it.
            f"ip route add default dev {BRIDGE}",
            # Services are reached by pods of the same bridge, too.
            "echo 1 > /proc/sys/net/ipv4/ip_forward",
            "echo 1 > /proc/sys/net/bridge/bridge-nf-call-iptables",
            "hostname node-1",
            # Not by exec: the shell is the first process, to which orphans fall, and reaps them.
            '"$@"',
        )
    )
    namespaces = ["unshare", "--mount", "--net", "--uts", "--ipc", "--pid", "--fork", "--kill-child=KILL"]
    dies_with_us = ["setpriv", "--pdeathsig", "KILL"]
    return [*dies_with_us, *namespaces, "--mount-proc", "sh", "-c", script, "sh", *command]


def _read_log_ends(directory: Path) -> str:
    """Return the last lines of each log."""
    ends = []
    for log in sorted(directory.glob("*.log")):
        lines = log.read_text(errors="replace").splitlines()[-LAST_LINES:]
        ends.append("\n  ".join([f"{log.name}:", *lines]))
    return "\n".join(ends)


def _copy(setting: str) -> str:
    copy = f"/run/{setting.strip('/').replace('/', '-')}"
    return f"if [ -e {setting} ]; then cat {setting} > {copy}; mount --bind {copy} {setting}; fi"


def list_controllers() -> Iterator[Path]:
    """Yield the parents of control groups: one place with version 2, one for each controller with version 1."""
    if (CONTROL_GROUPS / "cgroup.controllers").exists():
        yield CONTROL_GROUPS
    else:
        yield from (path for path in CONTROL_GROUPS.iterdir() if (path / "cgroup.procs").exists())


def _remove_leftovers() -> None:
    """Remove leftovers of killed runs: those named after a process that no longer exists."""
    places = [*list_controllers(), Path(tempfile.gettempdir())]
    for name in {path.name for place in places for path in place.glob(f"{PREFIX}*")}:
        if not Path("/proc", name.removeprefix(PREFIX)).exists():
            _remove(name)


def _remove(group: str) -> None:
    """Remove the group and those below it, in every hierarchy, and the directory. Its processes are dead or dying."""
    end = time.monotonic() + 20
    for controller in list_controllers():
        top = controller / group
        while top.exists() and time.monotonic() < end:
            for path in sorted(top.rglob("*"), key=lambda path: -len(path.parts)):
                if path.is_dir():
                    _try_to_remove(path)
            _try_to_remove(top)
            if top.exists():
                time.sleep(0.2)
    directory = Path(tempfile.gettempdir(), group)
    if directory.exists():
        shutil.rmtree(directory)


def _try_to_remove(path: Path) -> None:
    try:
        path.rmdir()
    except OSError:
        # Busy while the kernel still ends a process in it; the caller comes back.
        return
