"""The proposals of `suggest` from an audit log, applied on a real API server: all that was seen passes, no more."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from lab.e2e.api_client import MERGE
from lab.e2e.control_plane import ControlPlane
from lab.e2e.electors import start_client_go
from lab.e2e.manifests import format_micro_time
from lab.e2e.webhook_server import WebhookServer
from lab.e2e.world import Account, Row, World, build_lease_path
from tests.waiting import wait_for

SHOP = "shop"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
PODS = ("checkout-0", "checkout-1")
TIMES = ("-duration=6s", "-deadline=4s", "-retry=1s", "-release")
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "RequestResponse", "resources": [{"group": "coordination.k8s.io"}], "namespaces": [SHOP]},
        {"level": "None"},
    ],
}


def run(world: World) -> Iterator[Row]:
    """Run on a separate control plane, in which no one may write leases: the shared one lets everybody."""
    directory = world.directory / "suggestions"
    directory.mkdir()
    policy = directory / "every-request.json"
    policy.write_text(json.dumps(AUDIT_POLICY))
    with ControlPlane(world.plane.binaries, directory, flags=[f"--audit-policy-file={policy}"]) as plane:
        own = World(plane)
        own.create_local_service()
        own.admin.send("DELETE", f"{RBAC}/clusterrolebindings/e2e-lease-writer").expect()
        own.create_namespace(SHOP, route=SHOP)
        own.create_namespace("other")
        yield from _Trial(own).run()


class _Trial:
    """An elector with two pods and an intruder, first without a webhook."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.electors = [world.create_account(SHOP, "checkout", pod) for pod in PODS]
        self.intruder = world.create_account("other", "intruder")
        self.kim, _ = world.create_user("kim")

    def run(self) -> Iterator[Row]:
        """Record, suggest, apply, repeat."""
        self._allow_everything([self.electors[0], self.intruder])
        self._elect("recorded")
        self._steal()
        bindings = self._suggest("bindings", "shop/checkout")
        is_granted = "other/intruder" in _uncomment(bindings)
        yield _make_row("the intruder is left out", is_granted, bindings, "other/intruder")
        policy = self._write_policy("bindings.yaml", bindings)
        with WebhookServer(self.world.directory, self.world.certs, policy=str(policy)) as server:
            self.world.register(SHOP, server.port, failure_policy="Fail", renewals=True)
            self.world.settle()
            yield self._repeat()
            yield self._check_beyond_binding()

    def _allow_everything(self, accounts: Sequence[Account]) -> None:
        rule = {"apiGroups": ["coordination.k8s.io"], "resources": ["*"], "verbs": ["*"]}
        place = f"{RBAC}/namespaces/{SHOP}"
        metadata = {"name": "everything"}
        self.world.admin.send("POST", f"{place}/roles", {"metadata": metadata, "rules": [rule]}).expect()
        subjects: list[dict[str, Any]] = [
            {"kind": "ServiceAccount", "name": one.name, "namespace": one.namespace} for one in accounts
        ]
        subjects.append({"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "people"})
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "everything"}
        body = {"metadata": metadata, "subjects": subjects, "roleRef": role}
        self.world.admin.send("POST", f"{place}/rolebindings", body).expect()

    def _elect(self, what: str) -> str:
        """Lead with one pod, crash it, and let the other take over and renew; the lease is created first."""
        binaries, lease = self.world.plane.binaries, build_lease_path(SHOP, "checkout")
        self.world.admin.send("DELETE", lease).expect(200, 404)

        def is_held_by(pod: str) -> bool:
            reply = self.world.admin.send("GET", lease)
            spec = reply.body.get("spec", {}) if reply.status == 200 else {}
            is_renewed = spec.get("renewTime") != spec.get("acquireTime")
            return str(spec.get("holderIdentity") or "").startswith(pod) and is_renewed

        begin = time.monotonic()
        with ExitStack() as stack:
            electors = []
            for account, pod in zip(self.electors, PODS, strict=True):
                identity = f"{pod}_{what}"
                elector = start_client_go(
                    stack, binaries, account.kubeconfig, *TIMES, namespaces=[SHOP], lease="checkout", identity=identity
                )
                electors.append(elector)
                if pod == PODS[0]:
                    wait_for(f"{what}: {pod} leads", lambda: is_held_by(PODS[0]), 30)
            electors[0].process.kill()
            wait_for(f"{what}: {PODS[1]} leads", lambda: is_held_by(PODS[1]), 45)
        return f"elected, renewed, failed over and released in {time.monotonic() - begin:.0f} s"

    def _steal(self) -> None:
        """Take the lease as the intruder while it is held."""
        keeper, lease = self.electors[0].client, build_lease_path(SHOP, "checkout")
        current = keeper.get(lease)
        current["spec"] |= _make_held_spec("checkout-0_live")["spec"]
        keeper.send("PUT", lease, current).expect()
        self.intruder.client.send("PATCH", lease, _make_held_spec("mallory"), media=MERGE).expect()

    def _suggest(self, what: str, *options: str) -> str:
        arguments = ["--input", str(self.world.plane.audit_log), *options]
        command = [sys.executable, "-m", "webhook", "suggest", what, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout

    def _write_policy(self, name: str, text: str) -> Path:
        path = self.world.directory / name
        path.write_text(
            text.replace("apiVersion: lease-webhook/v1\n", "apiVersion: lease-webhook/v1\npreset: strict\n", 1)
        )
        return path

    def _list_refusals(self) -> list[str]:
        """Return the refusals of the elector since the webhook is called, from the audit log."""
        return [
            f"{event['verb']} {event['responseStatus']['code']}"
            for event in self.world.read_audit_events(SHOP)
            if event["user"]["username"] == self.electors[0].user
            and event["responseStatus"].get("code") in {403, 422}
            and event["requestReceivedTimestamp"] > self._since
        ]

    def _repeat(self) -> Row:
        self._since = format_micro_time()
        observation = self._elect("again")
        refusals = self._list_refusals()
        return Row("the election passes under the suggested binding", "; ".join(refusals) or observation, not refusals)

    def _check_beyond_binding(self) -> Row:
        lease = build_lease_path(SHOP, "checkout")
        now = self.world.admin.get(lease)
        now["spec"] |= {
            "holderIdentity": "checkout-7_1f0e",
            "renewTime": format_micro_time(),
            "acquireTime": format_micro_time(),
        }
        replies = {
            "another writer": self.kim.send("PATCH", lease, _make_held_spec("checkout-0_kim"), media=MERGE),
            "another pod's name": self.electors[0].client.send("PUT", lease, now),
        }
        missing = [
            f"{what}: {reply.status} {reply.message}"
            for what, reply in replies.items()
            if reply.status != 403 or "identity-binding" not in reply.message
        ]
        observation = f"denied by identity-binding: {', '.join(replies)}"
        return Row("one thing more than the binding is denied", "; ".join(missing) or observation, not missing)


def _make_held_spec(holder: str) -> dict[str, Any]:
    return {"spec": {"holderIdentity": holder, "renewTime": format_micro_time(), "leaseDurationSeconds": 15}}


def _uncomment(text: str) -> str:
    return "\n".join(line.partition("#")[0] for line in text.splitlines())


def _make_row(claim: str, is_granted: bool, text: str, user: str) -> Row:
    remark = next((line for line in text.splitlines() if line.startswith(f"# left out: {user}")), "")
    return Row(claim, remark[2:].partition(" (")[0] or "no remark about it", passed=bool(remark) and not is_granted)
