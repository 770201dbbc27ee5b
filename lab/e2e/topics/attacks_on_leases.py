"""The standing attacks of `tests/attacks` on a real API server, under `standard` and `strict`; it can record them."""

import concurrent.futures
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Semaphore
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from lab.e2e.api_client import MERGE, ApiClient
from lab.e2e.attacked_api_server import RealWorld
from lab.e2e.webhook_server import WebhookServer
from lab.e2e.world import ROUTE, WEBHOOK, Row, World
from tests.attacks.attack import PRESETS, Attack, attacks, policy_text
from tests.attacks.play import Played, by_rule, play, problems
from tests.waiting import wait_for

AT_ONCE: Final = 3
"""So many attacks write at a time."""
WAITING: Final = 30
"""And so many more may wait for an expiry meanwhile."""
SYSTEM = "kube-system"


class Round(Struct, frozen=True):
    """An attack that was played under a preset."""

    attack: Attack
    preset: str
    played: list[Played]
    audit_ids: list[str]


def run(world: World) -> Iterator[Row]:
    """Play each attack under each preset, with the shipped matchConditions; one row for each preset and file."""
    actors = create_actors(world)
    for preset in PRESETS:
        with serve_policy(world, policy_text(preset), world.directory) as server:
            route(world, server.port, renewals=False)
            rounds, failures = play_all(world, preset, actors)
        problems_found = [
            problem for one in rounds for problem in problems(one.attack, preset, _add_findings(world, one))
        ]
        problems_found += failures
        writes = sum(len(one.played) for one in rounds)
        denied = sum(not played.outcome.stored for one in rounds for played in one.played)
        observation = f"{len(rounds)} attacks, {writes} writes, {denied} denied, each as its file says"
        yield Row(
            f"{preset}: the standing attacks", "; ".join(problems_found) or observation, passed=not problems_found
        )


def create_actors(world: World) -> dict[str, ApiClient]:
    """Return clients of everybody who may be named in an attack, in namespaces of their own."""
    world.create_namespace("shop")
    world.create_namespace("other")
    pods = {
        "keeper": ("shop", "checkout-0"),
        "successor": ("shop", "checkout-1"),
        "neighbor": ("shop", "mallory-0"),
        "stranger": ("other", "mallory-0"),
        "namesake": ("other", "checkout-0"),
        "shorter": ("shop", "checkout"),
    }
    accounts = {actor: world.create_account(namespace, name).client for actor, (namespace, name) in pods.items()}
    return accounts | {"person": world.create_user("mallory")[0], "admin": world.admin}


def serve_policy(world: World, text: str, directory: Path, capture: Path | None = None) -> WebhookServer:
    """Serve the webhook under the policy of this text."""
    policy = directory / "attacks.yaml"
    policy.write_text(text)
    return WebhookServer(directory, world.certs, policy=str(policy), capture=capture)


def route(world: World, port: int, *, renewals: bool) -> None:
    """Send the writes of `shop` and of kube-system to this webhook, which replaces the one of the preset before."""
    world.register("attacks", port, failure_policy="Fail", renewals=renewals, system=True)
    for namespace in ("shop", SYSTEM):
        body = {"metadata": {"labels": {ROUTE: "attacks"}}}
        world.admin.send("PATCH", f"/api/v1/namespaces/{namespace}", body, media=MERGE).expect()
    world.settle()


def play_all(
    world: World, preset: str, actors: Mapping[str, ApiClient], only: str = ""
) -> tuple[list[Round], list[str]]:
    """Play all attacks whose ids contain `only`, some at a time; an exception is a failure of that attack alone."""
    turns = Semaphore(AT_ONCE)

    def play_attack(attack: Attack) -> Round | str:
        name = attack.lease_name(preset)
        here = RealWorld(actors, attack.lease.namespace, name, turns)
        try:
            with turns:
                return Round(attack, preset, play(attack, name, here), here.audit_ids)
        except Exception as error:  # noqa: BLE001 - the other attacks are still played
            return f"{attack.id}, {preset}: {type(error).__name__}: {error}"

    with concurrent.futures.ThreadPoolExecutor(AT_ONCE + WAITING) as pool:
        # Those that wait for an expiry begin first.
        minor = world.plane.binaries.minor
        possible = [one for one in attacks() if one.since <= minor <= one.until and only in one.id]
        longest_first = sorted(possible, key=lambda attack: -sum(step.wait for step in attack.writes))
        outcomes = list(pool.map(play_attack, longest_first))
    return [one for one in outcomes if isinstance(one, Round)], [one for one in outcomes if isinstance(one, str)]


def _add_findings(world: World, attempt: Round) -> list[Played]:
    """Return the outcomes with the audit annotations of the webhook; a write that was not reviewed has none."""
    audited = _read_audit_annotations(world, attempt.attack.lease.namespace)
    ids = attempt.audit_ids[-len(attempt.played) :]
    missing = [audit_id for audit_id in ids if audit_id not in audited]
    if missing:
        wait_for(
            "the audit events",
            lambda: set(ids) <= _read_audit_annotations(world, attempt.attack.lease.namespace).keys(),
            10,
        )
        audited = _read_audit_annotations(world, attempt.attack.lease.namespace)
    return [
        replace(played, outcome=replace(played.outcome, findings=audited[audit_id]))
        for played, audit_id in zip(attempt.played, ids, strict=True)
    ]


def _read_audit_annotations(world: World, namespace: str) -> dict[str, dict[str, str]]:
    key = f"{WEBHOOK}/rules"
    return {
        event["auditID"]: _parse_rules(event.get("annotations", {}).get(key, ""))
        for event in world.read_audit_events(namespace)
    }


def _parse_rules(text: str) -> dict[str, str]:
    pairs = (rule.partition("=") for rule in text.split(",") if rule)
    return by_rule((rule, level) for rule, _, level in pairs)
