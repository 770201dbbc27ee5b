"""Harmless writes: whatever others write, the holder renews and the next one takes the lease as without us."""

import datetime as dt
import json
import os
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Final

import yaml

from lab.e2e.api_client import APPLY, MERGE, ApiClient
from lab.e2e.electors import start_client_go
from lab.e2e.manifests import format_micro_time
from lab.e2e.one_lease import OneLease
from lab.e2e.stamp_cases import FIRST_MINOR, SUFFIX
from lab.e2e.stamping import OTHERS, REFUSED, STAMP, install, label, read_stamps, remove, wait_until_stamped
from lab.e2e.threads import run_threads
from lab.e2e.webhook_server import WebhookServer
from lab.e2e.world import PROJECT, Row, World, build_lease_path, make_absent_row
from tests.waiting import wait_for

PLACES: Final = ("harmless", "harmless-open", "harmless-reviewed", "harmless-strict")
"""With stamps; with stamps and open metadata; with stamps and the webhook in strict; with that webhook alone."""
STAMPED: Final = PLACES[:3]
OWNER: Final = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "op", "uid": "1"}
POLICY: Final = f"""\
apiVersion: lease-webhook/v1
preset: strict
stamps: [{{suffix: {SUFFIX}, namespaces: [harmless-reviewed]}}]
"""
STORM_SECONDS: Final = 25
PATCHED_RENEWALS: Final = 12
RETRY_SECONDS: Final = 2
Metadata = dict[str, Any]


def run(world: World) -> Iterator[Row]:
    """Run the checks that need the stamps, so nothing below 1.36."""
    if world.plane.binaries.minor < FIRST_MINOR:
        yield make_absent_row("policies that stamp", world.plane.binaries.version)
        return
    policy = world.directory / "harmless.yaml"
    policy.write_text(POLICY)
    with ExitStack() as stack:
        server = stack.enter_context(WebhookServer(world.directory, world.certs, policy=str(policy)))
        for name in PLACES:
            world.create_namespace(name, route="" if name in STAMPED[:2] else "harmless")
        pods = {name: [world.create_account(name, "op", f"op-{at}").client for at in range(2)] for name in PLACES}
        strangers = {name: world.create_account(name, "deployer").client for name in PLACES}
        fitting = _find_labels_that_fit(world)
        leases_by_place = {name: list(_fill(world, name, fitting)) for name in STAMPED}
        world.register("harmless", server.port, failure_policy="Fail")
        install(world, (*STAMP, *OTHERS), manager="kubectl")
        for name in STAMPED:
            label(world, name, **({"stamp_metadata": "open"} if name.endswith("open") else {}))
            wait_until_stamped(pods[name][0], name)
        world.settle()
        for name in STAMPED:
            keeper, other = pods[name]
            found = [
                problem for one in leases_by_place[name] for problem in _check_used_lease(one, name, keeper, other)
            ]
            yield _make_row(
                f"{name}: leases that were filled before the label", found, f"{len(leases_by_place[name])} leases"
            )
            yield _make_row(
                f"{name}: a release that comes late", _check_late_release(name, keeper, strangers[name]), "stored"
            )
        for name in PLACES:
            problems = _put_back(name, pods[name][0], pods[name][1], strangers[name])
            yield _make_row(f"{name}: what electors put back", problems, "never refused")
        yield _make_row(
            "no value keeps others from a lease", _check_values(pods["harmless"], strangers["harmless"]), "refused"
        )
        yield _check_storm(world, stack, strangers["harmless"])
        yield from _check_unguarded_storm(world, stack)
        yield _check_few_seats(world, stack)
        yield _measure_list(world, strangers["harmless"])
        yield _check_planting_during_labeling(world, strangers["harmless"])
        remove(world, (*STAMP, *OTHERS))


def _make_row(claim: str, found: Iterable[str], otherwise: str) -> Row:
    problems = list(found)
    return Row(claim, "; ".join(problems[:5]) or otherwise, not problems)


def _find_refusal(what: str, lease: Callable[[], Any]) -> Iterator[str]:
    reply = lease()
    if reply.status not in {200, 201}:
        yield f"{what}: HTTP {reply.status} {reply.message[-250:]}"


def _make_long_labels(count: int) -> dict[str, str]:
    return {f"{'p' * 120}.x/l{at:05}{'k' * 20}": "v" * 63 for at in range(count)}


def _find_labels_that_fit(world: World) -> int:
    """Return how many long labels etcd takes in one lease; the API server drops managedFields on the way.

    Its name and that of the namespace are as long as any, so as many fit in the others.
    """
    lease = OneLease(world.create_user("filler")[0], max(STAMPED, key=len), "size")
    lease.create(holderIdentity="op-0_a", leaseDurationSeconds=4, renewTime=format_micro_time()).expect(201)
    low, high = 4_000, 9_000
    while high - low > 1:
        middle = (low + high) // 2
        lease.patch({"metadata": {"labels": None}}).expect(200)
        is_stored = lease.patch({"metadata": {"labels": _make_long_labels(middle)}}).status == 200
        low, high = (middle, high) if is_stored else (low, middle)
    lease.delete().expect(200)
    return low


def _fill(world: World, namespace: str, fitting: int) -> Iterator[str]:
    """Yield names of leases, filled before the namespace is labeled."""
    client = world.create_user("filler")[0]
    plants: dict[str, Metadata] = {
        **{f"annotations-{n}": {"annotations": {f"x{at}": "" for at in range(n)}} for n in range(97, 108)},
        "labels-65": {"labels": {f"x{at}": "" for at in range(65)}, "ownerReferences": [OWNER | {"uid": "2"}]},
        "finalizers-9": {"finalizers": [f"a.b/c{at}" for at in range(9)], "ownerReferences": [OWNER | {"uid": "2"}]},
        "owners-9": {"ownerReferences": [OWNER | {"uid": f"u{at}"} for at in range(9)]},
    }
    for name, metadata in plants.items():
        lease = OneLease(client, namespace, name)
        lease.create(metadata, holderIdentity="op-0_a", leaseDurationSeconds=4, renewTime=format_micro_time()).expect(
            201
        )
        yield name
    late = {"annotations": {f"x{at}": "" for at in range(100)}}
    OneLease(client, namespace, "late").create(late, holderIdentity="", leaseDurationSeconds=4).expect(201)
    lease = OneLease(client, namespace, "full")
    lease.create(holderIdentity="op-0_a", leaseDurationSeconds=4, renewTime=format_micro_time()).expect(201)
    lease.patch({"metadata": {"labels": _make_long_labels(fitting)}}).expect(200)
    for at in range(40):
        if lease.patch({"metadata": {"labels": {f"z{at}": ""}}}).status != 200:
            # Times differ in their length, so without this one a renewal might not fit without us either.
            lease.patch({"metadata": {"labels": {f"z{at - 1}": None}}}).expect(200)
            break
    yield "full"


def _check_used_lease(name: str, namespace: str, keeper: ApiClient, other: ApiClient) -> Iterator[str]:
    """Let the holder renew with its usual fields, then release or die; the next one takes the lease, and is stamped."""
    mine, theirs = (OneLease(client, namespace, name) for client in (keeper, other))
    for at in range(2):
        metadata = _put_back_own(mine) if at and name != "full" else None
        yield from _find_refusal(f"{name}: renewal {at}", partial(mine.put, metadata, renewTime=format_micro_time()))
    if name.endswith(("9", "1", "full")):
        time.sleep(4.5)
    else:
        release = partial(mine.put, _put_back_own(mine), holderIdentity="", renewTime=format_micro_time())
        yield from _find_refusal(f"{name}: release", release)
    for at in range(2):
        fields: Metadata = {"holderIdentity": "op-1_b", "renewTime": format_micro_time(), "leaseDurationSeconds": 600}
        yield from _find_refusal(f"{name}: takeover {at}", partial(theirs.put, _put_back_own(theirs), **fields))
    if not all(read_stamps(theirs.get())):
        yield f"{name}: the next holder has no stamps"


def _check_late_release(namespace: str, keeper: ApiClient, stranger: ApiClient) -> Iterator[str]:
    """Free and fill a lease before the label; a stranger adds no more, and a late release is stored."""
    mine, theirs = (OneLease(client, namespace, "late") for client in (keeper, stranger))
    if theirs.patch({"metadata": {"annotations": {"y": ""}}}).status == 200:
        yield "a stranger added an annotation beyond the bound"
    release = partial(
        mine.put, _put_back_own(mine), holderIdentity="", leaseDurationSeconds=1, renewTime=format_micro_time()
    )
    yield from _find_refusal("the release", release)
    if len(mine.get()["metadata"]["annotations"]) != 4:
        yield "what others left is still there beside the stamps"


def _put_back_own(lease: OneLease, **more: Any) -> Metadata:
    """Return stored metadata with the additions of electors: client-go's labels, component-helpers' owner."""
    metadata = lease.get()["metadata"]
    finalizers = metadata.get("finalizers", [])
    return {
        "labels": metadata.get("labels", {}) | {"elector": "1"},
        "annotations": metadata.get("annotations", {}) | {"elector/epoch": format_micro_time()},
        "finalizers": finalizers if "own/one" in finalizers else [*finalizers, "own/one"],
        "ownerReferences": metadata.get("ownerReferences") or [OWNER],
    } | more


def _put_back(namespace: str, keeper: ApiClient, other: ApiClient, stranger: ApiClient) -> Iterator[str]:
    """Let a stranger remove and fill between the writes, where it may."""
    mine, second, theirs = (OneLease(client, namespace, "put-back") for client in (keeper, other, stranger))
    created = {"labels": {"elector": "1"}, "ownerReferences": [OWNER]}
    fields: Metadata = {"holderIdentity": "op-0_a", "leaseDurationSeconds": 4, "renewTime": format_micro_time()}
    yield from _find_refusal("creation", partial(mine.create, created, **fields))
    fillings: list[Metadata] = [
        {"ownerReferences": None},
        {"labels": None},
        {"labels": {f"x{at}": "" for at in range(64)}},
        {"annotations": {f"x{at}": "" for at in range(100)}},
        {"annotations": {"pad": "v" * 16_000}},
        {"finalizers": [f"a.b/c{at}" for at in range(8)]},
        {"ownerReferences": [OWNER | {"uid": f"u{at}"} for at in range(8)]},
    ]
    for filling in fillings:
        reply = theirs.patch({"metadata": filling})
        if namespace in ("harmless", "harmless-reviewed") and reply.status == 200:
            yield f"a stranger changed metadata of a held lease: {list(filling)}"
        for write in (OneLease.put, OneLease.renew_by_patch):
            metadata = _put_back_own(mine)
            yield from _find_refusal(
                f"renewal after {list(filling)}", partial(write, mine, metadata, renewTime=format_micro_time())
            )
    time.sleep(5)
    for at in range(3):
        fields = {"holderIdentity": "op-1_b", "renewTime": format_micro_time(), "leaseTransitions": 2}
        yield from _find_refusal(f"takeover {at}", partial(second.put, _put_back_own(second), **fields))
    yield from _find_refusal(
        "release", lambda: second.put(_put_back_own(second), holderIdentity="", renewTime=format_micro_time())
    )
    for filling in fillings:
        theirs.patch({"metadata": filling})
    fields = {"holderIdentity": "op-0_a", "renewTime": format_micro_time(), "leaseTransitions": 3}
    yield from _find_refusal("a claim of the free lease", lambda: mine.put(_put_back_own(mine), **fields))


def _check_values(pods: Sequence[ApiClient], stranger: ApiClient) -> Iterator[str]:
    """Create a lease, take a free one, or be its writer as a stranger, and release it; then an elector claims it."""
    values: list[dict[str, Any]] = [
        {"leaseTransitions": 2_147_483_647},
        {"renewTime": "2999-01-01T00:00:00.000000Z"},
        {"renewTime": "9999-12-31T23:59:59.999999-01:00"},
        {"leaseDurationSeconds": 2_147_483_647},
    ]
    for number, value in enumerate(values):
        theirs = OneLease(stranger, "harmless", f"values-{number}")
        if theirs.create(**({"renewTime": format_micro_time()} | value)).status == 201:
            yield f"created with {value}"
        theirs.create(holderIdentity="", renewTime=format_micro_time()).expect(201)
        for holder in ("", "m"):
            if theirs.put(holderIdentity="m", **({"renewTime": format_micro_time()} | value)).status == 200:
                yield f"claimed with {value}, held by {holder!r}"
            undated = theirs.put(
                holderIdentity="m", entries=lambda _: [{}], **({"renewTime": format_micro_time()} | value)
            )
            if undated.status == 200:
                yield f"claimed without a time and with {value}, held by {holder!r}"
            theirs.put(holderIdentity="m", renewTime=format_micro_time()).expect(200)
        theirs.put(holderIdentity="", renewTime=format_micro_time(), leaseDurationSeconds=1).expect(200)
        mine = OneLease(pods[0], "harmless", f"values-{number}")
        count = mine.get()["spec"]["leaseTransitions"] + 1
        claim = partial(mine.put, holderIdentity="a", renewTime=format_micro_time(), leaseTransitions=count)
        yield from _find_refusal("a claim", claim)


def _check_storm(world: World, stack: ExitStack, stranger: ApiClient) -> Row:
    """Change a label as often as four connections can, while client-go holds the lease."""
    statuses, is_kept, observation, steal = _send_storm(world, stack, stranger, "harmless", 4)
    good = statuses[200] == 0 and is_kept and steal == 403
    return Row("a storm of labels on a held lease", f"{observation}; a steal: HTTP {steal}", good)


def _check_unguarded_storm(world: World, stack: ExitStack) -> Iterator[Row]:
    """Change a label where no policy and no flow schema is against that, while client-go, and a patch, renew."""
    place = world.create_namespace("harmless-unguarded")
    stranger, keeper = (world.create_account(place, name).client for name in ("deployer", "patcher"))
    statuses, is_kept, observation, _ = _send_storm(world, stack, stranger, place, 4)
    # As with the flow schema, whether a leader gets through depends on the machine.
    observation += "; kept" if is_kept else "; lost"
    yield Row("the same where nothing guards the lease", observation, statuses[200] > 0)
    lease = OneLease(keeper, place, "patched")
    lease.create(holderIdentity="patcher", renewTime=format_micro_time()).expect(201)
    renewals = Counter[int]()
    with _change_labels(stranger, lease.path, 4):
        for _ in range(PATCHED_RENEWALS):
            renewals[lease.patch({"spec": {"renewTime": format_micro_time()}}).status] += 1
            time.sleep(RETRY_SECONDS)
    yield Row("renewals by a merge patch meanwhile", str(dict(renewals)), renewals == {200: PATCHED_RENEWALS})


def _check_few_seats(world: World, stack: ExitStack) -> Row:
    """Send three times as many, where nothing but deploy/lease-writes stands against them."""
    place = world.create_namespace("harmless-seats")
    stranger = world.create_account(place, "deployer").client
    text = (PROJECT / "deploy" / "lease-writes" / "flow.yaml").read_text(encoding="utf-8")
    for document in yaml.safe_load_all(text.replace("shop", place).replace("name: checkout", "name: elector")):
        plural = {"FlowSchema": "flowschemas"}.get(document["kind"], "prioritylevelconfigurations")
        path = f"/apis/flowcontrol.apiserver.k8s.io/v1/{plural}/{document['metadata']['name']}"
        world.admin.send("PATCH", path, document, media=APPLY, fieldManager="e2e", force=True).expect()
    world.settle()
    statuses, is_kept, observation, _ = _send_storm(world, stack, stranger, place, 12)
    # Whether the leader gets through depends on the machine, so it is said and not required: docs/promises.md.
    observation += "; kept" if is_kept else "; lost"
    return Row(
        "the same by 12 connections, one at a time: most are rejected", observation, statuses[429] > statuses[200]
    )


def _send_storm(
    world: World, stack: ExitStack, stranger: ApiClient, place: str, connections: int
) -> tuple[Counter[int], bool, str, int]:
    """Return the statuses of the storm, whether client-go kept the lease, both in words, and the status of a steal."""
    name = "storm"
    account = world.create_account(place, "elector")
    start_client_go(
        stack, world.plane.binaries, account.kubeconfig, namespaces=[place], lease=name, identity="elector-1"
    )
    lease = OneLease(stranger, place, name)
    holder = wait_for(
        "a holder", lambda: world.admin.send("GET", lease.path).body.get("spec", {}).get("holderIdentity"), 30
    )
    with _change_labels(stranger, lease.path, connections) as statuses:
        time.sleep(STORM_SECONDS)
        stored = lease.get()["spec"]
        age = time.time() - _parse_seconds(stored["renewTime"])
        steal = lease.patch({"spec": {"holderIdentity": "m", "renewTime": format_micro_time()}})
    is_kept = stored["holderIdentity"] == holder and age < 15
    observation = f"{dict(statuses)} in {STORM_SECONDS} s; {stored['holderIdentity']} renewed {age:.0f} s ago"
    return statuses, is_kept, observation, steal.status


@contextmanager
def _change_labels(stranger: ApiClient, path: str, connections: int) -> Iterator[Counter[int]]:
    """Change a label of a lease as often as so many connections can; count the statuses."""
    statuses, stop = Counter[int](), threading.Event()

    def patch(number: int) -> None:
        at = 0
        while not stop.is_set():
            at += 1
            labels = {"metadata": {"labels": {"x": f"{number}-{at}"}}}
            statuses[stranger.send("PATCH", path, labels, media=MERGE).status] += 1

    with run_threads(stop, *(partial(patch, number) for number in range(connections))):
        yield statuses


def _parse_seconds(text: str) -> float:
    return dt.datetime.fromisoformat(text).timestamp()


def _measure_list(world: World, stranger: ApiClient) -> Row:
    """Measure a PUT with 50,000 finalizers: it is refused, for about what the API server needs to read it."""
    milliseconds: dict[str, float] = {}
    statuses = {}
    owner = world.create_user("lists")[0]
    for place in ("harmless", world.create_namespace("harmless-bare")):
        name = OneLease(owner, place, "long-list")
        name.create(holderIdentity="", renewTime=format_micro_time()).expect(201)
        lease = OneLease(stranger if place == "harmless" else owner, place, "long-list")
        # Nothing of spec: what takes the lease would lose its finalizers, and not be refused for them.
        renew_time = lease.get()["spec"]["renewTime"]
        reply = lease.put({"finalizers": [f"a.b/{at:x}" for at in range(50_000)]}, renewTime=renew_time)
        milliseconds[place], statuses[place] = reply.milliseconds, reply.status
    observation = (
        f"HTTP {statuses['harmless']} after {milliseconds['harmless']:.0f} ms; "
        f"without the policies {milliseconds['harmless-bare']:.0f}"
    )
    return Row("a list of 50,000 finalizers", observation, statuses == {"harmless": 422, "harmless-bare": 200})


def _check_planting_during_labeling(world: World, stranger: ApiClient) -> Row:
    """Label by deploy/protect, while a stranger who knows the suffix plants its own stamp once a second."""
    place = world.create_namespace("harmless-later")
    keeper = world.create_account(place, "op").client
    planter = world.create_account(place, "planter").client
    mine, theirs = (OneLease(client, place, "planted") for client in (keeper, planter))
    mine.create(leaseDurationSeconds=15, renewTime=format_micro_time()).expect(201)
    probe = {"metadata": {"name": "probe"}, "spec": {"holderIdentity": "a"}}
    mark = read_stamps(planter.send("POST", build_lease_path("harmless"), probe, dryRun="All").body)
    stop, refusals = threading.Event(), list[str]()

    def plant() -> None:
        names = dict(zip(("writer", "written", "term"), (mark[0], format_micro_time(55)[:19] + "Z", "1"), strict=True))
        annotations = {f"lease-webhook/{name}-{SUFFIX}": text for name, text in names.items()}
        while not stop.wait(0.3):
            theirs.patch({"metadata": {"annotations": annotations}})

    def renew() -> None:
        while not stop.wait(1):
            reply = mine.renew_by_patch(renewTime=format_micro_time())
            if reply.status != 200:
                refusals.append(f"HTTP {reply.status} {reply.message[-200:]}")

    binary = world.plane.binaries.kubectl
    directory = world.directory / "path"
    directory.mkdir(exist_ok=True)
    (directory / "kubectl").unlink(missing_ok=True)
    (directory / "kubectl").symlink_to(binary)
    environment = {
        **os.environ,
        "PATH": f"{directory}:{os.environ['PATH']}",
        "KUBECONFIG": str(world.plane.write_kubeconfig("admin", "system:masters")),
    }
    with run_threads(stop, plant, renew):
        # The policies that are applied already have the suffix of this run.
        result = subprocess.run(
            ["sh", str(PROJECT / "deploy" / "protect"), place],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        time.sleep(2)
        steal = theirs.put(holderIdentity="m", renewTime=format_micro_time())
    writer = read_stamps(mine.get())[0]
    good = result.returncode == 0 and not refusals and steal.status in REFUSED and writer.endswith(f":{place}:op")
    details = json.dumps([result.returncode, result.stderr[-300:], refusals[:2], steal.status, writer])
    return Row(
        "deploy/protect while someone plants stamps", "the holder renews, no one takes it" if good else details, good
    )
