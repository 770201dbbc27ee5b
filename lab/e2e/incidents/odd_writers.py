"""Incidents with writers other than client-go: a wrong clock, a thief, a leader that a fence holds back."""

import datetime as dt
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from lab.e2e.api_client import MERGE
from lab.e2e.electors import ASYNCIO_PROGRAM
from lab.e2e.fence.trial import export_fence
from lab.e2e.incidents.scene import DURATION, Replica, Scene
from lab.e2e.incidents.stage import Pod
from lab.e2e.incidents.truth import Leadership
from lab.e2e.toolchain import build_fence_program
from lab.e2e.webhook_server import WebhookServer
from tests.waiting import wait_for

BEHIND: Final = 40
"""Seconds."""
STRICT_ROUTE: Final = "incidents"
STANDARD_ROUTE: Final = "incidents-standard"


def set_clock_back(scene: Scene) -> None:
    """Set back the clock of an asyncio elector, which bears it; its follower compares renewTime with its own clock."""
    stage = scene.stage
    pod = stage.create_pod(scene.namespace, scene.lease, f"{scene.lease}-59c8bd-x2x8p")
    identity = f"{pod.name}_1f0e"
    program = [str(stage.plane.binaries.asyncio_python), str(ASYNCIO_PROGRAM), str(pod.kubeconfig)]
    command = [*program, scene.namespace, scene.lease, identity, str(DURATION), "10", "2"]
    environment = {"PATH": os.environ["PATH"], "CLOCK_AHEAD_SECONDS": str(-BEHIND)}
    first = scene.add(Replica(pod, identity, stage.run(f"asyncio-{pod.name}", command, environment)))
    scene.wait_until_leading(first)
    scene.wait_for_renewals()
    first_agent = "OpenAPI-Generator"  # the field manager of the other replica, so that they are one program
    thief = stage.create_pod(scene.namespace, scene.lease, f"{scene.lease}-59c8bd-q9hkz", agent=first_agent)
    scene.record_action(
        f"pod {thief.name} starts: it takes a lease whose renewTime plus duration is past by its own clock"
    )
    _follow_by_clock(scene, thief, f"{thief.name}_2f0e")
    scene.wait_until_stopped(first)


def steal(scene: Scene) -> None:
    """Write a job into the lease at once; the leader notices at its next try."""
    first = _start_leader(scene)
    job = scene.stage.create_pod(scene.namespace, "migration", "migration-28771-t6lkd")
    scene.record_action(f"pod {job.name} writes itself into the lease that {first.identity} renews")
    _take(scene, job, f"{job.name}_9c2a")
    scene.wait_until_stopped(first)


def steal_under_review(scene: Scene) -> None:
    """Steal the lease while the webhook reviews the write."""
    stage = scene.stage
    with _serve_webhook(scene, STRICT_ROUTE, "strict"):
        first = _start_leader(scene)
        job = stage.create_pod(scene.namespace, "migration", "migration-28771-t6lkd")
        for _ in range(3):
            scene.record_action(f"pod {job.name} tries to take the lease that {first.identity} renews")
            reply = job.client.send("PATCH", scene.path, _make_claim(f"{job.name}_9c2a"), media=MERGE)
            if reply.status == 200:
                raise RuntimeError("the webhook let a steal pass")
            time.sleep(1.5)


def steal_with_warning(scene: Scene) -> None:
    """Steal the lease under the preset that only warns a writer of the lease's own namespace."""
    with _serve_webhook(scene, STANDARD_ROUTE, "standard"):
        steal(scene)


@contextmanager
def _serve_webhook(scene: Scene, route: str, policy: str) -> Iterator[None]:
    stage = scene.stage
    directory = stage.directory / route
    directory.mkdir()
    with WebhookServer(directory, stage.certs, policy=policy) as server:
        stage.register(route, server.port, failure_policy="Fail")
        stage.settle()
        yield
        stage.admin.send(
            "DELETE",
            f"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/e2e-{route}",
        ).expect(200)


def fence_leader(scene: Scene) -> None:
    """Pause a leader in the middle of its work; a fence refuses its later writes."""
    stage, space = scene.stage, scene.namespace
    log = f"/api/v1/namespaces/{space}/configmaps"
    stage.admin.send("POST", log, {"metadata": {"name": "log"}}).expect()
    writer = f"{space}/{scene.lease}"
    text = export_fence("shipping", writer, writers=[writer], resources=["configmaps"], namespaces=[space])
    stage.kubectl.run_checked("apply", "--server-side", "-f", "-", manifest=text)
    time.sleep(3)
    first = _start_worker(scene, "operator-6d5f8b-x2x8p")
    scene.wait_until_leading(first)
    _start_worker(scene, "operator-6d5f8b-q9hkz")
    scene.wait_for_renewals()
    scene.pause(first)
    scene.wait_for_next_leader(first.identity)
    time.sleep(1)
    scene.resume(first)
    wait_for("a refused write", lambda: "ValidatingAdmissionPolicy" in first.process.log.read_text(), 20)
    scene.wait_until_stopped(first)


def _start_leader(scene: Scene) -> Replica:
    first = scene.start(f"{scene.lease}-66c7f4-x2x8p")
    scene.wait_until_leading(first)
    scene.wait_for_renewals()
    return first


def _start_worker(scene: Scene, pod: str) -> Replica:
    """Start a controller that finishes the unit of work that it has begun, whatever becomes of its lease."""
    account = scene.stage.create_pod(scene.namespace, scene.lease, pod)
    where = [f"-kubeconfig={account.kubeconfig}", f"-namespace={scene.namespace}", f"-pod={pod}"]
    times = ["-duration=15s", "-deadline=10s", "-retry=2s", "-pause=300ms", "-unit=0"]
    process = scene.stage.run(f"fence-{pod}", [str(build_fence_program()), "work", *where, *times])
    return scene.add(Replica(account, f"{pod}_4b1c", process))


def _take(scene: Scene, pod: Pod, identity: str) -> None:
    """Take the lease, whoever has it, and renew it every two seconds."""
    pod.client.send("PATCH", scene.path, _make_claim(identity), media=MERGE).expect(200)
    scene.others.append(Leadership(identity, time.time_ns() // 1000))

    def renew() -> None:
        pod.client.send("PATCH", scene.path, {"spec": {"renewTime": _format_now()}}, media=MERGE).expect(200)

    scene.repeat_every_two_seconds(renew)


def _follow_by_clock(scene: Scene, pod: Pod, identity: str) -> None:
    """Follow: take a lease as soon as renewTime plus duration is past by its own clock, and then renew it."""

    def try_to_lead() -> None:
        lease = pod.client.get(scene.path)
        spec = lease["spec"]
        if spec["holderIdentity"] == identity:
            spec["renewTime"] = _format_now()
        elif dt.datetime.now(dt.UTC) > _parse_time(spec["renewTime"]) + dt.timedelta(
            seconds=spec["leaseDurationSeconds"]
        ):
            spec.update(_make_claim(identity)["spec"], leaseTransitions=(spec.get("leaseTransitions") or 0) + 1)
        else:
            return
        reply = pod.client.send("PUT", scene.path, lease)
        if reply.status == 200 and not scene.others:
            scene.others.append(Leadership(identity, time.time_ns() // 1000))

    scene.repeat_every_two_seconds(try_to_lead)


def _make_claim(identity: str) -> dict[str, Any]:
    now = _format_now()
    return {
        "spec": {
            "holderIdentity": identity,
            "leaseDurationSeconds": DURATION,
            "acquireTime": now,
            "renewTime": now,
        }
    }


def _format_now() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _parse_time(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text.replace("Z", "+00:00"))
