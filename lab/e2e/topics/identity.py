"""The end of an API server on SIGTERM: with the component `control-plane`, and if a policy refuses its identity lease.

An API server has a lease of its own in kube-system, which it deletes when it starts and ends from 1.35 on.
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final

from lab.e2e.api_client import MERGE
from lab.e2e.control_plane import ControlPlane
from lab.e2e.webhook_server import WebhookServer
from lab.e2e.world import ROUTE, Row, World, build_lease_path
from tests.waiting import wait_for

SECONDS: Final = 20.0
"""Ten times what an API server without requests takes to end, or more."""
HANGING: Final = frozenset({36})
"""Minor versions of those tried (1.31, 1.34, 1.36, 1.37) that do not end then: kubernetes#140241."""
POLICIES: Final = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
REFUSAL: Final[dict[str, Any]] = {
    "failurePolicy": "Fail",
    "matchConstraints": {
        "resourceRules": [
            {
                "apiGroups": ["coordination.k8s.io"],
                "apiVersions": ["v1"],
                "resources": ["leases"],
                "operations": ["CREATE", "UPDATE"],
            }
        ]
    },
    "validations": [{"expression": "!request.name.startsWith('apiserver-')"}],
}


def run(world: World) -> Iterator[Row]:
    """Run each case on a control plane of its own, whose API server ends."""
    for name in ("reviewed in strict", "no pod answers", "another policy refuses the lease"):
        directory = world.directory / f"identity-{name.replace(' ', '-')}"
        directory.mkdir()
        with ControlPlane(world.plane.binaries, directory) as plane, ExitStack() as stack:
            own = World(plane)
            own.create_local_service()
            if name.startswith("another"):
                _refuse_the_lease(own)
            else:
                _review_kube_system(own, stack, is_answered=name.startswith("reviewed"))
            seconds = _measure_end(own)
        hangs = name.startswith("another") and world.plane.binaries.minor in HANGING
        observation = f"ended after {seconds:.1f} s" if seconds < SECONDS else f"did not end within {SECONDS:.0f} s"
        yield Row(name, observation, (seconds >= SECONDS) == hangs)


def _list_identities(world: World) -> list[str]:
    names = [one["metadata"]["name"] for one in world.admin.get(build_lease_path("kube-system"))["items"]]
    return [name for name in names if name.startswith("apiserver-")]


def _review_kube_system(world: World, stack: ExitStack, *, is_answered: bool) -> None:
    """Register as the component does: fail open, kube-system too.

    The API server renews its lease every ten seconds.
    """
    server = stack.enter_context(WebhookServer(world.directory, world.certs, policy="strict"))
    world.register("kube-system", server.port, system=True, renewals=True)
    labels = {"metadata": {"labels": {ROUTE: "kube-system"}}}
    world.admin.send("PATCH", "/api/v1/namespaces/kube-system", labels, media=MERGE).expect()
    world.settle()
    if not is_answered:
        server.stop()


def _refuse_the_lease(world: World) -> None:
    world.admin.send("POST", f"{POLICIES}ies", {"metadata": {"name": "identity"}, "spec": REFUSAL}).expect()
    binding = {"policyName": "identity", "validationActions": ["Deny"]}
    world.admin.send("POST", f"{POLICIES}ybindings", {"metadata": {"name": "identity"}, "spec": binding}).expect()
    time.sleep(5)
    for name in _list_identities(world):
        world.admin.send("DELETE", build_lease_path("kube-system", name)).expect()
    time.sleep(11)
    if _list_identities(world):
        raise RuntimeError("the API server created its lease although a policy refuses it")


def _measure_end(world: World) -> float:
    """Return the seconds until the end, at least SECONDS if it does not end."""
    begin = time.monotonic()
    os.kill(world.plane.apiserver_pid, signal.SIGTERM)
    try:
        wait_for("the end of the API server", lambda: world.plane.has_ended, SECONDS, 0.1)
    except TimeoutError:
        return SECONDS
    return time.monotonic() - begin
