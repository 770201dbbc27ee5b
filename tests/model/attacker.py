"""An attacker with every right on the lease, and the search for what it can do with few writes.

The scene: an elector holds the lease and renews it in time, another one stands by. The attacker writes, anybody waits a
moment, the other elector may act. A trace is a threat when two believe that they lead at the same time.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Final

from tests.model import electors, world
from tests.model.api_server import Lease, Spec, User, Write, service_account
from tests.model.arsenal import ATTACKS, Attack, take
from tests.model.managed_fields import SECOND
from tests.model.world import World

ATTACKERS: Final[Mapping[str, User]] = {
    "a pod of the same namespace": service_account("shop", "mallory", "mallory-0"),
    "a pod of another namespace": service_account("other", "mallory", "mallory-0"),
    "a user without a pod": User("mallory"),
}


INSIDER: Final = service_account("shop", "checkout", "checkout-z")
"""Another pod of the electors' service account: only a stamp tells it from them."""

COLLECTOR: Final = service_account("kube-system", "generic-garbage-collector")
DELETE: Final = "delete the lease"
CREATE: Final = "create it again"
OTHER: Final = "another elector takes the lease"
STEPS: Final = (*(attack.text for attack in ATTACKS), DELETE, CREATE, OTHER)
_BY_TEXT: Final = {attack.text: attack for attack in ATTACKS}

PAUSES: Final = (1000, 3 * SECOND // 2)
"""A millisecond, and what is shorter than the holder's retry period but longer than a duration of 1 s."""

Trace = tuple[str, ...]
Moves = tuple[tuple[str, int], ...]


def scene(skew: int = 0, policy: str = world.STANDARD) -> World:
    """Held and renewed, with a label that a person set and a second elector that has read the lease.

    `skew` is the holder's clock minus the true time.
    """
    holder = electors.elector(electors.CLIENT_GO, "checkout-a", skew=skew)
    other = electors.elector(electors.CLIENT_GO, "checkout-b")
    start = World(world.START, (0,), (holder, other), stamps=policy == world.STAMPED)
    policy = policy if start.stamps else world.STANDARD
    start = world.acted(start, 0, 0, policy)
    assert start.lease is not None
    start = world.noted(start, Write("kubectl-label", start.lease.spec, (("team", "shop"),)), 0, policy)
    for _ in range(15):
        start = world.acted(world.waited(start, 2 * SECOND), 0, 0, policy)
        start, _nothing = world.intended(start, 1, 0)
    return start


def step(here: World, text: str, attacker: User, policy: str) -> World | None:
    """The world after one step; None where it cannot be taken, was denied, or changed nothing."""
    if text == OTHER:
        there = world.acted(here, 1, 0, policy)
        return there if there.lease != here.lease else None
    if text in (DELETE, CREATE):
        if (text == CREATE) is (here.lease is not None):
            return None
        empty = Lease(Spec(), (), ())
        return _sent(here, take(empty, here.now) if text == CREATE else None, attacker, policy)
    attack = _BY_TEXT[text]
    for _ in range(attack.repeats):
        after = _attacked(here, attack, attacker, policy)
        if after is None:
            return None
        here = after
    world.check_unharmed(here, policy)
    return here


def _attacked(here: World, attack: Attack, attacker: User, policy: str) -> World | None:
    write = None if here.lease is None else attack.send(here.lease, here.now)
    return None if write is None else _sent(here, write, attacker, policy)


def _sent(here: World, write: Write | None, attacker: User, policy: str) -> World | None:
    outcome = world.evaluate(here, attacker, write, 0, (policy,))
    if outcome is None:
        return None
    world.check_bound(here, outcome)
    if not outcome.verdicts[policy].allowed or outcome.after == outcome.before:
        return None
    return _collected(world.settled(here, outcome), policy)


def _collected(here: World, policy: str) -> World:
    """The garbage collector deletes what has an owner that does not exist."""
    if here.lease is None or not here.lease.owners:
        return here
    outcome = world.evaluate(here, COLLECTOR, None, 0, (policy,))
    assert outcome is not None
    return world.settled(here, outcome) if outcome.verdicts[policy].allowed else here


def has_two_leaders(here: World) -> bool:
    """Return whether the first holder still acts while the lease names somebody else as a live holder."""
    holder = here.electors[0]
    named = here.lease.spec.holder if here.lease is not None else None
    return holder.believes(here.now) and named not in (None, "", holder.identity)


def threats(policy: str, attacker: User, depth: int, start: World | None = None) -> Iterator[Trace]:
    """Every minimal trace of at most `depth` steps, pauses between them left out; shorter ones first.

    `start` is the scene unless given. Minimal: it contains no shorter threat, nor another way to go on where the
    opening of one has done the harm.
    """
    openings: list[Trace] = []
    frontier: dict[Trace, set[World]] = {(): {start or scene(policy=policy)}}
    for _ in range(depth):
        reached: dict[Trace, set[World]] = {}
        for (trace, worlds), text in product(frontier.items(), STEPS):
            longer = (*trace, text)
            if text in trace or any(_contains(longer, opening) for opening in openings):
                continue
            for there in _next(worlds, text, attacker, policy):
                reached.setdefault(longer, set()).add(there)
        threatening = [trace for trace, worlds in reached.items() if any(map(has_two_leaders, worlds))]
        openings += [trace if len(trace) == 1 else trace[:-1] for trace in threatening]
        frontier = {trace: worlds for trace, worlds in reached.items() if trace not in threatening}
        yield from (trace for trace in threatening if _plain(trace) == trace or _plain(trace) not in threatening)


def _plain(trace: Trace) -> Trace:
    """The trace without disguises."""
    return tuple(_BY_TEXT[text].disguises or text if text in _BY_TEXT else text for text in trace)


def _next(worlds: set[World], text: str, attacker: User, policy: str) -> Iterator[World]:
    for here in worlds:
        for pause in PAUSES:
            there = step(world.waited(here, pause), text, attacker, policy)
            if there is not None:
                yield there


def _contains(trace: Trace, part: Trace) -> bool:
    rest = iter(trace)
    return all(text in rest for text in part)


def works(trace: Trace, policy: str, attacker: User) -> bool:
    """Return whether the trace, with some pauses, ends with two leaders."""
    worlds = {scene(policy=policy)}
    for text in trace:
        worlds = set(_next(worlds, text, attacker, policy))
    return any(map(has_two_leaders, worlds))


Table = dict[Trace, dict[str, tuple[str, ...]]]


def threat_table(depth: int) -> Table:
    """For each threat of any attacker: who can carry it out under standard, under strict, and where it is stamped."""
    policies = (world.STANDARD, world.STRICT, world.STAMPED)
    traces = {
        trace
        for policy, attacker in product(policies, ATTACKERS.values())
        for trace in threats(policy, attacker, depth)
    }
    traces |= set(threats(world.STAMPED, INSIDER, depth))
    return {
        trace: {
            policy: tuple(name for name, attacker in ATTACKERS.items() if works(trace, policy, attacker))
            for policy in policies
        }
        for trace in sorted(traces, key=lambda trace: (len(trace), *(STEPS.index(text) for text in trace)))
    }


def rendered(table: Table) -> str:
    """The table as docs/promises.md shows it."""

    def who(names: tuple[str, ...]) -> str:
        if not names:
            return "no one"
        return "anyone" if len(names) == len(ATTACKERS) else "; ".join(names)

    rows = [f"| {', then '.join(trace)} | {' | '.join(map(who, row.values()))} |" for trace, row in table.items()]
    head = "| What is written | in `standard` by | in `strict` by | in `strict` where writers are stamped by |"
    return "\n".join((head, "|---|---|---|---|", *rows))
