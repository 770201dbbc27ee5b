"""Further incidents; which claims about each are right and which are wrong was written down with what is done to it."""

import datetime as dt
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from lab.e2e.api_client import MERGE, ApiClient
from lab.e2e.forwarder import Partition
from lab.e2e.incidents.cases import LONG, Case
from lab.e2e.incidents.scene import Replica, Scene
from lab.e2e.incidents.truth import Led
from lab.e2e.incidents.vendor import Vendor
from lab.e2e.world import leases
from tests.waiting import wait_for

_POLICIES: Final = "/apis/admissionregistration.k8s.io/v1"
_DAY: Final = 86_400.0


def drained(scene: Scene) -> None:
    """Kubectl drain: the pod is evicted, and the process releases its lease."""
    first = pair(scene, "-release")
    scene.stop(first)
    scene.remove_pod(first)
    scene.next_leader(first.identity)


def rolled_without_release(scene: Scene) -> None:
    """A rollout of a program that does not release its lease, one replica after the other."""
    first = pair(scene)
    scene.stop(first)
    scene.remove_pod(first)
    scene.start(f"{scene.lease}-8c5d7f-t4m6r")
    second = scene.next_leader(first.identity)
    scene.renews()
    scene.stop(replica_of(scene, second))
    scene.remove_pod(replica_of(scene, second))
    scene.next_leader(second)


def token_expired(scene: Scene) -> None:
    """The token of the leader is not accepted any longer; it belongs to a pod object that is deleted."""
    first = pair(scene)
    scene.did(f"the pod object of {first.pod.name} is deleted, its process runs on: its token is void (401)")
    scene.remove_pod(first)
    scene.next_leader(first.identity)
    time.sleep(4)


def one_account_loses_rights(scene: Scene) -> None:
    """The leader's service account loses its RoleBinding, the follower's keeps its own, and later it is restored."""
    accounts = [f"{scene.lease}-blue", f"{scene.lease}-green"]
    scene.stage.revoke(scene.namespace)
    for account in accounts:
        scene.stage.grant(scene.namespace, account)
    first = scene.start(f"{accounts[0]}-6f8b4-k2x7c", account=accounts[0])
    scene.leads(first)
    scene.start(f"{accounts[1]}-7d9c5-w8n3z", account=accounts[1])
    scene.renews()
    scene.did(f"the RoleBinding of the service account {accounts[0]} is deleted")
    scene.stage.revoke(scene.namespace, accounts[0])
    scene.next_leader(first.identity)
    time.sleep(3)
    scene.stage.grant(scene.namespace, accounts[0])
    scene.did("it is made again")


def vendor_refuses(scene: Scene) -> None:
    """Another vendor's webhook refuses every write of the leases in this namespace."""
    with Vendor(scene.stage) as vendor:
        pair(scene)
        vendor.denied.add(scene.namespace)
        vendor.register(scene.namespace)
        scene.did("another vendor's webhook refuses the writes of the leases in this namespace")
        time.sleep(LONG + 7)
        vendor.remove(scene.namespace)
        scene.did("the webhook is removed")
        scene.renews(3)


def policy_refuses(scene: Scene) -> None:
    """A ValidatingAdmissionPolicy that was meant for something else matches the leases of this namespace."""
    pair(scene)
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
    scene.did(f"the policy {name} is bound to this namespace; the lease has not the label that it asks for")
    time.sleep(LONG + 7)
    admin.send("DELETE", f"{path}/{name}").expect(200)
    scene.did("the binding is deleted")
    scene.renews(3)


def vendor_slow(scene: Scene) -> None:
    """A webhook with failurePolicy Ignore does not answer: each write takes its three seconds, and is stored."""
    with Vendor(scene.stage) as vendor:
        pair(scene)
        vendor.delays[scene.namespace] = 20
        vendor.register(scene.namespace, seconds=3, failure_policy="Ignore")
        scene.did("another vendor's webhook (failurePolicy Ignore, 3 s) does not answer in this namespace")
        time.sleep(30)
        vendor.remove(scene.namespace)
        scene.did("the webhook is removed")
        scene.renews(3)


def namespace_deleted(scene: Scene) -> None:
    """Somebody deletes the namespace; the namespace controller, played here, then deletes the leases in it."""
    pair(scene)
    alice = scene.stage.plane.user("alice", "system:masters")
    scene.did("alice deletes the namespace")
    alice.send("DELETE", f"/api/v1/namespaces/{scene.namespace}").expect(200)
    time.sleep(1.5)
    controller = scene.stage.plane.user("system:serviceaccount:kube-system:namespace-controller", "system:masters")
    scene.did("the namespace controller deletes the leases")
    controller.send("DELETE", leases(scene.namespace)).expect(200)
    time.sleep(14)


def duration_raised(scene: Scene) -> None:
    """A rollout of another configuration: 60, 40 and 5 s instead of 15, 10 and 2 s."""
    first = pair(scene, "-release")
    scene.did("a rollout with a lease duration of 60 s")
    slow = ("-release", "-duration=60s", "-deadline=40s", "-retry=5s")
    scene.start(f"{scene.lease}-9d6c8f-j5v2h", *slow)
    second = scene.replicas[1]
    scene.stop(second)
    scene.stop(first)
    scene.next_leader(first.identity)
    time.sleep(22)


def lowered_then_killed(scene: Scene) -> None:
    """A rollout lowers the duration to 6, 4 and 1 s; later the leader crashes."""
    first = pair(scene, "-release")
    scene.did("a rollout with a lease duration of 6 s")
    fast = ("-release", "-duration=6s", "-deadline=4s", "-retry=1s")
    for suffix in ("j5v2h", "z7p9d"):
        scene.start(f"{scene.lease}-9d6c8f-{suffix}", *fast)
    scene.stop(scene.replicas[1])
    scene.stop(first)
    second = scene.next_leader(first.identity)
    time.sleep(12)
    scene.kill(replica_of(scene, second))
    scene.next_leader(second)


class ClockLeader:
    """A pod that creates the lease and renews it every two seconds by a clock of its own.

    `offset` is how far that clock is ahead, in seconds; once `has_ended` is set, it renews no more.
    """

    def __init__(self, scene: Scene) -> None:
        self.offset = 0.0
        self.has_ended = False
        self._scene = scene
        self._pod = scene.stage.pod(scene.namespace, scene.lease, f"{scene.lease}-7d4b9c-x2x8p")
        self.identity = f"{self._pod.name}_1f0e"

    def lead(self) -> None:
        body = new_lease(self._scene, self.identity)
        self._pod.client.send("POST", leases(self._scene.namespace), body).expect(201)
        self._scene.every_two_seconds(self._renew)

    def _renew(self) -> None:
        if not self.has_ended:
            lease = self._pod.client.get(self._scene.path)
            lease["spec"]["renewTime"] = now_text(self.offset)
            self._pod.client.send("PUT", self._scene.path, lease).expect(200)


def clock_steps(scene: Scene) -> None:
    """The clock of the leader steps back by ten minutes while it leads; client-go's follower does not care."""
    leader = ClockLeader(scene)
    scene.others.append(Led(leader.identity, time.time_ns() // 1000))
    leader.lead()
    scene.start(f"{scene.lease}-7d4b9c-q9hkz")
    time.sleep(15)
    scene.did("the leader's clock steps back by 600 s")
    leader.offset = -600
    time.sleep(20)


def apiserver_crashes(scene: Scene) -> None:
    """The only API server crashes and is started again after nine seconds."""
    pair(scene)
    plane = scene.stage.plane
    scene.did("kill -9 of kube-apiserver")
    plane.crash("kube-apiserver")
    time.sleep(9)
    scene.did("kube-apiserver is started again")
    plane.start_again("kube-apiserver")

    def ready() -> bool:
        try:
            return scene.stage.admin.send("GET", "/readyz").status == 200
        except OSError:
            return False

    wait_for("kube-apiserver ready again", ready, 120, 0.5)
    scene.did("kube-apiserver is ready")
    time.sleep(18)
    scene.renews(3)


def etcd_slow(scene: Scene) -> None:
    """Etcd is so slow that every write waits for many seconds, several times in a row."""
    pair(scene)
    scene.did("etcd is stopped for 11 s and goes on for 1 s, three times")
    for _ in range(3):
        with scene.stage.plane.paused("etcd"):
            time.sleep(11)
        time.sleep(1)
    scene.did("etcd works as before")
    time.sleep(8)
    scene.renews(3)


def starved(scene: Scene) -> None:
    """A CPU limit: the leader runs for 0.4 s after each 12.5 s."""
    first = pair(scene)
    _in_turns(scene, first, stopped=12.5, runs=0.4, times=3)
    scene.renews(3)


def starved_a_little(scene: Scene) -> None:
    """A CPU limit: the leader runs for 0.2 s after each 4.5 s, which is enough."""
    first = pair(scene)
    _in_turns(scene, first, stopped=4.5, runs=0.2, times=7)
    scene.renews(3)


def kubectl_renews(scene: Scene) -> None:
    """A script that renews by kubectl patch; it is killed, and its second copy takes the expired lease."""
    kubectl = scene.stage.kubectl
    now = now_text()
    manifest = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": scene.lease}}
    manifest["spec"] = claim("backup-host-1", now)
    kubectl.must("create", "-n", scene.namespace, "-f", "-", manifest=manifest)
    begun = time.time_ns() // 1000
    target = ("patch", "lease", scene.lease, "-n", scene.namespace, "--type=merge", "-p")
    for _ in range(7):
        time.sleep(2.6)
        kubectl.must(*target, f'{{"spec":{{"renewTime":"{now_text()}"}}}}')
    at = scene.did("the script of backup-host-1 is killed")
    scene.others.append(Led("backup-host-1", begun, at, "killed"))
    time.sleep(17)
    now = now_text()
    taken = f'{{"spec":{{"holderIdentity":"backup-host-2","acquireTime":"{now}","renewTime":"{now}"}}}}'
    kubectl.must(*target, taken)
    scene.others.append(Led("backup-host-2", time.time_ns() // 1000))
    for _ in range(4):
        time.sleep(2.6)
        kubectl.must(*target, f'{{"spec":{{"renewTime":"{now_text()}"}}}}')


def dry_run_steals(scene: Scene) -> None:
    """A pipeline validates manifests by server-side dry runs, with another holder in them."""
    pair(scene)
    kubectl = scene.stage.plane.user("ci-pipeline", "system:masters")
    for _ in range(6):
        patch = {"spec": claim("ci-validation", now_text())}
        kubectl.send("PATCH", scene.path, patch, media=MERGE, dryRun="All").expect(200)
        time.sleep(1.7)
    scene.did("ci-pipeline wrote itself as the holder six times, each as a dry run")


def edited_and_back(scene: Scene) -> None:
    """Alice writes another holder by hand, and a second later the old one again."""
    first = pair(scene)
    alice = kubectl_of(scene, "alice")
    scene.did("alice writes alice-debug as the holder")
    alice.send("PATCH", scene.path, {"spec": {"holderIdentity": "alice-debug"}}, media=MERGE).expect(200)
    time.sleep(1)
    alice.send("PATCH", scene.path, {"spec": {"holderIdentity": first.identity}}, media=MERGE).expect(200)
    scene.did(f"alice writes {first.identity} again")
    time.sleep(12)


def replaced_from_a_backup(scene: Scene) -> None:
    """Kubectl replace --force with the manifest of yesterday: another object, held by a pod that is long gone."""
    pair(scene)
    alice = kubectl_of(scene, "alice")
    scene.did("alice deletes the lease and creates it from yesterday's manifest")
    alice.send("DELETE", scene.path).expect(200)
    spec = claim(f"{scene.lease}-5b8f6d-old00_77aa", now_text(-_DAY))
    body = {"metadata": {"name": scene.lease}, "spec": spec}
    alice.send("POST", leases(scene.namespace), body).expect(201)
    scene.next_leader(f"{scene.lease}-5b8f6d-old00_77aa")
    time.sleep(6)


def coordinated_upgrade(scene: Scene) -> None:
    """A candidate with an older emulation version appears; the API server prefers it, and asks the leader to go."""
    for name, emulation in (("a", "1.36.0"), ("b", "1.35.0")):
        pod = f"{scene.lease}-node-{name}"
        candidate = scene.start(
            pod, "-binary=1.36.0", f"-emulation={emulation}", identity=pod, mode="candidate", account=scene.lease
        )
        scene.start_beside(candidate, "-coordinated")
        if name == "a":
            scene.until(f"{pod} leads", pod)
            scene.renews()
            scene.did("a second candidate appears, whose emulation version is older")
    scene.until("the second candidate leads", f"{scene.lease}-node-b")
    time.sleep(5)


def follower_killed(scene: Scene) -> None:
    """Only the follower crashes."""
    pair(scene)
    scene.kill(scene.replicas[1])
    time.sleep(20)


def network_flaps(scene: Scene) -> None:
    """The network of the leader fails for six seconds, three times."""
    way = scene.stage.stack.enter_context(Partition(scene.stage.plane.port))
    pair(scene, port=way.port)
    for _ in range(3):
        scene.did("the network of the leader's pod passes nothing on for 6 s")
        way.cut()
        time.sleep(6)
        way.heal()
        time.sleep(5)


def node_cut(scene: Scene) -> None:
    """The network of the leader's node fails: its kubelet is not heard either."""
    node = "worker-a"
    way = scene.stage.stack.enter_context(Partition(scene.stage.plane.port))
    heartbeat(scene, node, way.port)
    first = pair(scene, port=way.port, node=node)
    time.sleep(14)
    scene.did(f"the network of node {node} passes nothing on")
    way.cut()
    scene.next_leader(first.identity)
    time.sleep(12)
    way.heal()
    scene.did(f"the network of node {node} works again")


def killed_twice(scene: Scene) -> None:
    """The leader crashes, and so does the next one three seconds after it took the lease."""
    first = pair(scene)
    scene.start(f"{scene.lease}-7d4b9c-g6b4n")
    scene.kill(first)
    second = scene.next_leader(first.identity)
    time.sleep(3)
    scene.kill(replica_of(scene, second))
    scene.next_leader(second)


def restarted_alone(scene: Scene) -> None:
    """The only replica is restarted in order, and takes its lease again under another name."""
    first = scene.start(f"{scene.lease}-7d4b9c-x2x8p", "-release")
    scene.leads(first)
    scene.renews()
    scene.stop(first)
    scene.remove_pod(first)
    time.sleep(4)
    second = scene.start(f"{scene.lease}-7d4b9c-b5t8q", "-release")
    scene.leads(second)
    scene.renews()


def throttled_lightly(scene: Scene) -> None:
    """The leader's client-go lets one request pass each 8 s: late, but in time."""
    first = scene.start(f"{scene.lease}-7d4b9c-x2x8p", "-qps=0.125", "-burst=10")
    scene.leads(first)
    scene.start(f"{scene.lease}-7d4b9c-q9hkz")
    scene.renews()
    scene.did("the leader's client-go has QPS 0.125 and burst 10: after its first requests it throttles itself")
    time.sleep(45)


def pair(scene: Scene, *flags: str, port: int = 0, node: str = "") -> Replica:
    """Two replicas of which the first one leads; `port` is its way to the API server."""
    first = scene.start(f"{scene.lease}-7d4b9c-x2x8p", *flags, port=port, node=node)
    scene.leads(first)
    scene.start(f"{scene.lease}-7d4b9c-q9hkz", *flags)
    scene.renews()
    return first


def replica_of(scene: Scene, identity: str) -> Replica:
    return next(one for one in scene.replicas if one.identity == identity)


def _in_turns(scene: Scene, replica: Replica, *, stopped: float, runs: float, times: int) -> None:
    for _ in range(times):
        scene.pause(replica)
        time.sleep(stopped)
        scene.resume(replica)
        time.sleep(runs)


def heartbeat(scene: Scene, node: str, port: int) -> None:
    """The lease of a node, renewed each 5 s by way of `port`."""
    plane = scene.stage.plane
    certificate = plane.authority.issue(f"system:node:{node}", organizations=["system:nodes"])
    kubelet = ApiClient(port, plane.authority.file, "kubelet", certificate)
    path = leases("kube-node-lease")
    spec = {"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": now_text()}
    kubelet.send("POST", path, {"metadata": {"name": node}, "spec": spec}).expect(201)

    def renew() -> None:
        try:
            lease = kubelet.get(f"{path}/{node}")
            lease["spec"]["renewTime"] = now_text()
            kubelet.send("PUT", f"{path}/{node}", lease)
        except OSError:
            pass

    scene.every(5, renew)


def kubectl_of(scene: Scene, person: str) -> ApiClient:
    """A person whose writes have the field manager of `kubectl edit`."""
    plane = scene.stage.plane
    certificate = plane.authority.issue(person, organizations=["system:masters"])
    return ApiClient(plane.port, plane.authority.file, "kubectl-edit", certificate)


def claim(holder: str, at: str) -> dict[str, Any]:
    return {"holderIdentity": holder, "leaseDurationSeconds": 15, "acquireTime": at, "renewTime": at}


def new_lease(scene: Scene, holder: str) -> dict[str, Any]:
    return {"metadata": {"name": scene.lease}, "spec": claim(holder, now_text()) | {"leaseTransitions": 0}}


def now_text(offset: float = 0) -> str:
    return (dt.datetime.now(dt.UTC) + dt.timedelta(seconds=offset)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def expect(
    need: Sequence[str], never: Sequence[str], *, audit: Mapping[str, Any] | None = None, **others: Any
) -> Mapping[str, Any]:
    """Return what is right and wrong of a watch and of an audit log; a dump shows a lease that is held, unless said."""
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


def refused_here(name: str) -> Mapping[str, Any]:
    """One namespace's writes were refused; a watch cannot show by what."""
    log = {"need": _REFUSED, "never": [*TAKEN, *_BLAMED], "also": [f"text:{name}"], "fine": ["write-refused"]}
    unknown = ["renewal-late/unknown", "leader-lost/unknown"]
    half = {"half": ["renewal-late/client", "leader-lost/client"]}
    return expect(unknown, [*TAKEN, *NOT_THE_SERVER], audit={"half": [], **log}, **half)


_MAY_BE_CLIENT: Final = ["leader-lost/client", "leader-lost/unknown"]
FROM_BACKUP: Final = [
    *(*TAKEN[1:], "lease-shared", "leader-lost/api-server", "leader-lost/network", "text:orderly handover"),
]


def case_of(play: Any, name: str, cause: str, expected: Mapping[str, Any], **others: Any) -> Case:
    title = " ".join((play.__doc__ or "").split())
    return Case(name, title, cause, f"m-{name}", name, play, expect=expected, **others)


MEASURED_CASES: Final = (
    case_of(drained, "drained", "orderly release", QUIET),
    case_of(rolled_without_release, "rolled-no-release", "the processes were stopped and did not release", CLIENT),
    case_of(
        token_expired,
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
    case_of(
        one_account_loses_rights,
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
    case_of(vendor_refuses, "vendor-refuses", "a webhook refused the writes", refused_here("scan.vendor.example")),
    case_of(policy_refuses, "policy-refuses", "a policy refused the writes", refused_here("no-unlabeled-objects")),
    case_of(vendor_slow, "vendor-slow", "a slow webhook; nothing was lost", QUIET),
    case_of(
        namespace_deleted,
        "namespace-deleted",
        "the namespace was deleted",
        expect(
            ["lease-deleted", "text:deleted", "absent"],
            [*TAKEN, "leader-lost", "renewal-late", "expired", "text:orderly handover"],
            fine=["lease-deleted", "write-refused"],
            dump={"need": ["absent"]},
        ),
    ),
    case_of(duration_raised, "duration-raised", "orderly release", QUIET),
    case_of(
        lowered_then_killed,
        "lowered-then-killed",
        "the holder's process died",
        # That 6 s survive hardly any outage is true as well.
        {
            **{source: {**CLIENT[source], "fine": ["timing-tight"]} for source in ("watch", "audit")},
            "dump": {"clean": True, "need": ["timing-tight"]},
        },
    ),
    case_of(
        clock_steps,
        "clock-steps",
        "clock only; one leader throughout",
        expect(
            ["holder-clock", "clean"],
            [*TAKEN, "leader-lost", "renewal-late", "expired", "lease-shared"],
            dump={"need": ["clean", "holder-clock"], "fine": ["expired"]},
        ),
    ),
    case_of(apiserver_crashes, "apiserver-crashes", "the API server", SERVER, is_alone=True),
    case_of(etcd_slow, "etcd-slow", "etcd", SERVER, is_alone=True),
    case_of(
        starved,
        "starved",
        "the holder's process was starved",
        expect(
            ["renewal-late/client", "leader-lost/client"],
            [*TAKEN, *NOT_THE_SERVER, "leader-lost/refused", "lease-shared"],
        ),
    ),
    case_of(starved_a_little, "starved-a-little", "nothing was lost", QUIET),
    case_of(kubectl_renews, "kubectl-renews", "the holder's process died", CLIENT),
    case_of(dry_run_steals, "dry-run-steals", "nothing was written", QUIET),
    case_of(
        edited_and_back,
        "edited-and-back",
        "another writer changed the holder and changed it back",
        expect(
            ["lease-stolen", "foreign-release", "text:alice |kubectl-edit"],
            ["identity-shared", "lease-shared", "leader-lost", "text:orderly handover"],
            fine=["lease-stolen", "foreign-release"],
        ),
    ),
    case_of(
        replaced_from_a_backup,
        "replaced-from-a-backup",
        "another writer deleted the lease and made it with a holder that is gone",
        expect(["lease-deleted", "lease-stolen"], FROM_BACKUP, fine=["leader-lost"]),
    ),
    case_of(
        coordinated_upgrade,
        "coordinated-upgrade",
        "the API server preferred another candidate",
        expect(
            ["text:prefer|to step down"],
            [*TAKEN, "leader-lost/client", "leader-lost/api-server", "leader-lost/network"],
            half=["clean"],
        ),
    ),
    case_of(follower_killed, "follower-killed", "nothing happened to the leader", QUIET),
    case_of(
        network_flaps,
        "network-flaps",
        "the leader's network; nothing was lost",
        expect(["clean", "renewal-late/client"], [*TAKEN, *NOT_THE_SERVER, "leader-lost", "expired", "lease-shared"]),
    ),
    case_of(node_cut, "node-cut", "the network of the holder's node", CLIENT, also_kept=("kube-node-lease",)),
    case_of(killed_twice, "killed-twice", "the holders' processes died", CLIENT),
    case_of(restarted_alone, "restarted-alone", "orderly release", QUIET),
    case_of(
        throttled_lightly,
        "throttled-lightly",
        "the holder's own client throttled its renewals; nothing was lost",
        expect(
            ["clean", "timing-tight", "renewal-late/client"],
            [*TAKEN, *NOT_THE_SERVER, "leader-lost", "expired", "lease-shared"],
            dump={"clean": True, "need": ["timing-tight"]},
        ),
    ),
)
