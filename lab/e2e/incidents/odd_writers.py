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
from lab.e2e.incidents.truth import Led
from lab.e2e.toolchain import fence_program
from lab.e2e.webhook_server import WebhookServer
from tests.waiting import wait_for

BEHIND: Final = 40
"""Seconds."""
STRICT_ROUTE: Final = "incidents"
STANDARD_ROUTE: Final = "incidents-standard"


def clock_behind(scene: Scene) -> None:
    """Like client-go's, the asyncio elector bears a wrong clock; its follower compares renewTime with its own."""
    stage = scene.stage
    made = stage.pod(scene.namespace, scene.lease, f"{scene.lease}-59c8bd-x2x8p")
    identity = f"{made.name}_1f0e"
    program = [str(stage.plane.binaries.asyncio_python), str(ASYNCIO_PROGRAM), str(made.kubeconfig)]
    command = [*program, scene.namespace, scene.lease, identity, str(DURATION), "10", "2"]
    environment = {"PATH": os.environ["PATH"], "CLOCK_AHEAD_SECONDS": str(-BEHIND)}
    first = scene.add(Replica(made, identity, stage.run(f"asyncio-{made.name}", command, environment)))
    scene.leads(first)
    scene.renews()
    first_agent = "OpenAPI-Generator"  # the field manager of the other replica, so that they are one program
    thief = stage.pod(scene.namespace, scene.lease, f"{scene.lease}-59c8bd-q9hkz", agent=first_agent)
    scene.did(f"pod {thief.name} starts: it takes a lease whose renewTime plus duration is past by its own clock")
    _trust(scene, thief, f"{thief.name}_2f0e")
    scene.gives_up(first)


def stolen(scene: Scene) -> None:
    """A job writes itself into the lease at once; the leader notices at its next try."""
    first = _one(scene)
    job = scene.stage.pod(scene.namespace, "migration", "migration-28771-t6lkd")
    scene.did(f"pod {job.name} writes itself into the lease that {first.identity} renews")
    _take(scene, job, f"{job.name}_9c2a")
    scene.gives_up(first)


def steal_denied(scene: Scene) -> None:
    """The same, and the webhook reviews it."""
    stage = scene.stage
    with _reviewed(scene, STRICT_ROUTE, "strict"):
        first = _one(scene)
        job = stage.pod(scene.namespace, "migration", "migration-28771-t6lkd")
        for _ in range(3):
            scene.did(f"pod {job.name} tries to take the lease that {first.identity} renews")
            reply = job.client.send("PATCH", scene.path, _claim(f"{job.name}_9c2a"), media=MERGE)
            if reply.status == 200:
                raise RuntimeError("the webhook let a steal pass")
            time.sleep(1.5)


def steal_warned(scene: Scene) -> None:
    """The same with the preset that only warns a writer of the lease's own namespace."""
    with _reviewed(scene, STANDARD_ROUTE, "standard"):
        stolen(scene)


@contextmanager
def _reviewed(scene: Scene, route: str, policy: str) -> Iterator[None]:
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


def fenced(scene: Scene) -> None:
    """A leader in the middle of its work is paused; a fence refuses what it writes afterwards."""
    stage, space = scene.stage, scene.namespace
    log = f"/api/v1/namespaces/{space}/configmaps"
    stage.admin.send("POST", log, {"metadata": {"name": "log"}}).expect()
    writer = f"{space}/{scene.lease}"
    text = export_fence("shipping", writer, writers=[writer], resources=["configmaps"], namespaces=[space])
    stage.kubectl.must("apply", "--server-side", "-f", "-", manifest=text)
    time.sleep(3)
    first = _worker(scene, "operator-6d5f8b-x2x8p")
    scene.leads(first)
    _worker(scene, "operator-6d5f8b-q9hkz")
    scene.renews()
    scene.pause(first)
    scene.next_leader(first.identity)
    time.sleep(1)
    scene.resume(first)
    wait_for("a refused write", lambda: "ValidatingAdmissionPolicy" in first.process.log.read_text(), 20)
    scene.gives_up(first)


def _one(scene: Scene) -> Replica:
    first = scene.start(f"{scene.lease}-66c7f4-x2x8p")
    scene.leads(first)
    scene.renews()
    return first


def _worker(scene: Scene, pod: str) -> Replica:
    """A controller that goes on with the unit of work that it has begun, whatever becomes of its lease."""
    made = scene.stage.pod(scene.namespace, scene.lease, pod)
    where = [f"-kubeconfig={made.kubeconfig}", f"-namespace={scene.namespace}", f"-pod={pod}"]
    times = ["-duration=15s", "-deadline=10s", "-retry=2s", "-pause=300ms", "-unit=0"]
    process = scene.stage.run(f"fence-{pod}", [str(fence_program()), "work", *where, *times])
    return scene.add(Replica(made, f"{pod}_4b1c", process))


def _take(scene: Scene, pod: Pod, identity: str) -> None:
    """Take the lease, whoever has it, and renew it every two seconds."""
    pod.client.send("PATCH", scene.path, _claim(identity), media=MERGE).expect(200)
    scene.others.append(Led(identity, time.time_ns() // 1000))

    def renew() -> None:
        pod.client.send("PATCH", scene.path, {"spec": {"renewTime": _now()}}, media=MERGE).expect(200)

    scene.every_two_seconds(renew)


def _trust(scene: Scene, pod: Pod, identity: str) -> None:
    """A follower that takes a lease as soon as renewTime plus duration is past by its own clock, and then renews it."""

    def try_to_lead() -> None:
        lease = pod.client.get(scene.path)
        spec = lease["spec"]
        if spec["holderIdentity"] == identity:
            spec["renewTime"] = _now()
        elif dt.datetime.now(dt.UTC) > _time(spec["renewTime"]) + dt.timedelta(seconds=spec["leaseDurationSeconds"]):
            spec.update(_claim(identity)["spec"], leaseTransitions=(spec.get("leaseTransitions") or 0) + 1)
        else:
            return
        reply = pod.client.send("PUT", scene.path, lease)
        if reply.status == 200 and not scene.others:
            scene.others.append(Led(identity, time.time_ns() // 1000))

    scene.every_two_seconds(try_to_lead)


def _claim(identity: str) -> dict[str, Any]:
    now = _now()
    return {
        "spec": {
            "holderIdentity": identity,
            "leaseDurationSeconds": DURATION,
            "acquireTime": now,
            "renewTime": now,
        }
    }


def _now() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _time(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text.replace("Z", "+00:00"))
