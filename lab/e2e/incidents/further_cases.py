"""Incidents that mislead, recorded on another version of the API server than the others (1.34.10).

`why` was asked about them after its code was done, and what it may say was written before. People do something harmless
when a leader dies, writers have no pods, one writes under another name, hiccups cost nothing.
"""

import threading
import time
from typing import Any, Final

from lab.e2e.api_client import APPLY, MERGE, ApiClient
from lab.e2e.forwarder import Partition
from lab.e2e.incidents.cases import Case
from lab.e2e.incidents.measured_cases import (
    CLIENT,
    NOT_THE_SERVER,
    QUIET,
    TAKEN,
    ClockLeader,
    create_kubectl_client,
    expect,
    format_now,
    make_case,
    make_claim,
    make_lease,
    start_pair,
    start_replica,
)
from lab.e2e.incidents.scene import Scene
from lab.e2e.incidents.truth import Leadership
from lab.e2e.incidents.vendor import Vendor
from lab.e2e.world import build_lease_path
from tests.waiting import wait_for

_ROLES: Final = "/apis/rbac.authorization.k8s.io/v1/namespaces"


def kill_all(scene: Scene) -> None:
    """Crash both replicas at once, as with a pool of nodes; no one takes the lease."""
    start_pair(scene)
    for replica in scene.replicas:
        scene.kill(replica)
    time.sleep(20)


def jump_clock_then_kill(scene: Scene) -> None:
    """Let the leader's clock jump ahead by ten minutes and later crash it; client-go's follower does not care."""
    leader, begun = ClockLeader(scene), time.time_ns() // 1000
    leader.lead()
    scene.start(f"{scene.lease}-7d4b9c-q9hkz")
    time.sleep(13)
    scene.record_action("the leader's clock jumps ahead by 600 s")
    leader.offset = 600
    time.sleep(9)
    leader.has_ended = True
    at = scene.record_action("the leader's process ends without a release")
    scene.others.append(Leadership(leader.identity, begun, at, "killed"))
    scene.wait_for_next_leader(leader.identity)


def remove_update_right(scene: Scene) -> None:
    """Narrow the Role: get stays, update and patch go, and come back later."""
    start_pair(scene)
    rules = [
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "list", "watch", "create"]}
    ]
    path, admin = f"{_ROLES}/{scene.namespace}", scene.stage.admin
    admin.send("POST", f"{path}/roles", {"metadata": {"name": "reader"}, "rules": rules}).expect()
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group"}
    subject["name"] = f"system:serviceaccounts:{scene.namespace}"
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    binding = {"metadata": {"name": "reader"}, "subjects": [subject], "roleRef": role}
    admin.send("POST", f"{path}/rolebindings", binding).expect()
    scene.record_action(
        "the right to update leases is taken from the service accounts of this namespace; they may still read"
    )
    scene.stage.revoke(scene.namespace)
    time.sleep(19)
    scene.stage.grant(scene.namespace)
    scene.record_action("the right is given back")
    scene.wait_for_renewals(3)


def collect_lease(scene: Scene) -> None:
    """Delete the owner pod of the lease; the garbage collector, played here, deletes the lease."""
    start_pair(scene)
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": f"{scene.lease}-init",
        "uid": "0b7d5f0e-0000-4000-8000-00000000dead",
    }
    installer = scene.stage.plane.create_client("helm", "system:masters")
    installer.send("PATCH", scene.path, {"metadata": {"ownerReferences": [owner]}}, media=MERGE).expect(200)
    time.sleep(5)
    collector = scene.stage.plane.create_client(
        "system:serviceaccount:kube-system:generic-garbage-collector", "system:masters"
    )
    scene.record_action("the garbage collector deletes the lease, whose owner is gone")
    collector.send("DELETE", scene.path).expect(200)
    time.sleep(14)


def apply_again(scene: Scene) -> None:
    """Apply the duration that is set already, each five seconds, by server-side apply."""
    start_pair(scene)
    gitops = scene.stage.plane.create_client(
        "system:serviceaccount:argocd:argocd-application-controller", "system:masters"
    )
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": scene.lease}}
    body |= {"spec": {"leaseDurationSeconds": 15}}
    for _ in range(5):
        gitops.send("PATCH", scene.path, body, media=APPLY, fieldManager="argocd-controller", force=True).expect(200)
        time.sleep(5)
    scene.record_action("argocd applied leaseDurationSeconds 15 five times")


def interrupt_etcd(scene: Scene) -> None:
    """Stop etcd for 3 s, four times: every renewal is late, and none too late."""
    start_pair(scene)
    for _ in range(4):
        scene.record_action("etcd is stopped for 3 s")
        with scene.stage.plane.pause("etcd"):
            time.sleep(3)
        time.sleep(6)


def pause_api_server(scene: Scene) -> None:
    """Pause the API server's process for 5 s, as a virtual machine that is moved; nothing is lost."""
    start_pair(scene)
    scene.record_action("SIGSTOP of kube-apiserver for 5 s")
    with scene.stage.plane.pause("kube-apiserver"):
        time.sleep(5)
    time.sleep(12)


def run_impatient_follower(scene: Scene) -> None:
    """Run a follower of its own kind that waits four seconds only; the leader is paused for seven, and then goes on."""
    first = scene.start(f"{scene.lease}-7d4b9c-x2x8p")
    scene.wait_until_leading(first)
    scene.wait_for_renewals()
    pod = scene.stage.create_pod(scene.namespace, scene.lease, f"{scene.lease}-7d4b9c-w5n2d")
    identity = f"{pod.name}_2f0e"
    renewal: list[Any] = ["", 0.0]

    def follow() -> None:
        lease = pod.client.get(scene.path)
        spec = lease["spec"]
        if spec["renewTime"] != renewal[0]:
            renewal[:] = spec["renewTime"], time.monotonic()
        if spec["holderIdentity"] == identity:
            spec["renewTime"] = format_now()
        elif time.monotonic() - renewal[1] > 4:
            spec.update(make_claim(identity, format_now()), leaseTransitions=(spec.get("leaseTransitions") or 0) + 1)
        else:
            return
        if pod.client.send("PUT", scene.path, lease).status == 200 and not scene.others:
            scene.record_action(f"{identity} takes the lease, which it has not seen renewed for 4 s")
            scene.others.append(Leadership(identity, time.time_ns() // 1000))

    scene.repeat(1, follow)
    time.sleep(5)
    scene.pause(first)
    time.sleep(7)
    scene.resume(first)
    scene.wait_until_stopped(first)
    time.sleep(3)


def set_maximum_transitions(scene: Scene) -> None:
    """Set leaseTransitions to the largest number; the leader dies, and the API server refuses every follower."""
    first = start_pair(scene)
    alice = create_kubectl_client(scene, "alice")
    alice.send("PATCH", scene.path, {"spec": {"leaseTransitions": 2**31 - 1}}, media=MERGE).expect(200)
    scene.record_action("alice sets leaseTransitions to 2147483647")
    time.sleep(6)
    scene.kill(first)
    time.sleep(24)


def elect_without_pods(scene: Scene) -> None:
    """Elect machines that log in by client certificates, as the control plane does; one crashes."""
    machines = [_start_machine(scene, f"machine-{number}") for number in (1, 2)]
    wait_for("a machine leads", lambda: scene.stage.read_holder(scene.namespace, scene.lease), 30)
    time.sleep(12)
    holder = scene.stage.read_holder(scene.namespace, scene.lease)
    at = scene.record_action(f"{holder} loses its power")
    for name, end in machines:
        if name == holder:
            end.set()
    scene.others[-1] = Leadership(holder, scene.others[-1].begins, at, "killed")
    scene.wait_for_next_leader(holder)
    time.sleep(4)


def _start_machine(scene: Scene, name: str) -> tuple[str, threading.Event]:
    """Start a machine; return its name, and the event that ends it."""
    client, end = scene.stage.plane.create_client(name, "system:masters"), threading.Event()
    renewal: list[Any] = ["", 0.0]

    def work() -> None:
        if end.is_set():
            return
        reply = client.send("GET", scene.path)
        if reply.status == 404:
            if client.send("POST", build_lease_path(scene.namespace), make_lease(scene, name)).status == 201:
                scene.others.append(Leadership(name, time.time_ns() // 1000))
            return
        spec = reply.body["spec"]
        if spec["renewTime"] != renewal[0]:
            renewal[:] = spec["renewTime"], time.monotonic()
        if spec["holderIdentity"] == name:
            spec["renewTime"] = format_now()
            client.send("PUT", scene.path, reply.body)
        elif time.monotonic() - renewal[1] > 15:
            spec.update(make_claim(name, format_now()), leaseTransitions=(spec.get("leaseTransitions") or 0) + 1)
            if client.send("PUT", scene.path, reply.body).status == 200:
                scene.others.append(Leadership(name, time.time_ns() // 1000))

    scene.repeat_every_two_seconds(work)
    return name, end


def delete_when_free(scene: Scene) -> None:
    """Delete the free lease that the leader has released; a new replica creates it."""
    first = scene.start(f"{scene.lease}-7d4b9c-x2x8p", "-release")
    scene.wait_until_leading(first)
    scene.wait_for_renewals()
    scene.stop(first)
    scene.remove_pod(first)
    time.sleep(3)
    alice = create_kubectl_client(scene, "alice")
    scene.record_action("alice deletes the lease, which no one holds")
    alice.send("DELETE", scene.path).expect(200)
    time.sleep(3)
    second = scene.start(f"{scene.lease}-7d4b9c-b5t8q", "-release")
    scene.wait_until_leading(second)
    scene.wait_for_renewals()


def flicker_vendor(scene: Scene) -> None:
    """Let another vendor's webhook refuse writes for four seconds in every ten: renewals are late, and in time."""
    with Vendor(scene.stage) as vendor:
        start_pair(scene)
        vendor.register(scene.namespace)
        scene.record_action("another vendor's webhook refuses the writes in this namespace for 4 s in every 10 s")
        for _ in range(3):
            vendor.denied.add(scene.namespace)
            time.sleep(4)
            vendor.denied.discard(scene.namespace)
            time.sleep(6)
        vendor.remove(scene.namespace)
    scene.wait_for_renewals(3)


def hand_over_quickly(scene: Scene) -> None:
    """Update three replicas one by one: each leader is stopped as soon as it leads."""
    first = start_pair(scene, "-release")
    scene.start(f"{scene.lease}-7d4b9c-g6b4n", "-release")
    before = first.identity
    for suffix in ("t4m6r", "j5v2h"):
        scene.start(f"{scene.lease}-8c5d7f-{suffix}", "-release")
        scene.stop(start_replica(scene, before))
        before = scene.wait_for_next_leader(before)
    scene.wait_for_renewals()


def steal_under_another_name(scene: Scene) -> None:
    """Write another holder, and impersonate a service account of another application for it."""
    start_pair(scene)
    plane, account = scene.stage.plane, "system:serviceaccount:reports:reports"
    certificate = plane.authority.issue("alice", organizations=["system:masters"])
    alice = ApiClient(plane.port, plane.authority.file, "kubectl-patch", certificate)
    alice._headers |= {"Impersonate-User": account, "Impersonate-Group": "system:masters"}
    scene.record_action(f"alice, as {account}, writes reports-0_aaaa as the holder")
    alice.send("PATCH", scene.path, {"spec": make_claim("reports-0_aaaa", format_now())}, media=MERGE).expect(200)
    time.sleep(20)


def label_then_kill(scene: Scene) -> None:
    """Label the lease while the leader crashes; the two have nothing to do with each other."""
    first = start_pair(scene)
    alice = create_kubectl_client(scene, "alice")
    for number in range(4):
        alice.send("PATCH", scene.path, {"metadata": {"labels": {"checked": str(number)}}}, media=MERGE).expect(200)
        time.sleep(0.4)
    scene.record_action("alice labels the lease four times")
    scene.kill(first)
    time.sleep(1)
    for number in range(4, 8):
        alice.send("PATCH", scene.path, {"metadata": {"labels": {"checked": str(number)}}}, media=MERGE).expect(200)
    scene.wait_for_next_leader(first.identity)


def refuse_stranger(scene: Scene) -> None:
    """Try to write without rights, again and again, while the leader crashes."""
    first = start_pair(scene)
    bob = scene.stage.plane.create_client("bob")
    scene.kill(first)
    for _ in range(6):
        bob.send("PATCH", scene.path, {"spec": {"holderIdentity": "bob"}}, media=MERGE).expect(403)
        bob.send("DELETE", scene.path).expect(403)
        time.sleep(2)
    scene.record_action("bob tried to take and to delete the lease twelve times; all was refused (403)")
    scene.wait_for_next_leader(first.identity)


def rehearse_then_kill(scene: Scene) -> None:
    """Rehearse a deletion (a dry run, as the body says); a second later the leader crashes."""
    first = start_pair(scene)
    alice = create_kubectl_client(scene, "alice")
    scene.record_action("alice deletes the lease as a dry run: nothing is deleted")
    alice.send("DELETE", scene.path, {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]}).expect(200)
    time.sleep(1)
    scene.kill(first)
    scene.wait_for_next_leader(first.identity)


def retry_slowly(scene: Scene) -> None:
    """Elect by 15, 10 and 8 s, which leave no room. The network fails for 9 s, and the leader gives up."""
    way = scene.stage.stack.enter_context(Partition(scene.stage.plane.port))
    times = ("-duration=15s", "-deadline=10s", "-retry=8s")
    first = start_pair(scene, *times, port=way.port)
    scene.record_action("the network of the leader's pod passes nothing on")
    way.cut()
    scene.wait_for_next_leader(first.identity)
    way.heal()
    scene.record_action("the network works again")


def renew_ahead_once(scene: Scene) -> None:
    """Patch renewTime a day ahead; the leader overwrites it with its next renewal."""
    start_pair(scene)
    alice = create_kubectl_client(scene, "alice")
    scene.record_action("alice writes a renewTime of tomorrow")
    alice.send("PATCH", scene.path, {"spec": {"renewTime": format_now(86_400)}}, media=MERGE).expect(200)
    time.sleep(12)


_NOT_LOST: Final = [*TAKEN, *NOT_THE_SERVER, "leader-lost", "expired", "lease-shared"]
_NO_ONE: Final = ["expired", "state:expired"]
_NOT_ALICE: Final = [*CLIENT["audit"]["never"], "lease-deleted", "leader-lost/conflict", "leader-lost/refused"]

FURTHER_CASES: Final[tuple[Case, ...]] = (
    make_case(
        kill_all,
        "all-killed",
        "both processes died",
        expect(
            _NO_ONE, [*TAKEN, *NOT_THE_SERVER, "lease-shared"], fine=["expired", "renewal-late"], dump={"need": _NO_ONE}
        ),
    ),
    make_case(
        jump_clock_then_kill,
        "clock-jumps-then-killed",
        "the holder's process died; its clock was wrong",
        expect(
            ["leader-lost/client"],
            [*TAKEN, *NOT_THE_SERVER, "leader-lost/refused"],
            # Two programs under one service account: what field managers tell apart is hedged.
            fine=["holder-clock", "lease-shared"],
            dump={"clean": True, "need": ["lease-shared"]},
        ),
    ),
    make_case(
        remove_update_right,
        "update-right-removed",
        "rights removed",
        expect(
            ["renewal-late/client", "renewal-late/unknown", "leader-lost/client", "leader-lost/unknown"],
            [*TAKEN, *NOT_THE_SERVER],
            audit={
                "need": ["renewal-late/refused", "leader-lost/refused"],
                "never": [*TAKEN, *NOT_THE_SERVER, "renewal-late/client", "leader-lost/client"],
                "fine": ["write-refused"],
            },
        ),
    ),
    make_case(
        collect_lease,
        "collected",
        "the garbage collector deleted the lease",
        expect(
            ["lease-deleted"],
            [*TAKEN, "leader-lost", "renewal-late", "expired", "lease-shared", "text:orderly handover"],
        ),
    ),
    make_case(apply_again, "applied-again", "nothing was changed", QUIET),
    make_case(interrupt_etcd, "etcd-hiccups", "etcd; nothing was lost", QUIET, is_alone=True),
    make_case(pause_api_server, "apiserver-pauses", "the API server; nothing was lost", QUIET, is_alone=True),
    make_case(
        run_impatient_follower,
        "impatient-follower",
        "a follower took a lease that had not expired",
        expect(
            ["lease-stolen"],
            ["identity-shared", "leader-lost", "foreign-release", "text:orderly handover"],
            fine=["lease-shared", "renewal-late/client"],
            dump={"clean": True, "need": ["lease-shared"]},
        ),
    ),
    make_case(
        set_maximum_transitions,
        "transitions-at-maximum",
        "the holder died, and the lease cannot be taken",
        expect(
            ["transitions-jump", "frozen", "state:frozen"],
            [*TAKEN, *NOT_THE_SERVER, "lease-shared", "leader-lost"],
            fine=["transitions-jump", "frozen", "expired", "write-refused", "renewal-late/client"],
            dump={"need": ["transitions-jump", "frozen"]},
        ),
    ),
    make_case(
        elect_without_pods,
        "certificates-without-pods",
        "the holder's machine died",
        expect(
            ["leader-lost/client"],
            [*TAKEN, *NOT_THE_SERVER, "leader-lost/refused", "text:service accounts have held"],
            fine=["lease-shared"],
            dump={"clean": True, "need": ["lease-shared"]},
        ),
    ),
    make_case(
        delete_when_free,
        "deleted-when-free",
        "orderly release; a free lease was deleted",
        expect(["clean"], [*TAKEN, "leader-lost", "renewal-late", "expired", "lease-deleted", "lease-shared"]),
    ),
    make_case(
        flicker_vendor,
        "vendor-flickers",
        "a webhook refused some writes; nothing was lost",
        expect(
            ["clean"],
            _NOT_LOST,
            audit={
                "clean": False,
                "need": ["write-refused", "renewal-late/refused", "text:refused"],
                "fine": ["write-refused"],
            },
        ),
    ),
    make_case(hand_over_quickly, "handed-over-quickly", "orderly releases", QUIET),
    make_case(
        steal_under_another_name,
        "stolen-under-another-name",
        "another writer wrote another holder",
        expect(
            ["lease-stolen"],
            [
                "identity-shared",
                "foreign-release",
                "text:orderly handover",
                "leader-lost/api-server",
                "leader-lost/network",
            ],
            # Nobody renews for the holder that was written, so it is lost after that.
            fine=["leader-lost", "lease-shared", "expired"],
        ),
    ),
    make_case(
        label_then_kill,
        "labeled-then-killed",
        "the holder's process died",
        expect(["leader-lost/client", "leader-lost/unknown"], _NOT_ALICE),
    ),
    make_case(
        refuse_stranger,
        "stranger-refused",
        "the holder's process died",
        expect(["leader-lost/client"], _NOT_ALICE, audit={"fine": ["write-refused"]}),
    ),
    make_case(
        rehearse_then_kill,
        "rehearsed-then-killed",
        "the holder's process died",
        expect(["leader-lost/client"], _NOT_ALICE),
    ),
    make_case(
        retry_slowly,
        "slow-retries",
        "the network of the holder's pod",
        expect(
            ["leader-lost/client"],
            [*TAKEN, *NOT_THE_SERVER, "leader-lost/refused", "lease-shared"],
            fine=["timing-tight"],
            dump={"clean": True, "need": ["timing-tight"]},
        ),
    ),
    make_case(
        renew_ahead_once,
        "renewed-ahead-once",
        "one write by another writer; nothing was lost",
        expect(
            ["clean"], [*TAKEN, "leader-lost", "expired", "lease-shared"], fine=["renew-time-in-future", "holder-clock"]
        ),
    ),
)
