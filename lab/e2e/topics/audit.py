"""The audit log and the warnings, compared with the reference."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from lab.e2e.api_client import JSON_PATCH, ApiClient, Reply
from lab.e2e.attacks import Victim, take_over
from lab.e2e.manifests import format_micro_time, make_lease
from lab.e2e.webhook_server import WebhookServer
from lab.e2e.world import Account, Row, World, build_lease_path
from webhook.analysis.history.audit_log.refusal import UNAPPLIED_PATCH

POLICY = re.compile(r"(observe|standard|strict) [0-9a-f]{8}")
LONGEST_WARNING = 256
FOREVER = 2147483647


def run(world: World) -> Iterator[Row]:
    """Send one write for each text of an annotation or a warning, under standard and under observe."""
    for preset in ("standard", "observe"):
        namespace = world.create_namespace(f"audit-{preset}", route=f"audit-{preset}")
        with WebhookServer(world.directory, world.certs, policy=preset) as server:
            world.register(namespace, server.port, failure_policy="Fail")
            world.settle()
            keeper, other = world.create_account(namespace, "keeper"), world.create_account(namespace, "other")
            yield from _check_standard(world, keeper, other) if preset == "standard" else _check_observe(world, keeper)


def _check_standard(world: World, keeper: Account, other: Account) -> Iterator[Row]:
    victim = Victim(keeper, "audited")
    created = _create(keeper.client, victim)
    yield _check_write(world, victim, "allowed: event and policy", created, 201, {"event": "create"})
    renewal = victim.change(keeper.client, renewTime=format_micro_time())
    yield _check_write(world, victim, "a plain renewal leaves no trace of us", renewal, 200, {})
    yield _check_lost_race(victim, other)
    steal = take_over(victim, other.client)
    rules = {"event": "steal", "rules": "takeover-before-expiry=warn,holder-identity-mismatch=audit"}
    start = "lease webhook, takeover-before-expiry: "
    yield _check_write(world, victim, "warned: event, rules, Warning header", steal, 200, rules, start)
    deletion = other.client.send("DELETE", build_lease_path(victim.keeper.namespace, victim.name))
    yield _check_write(
        world, victim, "audited", deletion, 200, {"event": "delete", "rules": "live-lease-deleted=audit"}
    )
    absurd = Victim(keeper, "absurd")
    reply = _create(keeper.client, absurd, leaseDurationSeconds=FOREVER)
    expected = {"event": "create", "rules": "duration-too-long=deny"}
    yield _check_write(world, absurd, "denied", reply, 422, expected)


def _check_lost_race(victim: Victim, other: Account) -> Row:
    """Race by a JSON patch, as some electors do: `why` knows the lost race by the text of the answer alone."""
    holder = "/spec/holderIdentity"
    race = [
        {"op": "test", "path": holder, "value": "the holder that has gone"},
        {"op": "replace", "path": holder, "value": "other_1"},
    ]
    path = build_lease_path(victim.keeper.namespace, victim.name)
    reply = other.client.send("PATCH", path, race, media=JSON_PATCH)
    is_known = (reply.status, reply.message) == (422, UNAPPLIED_PATCH)
    return Row("a JSON patch that loses a race", f"HTTP {reply.status}: {reply.message}", is_known)


def _check_observe(world: World, keeper: Account) -> Iterator[Row]:
    absurd = Victim(keeper, "absurd")
    allowed = _create(keeper.client, absurd, leaseDurationSeconds=FOREVER)
    expected = {"event": "create", "rules": "duration-too-long=warn", "would-deny": "duration-too-long"}
    start = "lease webhook, duration-too-long (standard would deny this): "
    yield _check_write(world, absurd, "preset observe: would-deny", allowed, 201, expected, start)


def _create(client: ApiClient, victim: Victim, **spec: Any) -> Reply:
    body = make_lease(victim.name, **({"holderIdentity": f"{victim.keeper.name}_1"} | spec))
    return client.send("POST", build_lease_path(victim.keeper.namespace), body)


def _check_write(
    world: World, victim: Victim, claim: str, reply: Reply, status: int, expected: Mapping[str, str], warning: str = ""
) -> Row:
    """Compare the audit event of the write, and the warnings of the reply, with what is expected."""
    annotations = world.find_annotations(victim.keeper.namespace, reply)
    policy = annotations.pop("policy", "")
    problems = []
    if reply.status != status:
        problems.append(f"HTTP {reply.status}: {reply.message}")
    if annotations != expected:
        problems.append(f"annotations {annotations}, expected {expected}")
    if bool(expected) != bool(POLICY.fullmatch(policy)):
        problems.append(f"policy is {policy!r}")
    if [text for text in reply.warnings if not text.startswith(warning)] or bool(reply.warnings) != bool(warning):
        problems.append(f"warnings {reply.warnings}")
    if any(len(text) > LONGEST_WARNING or not text.isprintable() for text in reply.warnings):
        problems.append(f"a warning is too long or not one printable line: {reply.warnings}")
    list_of_annotations = ", ".join(f"{key}: {value}" for key, value in annotations.items()) or "no annotation"
    return Row(claim, "; ".join(problems) or list_of_annotations, not problems)
