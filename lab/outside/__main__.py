"""`make outside`: the term of a lease, or its resourceVersion, as a fencing token in PostgreSQL and Redis.

Two pods elect with client-go. The leader is stopped in the middle of its work until the other one leads and has
written, and then goes on. Whatever it writes after that is stale.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from lab.e2e.control_plane import ControlPlane
from lab.e2e.fence.token import install_stamps
from lab.e2e.fence.trial import FIRST, SECOND, Operator, allow_service_accounts
from lab.e2e.kubectl import Kubectl
from lab.e2e.stamp_cases import SUFFIX
from lab.e2e.toolchain import MissingToolchainError, build_all_binaries, build_fence_program
from lab.outside.stores import EXAMPLES, MissingStoreError, Redis, Stores, find_postgresql, find_redis
from tests.waiting import wait_for

NAMESPACE = "shop"
OWN = "4b1c"
"""The suffix that the elector appends to the name of its pod."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the trials. Return 1 if a stale write was stored in spite of the term, or none without it."""
    parser = argparse.ArgumentParser(prog="python -m lab.outside", description=__doc__)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--without-stamps", action="store_true", help="the resourceVersion instead of the term")
    options = parser.parse_args(arguments)
    try:
        find_postgresql()
        find_redis()
        program, [binaries] = build_fence_program(), build_all_binaries("v1.37")
    except (MissingStoreError, MissingToolchainError) as error:
        print(f"FAILED, nothing was tested: {error}", file=sys.stderr)
        return 1
    _compile_readers(program)
    totals: dict[str, list[int]] = {}
    for _ in range(options.trials):
        with tempfile.TemporaryDirectory(prefix="lease-webhook-outside-") as name:
            directory = Path(name)
            with ControlPlane(binaries, directory / "plane") as plane, Stores(_make(directory / "stores")) as stores:
                for store, (stale, all_writes) in _run_trial(
                    plane, stores, program, is_stamped=not options.without_stamps
                ).items():
                    before = totals.setdefault(store, [0, 0])
                    totals[store] = [before[0] + stale, before[1] + all_writes]
    print("| store | stale writes stored | writes stored |\n|---|---|---|")
    for store, (stale, all_writes) in totals.items():
        print(f"| {store} | {stale} | {all_writes} |")
    good = all((stale == 0) == ("with the token" in store) for store, (stale, _) in totals.items())
    return 0 if good else 1


def _run_trial(plane: ControlPlane, stores: Stores, program: Path, *, is_stamped: bool) -> dict[str, tuple[int, int]]:
    admin = plane.create_client("admin", "system:masters")
    kubectl = Kubectl(plane.binaries.kubectl, plane.write_kubeconfig("admin", "system:masters"))
    allow_service_accounts(admin)
    if is_stamped:
        install_stamps(kubectl)
    operator = Operator(plane, admin, NAMESPACE)
    if is_stamped:
        operator.label_namespace()
        time.sleep(3)  # an API server needs a moment for new policies
    pods: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for pod in (FIRST, SECOND):
            pods[pod] = _start(plane, stores, operator, program, pod, is_stamped=is_stamped)
            wait_for(f"{pod} writes", lambda: _list_writers(stores)["postgresql, with the token"], 60)
        os.killpg(pods[FIRST].pid, signal.SIGSTOP)
        wait_for("the successor writes", lambda: SECOND in _list_writers(stores)["postgresql, with the token"], 60)
        time.sleep(0.5)
        os.killpg(pods[FIRST].pid, signal.SIGCONT)
        time.sleep(4)
    finally:
        for process in pods.values():
            os.killpg(process.pid, signal.SIGCONT)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return {store: (_count_stale(found), len(found)) for store, found in _list_writers(stores).items()}


def _start(
    plane: ControlPlane, stores: Stores, operator: Operator, program: Path, pod: str, *, is_stamped: bool
) -> "subprocess.Popen[bytes]":
    config = plane.write_token_kubeconfig(f"outside-{pod}", operator.tokens[pod])
    where = [f"-kubeconfig={config}", f"-namespace={NAMESPACE}", f"-pod={pod}", "-library=client-go", "-pause=1s"]
    settings = {
        "elector": [str(program), "work", *where],
        "port": plane.port,
        "authority": str(plane.authority.file),
        "token": operator.tokens[pod],
        "namespace": NAMESPACE,
        "suffix": SUFFIX,
        "name": pod,
        "uid": operator.admin.get(f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}")["metadata"]["uid"],
        "identity": f"{pod}_{OWN}",
        "stores": str(stores.directory),
        "is_stamped": is_stamped,
    }
    file = plane.directory / f"{pod}.json"
    file.write_text(json.dumps(settings))
    with (plane.directory / f"{pod}.log").open("wb") as log:
        command = [sys.executable, "-m", "lab.outside.pod", str(file)]
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)


def _list_writers(stores: Stores) -> dict[str, list[str]]:
    """Return, by store, the pods in the order in which their writes were stored."""
    redis = Redis(stores.directory)
    return {
        "postgresql, with the token": stores.run_sql("SELECT pod FROM journal ORDER BY id").split(),
        "postgresql, without": stores.run_sql("SELECT pod FROM plain ORDER BY id").split(),
        "redis, with the token": redis.list_items("journal"),
        "redis, without": redis.list_items("plain"),
    }


def _count_stale(writers: Sequence[str]) -> int:
    """Return the number of writes of the first pod after one of its successor."""
    return writers[writers.index(SECOND) :].count(FIRST) if SECOND in writers else 0


def _make(directory: Path) -> Path:
    directory.mkdir()
    directory.parent.chmod(0o755)
    return directory


def _compile_readers(program: Path) -> None:
    """Compile the readers in Go and Java; that in Python runs in the pods. Raises CalledProcessError."""
    with tempfile.TemporaryDirectory() as name:
        module = Path(__file__).parents[1] / "e2e" / "go" / "fence"
        for file in (module / "go.mod", module / "go.sum"):
            (Path(name) / file.name).write_bytes(file.read_bytes())
        for reader in ("term", "revision"):
            (Path(name) / reader).mkdir()
            (Path(name) / reader / f"{reader}.go").write_bytes((EXAMPLES / f"{reader}.go").read_bytes())
        subprocess.run(["go", "vet", "-mod=mod", "./..."], cwd=name, check=True, timeout=600)
        java = ["javac", "-Xlint:all", "-Werror", "-d", name, *map(str, EXAMPLES.glob("*.java"))]
        subprocess.run(java, check=True, timeout=120)


if __name__ == "__main__":
    sys.exit(main())
