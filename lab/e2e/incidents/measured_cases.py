"""Further incidents; the right and the wrong claims about each were written down with its actions."""

import datetime as dt
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from lab.e2e.api_client import MERGE, ApiClient
from lab.e2e.forwarder import Partition
from lab.e2e.incidents.cases import LONG, Case
from lab.e2e.incidents.scene import Replica, Scene
from lab.e2e.incidents.truth import Leadership
from lab.e2e.incidents.vendor import Vendor
from lab.e2e.world import build_lease_path
from tests.waiting import wait_for

_POLICIES: Final = "/apis/admissionregistration.k8s.io/v1"
_DAY: Final = 86_400.0


def drain_node(scene: Scene) -> None:
    """Evict the pod as kubectl drain does; the process releases its lease."""
    first = start_pair(scene, "-release")
    scene.stop(first)
    scene.remove_pod(first)
    scene.wait_for_next_leader(first.identity)


def roll_without_release(scene: Scene) -> None:
    """Roll out a program that does not release its lease, one replica after the other."""
    first = start_pair(scene)
    scene.stop(first)
    scene.remove_pod(first)
    scene.start(f"{scene.lease}-8c5d7f-t4m6r")
    second = scene.wait_for_next_leader(first.identity)
    scene.wait_for_renewals()
    scene.stop(start_replica(scene, second))
    scene.remove_pod(start_replica(scene, second))
    scene.wait_for_next_leader(second)


def expire_token(scene: Scene) -> None:
    """Expire the token of the leader; it belongs to a pod object that is deleted."""
    first = start_pair(scene)
    scene.record_action(f"the pod object of {first.pod.name} is deleted, its process runs on: its token is void (401)")
    scene.remove_pod(first)
    scene.wait_for_next_leader(first.identity)
    time.sleep(4)


def revoke_one_account(scene: Scene) -> None:
    """Delete the RoleBinding of the leader's service account, not that of the follower's; restore it later."""
    accounts = [f"{scene.lease}-blue", f"{scene.lease}-green"]
    scene.stage.revoke(scene.namespace)
    for account in accounts:
        scene.stage.grant(scene.namespace, account)
    first = scene.start(f"{accounts[0]}-6f8b4-k2x7c", account=accounts[0])
    scene.wait_until_leading(first)
    scene.start(f"{accounts[1]}-7d9c5-w8n3z", account=accounts[1])
    scene.wait_for_renewals()
    scene.record_action(f"the RoleBinding of the service account {accounts[0]} is deleted")
    scene.stage.revoke(scene.namespace, accounts[0])
    scene.wait_for_next_leader(first.identity)
    time.sleep(3)
    scene.stage.grant(scene.namespace, accounts[0])
    scene.record_action("it is made again")


def refuse_by_vendor(scene: Scene) -> None:
    """Refuse every write of the leases in this namespace by another vendor's webhook."""
    with Vendor(scene.stage) as vendor:
        start_pair(scene)
        vendor.denied.add(scene.namespace)
        vendor.register(scene.namespace)
        scene.record_action("another vendor's webhook refuses the writes of the leases in this namespace")
        time.sleep(LONG + 7)
        vendor.remove(scene.namespace)
        scene.record_action("the webhook is removed")
        scene.wait_for_renewals(3)


def refuse_by_policy(scene: Scene) -> None:
    """Refuse writes by a ValidatingAdmissionPolicy that was meant for something else."""
    start_pair(scene)
    name, admin = "no-unlabeled-objects", scene.stage.admin
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": ["leases"]}
    validation = {"expression": "has(object.metadata.labels) && 'team' in object.metadata.labels"}
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [validation | {"message": "every object needs the label team"}],
    }
    admin.send("POST", f"{_POLICIES}/validatingadmissionpolicies", {"metadata": {"name": name}, "spec": spec}).expect()
    selector = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": scene.namespace}}}
    binding = {"policyName": name, "validationActions": ["Deny"], "matchResources": selector}
    path = f"{_POLICIES}/validatingadmissionpolicybindings"
    admin.send("POST", path, {"metadata": {"name": name}, "spec": binding}).expect()
    scene.record_action(f"the policy {name} is bound to this namespace; the lease has not the label that it asks for")
    time.sleep(LONG + 7)
    admin.send("DELETE", f"{path}/{name}").expect(200)
    scene.record_action("the binding is deleted")
    scene.wait_for_renewals(3)


def slow_down_vendor(scene: Scene) -> None:
    """Let a webhook with failurePolicy Ignore not answer: each write takes its three seconds, and is stored."""
    with Vendor(scene.stage) as vendor:
        start_pair(scene)
        vendor.delays[scene.namespace] = 20
        vendor.register(scene.namespace, seconds=3, failure_policy="Ignore")
        scene.record_action("another vendor's webhook (failurePolicy Ignore, 3 s) does not answer in this namespace")
        time.sleep(30)
        vendor.remove(scene.namespace)
        scene.record_action("the webhook is removed")
        scene.wait_for_renewals(3)


def delete_namespace(scene: Scene) -> None:
    """Delete the namespace; the namespace controller, played here, then deletes the leases in it."""
    start_pair(scene)
    alice = scene.stage.plane.create_client("alice", "system:masters")
    scene.record_action("alice deletes the namespace")
    alice.send("DELETE", f"/api/v1/namespaces/{scene.namespace}").expect(200)
    time.sleep(1.5)
    controller = scene.stage.plane.create_client(
        "system:serviceaccount:kube-system:namespace-controller", "system:masters"
    )
    scene.record_action("the namespace controller deletes the leases")
    controller.send("DELETE", build_lease_path(scene.namespace)).expect(200)
    time.sleep(14)


def raise_duration(scene: Scene) -> None:
    """Roll out another configuration: 60, 40 and 5 s instead of 15, 10 and 2 s."""
    first = start_pair(scene, "-release")
    scene.record_action("a rollout with a lease duration of 60 s")
    slow = ("-release", "-duration=60s", "-deadline=40s", "-retry=5s")
    scene.start(f"{scene.lease}-9d6c8f-j5v2h", *slow)
    second = scene.replicas[1]
    scene.stop(second)
    scene.stop(first)
    scene.wait_for_next_leader(first.identity)
    time.sleep(22)


def lower_then_kill(scene: Scene) -> None:
    """Lower the duration by a rollout to 6, 4 and 1 s; later crash the leader."""
    first = start_pair(scene, "-release")
    scene.record_action("a rollout with a lease duration of 6 s")
    fast = ("-release", "-duration=6s", "-deadline=4s", "-retry=1s")
    for suffix in ("j5v2h", "z7p9d"):
        scene.start(f"{scene.lease}-9d6c8f-{suffix}", *fast)
    scene.stop(scene.replicas[1])
    scene.stop(first)
    second = scene.wait_for_next_leader(first.identity)
    time.sleep(12)
    scene.kill(start_replica(scene, second))
    scene.wait_for_next_leader(second)


class ClockLeader:
    """A pod that creates the lease and renews it every two seconds by a clock of its own.

    `offset` is how far that clock is ahead, in seconds; once `has_ended` is set, it renews no more.
    """

    def __init__(self, scene: Scene) -> None:
        self.offset = 0.0
        self.has_ended = False
        self._scene = scene
        self._pod = scene.stage.create_pod(scene.namespace, scene.lease, f"{scene.lease}-7d4b9c-x2x8p")
        self.identity = f"{self._pod.name}_1f0e"

    def lead(self) -> None:
        body = make_lease(self._scene, self.identity)
        self._pod.client.send("POST", build_lease_path(self._scene.namespace), body).expect(201)
        self._scene.repeat_every_two_seconds(self._renew)

    def _renew(self) -> None:
        if not self.has_ended:
            lease = self._pod.client.get(self._scene.path)
            lease["spec"]["renewTime"] = format_now(self.offset)
            self._pod.client.send("PUT", self._scene.path, lease).expect(200)


def step_clock(scene: Scene) -> None:
    """Step the leader's clock back by ten minutes while it leads; client-go's follower does not care."""
    leader = ClockLeader(scene)
    scene.others.append(Leadership(leader.identity, time.time_ns() // 1000))
    leader.lead()
    scene.start(f"{scene.lease}-7d4b9c-q9hkz")
    time.sleep(15)
    scene.record_action("the leader's clock steps back by 600 s")
    leader.offset = -600
    time.sleep(20)


def crash_api_server(scene: Scene) -> None:
    """Crash the only API server, and start it again after nine seconds."""
    start_pair(scene)
    plane = scene.stage.plane
    scene.record_action("kill -9 of kube-apiserver")
    plane.crash("kube-apiserver")
    time.sleep(9)
    scene.record_action("kube-apiserver is started again")
    plane.restart("kube-apiserver")

    def is_ready() -> bool:
        try:
            return scene.stage.admin.send("GET", "/readyz").status == 200
        except OSError:
            return False

    wait_for("kube-apiserver ready again", is_ready, 120, 0.5)
    scene.record_action("kube-apiserver is ready")
    time.sleep(18)
    scene.wait_for_renewals(3)


def slow_down_etcd(scene: Scene) -> None:
    """Slow etcd down so that every write waits for many seconds, several times in a row."""
    start_pair(scene)
    scene.record_action("etcd is stopped for 11 s and goes on for 1 s, three times")
    for _ in range(3):
        with scene.stage.plane.pause("etcd"):
            time.sleep(11)
        time.sleep(1)
    scene.record_action("etcd works as before")
    time.sleep(8)
    scene.wait_for_renewals(3)


def starve_leader(scene: Scene) -> None:
    """Limit CPU: the leader runs for 0.4 s after each 12.5 s."""
    first = start_pair(scene)
    _run_in_turns(scene, first, pause=12.5, run=0.4, times=3)
    scene.wait_for_renewals(3)


def starve_leader_a_little(scene: Scene) -> None:
    """Limit CPU: the leader runs for 0.2 s after each 4.5 s, which is enough."""
    first = start_pair(scene)
    _run_in_turns(scene, first, pause=4.5, run=0.2, times=7)
    scene.wait_for_renewals(3)


def renew_by_kubectl(scene: Scene) -> None:
    """Renew by a script with kubectl patch; it is killed, and its second copy takes the expired lease."""
    kubectl = scene.stage.kubectl
    now = format_now()
    manifest = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": scene.lease}}
    manifest["spec"] = make_claim("backup-host-1", now)
    kubectl.run_checked("create", "-n", scene.namespace, "-f", "-", manifest=manifest)
    begun = time.time_ns() // 1000
    target = ("patch", "lease", scene.lease, "-n", scene.namespace, "--type=merge", "-p")
    for _ in range(7):
        time.sleep(2.6)
        kubectl.run_checked(*target, f'{{"spec":{{"renewTime":"{format_now()}"}}}}')
    at = scene.record_action("the script of backup-host-1 is killed")
    scene.others.append(Leadership("backup-host-1", begun, at, "killed"))
    time.sleep(17)
    now = format_now()
    takeover = f'{{"spec":{{"holderIdentity":"backup-host-2","acquireTime":"{now}","renewTime":"{now}"}}}}'
    kubectl.run_checked(*target, takeover)
    scene.others.append(Leadership("backup-host-2", time.time_ns() // 1000))
    for _ in range(4):
        time.sleep(2.6)
        kubectl.run_checked(*target, f'{{"spec":{{"renewTime":"{format_now()}"}}}}')


def steal_by_dry_run(scene: Scene) -> None:
    """Validate manifests in a pipeline by server-side dry runs, with another holder in them."""
    start_pair(scene)
    kubectl = scene.stage.plane.create_client("ci-pipeline", "system:masters")
    for _ in range(6):
        patch = {"spec": make_claim("ci-validation", format_now())}
        kubectl.send("PATCH", scene.path, patch, media=MERGE, dryRun="All").expect(200)
        time.sleep(1.7)
    scene.record_action("ci-pipeline wrote itself as the holder six times, each as a dry run")


def edit_and_undo(scene: Scene) -> None:
    """Write another holder by hand, and a second later the old one again."""
    first = start_pair(scene)
    alice = create_kubectl_client(scene, "alice")
    scene.record_action("alice writes alice-debug as the holder")
    alice.send("PATCH", scene.path, {"spec": {"holderIdentity": "alice-debug"}}, media=MERGE).expect(200)
    time.sleep(1)
    alice.send("PATCH", scene.path, {"spec": {"holderIdentity": first.identity}}, media=MERGE).expect(200)
    scene.record_action(f"alice writes {first.identity} again")
    time.sleep(12)


def replace_from_backup(scene: Scene) -> None:
    """Run kubectl replace --force with yesterday's manifest: another object, held by a pod that is long gone."""
    start_pair(scene)
    alice = create_kubectl_client(scene, "alice")
    scene.record_action("alice deletes the lease and creates it from yesterday's manifest")
    alice.send("DELETE", scene.path).expect(200)
    spec = make_claim(f"{scene.lease}-5b8f6d-old00_77aa", format_now(-_DAY))
    body = {"metadata": {"name": scene.lease}, "spec": spec}
    alice.send("POST", build_lease_path(scene.namespace), body).expect(201)
    scene.wait_for_next_leader(f"{scene.lease}-5b8f6d-old00_77aa")
    time.sleep(6)


def upgrade_coordinated(scene: Scene) -> None:
    """Add a candidate with an older emulation version; the API server prefers it, and asks the leader to go."""
    for name, emulation in (("a", "1.36.0"), ("b", "1.35.0")):
        pod = f"{scene.lease}-node-{name}"
        scene.start_candidate(pod, emulation)
        if name == "a":
            scene.wait_for_holder(f"{pod} leads", pod)
            scene.wait_for_renewals()
            scene.record_action("a second candidate appears, whose emulation version is older")
    scene.wait_for_holder("the second candidate leads", f"{scene.lease}-node-b")
    time.sleep(5)


def kill_follower(scene: Scene) -> None:
    """Crash only the follower."""
    start_pair(scene)
    scene.kill(scene.replicas[1])
    time.sleep(20)


def flap_network(scene: Scene) -> None:
    """Cut the network of the leader for six seconds, three times."""
    way = scene.stage.stack.enter_context(Partition(scene.stage.plane.port))
    start_pair(scene, port=way.port)
    for _ in range(3):
        scene.record_action("the network of the leader's pod passes nothing on for 6 s")
        way.cut()
        time.sleep(6)
        way.heal()
        time.sleep(5)


def cut_node(scene: Scene) -> None:
    """Cut the network of the leader's node: its kubelet is not heard either."""
    node = "worker-a"
    way = scene.stage.stack.enter_context(Partition(scene.stage.plane.port))
    start_heartbeat(scene, node, way.port)
    first = start_pair(scene, port=way.port, node=node)
    time.sleep(14)
    scene.record_action(f"the network of node {node} passes nothing on")
    way.cut()
    scene.wait_for_next_leader(first.identity)
    time.sleep(12)
    way.heal()
    scene.record_action(f"the network of node {node} works again")


def kill_twice(scene: Scene) -> None:
    """Crash the leader, and the next one three seconds after it took the lease."""
    first = start_pair(scene)
    scene.start(f"{scene.lease}-7d4b9c-g6b4n")
    scene.kill(first)
    second = scene.wait_for_next_leader(first.identity)
    time.sleep(3)
    scene.kill(start_replica(scene, second))
    scene.wait_for_next_leader(second)


def restart_alone(scene: Scene) -> None:
    """Restart the only replica in order; it takes its lease again under another name."""
    first = scene.start(f"{scene.lease}-7d4b9c-x2x8p", "-release")
    scene.wait_until_leading(first)
    scene.wait_for_renewals()
    scene.stop(first)
    scene.remove_pod(first)
    time.sleep(4)
    second = scene.start(f"{scene.lease}-7d4b9c-b5t8q", "-release")
    scene.wait_until_leading(second)
    scene.wait_for_renewals()


def throttle_lightly(scene: Scene) -> None:
    """Throttle the leader's client-go to one request each 8 s: late, but in time."""
    first = scene.start(f"{scene.lease}-7d4b9c-x2x8p", "-qps=0.125", "-burst=10")
    scene.wait_until_leading(first)
    scene.start(f"{scene.lease}-7d4b9c-q9hkz")
    scene.wait_for_renewals()
    scene.record_action(
        "the leader's client-go has QPS 0.125 and burst 10: after its first requests it throttles itself"
    )
    time.sleep(45)


def start_pair(scene: Scene, *flags: str, port: int = 0, node: str = "") -> Replica:
    """Start two replicas of which the first one leads; `port` is its way to the API server."""
    first = scene.start(f"{scene.lease}-7d4b9c-x2x8p", *flags, port=port, node=node)
    scene.wait_until_leading(first)
    scene.start(f"{scene.lease}-7d4b9c-q9hkz", *flags)
    scene.wait_for_renewals()
    return first


def start_replica(scene: Scene, identity: str) -> Replica:
    return next(one for one in scene.replicas if one.identity == identity)


def _run_in_turns(scene: Scene, replica: Replica, *, pause: float, run: float, times: int) -> None:
    for _ in range(times):
        scene.pause(replica)
        time.sleep(pause)
        scene.resume(replica)
        time.sleep(run)


def start_heartbeat(scene: Scene, node: str, port: int) -> None:
    """Renew the lease of a node each 5 s by way of `port`."""
    plane = scene.stage.plane
    certificate = plane.authority.issue(f"system:node:{node}", organizations=["system:nodes"])
    kubelet = ApiClient(port, plane.authority.file, "kubelet", certificate)
    path = build_lease_path("kube-node-lease")
    spec = {"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": format_now()}
    kubelet.send("POST", path, {"metadata": {"name": node}, "spec": spec}).expect(201)

    def renew() -> None:
        try:
            lease = kubelet.get(f"{path}/{node}")
            lease["spec"]["renewTime"] = format_now()
            kubelet.send("PUT", f"{path}/{node}", lease)
        except OSError:
            pass

    scene.repeat(5, renew)


def create_kubectl_client(scene: Scene, person: str) -> ApiClient:
    """Return a client of a person whose writes have the field manager of `kubectl edit`."""
    plane = scene.stage.plane
    certificate = plane.authority.issue(person, organizations=["system:masters"])
    return ApiClient(plane.port, plane.authority.file, "kubectl-edit", certificate)


def make_claim(holder: str, at: str) -> dict[str, Any]:
    return {"holderIdentity": holder, "leaseDurationSeconds": 15, "acquireTime": at, "renewTime": at}


def make_lease(scene: Scene, holder: str) -> dict[str, Any]:
    return {"metadata": {"name": scene.lease}, "spec": make_claim(holder, format_now()) | {"leaseTransitions": 0}}


def format_now(offset: float = 0) -> str:
    return (dt.datetime.now(dt.UTC) + dt.timedelta(seconds=offset)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def expect(
    need: Sequence[str], never: Sequence[str], *, audit: Mapping[str, Any] | None = None, **others: Any
) -> Mapping[str, Any]:
    """Return the right and wrong claims of a watch and of an audit log; a dump shows a held lease by default."""
    both: dict[str, Any] = {"need": [one for one in need if one != "clean"], "never": list(never)}
    both |= {"clean": True} if "clean" in need else {}
    dump = others.pop("dump", {"clean": True})
    both |= others
    return {"watch": both, "audit": both | dict(audit or {}), "dump": dump}


TAKEN: Final = ("lease-stolen", "identity-shared", "foreign-release")
NOT_THE_SERVER: Final = ("leader-lost/api-server", "leader-lost/network", "renewal-late/api-server")
CLIENT: Final = expect(["leader-lost/client"], [*TAKEN, *NOT_THE_SERVER, "leader-lost/refused", "lease-shared"])
QUIET: Final = expect(["clean"], [*TAKEN, "leader-lost", "renewal-late", "expired", "lease-shared"])
SERVER: Final = {
    **expect(
        ["renewal-late/api-server", "leader-lost/api-server", "renewal-late/unknown", "leader-lost/unknown"],
        [*TAKEN, "leader-lost/client", "renewal-late/client", "leader-lost/refused", "renewal-late/refused"],
        half=["renewal-late/network", "leader-lost/network"],
    )
}
_REFUSED: Final = ["renewal-late/refused", "leader-lost/refused"]
_BLAMED: Final = ["renewal-late/client", "leader-lost/client", *NOT_THE_SERVER]


def expect_refusals_by(name: str) -> Mapping[str, Any]:
    """Expect refused writes of one namespace; a watch cannot show by what."""
    log = {"need": _REFUSED, "never": [*TAKEN, *_BLAMED], "also": [f"text:{name}"], "fine": ["write-refused"]}
    unknown = ["renewal-late/unknown", "leader-lost/unknown"]
    half = {"half": ["renewal-late/client", "leader-lost/client"]}
    return expect(unknown, [*TAKEN, *NOT_THE_SERVER], audit={"half": [], **log}, **half)


_MAY_BE_CLIENT: Final = ["leader-lost/client", "leader-lost/unknown"]
FROM_BACKUP: Final = [
    *(*TAKEN[1:], "lease-shared", "leader-lost/api-server", "leader-lost/network", "text:orderly handover"),
]


def make_case(play: Any, name: str, cause: str, expected: Mapping[str, Any], **others: Any) -> Case:
    title = " ".join((play.__doc__ or "").split())
    return Case(name, title, cause, f"m-{name}", name, play, expect=expected, **others)


MEASURED_CASES: Final = (
    make_case(drain_node, "drained", "orderly release", QUIET),
    make_case(roll_without_release, "rolled-no-release", "the processes were stopped and did not release", CLIENT),
    make_case(
        expire_token,
        "token-expired",
        "the holder's token was not accepted (401)",
        expect(
            _MAY_BE_CLIENT,
            [*TAKEN, *NOT_THE_SERVER],
            audit={
                "need": ["leader-lost/refused", "text:401|unauthorized"],
                "half": _MAY_BE_CLIENT,
                "fine": ["write-refused"],
                "never": [*TAKEN, *NOT_THE_SERVER, "text:shows no request from it"],
            },
        ),
    ),
    make_case(
        revoke_one_account,
        "one-account-loses-rights",
        "rights removed",
        expect(
            _MAY_BE_CLIENT,
            [*TAKEN, *NOT_THE_SERVER],
            audit={"need": ["leader-lost/refused"], "never": [*TAKEN, *NOT_THE_SERVER, "leader-lost/client"]},
            fine=["lease-shared", "write-refused"],
            dump={"clean": True, "need": ["lease-shared"]},
        ),
    ),
    make_case(
        refuse_by_vendor, "vendor-refuses", "a webhook refused the writes", expect_refusals_by("scan.vendor.example")
    ),
    make_case(
        refuse_by_policy, "policy-refuses", "a policy refused the writes", expect_refusals_by("no-unlabeled-objects")
    ),
    make_case(slow_down_vendor, "vendor-slow", "a slow webhook; nothing was lost", QUIET),
    make_case(
        delete_namespace,
        "namespace-deleted",
        "the namespace was deleted",
        expect(
            ["lease-deleted", "text:deleted", "absent"],
            [*TAKEN, "leader-lost", "renewal-late", "expired", "text:orderly handover"],
            fine=["lease-deleted", "write-refused"],
            dump={"need": ["absent"]},
        ),
    ),
    make_case(raise_duration, "duration-raised", "orderly release", QUIET),
    make_case(
        lower_then_kill,
        "lowered-then-killed",
        "the holder's process died",
        # That 6 s survive hardly any outage is true as well.
        {
            **{source: {**CLIENT[source], "fine": ["timing-tight"]} for source in ("watch", "audit")},
            "dump": {"clean": True, "need": ["timing-tight"]},
        },
    ),
    make_case(
        step_clock,
        "clock-steps",
        "clock only; one leader throughout",
        expect(
            ["holder-clock", "clean"],
            [*TAKEN, "leader-lost", "renewal-late", "expired", "lease-shared"],
            dump={"need": ["clean", "holder-clock"], "fine": ["expired"]},
        ),
    ),
    make_case(crash_api_server, "apiserver-crashes", "the API server", SERVER, is_alone=True),
    make_case(slow_down_etcd, "etcd-slow", "etcd", SERVER, is_alone=True),
    make_case(
        starve_leader,
        "starved",
        "the holder's process was starved",
        expect(
            ["renewal-late/client", "leader-lost/client"],
            [*TAKEN, *NOT_THE_SERVER, "leader-lost/refused", "lease-shared"],
        ),
    ),
    make_case(starve_leader_a_little, "starved-a-little", "nothing was lost", QUIET),
    make_case(renew_by_kubectl, "kubectl-renews", "the holder's process died", CLIENT),
    make_case(steal_by_dry_run, "dry-run-steals", "nothing was written", QUIET),
    make_case(
        edit_and_undo,
        "edited-and-back",
        "another writer changed the holder and changed it back",
        expect(
            ["lease-stolen", "foreign-release", "text:alice |kubectl-edit"],
            ["identity-shared", "lease-shared", "leader-lost", "text:orderly handover"],
            fine=["lease-stolen", "foreign-release"],
        ),
    ),
    make_case(
        replace_from_backup,
        "replaced-from-a-backup",
        "another writer deleted the lease and made it with a holder that is gone",
        expect(["lease-deleted", "lease-stolen"], FROM_BACKUP, fine=["leader-lost"]),
    ),
    make_case(
        upgrade_coordinated,
        "coordinated-upgrade",
        "the API server preferred another candidate",
        expect(
            ["text:prefer|to step down"],
            [*TAKEN, "leader-lost/client", "leader-lost/api-server", "leader-lost/network"],
            half=["clean"],
        ),
    ),
    make_case(kill_follower, "follower-killed", "nothing happened to the leader", QUIET),
    make_case(
        flap_network,
        "network-flaps",
        "the leader's network; nothing was lost",
        expect(["clean", "renewal-late/client"], [*TAKEN, *NOT_THE_SERVER, "leader-lost", "expired", "lease-shared"]),
    ),
    make_case(cut_node, "node-cut", "the network of the holder's node", CLIENT, also_kept=("kube-node-lease",)),
    make_case(kill_twice, "killed-twice", "the holders' processes died", CLIENT),
    make_case(restart_alone, "restarted-alone", "orderly release", QUIET),
    make_case(
        throttle_lightly,
        "throttled-lightly",
        "the holder's own client throttled its renewals; nothing was lost",
        expect(
            ["clean", "timing-tight", "renewal-late/client"],
            [*TAKEN, *NOT_THE_SERVER, "leader-lost", "expired", "lease-shared"],
            dump={"clean": True, "need": ["timing-tight"]},
        ),
    ),
)
