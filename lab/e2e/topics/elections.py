"""Real elections under `standard` and `strict`; honest clients are never denied, attackers are."""

import concurrent.futures
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Final

from lab.e2e.api_client import APPLY, MERGE, ApiClient, Reply
from lab.e2e.attacks import ATTACKS, Attack, Victim, take_over
from lab.e2e.elections import elect_each
from lab.e2e.manifests import format_micro_time, make_candidate
from lab.e2e.watched_leases import WatchedLeases
from lab.e2e.webhook_server import WebhookServer
from lab.e2e.world import COORDINATION, Account, Row, World, build_lease_path
from lab.spec.__main__ import find_mismatches, install_packages
from lab.spec.traces import corrupt, list_watched
from tests.waiting import wait_for

POLICIES = ("standard", "strict")
REFUSALS = {400, 403, 422}
ELECTED = ("client-go", "kubernetes-asyncio", "coordinated")
"""The leases that honest electors hold, and nobody attacks."""

_ELECTION_SECONDS = 6
"""Longer than the API server takes to look at the candidates of a lease."""

BOUND_POLICY = """\
apiVersion: lease-webhook/v1
preset: strict
bindings:
- {namespace: bound, lease: two-writes, writers: [bound/careful], holder: ["${pod}_*"]}
"""


def _name_again(victim: Victim, client: ApiClient) -> Reply:
    return client.send("PATCH", victim.path, {"metadata": {"generateName": "double-"}}, media=MERGE)


def _apply_as_stored(victim: Victim, client: ApiClient) -> Reply:
    """Become an owner of a field without changing it."""
    stored = client.get(victim.path)
    body = {key: stored[key] for key in ("apiVersion", "kind")} | {
        "metadata": {"name": victim.name},
        "spec": {"leaseDurationSeconds": stored["spec"]["leaseDurationSeconds"]},
    }
    return client.send("PATCH", victim.path, body, media=APPLY, fieldManager="double")


_CHANGE_METADATA: Final = {"generateName": _name_again, "an apply of what is stored": _apply_as_stored}
"""Writes that change nothing of spec; each makes a PUT of the holder fail that was prepared before."""


def run(world: World) -> Iterator[Row]:
    """Run both presets side by side, each with a webhook of its own, then bindings."""
    for policy in POLICIES:
        world.create_namespace(f"elections-{policy}", route=policy)
    world.create_namespace("bound", route="bound")
    world.create_namespace("elsewhere")
    bound = world.directory / "bound.yaml"
    bound.write_text(BOUND_POLICY)
    with ExitStack() as stack:
        for policy in POLICIES:
            server = stack.enter_context(WebhookServer(world.directory, world.certs, policy=policy))
            world.register(policy, server.port, failure_policy="Fail")
        server = stack.enter_context(WebhookServer(world.directory, world.certs, policy=str(bound)))
        world.register("bound", server.port, failure_policy="Fail", renewals=True)
        world.settle()
        watches = [stack.enter_context(WatchedLeases(world, f"elections-{policy}")) for policy in POLICIES]
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for rows in pool.map(lambda policy: list(_run_under(world, policy)), POLICIES):
                yield from rows
        yield _check_behaviors(watches)
        yield _try_two_writes(world, "elections-strict", is_bound=False)
        yield _try_two_writes(world, "bound", is_bound=True)
        yield _check_candidates_of_bound_lease(world)
        if "v1alpha1" in world.plane.binaries.candidate_versions:
            yield _check_candidate_without_strategies(world)


def _run_under(world: World, policy: str) -> Iterator[Row]:
    namespace = f"elections-{policy}"
    attackers = [world.create_account(namespace, "mallory"), world.create_account("elsewhere", f"stranger-to-{policy}")]
    with ExitStack() as stack:
        for which, observation in elect_each(world, stack, namespace):
            yield Row(f"{policy}: {which}", observation, passed=True)
        keeper = world.create_account(namespace, "keeper")
        yield _check_single_writes(world, policy, keeper, attackers)
        if policy == "strict":
            yield _check_after_expiry(keeper, attackers[0])
    yield _check_honest_writers(world, policy, {attacker.user for attacker in attackers})


def _check_behaviors(watches: Sequence[WatchedLeases]) -> Row:
    """Check that histories of the honest elections are behaviors of module Takeover, and corrupted copies are not."""
    claim = "the elections are behaviors of the specification"
    if shutil.which("java") is None:
        return Row(claim, "Java is not installed", passed=True, was_run=False)
    traces = [trace for one in watches for trace in list_watched("e2e", one.events)]
    elections = [trace for trace in traces if any(name in trace.name for name in ELECTED)]
    copies = list(corrupt(elections))
    others = find_mismatches(install_packages(), [*elections, *copies])
    observation = "; ".join(others) or f"{len(elections)} traces are, {len(copies)} corrupted copies are not"
    refusals = [trace.name for trace in elections if not trace.allowed]
    return Row(claim, "; ".join(refusals) or observation, passed=bool(copies) and not others and not refusals)


def _check_single_writes(world: World, policy: str, keeper: Account, attackers: list[Account]) -> Row:
    """Try each attack of the list against a fresh lease that its holder has just renewed."""
    outcomes: dict[str, list[str]] = {}
    problems: list[str] = []
    for number, attack in enumerate(ATTACKS):
        victim = Victim(keeper, f"victim-{number}")
        victim.hold(seconds=30)
        attacker = attackers[1] if attack.from_elsewhere else attackers[0]
        outcome = _attempt(world, attack, victim, attacker)
        outcomes.setdefault(outcome, []).append(attack.name)
        if outcome != attack.get_expected(policy):
            problems.append(f"{attack.name}: {outcome}, expected {attack.get_expected(policy)}")
    observation = "; ".join(f"{outcome}: {', '.join(names)}" for outcome, names in sorted(outcomes.items()))
    return Row(f"{policy}: the single-write attacker", "; ".join(problems) or observation, not problems)


def _attempt(world: World, attack: Attack, victim: Victim, attacker: Account) -> str:
    """Return `denied`, `warned`, `audited` or `unnoticed`, always by the rule that the attack is about."""
    reply = attack.write(victim, attacker.client)
    if reply.status >= 400:
        return (
            "denied" if attack.rule in _parse_rules_of_denial(reply.message) else f"HTTP {reply.status} {reply.message}"
        )
    if any(attack.rule in warning.partition(":")[0].split(", ") for warning in reply.warnings):
        return "warned"
    rules = world.find_annotations(victim.keeper.namespace, reply).get("rules", "")
    return "audited" if f"{attack.rule}=audit" in rules.split(",") else "unnoticed"


def _parse_rules_of_denial(message: str) -> set[str]:
    """Return the ids at the ends of the sentences of a denial: one fact may concern several rules."""
    return {
        rule for rules in re.findall(r"\(lease webhook, rules? ([a-z, -]+)\)", message) for rule in rules.split(", ")
    }


def _check_after_expiry(keeper: Account, attacker: Account) -> Row:
    """Check that a refused takeover is only delayed: the same write is allowed once the lease has expired."""
    victim = Victim(keeper, "expiring")
    victim.hold(seconds=4)
    begin = time.monotonic()
    refusals = 0

    def is_taken() -> bool:
        nonlocal refusals
        reply = take_over(victim, attacker.client)
        if reply.status == 403:
            refusals += 1
        return reply.status == 200

    wait_for("the takeover after expiry", is_taken, 10, 0.2)
    seconds = time.monotonic() - begin
    return Row(
        "strict: a denied takeover succeeds after expiry (duration 4 s)",
        f"refused {refusals} times, allowed after {seconds:.1f} s",
        refusals > 0 and seconds > 2,
    )


def _try_two_writes(world: World, namespace: str, *, is_bound: bool) -> Row:
    """Act as the holder once, then take the lease that this freed; only an identity binding stops it."""
    keeper, attacker = world.create_account(namespace, "careful"), world.create_account(namespace, "double")
    victim = Victim(keeper, "two-writes")
    victim.hold(seconds=30)
    shortened = victim.change(attacker.client, renewTime=format_micro_time(), leaseDurationSeconds=1)
    time.sleep(1.5)
    steal = victim.change(attacker.client, holderIdentity="double_1", renewTime=format_micro_time(), leaseTransitions=1)
    victim.change(keeper.client, renewTime=format_micro_time())
    if is_bound:
        release = victim.change(attacker.client, holderIdentity=None)
        deletion = attacker.client.send("DELETE", build_lease_path(namespace, victim.name))
        replies = {"renewal for the holder": shortened, "steal": steal, "release": release, "delete": deletion}
        replies |= {name: write(victim, attacker.client) for name, write in _CHANGE_METADATA.items()}
        honest = victim.change(keeper.client, renewTime=format_micro_time())
        passed = honest.status == 200 and all("rule identity-binding)" in reply.message for reply in replies.values())
        observation = (
            ", ".join(f"{name} {reply.status}" for name, reply in replies.items()) + f", the holder {honest.status}"
        )
        return Row("with a binding: the two-write attacker is denied", observation, passed)
    observation = f"shortening renewal {shortened.status}, takeover {steal.status}"
    return Row("strict without a binding: two writes still steal (known limit)", observation, steal.status == 200)


def _check_candidates_of_bound_lease(world: World) -> Row:
    """Check that a binding covers candidates: the API server makes the candidate of anybody the holder."""
    keeper, stranger = (
        world.create_account("bound", "careful", pod="careful-1"),
        world.create_account("elsewhere", "candidate"),
    )
    victim = Victim(keeper, "two-writes")
    before = keeper.client.get(victim.path)["spec"]
    version = world.plane.binaries.candidate_versions[0]
    path = f"{COORDINATION}/{version}/namespaces/bound/leasecandidates"
    body = make_candidate(version, "mallory", leaseName=victim.name, binaryVersion="1.0.0", emulationVersion="1.0.0")
    denied = stranger.client.send("POST", path, body)
    misnamed = keeper.client.send("POST", path, body)
    time.sleep(_ELECTION_SECONDS)
    after = keeper.client.get(victim.path)["spec"]
    honest = keeper.client.send("POST", path, body | {"metadata": {"name": "careful-1_8c1"}})
    removed = stranger.client.send("DELETE", f"{path}/careful-1_8c1")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "no-such", "uid": "11111111-1111-1111-1111-111111111111"}
    patch = {"metadata": {"ownerReferences": [owner]}}
    owned = stranger.client.send("PATCH", f"{path}/careful-1_8c1", patch, media=MERGE)
    passed = honest.status == 201 and after == before
    passed &= all("rule identity-binding)" in reply.message for reply in (denied, misnamed, removed, owned))
    observation = f"a stranger's {denied.status}, another name {misnamed.status}, its writer's {honest.status}"
    return Row(
        "with a binding: candidates of the lease",
        f"{observation}, deleted by a stranger {removed.status}, given an owner by one {owned.status}",
        passed,
    )


def _check_candidate_without_strategies(world: World) -> Row:
    """Check that a candidate without strategies is denied.

    Without a review kube-apiserver 1.31 would store it, and end: its election reads the last strategy of none.
    """
    keeper = world.create_account("bound", "without-strategies")
    path = f"{COORDINATION}/v1alpha1/namespaces/bound/leasecandidates"
    body = make_candidate("v1alpha1", "bare", leaseName="bare", preferredStrategies=[])
    reply = keeper.client.send("POST", path, body)
    passed = reply.status == 422 and "rule candidate-preferred-strategies" in reply.message
    return Row("a candidate without strategies, which would end the API server", f"denied {reply.status}", passed)


def _check_honest_writers(world: World, policy: str, attackers: set[str]) -> Row:
    writes = [
        event for event in world.read_audit_events(f"elections-{policy}") if event["user"]["username"] not in attackers
    ]
    denials = [event for event in writes if _is_refused(event["responseStatus"])]
    honest = {event["user"]["username"] for event in writes}
    observation = f"{len(writes)} writes of {len(honest)} users, {len(denials)} denied"
    return Row(f"{policy}: nobody honest denied", observation, bool(writes) and not denials)


def _is_refused(status: Mapping[str, Any]) -> bool:
    """Return whether a verdict, or a webhook that failed, refused it.

    Other errors, say of a client that was killed, are not ours.
    """
    return status["code"] in REFUSALS or (status["code"] >= 500 and "webhook" in status.get("message", ""))
