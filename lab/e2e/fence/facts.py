"""The effects of a fence on single requests: texts word for word, modes, and ways around it that somebody may try."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from msgspec import Struct

from lab.e2e.api_client import APPLY, MERGE, ApiClient, Reply
from lab.e2e.control_plane import ControlPlane
from lab.e2e.fence.trial import FIRST, SECOND, Operator, export_fence
from lab.e2e.kubectl import Kubectl

PLACE: Final = "facts"
SETTLING: Final = 3.0
"""Seconds until an API server uses a policy that was changed."""
_HELD: Final = f"lease {PLACE}/operator is held by op-a_1 since transition 7, and this write comes from "
_DENIED: Final = "ValidatingAdmissionPolicy 'fence-facts' with binding 'fence-facts' denied request: "
STALE: Final = (
    f'configmaps "log" is forbidden: {_DENIED}{_HELD}pod op-b; only the holder may write: stop this work, '
    "or acquire the lease first (fence facts)"
)
UNBOUND: Final = (
    f'configmaps "log" is forbidden: {_DENIED}{_HELD}a token that names no pod; write with the token that is '
    "mounted into the holder's pod (fence facts)"
)


class Fact(Struct, frozen=True):
    """A claim, and the observation where it differs."""

    claim: str
    passed: bool
    observation: str = ""


def check_facts(plane: ControlPlane, admin: ApiClient, kubectl: Kubectl) -> Iterator[Fact]:
    """Check one fence in a namespace of its own, in every mode."""
    operator = Operator(plane, admin, PLACE)
    clients = {pod: plane.create_token_client(pod, token) for pod, token in operator.tokens.items()}
    leader, stale = clients[FIRST], clients[SECOND]

    def apply(**keys: str) -> str:
        own = f"{PLACE}/operator"
        keys = {"missing_lease": "deny", **keys}
        text = export_fence("facts", own, writers=[own], resources=["configmaps", "deployments.apps/scale"], **keys)
        kubectl.run_checked("apply", "--server-side", "-f", "-", manifest=text)
        time.sleep(SETTLING)
        return text

    def hold(holder: str | None) -> None:
        body = {"spec": {"holderIdentity": holder, "leaseTransitions": 7}}
        operator.admin.send("PATCH", operator.lease, body, media=MERGE).expect(200)
        time.sleep(0.5)

    text = apply()
    again = kubectl.run("diff", "--server-side", "-f", "-", manifest=text)
    yield Fact("applied twice by server-side apply, nothing changes", not again.status, again.stdout + again.stderr)
    yield _check_text("no lease: refused", _write(stale, operator), lambda one: "no params found" in one.message)
    operator.admin.send("POST", operator.lease.rpartition("/")[0], {"metadata": {"name": "operator"}}).expect(201)
    time.sleep(0.5)
    yield _check_text("unheld: allowed", _write(stale, operator), lambda one: one.status == 200)
    hold("op-a_1")
    yield _check_text("the holder's pod: allowed", _write(leader, operator), lambda one: one.status == 200)
    yield _check_text("another pod, word for word", _write(stale, operator), lambda one: one.message == STALE)
    unbound = ApiClient(plane.port, plane.authority.file, "unbound", token=_create_unbound_token(operator))
    yield _check_text(
        "a token without a pod, word for word", _write(unbound, operator), lambda one: one.message == UNBOUND
    )
    yield _check_text(
        "a user who is not listed: allowed", _write(operator.admin, operator), lambda one: one.status == 200
    )
    deployments = f"/apis/apps/v1/namespaces/{PLACE}/deployments"
    creation = stale.send("POST", deployments, _make_deployment())
    yield _check_text("a resource whose subresource alone is fenced: allowed", creation, lambda one: one.status == 201)
    scale = stale.send("PATCH", f"{deployments}/main/scale", {"spec": {"replicas": 2}}, media=MERGE)
    yield _check_text("the fenced subresource: refused", scale, lambda one: _HELD in one.message)
    for name, reply in _try_ways_around(operator, stale):
        yield _check_text(f"{name}: refused", reply, lambda one: _HELD in one.message and one.status == 403)
    for holder in ("op-b2_1", "op-b-2_1", "op-b", "\x1b[31mop-b_\n", "x" * 1_000_000):
        hold(holder)
        quotation = json.dumps(holder[:12])
        yield _check_text(
            f"holder {quotation}: not the pod op-b", _write(stale, operator), lambda one: one.status == 403
        )
    long = f"op-{'a' * 59}-{'b' * 9}"
    hold(f"{long[:62]}_1")
    named_long = plane.create_token_client("long", operator.create_token(long))
    yield _check_text(
        "a pod whose host name was cut: allowed", _write(named_long, operator), lambda one: one.status == 200
    )
    hold(None)
    apply(when_unheld="deny")
    yield _check_text("when_unheld: deny", _write(stale, operator), lambda one: "has no holder" in one.message)
    hold("op-a_1")
    apply(mode="warn")
    yield _check_text(
        "mode warn: allowed with a warning",
        _write(stale, operator),
        lambda one: one.status == 200 and _HELD in "".join(one.warnings),
    )
    apply(mode="audit")
    yield _check_text(
        "mode audit: allowed", _write(stale, operator), lambda one: one.status == 200 and not one.warnings
    )
    operator.admin.send("DELETE", operator.lease).expect(200)
    time.sleep(0.5)
    yield _check_text("mode audit without a lease: allowed", _write(stale, operator), lambda one: one.status == 200)
    largest = kubectl.run("apply", "--server-side", "--dry-run=server", "-f", "-", manifest=_find_largest())
    yield Fact("the largest fence that a policy file may have is accepted", not largest.status, largest.stderr)
    kubectl.run_checked("delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", "fence-facts")


def _find_largest() -> str:
    return export_fence(
        "f" * 57,
        f"{'n' * 60}/{'l' * 240}",
        writers=[f"{'n' * 60}/{number:03}{'a' * 240}" for number in range(32)],
        resources=[f"r{number}.{'g' * 60}.example.com/status" for number in range(128)],
        namespaces=[f"{'s' * 60}{number:03}" for number in range(128)],
        holder=[f"{'h' * 200}{number}/${{pod}}_*" for number in range(8)],
    )


def _try_ways_around(operator: Operator, client: ApiClient) -> Iterator[tuple[str, Reply]]:
    collection = operator.log.rpartition("/")[0]
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}}
    yield "create", client.send("POST", collection, {"metadata": {"name": "made"}})
    yield (
        "create by server-side apply",
        client.send("PATCH", f"{collection}/applied", applied, media=APPLY, fieldManager="stale", force=True),
    )
    yield (
        "a change of labels alone",
        client.send("PATCH", operator.log, {"metadata": {"labels": {"a": "b"}}}, media=MERGE),
    )
    yield "dry run", client.send("PATCH", operator.log, {"data": {"entry": "x"}}, media=MERGE, dryRun="All")
    yield "delete", client.send("DELETE", operator.log)
    yield "delete of the collection", client.send("DELETE", collection)


def _make_deployment() -> dict[str, Any]:
    labels = {"app": "main"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "none"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": pod}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "main"}, "spec": spec}


def _write(client: ApiClient, operator: Operator) -> Reply:
    return client.send("PATCH", operator.log, {"data": {"entry": str(time.time_ns())}}, media=MERGE)


def _check_text(claim: str, reply: Reply, fits: Callable[[Reply], bool]) -> Fact:
    return Fact(claim, fits(reply), f"{reply.status} {reply.message[:300]} {reply.warnings}")


def _create_unbound_token(operator: Operator) -> str:
    path = f"/api/v1/namespaces/{operator.namespace}/serviceaccounts/operator/token"
    answer: dict[str, Any] = operator.admin.send("POST", path, {"spec": {"expirationSeconds": 3600}}).expect()
    return str(answer["status"]["token"])
