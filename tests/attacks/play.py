"""Plays an attack in a world, which may be an API server, a model of one, or what one once sent."""

from collections.abc import Iterable
from typing import Any, Protocol

from msgspec import Struct

from tests.attacks.attack import Attack, Step
from tests.attacks.requests import Clock, body_of, first_lease, manager_of

Document = dict[str, Any]


class Outcome(Struct, frozen=True):
    """What became of one write: whether it was stored, the rules that spoke with their levels, and words for people."""

    stored: bool
    findings: dict[str, str]
    text: str = ""


def by_rule(findings: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Rule id to the highest level at which it spoke."""
    ranks = ("audit", "warn", "deny")
    return dict(sorted(findings, key=lambda finding: ranks.index(finding[1])))


class World(Protocol):
    """One lease in a world."""

    def clock(self) -> Clock:
        """The clock of whoever writes next."""

    def read(self) -> Document:
        """The stored object, deep places shortened."""

    def send(self, by: str, method: str, manager: str, body: Document | None, /) -> Outcome:
        """One write; `method` is create, put, protobuf, merge, apply or delete."""

    def wait(self, seconds: float) -> None:
        """Let time pass."""


class Played(Struct, frozen=True):
    """One write of an attack and what became of it."""

    step: Step
    outcome: Outcome


def play(attack: Attack, name: str, world: World) -> list[Played]:
    """The outcome of every write; those that make the lease are not listed and must be stored."""
    if not attack.lease.absent:
        body = first_lease(attack.lease, name, world.clock())
        _must_be_stored(world.send("keeper", "create", "checkout", body))
        if attack.lease.renewed:
            _must_be_stored(_sent(Step(by="keeper", does="renew"), attack, name, world))
    played = []
    for step in (one for some in attack.writes for one in some.one_by_one()):
        if step.wait:
            world.wait(step.wait)
        else:
            played.append(Played(step, _sent(step, attack, name, world)))
    return played


def problems(attack: Attack, preset: str, played: list[Played]) -> list[str]:
    """Return where what happened is not what must happen."""
    differences = []
    for number, write in enumerate(played, 1):
        expected = write.step.expected(preset)
        wanted = not expected.denied
        if write.outcome.findings != expected.findings or write.outcome.stored != wanted:
            outcome = write.outcome
            seen = f"{'stored' if outcome.stored else 'refused'} {outcome.findings} {outcome.text}".strip()
            must = f"{'stored' if wanted else 'refused'} {expected.findings}"
            differences.append(f"{attack.id}, {preset}, write {number} by {write.step.by}: {seen}; must be {must}")
    return differences


def _sent(step: Step, attack: Attack, name: str, world: World) -> Outcome:
    if step.method == "delete":
        return world.send(step.by, "delete", manager_of(step), None)
    stored = first_lease(attack.lease, name, world.clock()) if step.method == "create" else world.read()
    return world.send(step.by, step.method, manager_of(step), body_of(step, stored, world.clock()))


def _must_be_stored(outcome: Outcome) -> None:
    if not outcome.stored:
        raise RuntimeError(f"the keeper cannot make the lease: {outcome}")
