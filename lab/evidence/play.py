"""Histories: drawn at random, played in a world, and every record checked against the laws."""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Final, TypeVar

from msgspec import Struct

from lab.evidence import attacker, electors, third_parties
from lab.evidence.field_manager import FieldManager, RefusedError
from lab.evidence.history import Forgery, History, Step, draw_seed
from lab.evidence.mutations import WEIGHTS
from lab.evidence.world import Clocks, Evaluate, World
from tests.evidence.laws import broken_law
from tests.evidence.records import SECOND, Elector, Record
from tests.evidence.reviews import ATTACKER, INSIDER

Honest = Callable[[World, Random], None]
Attack = Callable[[World, Random, Sequence[Forgery]], None]
Drawn = TypeVar("Drawn")

THIRD_PARTIES: Final[Mapping[Honest, int]] = {
    third_parties.label: 6,
    third_parties.annotate: 2,
    third_parties.remove_a_label: 1,
    third_parties.client_side_apply: 2,
    third_parties.upgrade_to_server_side_apply: 2,
    third_parties.write_nothing: 1,
    third_parties.apply_labels: 2,
    third_parties.apply_the_same_renew_time: 1,
    third_parties.apply_the_name_only: 1,
    third_parties.label_by_the_electors_manager: 1,
    third_parties.toggle_a_finalizer: 1,
    third_parties.raise_the_duration: 1,
}
ELECTORS: Final[Mapping[Honest, int]] = {electors.renew: 24, electors.release: 6, electors.succeed: 14}
ATTACKS: Final[Mapping[Attack, int]] = {
    attacker.steal: 30,
    attacker.renew: 25,
    attacker.label: 15,
    attacker.remove_labels: 4,
    attacker.change_the_list_only: 10,
    attacker.release: 6,
    attacker.change_the_duration: 3,
    attacker.remove_renew_time: 1,
    attacker.change_metadata: 3,
    attacker.delete: 2,
    attacker.steal_by_apply: 2,
    attacker.renew_by_apply: 2,
}


def probe(world: World, random: Random) -> None:
    """Try writes that must fail or succeed, without storing them: a steal, a release, a label, and a late takeover.

    A plant that was accepted shows here if it would weaken, freeze or hide anything later.
    """
    at, world.probing = world.at, True
    try:
        attacker.steal(world, random, ())
        attacker.release(world, random, ())
        third_parties.label(world, random)
        electors.succeed(world, random)
        third_parties.label(world, random)
    finally:
        world.at, world.probing = at, False


def toggle_the_label(world: World, random: Random) -> None:
    """Add or remove the namespace label, after which stamps no longer count as evidence."""
    world.stamps, world.stamped, world.replaced = not world.stamps, False, True


HONEST_ACTIONS: Final[Mapping[str, Honest]] = {
    **{f"honest {action.__name__}": action for action in (*THIRD_PARTIES, *ELECTORS, electors.create)},
    "probe": probe,
    "honest toggle_the_label": toggle_the_label,
}
ATTACK_ACTIONS: Final[Mapping[str, Attack]] = {
    f"attack {action.__name__}": action for action in (*ATTACKS, attacker.be_first)
}


class Category(Struct, frozen=True):
    """A kind of history; `attacks` is the share of steps that the attacker takes."""

    name: str
    says: str
    attacks: float = 0
    probes: bool = False
    far: bool = False
    stamps: bool = False
    listed: bool = False
    toggles: float = 0


CATEGORIES: Final = (
    Category("honest", "electors, people and tools alone"),
    Category("attack", "an attacker between them", attacks=0.5),
    Category("plants", "each of the attacker's accepted writes is probed", attacks=0.6, probes=True),
    Category("honest-far", "honest, the webhook's clock off by up to an hour", far=True),
    Category("attack-far", "an attacker, the webhook's clock off by up to an hour", attacks=0.5, far=True),
    Category(
        "stamped",
        "writers are stamped; the attacker is a pod of the electors' service account, and no policy guards",
        attacks=0.5,
        stamps=True,
        listed=True,
    ),
    Category(
        "stamped-plants", "the same, each accepted write is probed", attacks=0.6, probes=True, stamps=True, listed=True
    ),
    Category(
        "stamped-far",
        "the same, the webhook's clock off by up to an hour",
        attacks=0.5,
        far=True,
        stamps=True,
        listed=True,
    ),
    Category(
        "label", "honest; the namespace's label comes and goes, and no policy file lists it", stamps=True, toggles=0.1
    ),
    Category(
        "listed-only", "an attacker; a policy file lists the namespace, and it has no label", attacks=0.5, listed=True
    ),
)


def draw(category: Category, random: Random) -> History:
    """Return a history of a category."""
    first = "honest create"
    attacked = category.attacks > 0
    if attacked and random.random() < 0.1:
        first = "attack be_first"
    steps = [Step(first, draw_seed(random), _draw_forgeries(random) if first.startswith("attack") else ())]
    for _ in range(8 + random.randrange(40)):
        if category.toggles and random.random() < category.toggles:
            steps.append(Step("honest toggle_the_label", draw_seed(random)))
        elif random.random() < category.attacks:
            attack = _draw_weighted(random, ATTACKS)
            steps.append(Step(f"attack {attack.__name__}", draw_seed(random), _draw_forgeries(random)))
            if category.probes:
                steps.append(Step("probe", draw_seed(random)))
        else:
            action = _draw_weighted(random, ELECTORS if random.random() < 0.76 else THIRD_PARTIES)
            steps.append(Step(f"honest {action.__name__}", draw_seed(random)))
    return History(draw_seed(random), tuple(steps), attacked, category.far, category.stamps, category.listed)


def _draw_forgeries(random: Random) -> tuple[Forgery, ...]:
    if random.random() < 0.12:
        return ()
    mutations = (_draw_weighted(random, WEIGHTS) for _ in range(random.choice((1, 1, 2, 3))))
    return tuple(Forgery(mutation.__name__, draw_seed(random)) for mutation in mutations)


def _draw_weighted(random: Random, weights: Mapping[Drawn, int]) -> Drawn:
    return random.choices(tuple(weights), tuple(weights.values()))[0]


class Played(Struct, frozen=True):
    """The records of a history up to the first that breaks a law, and that law, or ""."""

    records: tuple[Record, ...]
    law: str = ""


def play(history: History, manager: FieldManager, evaluate: Evaluate) -> Played:
    """Play a history until a law is broken or nothing is left."""
    world = _create_world(history, manager, evaluate)
    count = 0
    for step in history.steps:
        random = Random(step.seed)
        if world.lease is not None:
            world.wait(random, 0.001, random.choice((0.3, 1, world.duration / 3 + 0.1, world.duration / 3 + 0.1)))
        try:
            _act(world, step, random)
        except RefusedError:
            continue  # the API server itself refuses it, so nothing happens
        for index in range(count, len(world.records)):
            law = broken_law(world.records[index], attacked=history.attacked)
            if law:
                return Played(tuple(world.records[: index + 1]), law)
        count = len(world.records)
    return Played(tuple(world.records))


def _act(world: World, step: Step, random: Random) -> None:
    if step.action.startswith("attack"):
        ATTACK_ACTIONS[step.action](world, random, step.forgeries)
    elif world.lease is not None or step.action == "honest create":
        HONEST_ACTIONS[step.action](world, random)


def _create_world(history: History, manager: FieldManager, evaluate: Evaluate) -> World:
    random = Random(history.seed)
    at = 1_767_225_600 * SECOND + random.randrange(300 * 86_400 * SECOND)
    apart = random.choice((0, 0, SECOND))
    servers = (0, random.randint(-apart, apart), random.randint(-apart, apart))
    if apart and random.random() < 0.3:
        servers = (-SECOND, SECOND, 0)
    webhook = random.choice((0, random.randint(-SECOND, SECOND)))
    if history.far:
        webhook = random.choice((-3600, -300, -61, -30, -5, 5, 30, 61, 300, 3600)) * SECOND
    names = random.choice((("checkout",) * 3, ("checkout",) * 3, ("checkout", "elector-b", "elector-c")))
    candidates = tuple(_create_elector(number, name, random) for number, name in enumerate(names))
    world = World(manager, evaluate, at, Clocks(servers, webhook), candidates)
    world.stamps, world.listed = history.stamps, history.listed
    world.attacker = INSIDER if history.stamps else ATTACKER
    return world


def _create_elector(number: int, manager: str, random: Random) -> Elector:
    skew = random.choice((0, 0, 0, random.randint(-5, 5)))
    if random.random() < 0.05:
        skew = random.choice((3600, -3600, -30 * 3600))
    style = random.choice(("list", "list", "list", "bare", "apply"))
    return Elector(f"checkout-{number}_{random.randrange(1 << 32):08x}", manager, style, skew * SECOND)
