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
    case_of,
    claim,
    expect,
    kubectl_of,
    new_lease,
    now_text,
    pair,
    replica_of,
)
from lab.e2e.incidents.scene import Scene
from lab.e2e.incidents.truth import Led
from lab.e2e.incidents.vendor import Vendor
from lab.e2e.world import leases
from tests.waiting import wait_for

_ROLES: Final = "/apis/rbac.authorization.k8s.io/v1/namespaces"


def all_killed(scene: Scene) -> None:
    """Both replicas crash at once, as with a pool of nodes; no one takes the lease."""
    pair(scene)
    for replica in scene.replicas:
        scene.kill(replica)
    time.sleep(20)


def clock_jumps_then_killed(scene: Scene) -> None:
    """The leader's clock jumps ahead by ten minutes; later it crashes, and client-go's follower does not care."""
    leader, begun = ClockLeader(scene), time.time_ns() // 1000
    leader.lead()
    scene.start(f"{scene.lease}-7d4b9c-q9hkz")
    time.sleep(13)
    scene.did("the leader's clock jumps ahead by 600 s")
    leader.offset = 600
    time.sleep(9)
    leader.has_ended = True
    at = scene.did("the leader's process ends without a release")
    scene.others.append(Led(leader.identity, begun, at, "killed"))
    scene.next_leader(leader.identity)


def update_right_removed(scene: Scene) -> None:
    """Somebody narrows the Role: get stays, update and patch go, and come back later."""
    pair(scene)
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
    scene.did("the right to update leases is taken from the service accounts of this namespace; they may still read")
    scene.stage.revoke(scene.namespace)
    time.sleep(19)
    scene.stage.grant(scene.namespace)
    scene.did("the right is given back")
    scene.renews(3)


def collected(scene: Scene) -> None:
    """The lease is owned by a pod; the pod goes, and the garbage collector, played here, deletes the lease."""
    pair(scene)
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": f"{scene.lease}-init",
        "uid": "0b7d5f0e-0000-4000-8000-00000000dead",
    }
    installer = scene.stage.plane.user("helm", "system:masters")
    installer.send("PATCH", scene.path, {"metadata": {"ownerReferences": [owner]}}, media=MERGE).expect(200)
    time.sleep(5)
    collector = scene.stage.plane.user("system:serviceaccount:kube-system:generic-garbage-collector", "system:masters")
    scene.did("the garbage collector deletes the lease, whose owner is gone")
    collector.send("DELETE", scene.path).expect(200)
    time.sleep(14)


def applied_again(scene: Scene) -> None:
    """A controller applies the duration that is set already, each five seconds, by server-side apply."""
    pair(scene)
    gitops = scene.stage.plane.user("system:serviceaccount:argocd:argocd-application-controller", "system:masters")
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": scene.lease}}
    body |= {"spec": {"leaseDurationSeconds": 15}}
    for _ in range(5):
        gitops.send("PATCH", scene.path, body, media=APPLY, fieldManager="argocd-controller", force=True).expect(200)
        time.sleep(5)
    scene.did("argocd applied leaseDurationSeconds 15 five times")


def etcd_hiccups(scene: Scene) -> None:
    """Etcd stops for 3 s, four times: every renewal is late, and none too late."""
    pair(scene)
    for _ in range(4):
        scene.did("etcd is stopped for 3 s")
        with scene.stage.plane.paused("etcd"):
            time.sleep(3)
        time.sleep(6)


def apiserver_pauses(scene: Scene) -> None:
    """The API server's process stands still for 5 s, as a virtual machine that is moved; nothing is lost."""
    pair(scene)
    scene.did("SIGSTOP of kube-apiserver for 5 s")
    with scene.stage.plane.paused("kube-apiserver"):
        time.sleep(5)
    time.sleep(12)


def impatient_follower(scene: Scene) -> None:
    """A follower of its own kind waits four seconds only; the leader is paused for seven, and then goes on."""
    first = scene.start(f"{scene.lease}-7d4b9c-x2x8p")
    scene.leads(first)
    scene.renews()
    pod = scene.stage.pod(scene.namespace, scene.lease, f"{scene.lease}-7d4b9c-w5n2d")
    identity = f"{pod.name}_2f0e"
    seen: list[Any] = ["", 0.0]

    def follow() -> None:
        lease = pod.client.get(scene.path)
        spec = lease["spec"]
        if spec["renewTime"] != seen[0]:
            seen[:] = spec["renewTime"], time.monotonic()
        if spec["holderIdentity"] == identity:
            spec["renewTime"] = now_text()
        elif time.monotonic() - seen[1] > 4:
            spec.update(claim(identity, now_text()), leaseTransitions=(spec.get("leaseTransitions") or 0) + 1)
        else:
            return
        if pod.client.send("PUT", scene.path, lease).status == 200 and not scene.others:
            scene.did(f"{identity} takes the lease, which it has not seen renewed for 4 s")
            scene.others.append(Led(identity, time.time_ns() // 1000))

    scene.every(1, follow)
    time.sleep(5)
    scene.pause(first)
    time.sleep(7)
    scene.resume(first)
    scene.gives_up(first)
    time.sleep(3)


def transitions_at_maximum(scene: Scene) -> None:
    """Alice sets leaseTransitions to the largest number; the leader dies, and the API server refuses every follower."""
    first = pair(scene)
    alice = kubectl_of(scene, "alice")
    alice.send("PATCH", scene.path, {"spec": {"leaseTransitions": 2**31 - 1}}, media=MERGE).expect(200)
    scene.did("alice sets leaseTransitions to 2147483647")
    time.sleep(6)
    scene.kill(first)
    time.sleep(24)


def certificates_without_pods(scene: Scene) -> None:
    """Machines that log in by client certificates stand for election, as the control plane's do; one crashes."""
    machines = [_machine(scene, f"machine-{number}") for number in (1, 2)]
    wait_for("a machine leads", lambda: scene.stage.holder(scene.namespace, scene.lease), 30)
    time.sleep(12)
    holder = scene.stage.holder(scene.namespace, scene.lease)
    at = scene.did(f"{holder} loses its power")
    for name, ended in machines:
        if name == holder:
            ended.set()
    scene.others[-1] = Led(holder, scene.others[-1].begins, at, "killed")
    scene.next_leader(holder)
    time.sleep(4)


def _machine(scene: Scene, name: str) -> tuple[str, threading.Event]:
    """Give a name, and what ends the machine of that name."""
    client, ended = scene.stage.plane.user(name, "system:masters"), threading.Event()
    seen: list[Any] = ["", 0.0]

    def work() -> None:
        if ended.is_set():
            return
        reply = client.send("GET", scene.path)
        if reply.status == 404:
            if client.send("POST", leases(scene.namespace), new_lease(scene, name)).status == 201:
                scene.others.append(Led(name, time.time_ns() // 1000))
            return
        spec = reply.body["spec"]
        if spec["renewTime"] != seen[0]:
            seen[:] = spec["renewTime"], time.monotonic()
        if spec["holderIdentity"] == name:
            spec["renewTime"] = now_text()
            client.send("PUT", scene.path, reply.body)
        elif time.monotonic() - seen[1] > 15:
            spec.update(claim(name, now_text()), leaseTransitions=(spec.get("leaseTransitions") or 0) + 1)
            if client.send("PUT", scene.path, reply.body).status == 200:
                scene.others.append(Led(name, time.time_ns() // 1000))

    scene.every_two_seconds(work)
    return name, ended


def deleted_when_free(scene: Scene) -> None:
    """The leader releases, alice deletes the free lease, and a new replica creates it."""
    first = scene.start(f"{scene.lease}-7d4b9c-x2x8p", "-release")
    scene.leads(first)
    scene.renews()
    scene.stop(first)
    scene.remove_pod(first)
    time.sleep(3)
    alice = kubectl_of(scene, "alice")
    scene.did("alice deletes the lease, which no one holds")
    alice.send("DELETE", scene.path).expect(200)
    time.sleep(3)
    second = scene.start(f"{scene.lease}-7d4b9c-b5t8q", "-release")
    scene.leads(second)
    scene.renews()


def vendor_flickers(scene: Scene) -> None:
    """Another vendor's webhook refuses writes for four seconds in every ten: renewals are late, and in time."""
    with Vendor(scene.stage) as vendor:
        pair(scene)
        vendor.register(scene.namespace)
        scene.did("another vendor's webhook refuses the writes in this namespace for 4 s in every 10 s")
        for _ in range(3):
            vendor.denied.add(scene.namespace)
            time.sleep(4)
            vendor.denied.discard(scene.namespace)
            time.sleep(6)
        vendor.remove(scene.namespace)
    scene.renews(3)


def handed_over_quickly(scene: Scene) -> None:
    """A rolling update of three replicas: each leader is stopped as soon as it leads."""
    first = pair(scene, "-release")
    scene.start(f"{scene.lease}-7d4b9c-g6b4n", "-release")
    before = first.identity
    for suffix in ("t4m6r", "j5v2h"):
        scene.start(f"{scene.lease}-8c5d7f-{suffix}", "-release")
        scene.stop(replica_of(scene, before))
        before = scene.next_leader(before)
    scene.renews()


def stolen_under_another_name(scene: Scene) -> None:
    """Alice writes another holder, and impersonates a service account of another application for it."""
    pair(scene)
    plane, account = scene.stage.plane, "system:serviceaccount:reports:reports"
    certificate = plane.authority.issue("alice", organizations=["system:masters"])
    alice = ApiClient(plane.port, plane.authority.file, "kubectl-patch", certificate)
    alice._headers |= {"Impersonate-User": account, "Impersonate-Group": "system:masters"}
    scene.did(f"alice, as {account}, writes reports-0_aaaa as the holder")
    alice.send("PATCH", scene.path, {"spec": claim("reports-0_aaaa", now_text())}, media=MERGE).expect(200)
    time.sleep(20)


def labelled_then_killed(scene: Scene) -> None:
    """Alice labels the lease while the leader crashes; one has nothing to do with the other."""
    first = pair(scene)
    alice = kubectl_of(scene, "alice")
    for number in range(4):
        alice.send("PATCH", scene.path, {"metadata": {"labels": {"checked": str(number)}}}, media=MERGE).expect(200)
        time.sleep(0.4)
    scene.did("alice labels the lease four times")
    scene.kill(first)
    time.sleep(1)
    for number in range(4, 8):
        alice.send("PATCH", scene.path, {"metadata": {"labels": {"checked": str(number)}}}, media=MERGE).expect(200)
    scene.next_leader(first.identity)


def stranger_refused(scene: Scene) -> None:
    """Bob may not write leases and tries to, again and again, while the leader crashes."""
    first = pair(scene)
    bob = scene.stage.plane.user("bob")
    scene.kill(first)
    for _ in range(6):
        bob.send("PATCH", scene.path, {"spec": {"holderIdentity": "bob"}}, media=MERGE).expect(403)
        bob.send("DELETE", scene.path).expect(403)
        time.sleep(2)
    scene.did("bob tried to take and to delete the lease twelve times; all was refused (403)")
    scene.next_leader(first.identity)


def rehearsed_then_killed(scene: Scene) -> None:
    """Alice rehearses a deletion (a dry run, as the body says); a second later the leader crashes."""
    first = pair(scene)
    alice = kubectl_of(scene, "alice")
    scene.did("alice deletes the lease as a dry run: nothing is deleted")
    alice.send("DELETE", scene.path, {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]}).expect(200)
    time.sleep(1)
    scene.kill(first)
    scene.next_leader(first.identity)


def slow_retries(scene: Scene) -> None:
    """Numbers that leave no room: 15, 10 and 8 s. The network fails for 9 s, and the leader gives up."""
    way = scene.stage.stack.enter_context(Partition(scene.stage.plane.port))
    times = ("-duration=15s", "-deadline=10s", "-retry=8s")
    first = pair(scene, *times, port=way.port)
    scene.did("the network of the leader's pod passes nothing on")
    way.cut()
    scene.next_leader(first.identity)
    way.heal()
    scene.did("the network works again")


def renewed_ahead_once(scene: Scene) -> None:
    """Alice patches renewTime a day ahead; the leader overwrites it with its next renewal."""
    pair(scene)
    alice = kubectl_of(scene, "alice")
    scene.did("alice writes a renewTime of tomorrow")
    alice.send("PATCH", scene.path, {"spec": {"renewTime": now_text(86_400)}}, media=MERGE).expect(200)
    time.sleep(12)


_NOT_LOST: Final = [*TAKEN, *NOT_THE_SERVER, "leader-lost", "expired", "lease-shared"]
_NO_ONE: Final = ["expired", "state:expired"]
_NOT_ALICE: Final = [*CLIENT["audit"]["never"], "lease-deleted", "leader-lost/conflict", "leader-lost/refused"]

FURTHER_CASES: Final[tuple[Case, ...]] = (
    case_of(
        all_killed,
        "all-killed",
        "both processes died",
        expect(
            _NO_ONE, [*TAKEN, *NOT_THE_SERVER, "lease-shared"], fine=["expired", "renewal-late"], dump={"need": _NO_ONE}
        ),
    ),
    case_of(
        clock_jumps_then_killed,
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
    case_of(
        update_right_removed,
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
    case_of(
        collected,
        "collected",
        "the garbage collector deleted the lease",
        expect(
            ["lease-deleted"],
            [*TAKEN, "leader-lost", "renewal-late", "expired", "lease-shared", "text:orderly handover"],
        ),
    ),
    case_of(applied_again, "applied-again", "nothing was changed", QUIET),
    case_of(etcd_hiccups, "etcd-hiccups", "etcd; nothing was lost", QUIET, is_alone=True),
    case_of(apiserver_pauses, "apiserver-pauses", "the API server; nothing was lost", QUIET, is_alone=True),
    case_of(
        impatient_follower,
        "impatient-follower",
        "a follower took a lease that had not expired",
        expect(
            ["lease-stolen"],
            ["identity-shared", "leader-lost", "foreign-release", "text:orderly handover"],
            fine=["lease-shared", "renewal-late/client"],
            dump={"clean": True, "need": ["lease-shared"]},
        ),
    ),
    case_of(
        transitions_at_maximum,
        "transitions-at-maximum",
        "the holder died, and the lease cannot be taken",
        expect(
            ["transitions-jump", "frozen", "state:frozen"],
            [*TAKEN, *NOT_THE_SERVER, "lease-shared", "leader-lost"],
            fine=["transitions-jump", "frozen", "expired", "write-refused", "renewal-late/client"],
            dump={"need": ["transitions-jump", "frozen"]},
        ),
    ),
    case_of(
        certificates_without_pods,
        "certificates-without-pods",
        "the holder's machine died",
        expect(
            ["leader-lost/client"],
            [*TAKEN, *NOT_THE_SERVER, "leader-lost/refused", "text:service accounts have held"],
            fine=["lease-shared"],
            dump={"clean": True, "need": ["lease-shared"]},
        ),
    ),
    case_of(
        deleted_when_free,
        "deleted-when-free",
        "orderly release; a free lease was deleted",
        expect(["clean"], [*TAKEN, "leader-lost", "renewal-late", "expired", "lease-deleted", "lease-shared"]),
    ),
    case_of(
        vendor_flickers,
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
    case_of(handed_over_quickly, "handed-over-quickly", "orderly releases", QUIET),
    case_of(
        stolen_under_another_name,
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
    case_of(
        labelled_then_killed,
        "labeled-then-killed",
        "the holder's process died",
        expect(["leader-lost/client", "leader-lost/unknown"], _NOT_ALICE),
    ),
    case_of(
        stranger_refused,
        "stranger-refused",
        "the holder's process died",
        expect(["leader-lost/client"], _NOT_ALICE, audit={"fine": ["write-refused"]}),
    ),
    case_of(
        rehearsed_then_killed,
        "rehearsed-then-killed",
        "the holder's process died",
        expect(["leader-lost/client"], _NOT_ALICE),
    ),
    case_of(
        slow_retries,
        "slow-retries",
        "the network of the holder's pod",
        expect(
            ["leader-lost/client"],
            [*TAKEN, *NOT_THE_SERVER, "leader-lost/refused", "lease-shared"],
            fine=["timing-tight"],
            dump={"clean": True, "need": ["timing-tight"]},
        ),
    ),
    case_of(
        renewed_ahead_once,
        "renewed-ahead-once",
        "one write by another writer; nothing was lost",
        expect(
            ["clean"], [*TAKEN, "leader-lost", "expired", "lease-shared"], fine=["renew-time-in-future", "holder-clock"]
        ),
    ),
)
