"""The policies of deploy/stamp: a live lease belongs to its stamped writer, and nobody honest is refused."""

import concurrent.futures
import datetime as dt
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, Final

from lab.e2e.api_client import APPLY, ApiClient, Reply
from lab.e2e.counting import CountingWebhook
from lab.e2e.elections import elect_client_go, elect_each
from lab.e2e.manifests import format_micro_time
from lab.e2e.one_lease import API, OWNER, Entries, OneLease, make_entry
from lab.e2e.quantile import find_quantile
from lab.e2e.stamp_cases import (
    ATTACKS,
    BEFORE,
    FIRST_MINOR,
    KEYS,
    SUFFIX,
    Attack,
    Takeover,
    draw_lists,
    forge_stamps,
    make_label_paths,
    take,
    take_by_apply,
)
from lab.e2e.stamping import OTHERS, REFUSED, STAMP, apply, install, label, read_stamps, remove, wait_until_stamped
from lab.e2e.webhook_server import WebhookServer
from lab.e2e.world import Row, World
from tests import protobuf
from tests.waiting import wait_for

WORKERS: Final = 4
NAMESPACE: Final = "stamped"


def run(world: World) -> Iterator[Row]:
    """Try attacks and honest writes; below 1.36 check only that the other policies alone stop nobody."""
    if world.plane.binaries.minor < FIRST_MINOR:
        yield _check_without_stamps(world)
        return
    as_it_is = [apply(world, document) for document in (*STAMP[:1], *OTHERS[::2])]
    yield Row(
        "the file without a suffix",
        ", ".join(str(reply.status) for reply in as_it_is),
        passed=all(reply.status == 422 and "SUFFIX" in reply.message for reply in as_it_is),
    )
    world.create_namespace(NAMESPACE)
    poisoned = dict(_create_poisoned(world))
    _create_full(world)
    install(world, (*STAMP, *OTHERS))
    keeper, mallory = (world.create_account(NAMESPACE, "op", pod).client for pod in ("op-0", "op-1"))
    # Open, so that strangers can try what they could leave in metadata.
    label(world, NAMESPACE, stamp_metadata="open")
    wait_until_stamped(keeper, NAMESPACE)
    yield _make_row("attacks on a live lease", [lambda one=one: _check_attack(one, keeper, mallory) for one in ATTACKS])  # type: ignore[misc]
    yield _make_row("plants in a free lease", [lambda one=one: _check_planted(one, keeper, mallory) for one in BEFORE])  # type: ignore[misc]
    checks_of_poisoned = [partial(_check_renewal, name, keeper, mallory) for name in poisoned]
    yield _make_row("leases that were spoiled before", checks_of_poisoned)
    yield _make_row("times of year 10000 from before the label", [lambda: _check_unreadable(world)])
    full = [partial(_check_first_stamp, name, world, keeper, mallory) for name in BEFORE_FIRST]
    yield _make_row("held leases that others write before their first stamp", full)
    yield _make_row("a lease whose holder somebody exempt chose", [lambda: _check_chosen(world, keeper, mallory)])
    bare = [partial(_check_bare_puts, is_claim, keeper, mallory) for is_claim in (True, False)]
    yield _make_row("a lease that is being deleted, by PUTs without metadata", bare)
    yield _make_row("beside another mutating policy", [lambda: _check_beside_another(world, keeper, mallory)])
    yield _make_row("deletions that the collector would complete", [lambda: _check_completed_later(mallory)])
    yield _check_random_lists(keeper, mallory)
    yield _make_row("electors of each kind", [lambda kind=kind: _check_life(kind, keeper, mallory) for kind in WAYS])  # type: ignore[misc]
    yield _make_row("expiry by the clock of the API server", [lambda: _check_expiry(keeper, mallory)])
    yield _make_row("who is not evaluated", [lambda: _check_exempt(world, keeper, mallory)])
    yield _make_row("one user as the writer", [lambda: _check_one_user(world)])
    yield from _check_elections(world)
    yield from _check_with_webhook(world)
    yield _measure_cost(world, keeper)
    yield _check_removal_and_return(world, keeper, mallory)


def _make_row(claim: str, checks: Sequence[Callable[[], list[str]]]) -> Row:
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        problems = [problem for found in pool.map(_run_check, checks) for problem in found]
    return Row(claim, "; ".join(problems) or f"{len(checks)} as they should be", bool(checks) and not problems)


def _run_check(check: Callable[[], list[str]]) -> list[str]:
    """Return the problems of a check; that a lease is gone is one of them."""
    try:
        return check()
    except RuntimeError as error:
        return [str(error)]


def _name_lease(claim: str) -> str:
    """Return a name for a lease, from a claim about it."""
    return "".join(char if char.isalnum() else "-" for char in claim.lower()).strip("-")[:60].strip("-")


def _check_dated(claim: str, keeper: OneLease) -> Iterator[str]:
    """Renew as the holder; the time of that is stamped."""
    before = read_stamps(keeper.get())
    time.sleep(1.1)
    reply = keeper.renew_by_patch(renewTime=format_micro_time())
    if reply.status != 200:
        yield f"{claim}: the holder's renewal: HTTP {reply.status} {reply.message[-300:]}"
        return
    after = read_stamps(reply.body)
    if not after[1] or after[1] == before[1] or abs(_measure_age(after[1])) > 5:
        yield f"{claim}: the renewal is undated: {before} {after}"


def _measure_age(stamp: str) -> float:
    return (dt.datetime.now(dt.UTC) - dt.datetime.fromisoformat(stamp)).total_seconds()


def _try_steals(claim: str, stranger: OneLease) -> Iterator[str]:
    for steal in (take, take_by_apply, OneLease.delete):
        reply = steal(stranger)
        if reply.status not in REFUSED:
            yield f"{claim}: {steal.__name__} afterwards: HTTP {reply.status} {read_stamps(reply.body)}"


def _check_attack(attack: Attack, keeper: ApiClient, mallory: ApiClient) -> list[str]:
    mine, theirs = (OneLease(client, NAMESPACE, f"a-{_name_lease(attack.name)}") for client in (keeper, mallory))
    mine.create(leaseDurationSeconds=600, renewTime=format_micro_time()).expect(201)
    mine.settle()
    problems: list[str] = []
    for number, write in enumerate(attack.writes):
        reply = write(theirs)
        if number == len(attack.writes) - 1 and attack.refused and reply.status not in REFUSED:
            problems.append(f"{attack.name}: HTTP {reply.status}")
    writer = read_stamps(mine.get())[0]
    if "system:serviceaccount:stamped:op" not in writer:
        problems.append(f"{attack.name}: the writer is {writer!r}")
    # Plants are tried both before and after the next renewal.
    return [
        *problems,
        *_try_steals(attack.name, theirs),
        *_check_dated(attack.name, mine),
        *_try_steals(attack.name, theirs),
    ]


def _check_planted(case: Takeover, keeper: ApiClient, mallory: ApiClient) -> list[str]:
    mine, theirs = (OneLease(client, NAMESPACE, f"b-{_name_lease(case.name)}") for client in (keeper, mallory))
    if case.again:
        mine.create(renewTime=format_micro_time()).expect(201)
        mine.put(holderIdentity="", renewTime=format_micro_time()).expect(200)
    try:
        for write in case.before:
            write(theirs)
        time.sleep(case.wait)
        theirs.settle()
    except RuntimeError:
        mine.create(holderIdentity=..., renewTime=format_micro_time()).expect(201)  # it was deleted at once
    if not read_stamps(mine.get())[0]:
        return [f"{case.name}: no writer is stamped"]
    claimed = mine.put(holderIdentity="a", leaseDurationSeconds=600, renewTime=format_micro_time())
    if claimed.status != 200:
        return [f"{case.name}: the claim: HTTP {claimed.status} {claimed.message[-300:]}"]
    if claimed.body["metadata"].get("ownerReferences"):
        return [f"{case.name}: an owner was inherited"]
    for write in case.after:
        write(theirs)
    return [*_try_steals(case.name, theirs), *_check_dated(case.name, mine), *_try_steals(case.name, theirs)]


def _create_poisoned(world: World) -> Iterator[tuple[str, None]]:
    """Yield leases that somebody spoiled before the policies were there; each can be renewed without them."""
    client = world.create_user("poisoner")[0]
    many: list[dict[str, Any]] = [
        {
            "manager": f"m{at}",
            "operation": "Apply",
            "apiVersion": API,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:labels": {f"f:z{at}": {}}}},
        }
        for at in range(400)
    ]
    plants: dict[str, Callable[[OneLease], Reply]] = {
        "400-entries": lambda lease: lease.put(entries=lambda old: [*old, *many]),
        "emptied": lambda lease: lease.put(entries=lambda _: [{}]),
        "an-annotation-of-262000": lambda lease: lease.put({"annotations": {"f": "x" * 262_000}}),
        "four-byte-characters": lambda lease: lease.put({"annotations": {"f": "\U0001f40c" * 65_000}}),
        "40000-annotations": lambda lease: lease.put({"annotations": {f"{at:x}": "" for at in range(40_000)}}),
        "20000-labels": lambda lease: lease.put({"labels": {f"a{at}": "b" for at in range(20_000)}}),
        "2000-owners": lambda lease: lease.put({"ownerReferences": [OWNER | {"uid": str(at)} for at in range(2000)]}),
        "a-holder-of-700-kb": lambda lease: lease.put(holderIdentity="x" * 700_000),
        "68-years": lambda lease: lease.put(leaseDurationSeconds=2147483647),
        "no-spec": lambda lease: lease.patch({"spec": None}),
        "1000-labels": lambda lease: lease.put({"labels": {f"a{at}": "b" for at in range(1_000)}}),
        "200-annotations": lambda lease: lease.put({"annotations": {f"a{at}": "b" for at in range(200)}}),
        "held-and-owned": lambda lease: lease.put({"ownerReferences": [OWNER]}),
        "untouched": OneLease.put,
    }
    for name, plant in plants.items():
        lease = OneLease(client, NAMESPACE, name)
        lease.create(renewTime=format_micro_time()).expect(201)
        plant(lease).expect(200)
        yield name, None
    deleted = OneLease(client, NAMESPACE, "201-finalizers-and-deleted")
    deleted.create({"finalizers": [f"a.b/c{at}" for at in range(201)]}, renewTime=format_micro_time()).expect(201)
    deleted.delete().expect(200)
    yield deleted.name, None


_FULL: Final[dict[str, Any]] = {
    "labels": {f"a{at}": "b" for at in range(1_000)},
    "annotations": {f"a{at}": "b" for at in range(150)},
    "finalizers": [f"a.b/c{at}" for at in range(9)],
    "ownerReferences": [OWNER],
}
_BEYOND: Final[dict[str, dict[str, Any]]] = {
    "labels": {"labels": _FULL["labels"] | {"more": "b"}},
    "annotations": {"annotations": _FULL["annotations"] | {f"more{at}": "b" for at in range(150)}},
    "finalizers": {"finalizers": [f"a.b/c{at}" for at in range(201)]},
    "ownerReferences": {"ownerReferences": [*({**OWNER, "uid": f"{at}"} for at in range(5_000)), OWNER]},
}
"""Metadata that leaves no room for stamps when a namespace is labeled."""
_CUT: Final[dict[str, dict[str, Any]]] = {
    "labels": {"labels": {"more": None}},
    "annotations": {"annotations": dict.fromkeys((f"more{at}" for at in range(150)), None)},
    "finalizers": {"finalizers": _FULL["finalizers"]},
    "ownerReferences": {"ownerReferences": [OWNER]},
}
_CORRECT: Final[dict[str, Any]] = {"spec": {"leaseDurationSeconds": 700}}
BEFORE_FIRST: Final[dict[str, Callable[[OneLease, OneLease], Reply]]] = {
    "cut-labels": lambda admin, _: admin.patch({"metadata": _CUT["labels"]}),
    "cut-annotations": lambda admin, _: admin.patch({"metadata": _CUT["annotations"]}),
    "cut-finalizers": lambda admin, _: admin.patch({"metadata": _CUT["finalizers"]}),
    "cut-ownerReferences": lambda admin, _: admin.patch({"metadata": _CUT["ownerReferences"]}),
    "corrected": lambda admin, _: admin.patch(_CORRECT),
    "label-removed": lambda _, theirs: theirs.label("a0", None),
    "annotation-changed": lambda _, theirs: theirs.patch({"metadata": {"annotations": {"a0": "c"}}}),
    "stamps-forged": lambda _, theirs: theirs.patch({"metadata": {"annotations": forge_stamps("- mallory")}}),
}
"""A write of each lease that was full and held before the label, by an administrator or a stranger."""


def _create_full(world: World) -> None:
    """Create what is in BEFORE_FIRST, as its holder had it before the policies."""
    client = world.create_user("holder")[0]
    for name in BEFORE_FIRST:
        lease = OneLease(client, NAMESPACE, name.lower())
        metadata = _FULL | (_BEYOND[name.removeprefix("cut-")] if name.startswith("cut-") else {})
        lease.create(metadata, leaseDurationSeconds=600, renewTime=format_micro_time()).expect(201)


def _check_first_stamp(name: str, world: World, keeper: ApiClient, mallory: ApiClient) -> list[str]:
    """Check that a write before the first stamp is stored, and that the stamp then changes nothing else."""
    mine, theirs, admin = (OneLease(one, NAMESPACE, name.lower()) for one in (keeper, mallory, world.admin))
    if name.startswith("cut-"):
        mine.renew_by_patch(renewTime=format_micro_time()).expect(200)
    written = BEFORE_FIRST[name](admin, theirs)
    if written.status != 200:
        return [f"{name}: HTTP {written.status} {written.message[-300:]}"]
    empty = mine.patch({})
    renewal = mine.renew_by_patch(renewTime=format_micro_time())
    problems = [f"{name}: HTTP {one.status} {one.message[-300:]}" for one in (empty, renewal) if one.status != 200]
    if not problems and not all(read_stamps(renewal.body)):
        problems.append(f"{name}: not stamped")
    before, after = written.body["metadata"], mine.get()["metadata"]
    kept = {key: value for key, value in after["annotations"].items() if key not in KEYS}
    if kept != before["annotations"] or any(key in before["annotations"] for key in KEYS):
        problems.append(f"{name}: {len(before['annotations'])} annotations, then {len(kept)}")
    problems += [
        f"{name}: {len(before[kind])} {kind}, then {len(after.get(kind, ()))}"
        for kind in ("labels", "finalizers", "ownerReferences")
        if before[kind] != after.get(kind)
    ]
    return [*problems, *_try_steals(name, theirs)]


_YEAR_10000: Final = "9999-12-31T23:59:59.999999-01:00"
_SPOILED: Final[dict[str, Callable[[OneLease], Reply]]] = {
    "acquire-time": lambda lease: lease.put_protobuf(acquireTime=_YEAR_10000, renewTime=format_micro_time()),
    "renew-time": lambda lease: lease.put_protobuf(renewTime=_YEAR_10000),
    "time-of-an-entry": lambda lease: lease.put(
        entries=lambda old: [*old, make_entry("z", make_label_paths(1), "9999-12-31T23:59:59-01:00")],
        renewTime=format_micro_time(),
    ),
}
"""Values that no client reads as JSON. A holder that writes protobuf does not notice: it reads no managedFields."""


def _check_unreadable(world: World) -> list[str]:
    """Check that such a holder renews all the same, in a namespace that is pending and in one that is required."""
    namespace = world.create_namespace("unreadable")
    keeper, mallory = (world.create_account(namespace, "op", pod).client for pod in ("op-0", "op-1"))
    values = ("pending", "required")
    for name in (f"{value}-{name}" for value in values for name in _SPOILED):
        OneLease(keeper, namespace, name).create(leaseDurationSeconds=600, renewTime=format_micro_time()).expect(201)
        _SPOILED[name.partition("-")[2]](OneLease(mallory, namespace, name)).expect(200)
    problems = []
    for value in values:
        label(world, namespace, value)
        wait_until_stamped(keeper, namespace, stamped=value == "required")
        for name in (f"{value}-{name}" for name in _SPOILED):
            mine, theirs = (OneLease(client, namespace, name) for client in (keeper, mallory))
            for _ in range(2):
                sent = protobuf.lease(mine.make_changed(renewTime=format_micro_time()), ())
                renewal = keeper.send("PUT", mine.path, sent, media=protobuf.MEDIA)
                if renewal.status != 200:
                    problems.append(f"{name}: HTTP {renewal.status} {renewal.message[-300:]}")
            if "10000-" in str(mine.get()):
                problems.append(f"{name}: the time is still there")
            problems += _try_steals(name, theirs) if value == "required" else ()
    return problems


def _check_bare_puts(is_claim: bool, keeper: ApiClient, mallory: ApiClient) -> list[str]:
    """Check that an elector that sends no metadata does not delete what a stranger left to be deleted.

    It takes the lease, or has taken it by a PUT with metadata and renews it.
    """
    name = "bare-claim" if is_claim else "bare-renewal"
    mine, theirs = (OneLease(one, NAMESPACE, name) for one in (keeper, mallory))
    brief: dict[str, Any] = {"holderIdentity": "m", "leaseDurationSeconds": 1}
    theirs.create({"finalizers": ["a.b/c"]}, renewTime=format_micro_time(), **brief).expect(201)
    theirs.delete().expect(200)
    time.sleep(2.1)
    if not is_claim:
        mine.put(holderIdentity="a", leaseDurationSeconds=600, renewTime=format_micro_time()).expect(200)
    problems = []
    for holder in ("a", "a", ""):
        spec = {"holderIdentity": holder, "leaseDurationSeconds": 600, "renewTime": format_micro_time()}
        # The same again: its answer was lost, or the times of the elector are whole seconds.
        for _ in range(2 if holder else 1):
            metadata = {"name": name, "resourceVersion": mine.get()["metadata"]["resourceVersion"]}
            body = {"apiVersion": API, "kind": "Lease", "metadata": metadata, "spec": spec}
            reply = keeper.send("PUT", mine.path, body)
            if reply.status != 200:
                problems.append(f"{name}: HTTP {reply.status} {reply.message[-300:]}")
        if holder:
            problems += _try_steals(name, theirs)
            if theirs.patch({"metadata": {"finalizers": None}}).status not in REFUSED:
                problems.append(f"{name}: a stranger removed the finalizer")
            if theirs.create(holderIdentity="m").status != 409:
                problems.append(f"{name}: a stranger created it")
    if theirs.create(holderIdentity="m", renewTime=format_micro_time()).status != 201:
        problems.append(f"{name}: its release did not delete it")
    return problems


_ANOTHER: Final[dict[str, Any]] = {
    "failurePolicy": "Fail",
    "reinvocationPolicy": "Never",
    "matchConstraints": {
        "resourceRules": [
            {"apiGroups": ["coordination.k8s.io"], "apiVersions": ["v1"], "resources": ["leases"], "operations": ["*"]}
        ]
    },
    "matchConditions": [{"name": "none", "expression": "object.metadata.name == 'none'"}],
    "mutations": [
        {
            "patchType": "JSONPatch",
            "jsonPatch": {"expression": "[JSONPatch{op: 'test', path: '/kind', value: 'Lease'}]"},
        }
    ],
}
"""A policy that changes nothing. From 1.37 on, expressions after its match condition see a lease as another type."""


def _check_beside_another(world: World, keeper: ApiClient, mallory: ApiClient) -> list[str]:
    """Check that a claim keeps lists of the lease, and its own, where another policy has a match condition."""
    # An API server evaluates policies in any order, so one of several comes first.
    documents: list[dict[str, Any]] = [
        {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        for name in (f"another-{at}" for at in range(7))
        for kind, spec in (
            ("MutatingAdmissionPolicy", _ANOTHER),
            ("MutatingAdmissionPolicyBinding", {"policyName": name}),
        )
    ]
    install(world, documents)
    time.sleep(3)
    mine, theirs = (OneLease(client, NAMESPACE, "beside-another") for client in (keeper, mallory))
    other = OWNER | {"uid": "other"}
    brief: dict[str, Any] = {"holderIdentity": "m", "leaseDurationSeconds": 1}
    theirs.create({"finalizers": ["a.b/c"], "ownerReferences": [other]}, renewTime=format_micro_time(), **brief)
    theirs.delete().expect(200)
    time.sleep(2.1)
    own = OWNER | {"controller": True, "blockOwnerDeletion": False}
    metadata = {"finalizers": [], "ownerReferences": [other, own]}
    claim = mine.put(metadata, leaseDurationSeconds=600, renewTime=format_micro_time())
    remove(world, documents)
    if claim.status != 200:
        return [f"HTTP {claim.status} {claim.message[-300:]}"]
    stored = claim.body["metadata"]
    kept = {"finalizers": ["a.b/c"], "ownerReferences": [own]}
    return [f"{name}: {stored.get(name)}" for name, value in kept.items() if stored.get(name) != value]


def _check_completed_later(mallory: ApiClient) -> list[str]:
    """Check that the writer leaves nothing by which the collector deletes the lease when somebody else holds it."""
    lease = OneLease(mallory, NAMESPACE, "completed-later")
    finalizers = [{"finalizers": [name]} for name in ("foregroundDeletion", "orphan")]
    replies = {f"created with {one}": lease.create(one) for one in finalizers}
    lease.create(renewTime=format_micro_time()).expect(201)
    stripped = {f"patched with {one}": lease.patch({"metadata": one}) for one in finalizers}
    for query in ({"propagationPolicy": "Foreground"}, {"propagationPolicy": "Orphan"}, {"orphanDependents": "true"}):
        replies[f"deleted with {query}"] = mallory.send("DELETE", lease.path, **query)
    problems = [f"{how}: HTTP {reply.status}" for how, reply in replies.items() if reply.status not in REFUSED]
    problems += [
        f"{how}: HTTP {reply.status} {reply.body['metadata']}"
        for how, reply in stripped.items()
        if reply.status != 200 or reply.body["metadata"].get("finalizers")
    ]
    if lease.patch({"metadata": {"finalizers": ["a.b/c"]}}).status != 200:
        problems.append("another finalizer was refused")
    if lease.patch({"metadata": {"finalizers": None}}).status != 200 or lease.delete().status != 200:
        problems.append("a deletion in the background was refused")
    return problems


_WITHOUT_ROOM: Final = {
    *("an-annotation-of-262000", "four-byte-characters", "40000-annotations"),
    *("20000-labels", "2000-owners", "a-holder-of-700-kb"),
}


def _check_renewal(name: str, keeper: ApiClient, other: ApiClient) -> list[str]:
    """Renew by PUT and by patch, whether or not the lease can be stamped.

    One that can be is dated at the third time. Whoever takes one that cannot be stamped has it with stamps.
    """
    lease = OneLease(keeper, NAMESPACE, name)
    problems = [
        f"{name}: HTTP {reply.status} {reply.message[-300:]}"
        for reply in (lease.put(renewTime=format_micro_time()), lease.renew_by_patch(renewTime=format_micro_time()))
        if reply.status != 200
    ]
    stored = lease.get()
    if name == "held-and-owned" and not stored["metadata"].get("ownerReferences"):
        problems.append(f"{name}: the owner of a held lease was removed")
    if len(stored["metadata"]["managedFields"]) != 1:
        problems.append(f"{name}: {len(stored['metadata']['managedFields'])} entries")
    if name not in _WITHOUT_ROOM:
        problems += _check_dated(name, lease)
        for number in range(2):
            labeled = lease.renew_by_patch({"labels": {"own": str(number)}, "annotations": {"own": str(number)}})
            if labeled.status != 200 or not all(read_stamps(labeled.body)):
                problems.append(f"{name}: a label of its own: HTTP {labeled.status} {read_stamps(labeled.body)}")
        if labeled.body["metadata"].get("labels", {}).get("own") != "1":
            problems.append(f"{name}: a label of its own is not there")
        return problems
    if any(read_stamps(stored)):
        problems.append(f"{name}: stamped")
    takeover = take(OneLease(other, NAMESPACE, name))
    if takeover.status != 200 or not all(read_stamps(takeover.body)):
        problems.append(f"{name}: not taken, or without stamps: HTTP {takeover.status} {takeover.message[-200:]}")
    return problems


def _replace_entries(entries: Entries) -> Callable[[Entries], Entries]:
    return lambda _: entries


def _check_random_lists(keeper: ApiClient, mallory: ApiClient, count: int = 60) -> Row:
    mine, theirs = (OneLease(client, NAMESPACE, "random") for client in (keeper, mallory))
    mine.create(leaseDurationSeconds=600, renewTime=format_micro_time()).expect(201)
    problems: list[str] = []
    stored = 0
    for number, (entries, manager) in enumerate(draw_lists(7, count)):
        stored_time = mine.get()["spec"]["renewTime"]
        labels = {"labels": {"n": str(number)}}
        reply = theirs.put(labels, entries=_replace_entries(entries), manager=manager, renewTime=stored_time)
        if reply.status == 200:
            stored += 1
        renewal = mine.renew_by_patch(renewTime=format_micro_time())
        if renewal.status != 200 or abs(_measure_age(read_stamps(renewal.body)[1])) > 3:
            problems.append(f"list {number}: HTTP {renewal.status} {read_stamps(renewal.body)}")
        problems += _try_steals(f"list {number}", theirs)
    observation = "; ".join(problems) or f"{count} lists, {stored} of them stored, each renewal dated, no steal"
    return Row("random lists between renewals", observation, not problems)


def _write_by_put(lease: OneLease, holder: str) -> Reply:
    return lease.put(
        holderIdentity=holder, leaseDurationSeconds=3, renewTime=format_micro_time(), acquireTime=format_micro_time()
    )


def _write_by_merge(lease: OneLease, holder: str) -> Reply:
    return lease.renew_by_patch(holderIdentity=holder, leaseDurationSeconds=3, renewTime=format_micro_time())


def _write_by_apply(lease: OneLease, holder: str, *, force: bool = True) -> Reply:
    body = {"apiVersion": API, "kind": "Lease", "metadata": {"name": lease.name}}
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 3, "renewTime": format_micro_time()}
    return lease.patch(body | {"spec": spec}, APPLY, "elector", **({"force": True} if force else {}))


WAYS: Final[dict[str, Callable[[OneLease, str], Reply]]] = {
    "put": _write_by_put,
    "merge": _write_by_merge,
    "apply": _write_by_apply,
    "apply-without-force": lambda lease, holder: _write_by_apply(lease, holder, force=False),
}


def _check_life(kind: str, keeper: ApiClient, other: ApiClient) -> list[str]:
    """Claim, renew, refuse, expire, release, claim: as a client of this kind writes."""
    write = WAYS[kind]
    first, second = (OneLease(client, NAMESPACE, f"life-{kind}") for client in (keeper, other))
    if "apply" not in kind:
        first.create(holderIdentity="a", leaseDurationSeconds=3, renewTime=format_micro_time()).expect(201)
    steps: list[tuple[str, Callable[[], Reply], bool]] = [
        ("claims", lambda: write(first, "a"), True),
        ("renews in the same second", lambda: write(first, "a"), True),
        ("is not taken", lambda: write(second, "b"), False),
        ("is not taken later", lambda: _write_after(1.5, lambda: write(second, "b")), False),
        ("renews", lambda: write(first, "a"), True),
        ("is taken when expired", lambda: _write_after(4.1, lambda: write(second, "b")), True),
        ("does not come back", lambda: write(first, "a"), False),
        ("is not released by the old holder", lambda: write(first, ""), False),
        ("is released", lambda: write(second, ""), True),
        ("is claimed at once", lambda: write(first, "a"), True),
        ("is labeled by another", lambda: second.label("a", "b"), True),
        ("renews after that", lambda: write(first, "a"), True),
        ("is deleted by its writer", first.delete, True),
    ]
    return [
        f"{kind} {what}: HTTP {reply.status} {reply.message[-200:]}"
        for what, step, passes in steps
        if ((reply := step()).status in {200, 201}) != passes
    ]


def _write_after(seconds: float, write: Callable[[], Reply]) -> Reply:
    time.sleep(seconds)
    return write()


def _check_expiry(keeper: ApiClient, mallory: ApiClient) -> list[str]:
    """Check expiry where the holder's own clock is wrong by an hour, and the list was emptied before it died."""
    mine, theirs = (OneLease(client, NAMESPACE, "clocks") for client in (keeper, mallory))
    mine.create(leaseDurationSeconds=4, renewTime=format_micro_time(-3600)).expect(201)
    problems = []
    for hours in (1, -1, 1):
        reply = _write_after(1.1, lambda hours=hours: mine.renew_by_patch(renewTime=format_micro_time(3600 * hours)))  # type: ignore[misc]
        if reply.status != 200:
            problems.append(f"renewed {hours} h off: HTTP {reply.status}")
        if (takeover := take(theirs)).status == 200:
            problems.append(f"taken {hours} h off: {read_stamps(takeover.body)}")
    theirs.put(entries=lambda _: [{}], renewTime=mine.get()["spec"]["renewTime"])
    if (reply := _write_after(4.5, lambda: take(theirs))).status != 200:
        problems.append(f"not taken when expired: HTTP {reply.status} {reply.message[-200:]}")
    return problems


def _check_exempt(world: World, keeper: ApiClient, mallory: ApiClient) -> list[str]:
    """Correct a lease as an administrator, which stays its writer's, or take it: then it is that of the next writer."""
    mine, theirs, admin = (OneLease(client, NAMESPACE, "exempt") for client in (keeper, mallory, world.admin))
    mine.create(leaseDurationSeconds=600, renewTime=format_micro_time()).expect(201)
    was = read_stamps(mine.get())
    problems = []
    if read_stamps(admin.patch({"spec": {"leaseDurationSeconds": 300}}).body) != was:
        problems.append("a correction changed the stamps")
    problems += [*_try_steals("after a correction", theirs), *_check_dated("after a correction", mine)]
    if read_stamps(admin.patch({"spec": {"holderIdentity": "repaired"}}).body)[0]:
        problems.append("an administrator became the writer")
    if take(theirs).status != 200 or mine.renew_by_patch(renewTime=format_micro_time()).status == 200:
        problems.append("the next writer did not become the writer")
    return problems


def _check_chosen(world: World, keeper: ApiClient, mallory: ApiClient) -> list[str]:
    """Check that the chosen holder inherits no owner that others leave before its first write."""
    problems: list[str] = []
    for how in ("created", "changed"):
        mine, theirs, admin = (OneLease(one, NAMESPACE, f"chosen-{how}") for one in (keeper, mallory, world.admin))
        if how == "changed":
            mine.create(holderIdentity="b", leaseDurationSeconds=600, renewTime=format_micro_time()).expect(201)
            admin.put(holderIdentity="a", renewTime=format_micro_time()).expect(200)
        else:
            admin.create(leaseDurationSeconds=600, renewTime=format_micro_time()).expect(201)
        theirs.patch({"metadata": {"ownerReferences": [OWNER]}}).expect(200)
        reply = mine.put(renewTime=format_micro_time())
        if reply.status != 200 or reply.body["metadata"].get("ownerReferences"):
            problems.append(f"{how}: the first write: HTTP {reply.status} {reply.body['metadata']}")
        problems += [*_try_steals(how, theirs), *_check_dated(how, mine), *_try_steals(how, theirs)]
    return problems


def _check_one_user(world: World) -> list[str]:
    """Check that pods of one service account are one writer where the namespace says so."""
    namespace = world.create_namespace("stamped-by-user")
    label(world, namespace, stamp_writer="user")
    pods = [world.create_account(namespace, "op", pod).client for pod in ("op-0", "op-1")]
    stranger = world.create_account(namespace, "other").client
    first, second, third = (OneLease(client, namespace, "shared") for client in (*pods, stranger))
    wait_until_stamped(pods[0], namespace)
    first.create(leaseDurationSeconds=600, renewTime=format_micro_time()).expect(201)
    problems = (
        [] if second.put(renewTime=format_micro_time()).status == 200 else ["another pod of the user was refused"]
    )
    return [*problems, *_try_steals("one user", third)]


def _check_elections(world: World) -> Iterator[Row]:
    namespace = world.create_namespace("stamped-elections")
    label(world, namespace)
    with ExitStack() as stack:
        for which, observation in elect_each(world, stack, namespace):
            yield Row(which, observation, passed=True)
    refusals = _list_refused(world, namespace)
    yield Row("nobody of them refused", "; ".join(refusals) or "nobody", not refusals)


POLICY: Final = f"""\
apiVersion: lease-webhook/v1
preset: strict
stamps: [{{suffix: {SUFFIX}, namespaces: [stamped-and-reviewed]}}]
"""


def _check_with_webhook(world: World) -> Iterator[Row]:
    """Run the webhook in strict, which fails closed: elections beside the guard, and attacks without it."""
    namespace = world.create_namespace("stamped-and-reviewed", route="stamped")
    other_namespace = world.create_namespace("stamped-and-counted", route="counted")
    policy = world.directory / "stamps.yaml"
    policy.write_text(POLICY)
    with ExitStack() as stack:
        server = stack.enter_context(WebhookServer(world.directory, world.certs, policy=str(policy)))
        counting = stack.enter_context(CountingWebhook(world.certs))
        world.register("stamped", server.port, failure_policy="Fail")
        world.register("counted", counting.port, failure_policy="Fail")
        world.settle()
        keeper, mallory = (world.create_account(namespace, "op", pod).client for pod in ("op-0", "op-1"))
        before, labeled = (OneLease(keeper, namespace, name) for name in ("held-before", "held-and-labeled"))
        for lease in (before, labeled):
            lease.create(leaseDurationSeconds=600, renewTime=format_micro_time()).expect(201)
        for place in (namespace, other_namespace):
            label(world, place)
            wait_until_stamped(
                keeper if place == namespace else world.create_account(other_namespace, "op").client, place
            )
        renewal = before.put(renewTime=format_micro_time())
        observation = f"HTTP {renewal.status} {renewal.message}, stamped {bool(read_stamps(renewal.body)[0])}"
        yield Row("the webhook: the first stamp of a held lease", observation, renewal.status == 200)
        OneLease(world.admin, namespace, labeled.name).label("a", "b")  # which may be denied until the renewal
        renewal = labeled.put(renewTime=format_micro_time())
        observation = f"HTTP {renewal.status} {renewal.message}, stamped {bool(read_stamps(renewal.body)[0])}"
        yield Row("the webhook: that of one that was labeled before", observation, renewal.status == 200)
        yield Row("the webhook: client-go, 3 electors", elect_client_go(world, stack, namespace), passed=True)
        refusals = _list_refused(world, namespace)
        yield Row("the webhook: nobody of them refused", "; ".join(refusals) or "nobody", not refusals)
        yield _count_reviews(
            OneLease(world.create_account(other_namespace, "writer").client, other_namespace, "counted"), counting
        )
        guard = [one for one in OTHERS if one["metadata"]["name"] == "lease-webhook-stamp-guard"]
        remove(world, guard)
        time.sleep(3)
        checks = [lambda name=name: _check_finding(name, namespace, keeper, mallory) for name in SINGLE_WRITES]
        yield _make_row("the webhook without the guard: foreign-writer", checks)
        install(world, guard)
        time.sleep(3)


SINGLE_WRITES: Final[dict[str, Callable[[OneLease], Reply]]] = {
    "take": take,
    "take by apply": take_by_apply,
    "renew": lambda lease: lease.patch({"spec": {"renewTime": format_micro_time()}}),
    "release": lambda lease: lease.patch({"spec": {"holderIdentity": ""}}),
    "shorten": lambda lease: lease.patch({"spec": {"leaseDurationSeconds": 1}}),
    "owner": lambda lease: lease.patch({"metadata": {"ownerReferences": [OWNER]}}),
    "delete": OneLease.delete,
}


def _check_finding(name: str, namespace: str, keeper: ApiClient, mallory: ApiClient) -> list[str]:
    """Check that the rule refuses another pod of the same service account, and not the writer."""
    mine, theirs = (OneLease(client, namespace, f"foreign-{_name_lease(name)}") for client in (keeper, mallory))
    mine.create(leaseDurationSeconds=600, renewTime=format_micro_time()).expect(201)
    write = SINGLE_WRITES[name]
    reply = write(theirs)
    problems = [] if "foreign-writer" in reply.message else [f"{name}: HTTP {reply.status} {reply.message[-300:]}"]
    renewal = mine.put(renewTime=format_micro_time())
    if renewal.status != 200 or not read_stamps(renewal.body)[1]:
        problems.append(f"{name}: the holder's renewal: HTTP {renewal.status} {renewal.message[-300:]}")
    return problems


def _count_reviews(lease: OneLease, counting: CountingWebhook) -> Row:
    """Check that plain renewals of a stamped lease are not reviewed; the first one stamps the term, and is."""
    lease.create(renewTime=format_micro_time()).expect(201)
    lease.put(renewTime=format_micro_time()).expect(200)
    before = counting.count_reviews(lease.namespace, lease.name)
    for renew in (OneLease.put, OneLease.renew_by_patch):
        for _ in range(3):
            time.sleep(0.7)
            renew(lease, renewTime=format_micro_time()).expect(200)
    plain = counting.count_reviews(lease.namespace, lease.name) - before
    lease.label("a", "b").expect(200)
    other = counting.count_reviews(lease.namespace, lease.name) - before - plain
    return Row(
        "the webhook: renewals of a stamped lease", f"{plain} of 6 sent; a label: {other}", (plain, other) == (0, 1)
    )


def _list_refused(world: World, namespace: str) -> set[str]:
    """Return the refused writers in a namespace, with the reasons; a conflict is not a refusal."""
    return {
        f"{event['user']['username']}: {event['responseStatus'].get('message', '')}"
        for event in world.read_audit_events(namespace)
        if event["responseStatus"].get("code") in REFUSED - {409}
    }


def _measure_cost(world: World, keeper: ApiClient, count: int = 300) -> Row:
    """Measure renewals by PUT of a lease in a labeled namespace and of one in another, in turns."""
    bare = world.create_namespace("not-stamped")
    leases = [OneLease(keeper, namespace, "cost") for namespace in (NAMESPACE, bare)]
    times: list[list[float]] = [[], []]
    for lease in leases:
        lease.create(renewTime=format_micro_time()).expect(201)
    for _ in range(count):
        for lease, durations in zip(leases, times, strict=True):
            durations.append(lease.put(renewTime=format_micro_time()).milliseconds)
    stamped, plain = (
        f"{find_quantile(durations, 0.5):.2f} ms, p99 {find_quantile(durations, 0.99):.2f} ms" for durations in times
    )
    return Row("a renewal by PUT", f"p50 {stamped}; without the label p50 {plain}", passed=True)


def _check_removal_and_return(world: World, keeper: ApiClient, mallory: ApiClient) -> Row:
    """Renew as a holder while the label goes and returns, the stamps alone go, and all is removed."""
    mine, theirs = (OneLease(client, NAMESPACE, "coming-and-going") for client in (keeper, mallory))
    mine.create(leaseDurationSeconds=600, renewTime=format_micro_time()).expect(201)
    problems: list[str] = []
    label(world, NAMESPACE, None)
    wait_until_stamped(keeper, NAMESPACE, stamped=False)
    if mine.put(renewTime=format_micro_time()).status != 200:
        problems.append("without the label: the holder's renewal")
    # A duration can be checked even if the stamp was made unreadable meanwhile.
    theirs.patch({"metadata": {"annotations": {KEYS[1]: "2027-02-29T00:00:00Z"}}}).expect(200)
    label(world, NAMESPACE)
    wait_until_stamped(keeper, NAMESPACE)
    problems += _check_dated("the label is back", mine)
    problems += _try_steals("the label is back", theirs)
    remove(world, STAMP[1:])
    wait_until_stamped(keeper, NAMESPACE, stamped=False)
    if mine.put(renewTime=format_micro_time()).status != 200:
        problems.append("without the stamps: the holder's renewal")
    problems += _try_steals("without the stamps", theirs)
    for forgery in (dict.fromkeys(KEYS), dict.fromkeys(KEYS, "2020-01-01T00:00:00Z")):
        if theirs.patch({"metadata": {"annotations": forgery}}).status == 200:
            problems.append("without the stamps: they are forged")
    free = OneLease(mallory, NAMESPACE, "created-without-the-stamps")
    if free.create().status != 201 or free.put(renewTime=format_micro_time()).status != 200:
        problems.append("without the stamps: another lease")
    remove(world, (*STAMP[:1], *OTHERS))
    wait_for("the removal", lambda: take(theirs).status == 200, 30, 0.5)
    return Row("removed and returned", "; ".join(problems) or "the holder renews at each step", not problems)


def _check_without_stamps(world: World) -> Row:
    """Check that applying the file below 1.36 loses no write, where the API server has no such stamps."""
    install(world, OTHERS)
    world.create_namespace(NAMESPACE)
    label(world, NAMESPACE)
    time.sleep(5)
    keeper, other = (world.create_account(NAMESPACE, "op", pod).client for pod in ("op-0", "op-1"))
    mine, theirs = (OneLease(client, NAMESPACE, "unstamped") for client in (keeper, other))
    replies = [
        mine.create(),
        mine.put(),
        theirs.put(holderIdentity="b"),
        mine.patch({"metadata": {"labels": {"a": "b"}}}),
        theirs.delete(),
    ]
    remove(world, OTHERS)
    observation = ", ".join(str(reply.status) for reply in replies)
    return Row("the guard and the bounds alone", observation, observation == "201, 200, 200, 200, 200")
