"""A restore of etcd from a copy of its data without `--bump-revision`: what becomes of tokens.

The copy is made while etcd is paused, so it is what a crash at that moment would leave.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from tempfile import NamedTemporaryFile
from typing import Final

from lab.e2e.api_client import MERGE, ApiClient, Reply
from lab.e2e.fence.facts import Fact
from lab.e2e.fence.plane import TwoServers
from lab.e2e.fence.token import Bench, install_stamps, read_token
from lab.e2e.fence.trial import FIRST, SECOND, allow_service_accounts
from lab.e2e.kubectl import Kubectl
from lab.e2e.stamp_cases import SUFFIX
from tests.waiting import wait_for

PLACE: Final = "restore"
_WRITES: Final = 30
"""After the copy, so that the term of the successor is far beyond it."""


def check_restore(plane: TwoServers, kubectl: Kubectl) -> Iterator[Fact]:
    """Check a restore: `a` leads, then the copy is made, and `b` takes over; then etcd goes back."""
    allow_service_accounts(plane.create_admin_client(plane.port))
    install_stamps(kubectl)
    bench = Bench(plane, kubectl, PLACE)
    key = f"{PLACE}.lease-webhook/token-{SUFFIX}"
    a, b = bench.create_pod_client(FIRST), bench.create_pod_client(SECOND)
    bench.create_lease(a)
    bench.write_lease(a)
    _write(bench, a, "0").expect(200)
    plane.copy_etcd()
    for number in range(_WRITES):
        _write(bench, a, str(number)).expect(200)
    bench.move(a, b, "77aa")
    _write(bench, b, "b").expect(200)
    plane.restore_etcd()
    wait_for("the API server", lambda: _write(bench, b, "meanwhile").status == 200, 60)
    yield _check(
        "API servers that were not restarted: the leader of the copy", _write(bench, a, "a"), 403, "held by 77aa"
    )
    stored = bench.admin.get(bench.operator.log)
    late = read_token(stored, key)
    claim = "API servers that were not restarted: a token that no longer exists is stored"
    yield Fact(claim, int(late) > int(stored["metadata"]["resourceVersion"]), late)
    plane.restart_first()
    bench.admin = plane.create_admin_client(plane.port)
    a, b = bench.create_pod_client(FIRST), bench.create_pod_client(SECOND)
    wait_for("the lease", lambda: "in term" in _write(bench, a, "a").message, 60)
    yield _check("restarted: the leader of the copy", _write(bench, a, "a"), 403, f"was written in term {int(late)}")
    bench.move(a, b, "77ab")
    yield _check("restarted: its successor", _write(bench, b, "b"), 403, f"was written in term {int(late)}")
    findings = _run_audit(bench, kubectl)
    yield Fact("audit --fence finds it", [one["check"] for one in findings] == ["token-ahead"], str(findings))
    kubectl.run_checked("-n", PLACE, "annotate", "--overwrite", "configmap", "log", f"{key}={'0' * 18}")
    yield _check("set to zero: the leader", _write(bench, b, "b"), 200)


def _write(bench: Bench, client: ApiClient, text: str) -> Reply:
    try:
        return client.send("PATCH", bench.operator.log, {"data": {"k": text}}, media=MERGE)
    except OSError:
        return Reply(0, {}, (), "", 0.0)


def _check(claim: str, reply: Reply, status: int, words: str = "") -> Fact:
    return Fact(claim, reply.status == status and words in reply.message, f"{reply.status} {reply.message[:400]}")


def _run_audit(bench: Bench, kubectl: Kubectl) -> list[dict[str, str]]:
    """Return the findings of `audit --fence` about objects, with the lease as kubectl lists it."""
    time.sleep(1)
    options = ("-n", PLACE, "-o", "json", "--show-managed-fields")
    objects = kubectl.run_checked("get", "leases,configmaps", *options)
    fence = {"name": PLACE, "lease": f"{PLACE}/operator", "mode": "deny", **bench.keys}
    stamps = [{"suffix": SUFFIX, "namespaces": [PLACE]}]
    with NamedTemporaryFile("w", suffix=".yaml") as policy:
        json.dump({"apiVersion": "lease-webhook/v1", "stamps": stamps, "fences": [fence]}, policy)
        policy.flush()
        command = [
            sys.executable,
            "-m",
            "webhook",
            "audit",
            "--input",
            "-",
            "--fence",
            "--policy",
            policy.name,
            "--format",
            "json",
        ]
        output = subprocess.run(command, input=objects, capture_output=True, text=True, check=False, timeout=60).stdout
    return [one for one in map(json.loads, output.splitlines()) if one["check"].startswith("token-")]
