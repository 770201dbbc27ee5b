"""A preflight: whether this machine lets us create a node, by trying each requirement once, and undoing it."""

import os
import shutil
import sys
from pathlib import Path

from lab.cluster.isolation import CONTROL_GROUPS, PREFIX, explain_refusal, list_controllers
from lab.cluster.programs import unpack_node_packages

PROGRAMS = {"unshare": "util-linux", "setpriv": "util-linux", "mount": "mount", "apt-get": "apt", "dpkg-deb": "dpkg"}
"""Program, and the Debian package that it comes from."""
NEEDED = ("cpu", "cpuset", "memory", "pids")
"""Controllers without which no kubelet starts."""


def find_obstacle() -> str:
    """Return why there can be no node of our own here, in words for a person; "" if there can be one.

    Raises MissingToolchainError if Debian packages cannot be had.
    """
    if sys.platform != "linux" or os.geteuid() != 0:
        return "a node of our own needs root on Linux; name a cluster by KUBECONFIG instead"
    for program, package in PROGRAMS.items():
        if shutil.which(program) is None:
            return f"there is no {program} here, which comes from the Debian package {package}"
    try:
        # The kubelet reads there what the kernel says about killed processes. In most containers it is missing.
        Path("/dev/kmsg").open("rb").close()
    except OSError as error:
        return f"a kubelet cannot run here: {error}"
    return _find_group_obstacle() or explain_refusal(unpack_node_packages())


def _find_group_obstacle() -> str:
    """Return why no control groups can be created here, or ""."""
    if not CONTROL_GROUPS.is_dir() or not list(list_controllers()):
        return f"there are no control groups in {CONTROL_GROUPS}"
    places = list(list_controllers())
    if places == [CONTROL_GROUPS]:
        missing = set(NEEDED) - set((CONTROL_GROUPS / "cgroup.controllers").read_text().split())
    else:
        missing = set(NEEDED) - {path.name for path in places}
    if missing:
        return f"a kubelet cannot run here without the control groups {', '.join(sorted(missing))}"
    try:
        for controller in places:
            trial = controller / f"{PREFIX}{os.getpid()}"
            trial.mkdir()
            trial.rmdir()
        if places == [CONTROL_GROUPS]:
            (CONTROL_GROUPS / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in NEEDED))
    except OSError as error:
        return f"control groups cannot be made here: {error}"
    return ""
