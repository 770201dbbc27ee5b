"""Standing attacks in stamped namespaces, and the webhook in strict where its policy file and the labels disagree."""

import concurrent.futures
import datetime as dt
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from threading import Semaphore
from typing import Any, Final

from msgspec.structs import replace

from lab.e2e.api_client import ApiClient
from lab.e2e.attacked_api_server import RealWorld
from lab.e2e.elections import elect_each
from lab.e2e.manifests import format_micro_time
from lab.e2e.one_lease import FUTURE, OneLease, make_entry
from lab.e2e.stamp_cases import FIELDS, FIRST_MINOR, SUFFIX, forge_stamps, take, take_by_apply
from lab.e2e.stamping import OTHERS, REFUSED, STAMP, install, label, read_stamps, remove, wait_until_stamped
from lab.e2e.webhook_server import WebhookServer
from lab.e2e.world import Row, World, build_lease_path, make_absent_row
from tests.attacks.attack import STRICT, Attack, attacks
from tests.attacks.play import Outcome, play
from tests.deep_json import decode

AT_ONCE: Final = 4
WAITING: Final = 30
SHOP: Final = "arsenal"
HONEST: Final = frozenset({"keeper", "successor"})
SECONDS: Final = 600
CONSTANT: Final = make_entry(
    "lease-webhook-stamp",
    {"f:metadata": {"f:annotations": {"f:lease-webhook/stamp": {}}}},
    "2000-01-01T00:00:00Z",
)
POLICY: Final = f"""\
apiVersion: lease-webhook/v1
preset: strict
stamps: [{{suffix: {SUFFIX}, namespaces: [{SHOP}, listed-only]}}]
"""


def run(world: World) -> Iterator[Row]:
    """Run the checks that need the stamps, so nothing below 1.36."""
    if world.plane.binaries.minor < FIRST_MINOR:
        yield make_absent_row("policies that stamp", world.plane.binaries.version)
        return
    actors = _create_actors(world)
    policy = world.directory / "arsenal.yaml"
    policy.write_text(POLICY)
    names = ("listed-only", "labeled-only", "neither")
    with ExitStack() as stack:
        server = stack.enter_context(WebhookServer(world.directory, world.certs, policy=str(policy)))
        world.register("arsenal", server.port, failure_policy="Fail")
        for name in names:
            world.create_namespace(name, route="arsenal")
        world.settle()
        pods = {name: [world.create_account(name, "op", pod).client for pod in ("op-0", "op-1")] for name in names}
        leases = {name: OneLease(clients[0], name, "held-before") for name, clients in pods.items()}
        for lease in leases.values():
            lease.create(leaseDurationSeconds=SECONDS, renewTime=format_micro_time()).expect(201)
        install(world, (*STAMP, *OTHERS))
        for name in (SHOP, "labeled-only"):
            label(world, name)
        wait_until_stamped(pods["labeled-only"][0], "labeled-only")
        yield _check_labeled_before_listed(world, stack, leases["labeled-only"], pods["labeled-only"])
        with concurrent.futures.ThreadPoolExecutor() as pool:
            yield from pool.map(lambda name: _check_constant_entry(name, pods[name]), ("listed-only", "neither"))
        yield _check_label_coming_and_going(world, pods["listed-only"])
        yield _play_arsenal(actors, world.plane.binaries.minor)
        remove(world, (*STAMP, *OTHERS))


def _check_labeled_before_listed(world: World, stack: ExitStack, lease: OneLease, pods: Sequence[ApiClient]) -> Row:
    """Check that a label without an entry in the policy file costs no holder its lease, and opens nothing to others."""
    problems = []
    for write in (lease.put, lease.renew_by_patch, lease.put):
        reply = write(renewTime=format_micro_time())
        if reply.status != 200:
            problems.append(f"the holder's renewal: HTTP {reply.status} {reply.message[-300:]}")
        time.sleep(1.1)
    if not read_stamps(lease.get())[1]:
        problems.append("not stamped")
    theirs = OneLease(pods[1], lease.namespace, lease.name)
    problems += [f"{steal.__name__}: stored" for steal in (take, take_by_apply) if steal(theirs).status == 200]
    elections = list(elect_each(world, stack, lease.namespace))
    refusals = {
        event["responseStatus"].get("message", "")
        for event in world.read_audit_events(lease.namespace)
        if event["responseStatus"].get("code") in REFUSED - {409} and event["objectRef"].get("name") != lease.name
    }
    problems += sorted(refusals)
    observation = "; ".join(problems) or f"renewed, not taken; {len(elections)} elections, nobody refused"
    return Row("labeled before the policy lists it", observation, not problems)


def _check_constant_entry(namespace: str, pods: Sequence[ApiClient]) -> Row:
    """Check that where nothing is stamped no client brings the constant entry into a lease, alone or with a change."""
    problems = []
    changes: list[dict[str, Any]] = [{}, *({field: value} for field, value in FIELDS.items())]
    changes += [dict[str, Any]({field: ...}) for field in FIELDS]
    lists = {
        "alone": [CONSTANT],
        "by apply": [CONSTANT | {"operation": "Apply"}],
        "with an unreadable one": [CONSTANT, make_entry("zz", {"f:spec": {}}, FUTURE, apiVersion="a/b/c")],
        "with paths below scalars": [CONSTANT, make_entry("zz", {"f:spec": {"f:renewTime": {"f:x": {}}}}, FUTURE)],
        "twice": [CONSTANT, CONSTANT],
    }
    metadata: list[dict[str, Any] | None] = [
        None,
        {"labels": {"a": "b"}},
        {"annotations": forge_stamps("- m", FUTURE, "1")},
    ]
    number = 0
    for manager in ("client", "lease-webhook-stamp", "ancient-changes"):
        for name, entries in lists.items():
            mine, theirs = (OneLease(client, namespace, f"c{number}") for client in pods)
            number += 1
            mine.create(leaseDurationSeconds=SECONDS, renewTime=format_micro_time()).expect(201)
            for change in changes:
                for meta in metadata:
                    renew_time = mine.get()["spec"].get("renewTime", ...)
                    spec = {"renewTime": renew_time} | change
                    theirs.put(meta, entries=lambda _, e=entries: e, manager=manager, **spec)  # type: ignore[misc]
                    stored = mine.get()
                    if stored["metadata"]["managedFields"] == [CONSTANT]:
                        problems.append(f"{name}, {manager}, {change}, {meta}")
            mine.put(renewTime=format_micro_time(), holderIdentity="a", leaseDurationSeconds=SECONDS)
            if take(theirs).status == 200:
                problems.append(f"{name}, {manager}: taken")
        created = OneLease(pods[1], namespace, f"created-{number}")
        empty = dict.fromkeys(FIELDS, ...)
        for spec in (empty, empty | {"leaseTransitions": 1}):
            reply = created.create({"managedFields": [CONSTANT]}, manager=manager, **spec)
            if reply.status == 201 and created.get()["metadata"].get("managedFields") == [CONSTANT]:
                problems.append(f"created by {manager}: {spec}")
            created.delete()
    number_of_writes = 3 * len(lists) * len(changes) * len(metadata)
    observation = "; ".join(problems[:5]) or f"{number_of_writes} writes, none of them stored it; no lease taken"
    return Row(f"the constant entry by clients, {namespace}", observation, not problems)


def _check_label_coming_and_going(world: World, pods: Sequence[ApiClient]) -> Row:
    """Remove and return the label of a listed namespace: the holder renews, nobody takes the lease."""
    mine, theirs = (OneLease(client, "listed-only", "comes-and-goes") for client in pods)
    mine.create(leaseDurationSeconds=SECONDS, renewTime=format_micro_time()).expect(201)
    problems = []
    for value in ("required", None, "required", None):
        label(world, "listed-only", value)
        wait_until_stamped(pods[0], "listed-only", stamped=value is not None)
        for at in range(2):
            # Just after the label is gone the constant entry is still there, and 1.37 keeps it if the list that is sent
            # cannot be read; so docs/stamp.md has the namespace removed from the policy file first.
            lists = [[], [make_entry("zz", {"f:spec": {}}, FUTURE, apiVersion="a/b/c")]]
            for entries in lists[: 1 if value is None and at == 0 else 2]:
                reply = theirs.put(
                    {"annotations": forge_stamps("- mallory", FUTURE, "1")},
                    entries=lambda old, more=entries: [*old, *more],  # type: ignore[misc]
                    holderIdentity="mallory",
                    renewTime=format_micro_time(),
                )
                if reply.status == 200:
                    problems.append(f"label {value}, {at}: taken with {len(entries)} broken entries")
            reply = mine.put(renewTime=format_micro_time())
            if reply.status != 200:
                problems.append(f"label {value}, {at}: the renewal: HTTP {reply.status} {reply.message[-300:]}")
            time.sleep(1.1)
    return Row("the label comes and goes", "; ".join(problems) or "renewed each time, never taken", not problems)


# ---- standing attacks ------------------------------------------------------------------------------------------------


def _create_actors(world: World) -> dict[str, ApiClient]:
    """Return clients of everybody who may be named in an attack; most of them are pods of one service account."""
    world.create_namespace(SHOP, route="arsenal")
    world.create_namespace("arsenal-other")
    pods = {
        "keeper": "checkout-0",
        "successor": "checkout-1",
        "neighbor": "mallory-0",
        "shorter": "checkout",
    }
    actors = {actor: world.create_account(SHOP, "checkout", pod).client for actor, pod in pods.items()}
    others = {"stranger": "mallory-0", "namesake": "checkout-0"}
    actors |= {actor: world.create_account("arsenal-other", pod).client for actor, pod in others.items()}
    return actors | {"person": world.create_user("mallory")[0], "admin": world.admin}


def _find_writer(client: ApiClient) -> str:
    """Return the writer that is stamped when this client writes."""
    body = {"metadata": {"name": "probe"}, "spec": {"holderIdentity": "a"}}
    return read_stamps(client.send("POST", build_lease_path(SHOP), body, dryRun="All").body)[0]


class LeaseGoneError(Exception):
    """Raised when the lease of an attack does not exist anymore."""


class _Watched(RealWorld):
    """A lease whose writes are compared with its earlier stamps; a refusal by anybody is an outcome."""

    def __init__(
        self, actors: Mapping[str, ApiClient], writers: Mapping[str, str], name: str, turns: Semaphore
    ) -> None:
        super().__init__(actors, SHOP, name, turns)
        self._admin, self._lease, self._writers = actors["admin"], build_lease_path(SHOP, name), writers
        self.steals: list[str] = []
        self.must_pass: list[bool] = []

    def send(self, by: str, method: str, manager: str, body: dict[str, Any] | None, /) -> Outcome:
        before = self._read_stored()
        try:
            outcome = super().send(by, method, manager, body)
        except RuntimeError as error:
            outcome = Outcome(stored=False, findings={}, text=str(error))
        writer, stamp, _ = read_stamps(before)
        spec = before.get("spec", {})
        seconds = spec.get("leaseDurationSeconds", 0)
        age = (
            time.time() - dt.datetime.fromisoformat(stamp).timestamp() if stamp else math.inf
        )  # no one was seen to hold it
        is_held, mine = bool(writer and spec.get("holderIdentity")), writer == self._writers.get(by)
        possible = method != "create" or not before
        self.must_pass.append(by in HONEST and possible and (mine or not is_held or age > seconds + 1))
        if is_held and not mine and by != "admin" and age < seconds * 0.8 - 1.5:
            after = self._read_stored()
            if after.get("spec") != spec or after["metadata"]["uid"] != before["metadata"]["uid"]:
                self.steals.append(f"{by} {method}: {spec} is now {after.get('spec')}")
        return outcome

    def read(self) -> dict[str, Any]:
        """Return the stored lease. Raises LeaseGoneError."""
        if not self._read_stored():
            raise LeaseGoneError
        return super().read()

    def _read_stored(self) -> dict[str, Any]:
        reply = self._admin.send("GET", self._lease)
        return decode(reply.data) if reply.status == 200 else {}


def _play_arsenal(actors: Mapping[str, ApiClient], minor: int) -> Row:
    """Check that only the stamped writer changes the spec of a live lease, and that nobody honest is denied."""
    writers = {by: _find_writer(client) for by, client in actors.items()}
    turns = Semaphore(AT_ONCE)

    def play_attack(attack: Attack) -> tuple[int, list[str]]:
        attack = replace(attack, lease=replace(attack.lease, namespace=SHOP))
        here = _Watched(actors, writers, attack.lease_name(STRICT), turns)
        try:
            with turns:
                played = play(attack, attack.lease_name(STRICT), here)
        except LeaseGoneError:
            # A finalizer that would have kept it was refused, so a deletion while no one held it was one.
            return len(here.must_pass), [f"{attack.id}: {problem}" for problem in here.steals]
        except Exception as error:  # noqa: BLE001 - the other attacks are still played
            return 0, [f"{attack.id}: {type(error).__name__}: {error}"]
        refusals = [
            f"{one.step.by} {one.step.method} {one.step.does}: {one.outcome.text[-300:]}"
            for one, must in zip(played, here.must_pass[-len(played) :], strict=True)
            if must and not one.outcome.stored and not one.step.expected(STRICT).denied
        ]
        return len(played), [f"{attack.id}: {problem}" for problem in (*here.steals, *refusals)]

    chosen_attacks = [one for one in attacks() if one.since <= minor <= one.until and one.lease.namespace == "shop"]
    chosen_attacks = [one for one in chosen_attacks if not one.lease.bound]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE + WAITING) as pool:
        results = list(
            pool.map(play_attack, sorted(chosen_attacks, key=lambda one: -sum(step.wait for step in one.writes)))
        )
    problems = [problem for _, problems_of_attack in results for problem in problems_of_attack]
    writes = sum(count for count, _ in results)
    observation = (
        "; ".join(problems[:8])
        or f"{len(chosen_attacks)} attacks, {writes} writes: no lease taken, nobody honest refused"
    )
    return Row("standing attacks, one service account", observation, not problems)
