"""The incidents, as actions against an election. Each begins with a leader that has renewed for a while."""

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from lab.e2e.forwarder import Partition
from lab.e2e.incidents import odd_writers
from lab.e2e.incidents.scene import DURATION, Replica, Scene

AFTERWARDS: Final = 7.0
"""Seconds of the recording after the incident."""
LONG: Final = DURATION + 2.0
"""Seconds after which a lease has expired, and a follower has noticed."""


class Case(Struct, frozen=True):
    """An incident: what happened in a sentence, the cause in a word, and where it is played.

    `route`: a webhook of that name reviews the writes of its namespace. `is_alone`: it concerns every lease of the
    cluster. `expect`: the claims that are right and wrong, by input, written before `why` was asked; then everything
    is kept as in `tests/data/measured-incidents`. `also_kept`: other namespaces that belong to the recording.
    """

    name: str
    title: str
    cause: str
    namespace: str
    lease: str
    play: Callable[[Scene], None]
    route: str = ""
    is_alone: bool = False
    expect: Mapping[str, Any] = {}
    also_kept: tuple[str, ...] = ()


def kill_leader(scene: Scene) -> None:
    """Kill the leader: a crash, or the end of a node."""
    first = _start_two(scene)
    scene.kill(first)
    scene.wait_for_next_leader(first.identity)


def release_leader(scene: Scene) -> None:
    """Stop the leader in order: a rollout."""
    first = _start_two(scene, "-release")
    scene.stop(first)
    scene.wait_for_next_leader(first.identity)


def pause_leader(scene: Scene) -> None:
    """Pause the leader: a process without CPU, or a virtual machine that is moved."""
    first = _start_two(scene)
    scene.pause(first)
    scene.wait_for_next_leader(first.identity)
    time.sleep(1)
    scene.resume(first)
    scene.wait_until_stopped(first)


def stall_etcd(scene: Scene) -> None:
    """Pause etcd: the API server waits for its disk."""
    _start_two(scene)
    scene.record_action("SIGSTOP of etcd: the API server answers no write")
    with scene.stage.plane.pause("etcd"):
        time.sleep(LONG)
    scene.record_action("SIGCONT of etcd")
    scene.wait_for_renewals(2)


def cut_balancer(scene: Scene) -> None:
    """Cut the load balancer: no client reaches the API server."""
    _start_two(scene)
    scene.record_action("the load balancer before the API server passes nothing on")
    scene.stage.balancer.cut()
    time.sleep(LONG)
    scene.stage.balancer.heal()
    scene.record_action("the load balancer works again")
    scene.wait_for_renewals(2)


def cut_leader(scene: Scene) -> None:
    """Cut the network of one node."""
    name = scene.lease
    way = scene.stage.stack.enter_context(Partition(scene.stage.plane.port))
    first = scene.start(f"{name}-6f9c8d-k7x2p", port=way.port)
    scene.wait_until_leading(first)
    scene.start(f"{name}-6f9c8d-m4w9z")
    scene.wait_for_renewals()
    scene.record_action(f"the network of pod {first.pod.name} passes nothing on")
    way.cut()
    scene.wait_for_next_leader(first.identity)
    time.sleep(1)
    way.heal()
    scene.record_action(f"the network of pod {first.pod.name} works again")


def remove_rights(scene: Scene) -> None:
    """Delete the RoleBinding."""
    _start_two(scene)
    scene.record_action(f"the RoleBinding of the service accounts in {scene.namespace} is deleted")
    scene.stage.revoke(scene.namespace)
    time.sleep(LONG + 2)
    scene.stage.grant(scene.namespace)
    scene.record_action("the RoleBinding is made again")
    scene.wait_for_renewals(2)


def delete_lease(scene: Scene) -> None:
    """Delete the lease, as somebody who cleans up."""
    _start_two(scene)
    scene.record_action("an administrator deletes the lease")
    scene.stage.admin.send("DELETE", scene.path).expect(200)
    time.sleep(DURATION)


def run_two_applications(scene: Scene) -> None:
    """Give two operators that were made from one template the same election ID; one waits for the other."""
    first = scene.start("checkout-7b8d9f-x2x8p", "-release", account="checkout")
    scene.wait_until_leading(first)
    scene.start("reports-5c6f7d-q9hkz", "-release", account="reports")
    scene.wait_for_renewals()
    scene.stop(first)
    scene.wait_for_next_leader(first.identity)
    scene.start("checkout-7b8d9f-v8n4t", "-release", account="checkout")
    time.sleep(AFTERWARDS)


def share_identity(scene: Scene) -> None:
    """Give two replicas the same identity in their configuration."""
    first = scene.start(f"{scene.lease}-54d6c9-b5tmw", identity=scene.lease)
    scene.wait_until_leading(first)
    scene.wait_for_renewals()
    scene.record_action("the second replica starts, with the same identity")
    scene.start(f"{scene.lease}-54d6c9-h7r3c", identity=scene.lease)
    time.sleep(DURATION)


def kill_coordinated_leader(scene: Scene) -> None:
    """Crash the leader that the API server chose among LeaseCandidates."""
    for name, emulation in (("a", "1.35.0"), ("b", "1.36.0")):
        pod = f"{scene.lease}-node-{name}"
        scene.start_candidate(pod, emulation)
        if name == "a":
            scene.wait_for_holder(f"{pod} leads", pod)
    scene.wait_for_renewals()
    candidate, leader, *_ = scene.replicas
    candidate.process.kill()
    scene.kill(leader)
    scene.wait_for_next_leader(leader.identity)


def _start_two(scene: Scene, *flags: str) -> Replica:
    """Start two replicas of which the first one leads."""
    first = scene.start(f"{scene.lease}-7d4b9c-x2x8p", *flags)
    scene.wait_until_leading(first)
    scene.start(f"{scene.lease}-7d4b9c-q9hkz", *flags)
    scene.wait_for_renewals()
    return first


CASES: Final = (
    Case("leader-killed", "The leader's process was killed.", "client", "payments", "payments", kill_leader),
    Case(
        "leader-released", "The leader was stopped and released the lease.", "release", "cart", "cart", release_leader
    ),
    Case(
        "leader-paused",
        "The leader's process was paused for longer than the lease lasts, and then resumed.",
        "client",
        "mailer",
        "mailer",
        pause_leader,
    ),
    Case(
        "etcd-stalled",
        "etcd was paused, so the API server answered no write.",
        "api-server",
        "orders",
        "orders",
        stall_etcd,
        is_alone=True,
    ),
    Case(
        "load-balancer-cut",
        "No client reached the API server: the load balancer before it passed nothing on.",
        "api-server",
        "search",
        "search",
        cut_balancer,
        is_alone=True,
    ),
    Case(
        "leader-cut-off",
        "The network of the leader's pod failed; the others reached the API server.",
        "client",
        "prices",
        "prices",
        cut_leader,
    ),
    Case(
        "clock-behind",
        "The leader's clock was 40 s behind, and a follower that trusts renewTime took the lease.",
        "clock",
        "stock",
        "stock",
        odd_writers.set_clock_back,
    ),
    Case(
        "two-applications",
        "Two applications used one lease; only one of them could work.",
        "shared-lease",
        "backoffice",
        "operator",
        run_two_applications,
    ),
    Case(
        "one-identity",
        "Two replicas had one identity; both led.",
        "shared-identity",
        "exporter",
        "exporter",
        share_identity,
    ),
    Case(
        "rights-removed",
        "The right to write the lease was taken away, and given back.",
        "refused",
        "refunds",
        "refunds",
        remove_rights,
    ),
    Case(
        "lease-deleted",
        "An administrator deleted the lease under its leader.",
        "deleted",
        "coupons",
        "coupons",
        delete_lease,
    ),
    Case(
        "lease-stolen",
        "A job took the lease while its leader renewed it.",
        "stolen",
        "invoices",
        "invoices",
        odd_writers.steal,
    ),
    Case(
        "steal-denied",
        "A job tried to take the lease, and the webhook denied it.",
        "denied",
        "vouchers",
        "vouchers",
        odd_writers.steal_under_review,
        route=odd_writers.STRICT_ROUTE,
    ),
    Case(
        "steal-warned",
        "A job took the lease while its leader renewed it, and the webhook warned.",
        "stolen",
        "receipts",
        "receipts",
        odd_writers.steal_with_warning,
        route=odd_writers.STANDARD_ROUTE,
    ),
    Case(
        "coordinated",
        "The leader that the API server had chosen was killed.",
        "client",
        "scheduler",
        "scheduler",
        kill_coordinated_leader,
    ),
    Case(
        "fenced",
        "The leader was paused and replaced, and a fence refused what it wrote when it resumed.",
        "fenced",
        "shipping",
        "operator",
        odd_writers.fence_leader,
    ),
)
