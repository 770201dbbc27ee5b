"""From an empty cluster to a refused write, and what the pods may do, as /proc in the containers shows it."""

import json
import sys
import time
from collections.abc import Iterator

from lab.cluster.world import NAMESPACE, World
from lab.e2e.world import Row
from tests.waiting import wait_for

PROBE = r"""
import json, os, re
status = dict(line.split(":\t", 1) for line in open("/proc/1/status").read().splitlines() if ":\t" in line)
mounts = {line.split()[1]: line.split()[3].split(",")[0] for line in open("/proc/mounts")}
def refused(path):
    try:
        open(path, "w")
    except OSError as error:
        return error.strerror
    return "written"
def arguments(pid):
    return open(f"/proc/{pid}/cmdline", "rb").read().split(b"\0")
pids = [name for name in os.listdir("/proc") if name.isdecimal()]
print(json.dumps({
    "users": sorted(set(status["Uid"].split() + status["Gid"].split())),
    "capabilities": [status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")],
    "no new privileges": status["NoNewPrivs"],
    "seccomp": status["Seccomp"],
    "root": mounts["/"],
    "policy": mounts["/etc/lease-webhook/policy"],
    "tls": mounts["/etc/lease-webhook/tls"],
    "write": refused("/packages/x"),
    "programs": sorted(name for place in ("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin")
        if os.path.isdir(place) for name in os.listdir(place)),
    "token": os.path.exists("/var/run/secrets/kubernetes.io"),
    "processes": sum(b"serve" in arguments(pid) for pid in pids),
    "with cryptography": sum("cryptography" in open(f"/proc/{pid}/maps").read() for pid in pids),
}))
"""


def install(world: World) -> Iterator[Row]:
    """Apply the self-signed overlay: ready, enforcing."""
    begin = time.monotonic()
    ready = world.apply("self-signed")
    wait_for("the proof is refused", world.is_enforced, 60)
    whole = time.monotonic() - begin
    yield Row(
        "apply of the overlay self-signed to a cluster without it",
        f"both pods ready after {ready:.0f} s, the proof refused after {whole:.0f} s",
        passed=True,
    )
    code, status = world.run_status("--wait=60")
    print(status, file=sys.stderr)
    passed = code == 0 and status.count("as in the ConfigMap") == 2 and "2 of 2 ready" in status
    yield Row("`status`: in force, two pods, their policy that of the ConfigMap", f"exit {code}", passed=passed)
    events = world.kubectl.run("-n", NAMESPACE, "get", "events", "--field-selector=type=Warning", "-o", "json").stdout
    # A startup probe that comes before the process listens is how a start looks. An API server that looks for addresses
    # without an owner between the two writes of a new Service says that it repairs its own.
    warnings = [
        event["message"]
        for event in json.loads(events)["items"]
        if not event["message"].startswith("Startup probe failed") and event["reason"] != "ClusterIPNotAllocated"
    ]
    yield Row("events of type Warning since", "; ".join(warnings)[:200] or "none", passed=not warnings)


def check_confinement(world: World) -> Iterator[Row]:
    """Check the confinement of a pod as /proc inside it shows it."""
    (pod, *_) = world.list_pod_names()
    process = json.loads(world.run_python(pod, PROBE))
    zero = all(int(mask, 16) == 0 for mask in process["capabilities"])
    yield Row("/proc: user and groups", ", ".join(process["users"]), passed=process["users"] == ["65532"])
    yield Row("/proc: capabilities, all five sets", "none" if zero else str(process["capabilities"]), passed=zero)
    yield Row("/proc: no_new_privs", process["no new privileges"], passed=process["no new privileges"] == "1")
    yield Row("/proc: seccomp", f"mode {process['seccomp']} (2 is a filter)", passed=process["seccomp"] == "2")
    read_only = [process[name] for name in ("root", "policy", "tls")] == ["ro"] * 3
    yield Row(
        "/proc: root file system, policy and certificate",
        f"mounted read-only; a write: {process['write']}",
        passed=read_only and process["write"] == "Read-only file system",
    )
    programs = [name for name in process["programs"] if not name.startswith("python3")]
    yield Row("programs in the image beside Python", ", ".join(programs) or "none", passed=not programs)
    yield Row(
        "processes of the server, and how many of them keep the package cryptography in memory",
        f"{process['processes']}, {process['with cryptography']}",
        passed=process["processes"] >= 2 and not process["with cryptography"],
    )
    yield Row("a token of the service account", "mounted" if process["token"] else "none", passed=not process["token"])
