"""An attacker with every right on the lease, and the search for what it can do with few writes.

The scene: an elector holds the lease and renews it in time, another one stands by. The attacker writes, anybody waits a
moment, the other elector may act. A trace is a threat when two believe that they lead at the same time.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tests.model import electors, world
from tests.model.api_server import Lease, Spec, User, Write, service_account
from tests.model.managed_fields import APPLY, SECOND, UPDATE, Entry
from tests.model.world import DAY, HOUR, World

IDENTITY: Final = "mallory"
MANAGER: Final = "kubectl-edit"
OLD: Final = 1_577_836_800 * SECOND
"""2020-01-01T00:00:00Z."""

ATTACKERS: Final[Mapping[str, User]] = {
    "a pod of the same namespace": service_account("shop", "mallory", "mallory-0"),
    "a pod of another namespace": service_account("other", "mallory", "mallory-0"),
    "a user without a pod": User("mallory"),
}


class Attack(Struct, frozen=True):
    """One step: what to send, given the lease and the true time; `writes` says how often at most."""

    text: str
    send: Callable[[Lease, int], Write | None]
    repeats: int = 1


def _spec(**fields: object) -> Callable[[Lease, int], Write | None]:
    def send(lease: Lease, now: int) -> Write | None:
        return Write(MANAGER, replace(lease.spec, **fields), lease.labels)

    return send


def _take(lease: Lease, now: int) -> Write | None:
    if lease.spec.holder == IDENTITY:
        return None
    count = (lease.spec.transitions or 0) + 1
    taken = Spec(
        holder=IDENTITY, duration=electors.DURATION, acquired=now, renewed=now, transitions=min(count, 2**31 - 1)
    )
    return Write(MANAGER, taken, lease.labels)


def _take_and_wipe(lease: Lease, now: int) -> Write | None:
    write = _take(lease, now)
    return write and replace(write, entries=())


def _release(lease: Lease, now: int) -> Write | None:
    if not lease.spec.holder:
        return None
    return Write(MANAGER, replace(lease.spec, holder="", duration=1, acquired=now, renewed=now), lease.labels)


def _renew(duration: int | None = None, behind: int = 0) -> Callable[[Lease, int], Write | None]:
    def send(lease: Lease, now: int) -> Write | None:
        spec = replace(lease.spec, renewed=now - behind, duration=duration or lease.spec.duration)
        return Write(MANAGER, spec, lease.labels)

    return send


def _renew_and_wipe(lease: Lease, now: int) -> Write | None:
    return Write(MANAGER, replace(lease.spec, renewed=now), lease.labels, entries=())


def _labelled(lease: Lease) -> tuple[tuple[str, str], ...]:
    labels = dict(lease.labels)
    return tuple(sorted({**labels, "touched": "no" if labels.get("touched") == "yes" else "yes"}.items()))


def _unlabelled(lease: Lease) -> tuple[tuple[str, str], ...]:
    return lease.labels[:-1]


def _forge(
    change: Callable[[Entry, int], Entry | None],
    labels: Callable[[Lease], tuple[tuple[str, str], ...]] = _labelled,
    add: tuple[Entry, ...] = (),
    **spec: object,
) -> Callable[[Lease, int], Write | None]:
    """Every entry changed (None drops it), some added, carried by labels or a change of spec."""

    def send(lease: Lease, now: int) -> Write | None:
        changed = (change(entry, now) for entry in lease.entries)
        entries = (*(entry for entry in changed if entry is not None), *add)
        return Write(MANAGER, replace(lease.spec, **spec), labels(lease), entries=entries)

    return send


def _as_it_is(lease: Lease) -> tuple[tuple[str, str], ...]:
    return lease.labels


def _same(entry: Entry, now: int) -> Entry:
    return entry


def _dated(to: int) -> Callable[[Entry, int], Entry]:
    def dated(entry: Entry, now: int) -> Entry:
        return replace(entry, time=to)

    return dated


def _ahead(by: int) -> Callable[[Entry, int], Entry]:
    def ahead(entry: Entry, now: int) -> Entry:
        return replace(entry, time=now // SECOND * SECOND + by)

    return ahead


def _earlier(by: int) -> Callable[[Entry, int], Entry]:
    def earlier(entry: Entry, now: int) -> Entry:
        return replace(entry, time=None if entry.time is None else entry.time - by)

    return earlier


def _disowned(entry: Entry, now: int) -> Entry | None:
    fields = entry.fields - {"renewed"}
    return replace(entry, fields=fields) if fields else None


def _dropped(entry: Entry, now: int) -> None:
    return None


def _undated(entry: Entry, now: int) -> Entry:
    return replace(entry, time=None)


def _repeat_by_apply(lease: Lease, now: int) -> Write | None:
    if lease.spec.renewed is None:
        return None
    return Write("gitops", lease.spec, (), APPLY, frozenset({"renewed"}))


def _label_as_the_holder(lease: Lease, now: int) -> Write | None:
    return Write("checkout", lease.spec, _labelled(lease))


_BOGUS: Final = Entry("bogus", UPDATE, OLD, frozenset({"labels.nothing"}))
_CO_OWNER: Final = Entry("bogus", UPDATE, OLD, frozenset({"renewed"}))

TAKE: Final = Attack("take the lease", _take)
ATTACKS: Final = (
    TAKE,
    Attack("take the lease and empty managedFields in the same write", _take_and_wipe),
    Attack("release the lease for its holder", _release),
    Attack("renew for the holder, with a duration of 1 s", _renew(duration=1)),
    Attack("renew for the holder, with a renewTime two days ago", _renew(behind=2 * DAY)),
    Attack("lower the duration to 1 s, nothing else", _spec(duration=1)),
    Attack("remove the duration", _spec(duration=None)),
    Attack("remove renewTime", _spec(renewed=None)),
    Attack("empty managedFields", _forge(_dropped, _as_it_is)),
    Attack("empty managedFields, with a label", _forge(_dropped)),
    Attack("renew for the holder and empty managedFields in the same write", _renew_and_wipe),
    Attack("date the stamps back, with a label added", _forge(_dated(OLD))),
    Attack("date the stamps back, with a label removed", _forge(_dated(OLD), _unlabelled)),
    Attack("date the stamps back, with acquireTime removed", _forge(_dated(OLD), _as_it_is, acquired=None)),
    Attack("date the stamps back, with an invented entry", _forge(_dated(OLD), _as_it_is, (_BOGUS,))),
    Attack("date the stamps half an hour ahead", _forge(_ahead(HOUR // 2))),
    Attack("date the stamps two hours ahead", _forge(_ahead(2 * HOUR))),
    Attack("date the stamps back by the tolerance, again and again", _forge(_earlier(2 * SECOND)), repeats=8),
    Attack("take renewTime out of its owner's entry", _forge(_disowned)),
    Attack("take the time out of every entry", _forge(_undated)),
    Attack("invent an old second owner of renewTime", _forge(_same, _as_it_is, (_CO_OWNER,))),
    Attack("own renewTime by an apply that repeats it", _repeat_by_apply),
    Attack("label the lease under the holder's manager name", _label_as_the_holder),
)
DELETE: Final = "delete the lease"
CREATE: Final = "create it again"
OTHER: Final = "another elector takes the lease"
STEPS: Final = (*(attack.text for attack in ATTACKS), DELETE, CREATE, OTHER)
_BY_TEXT: Final = {attack.text: attack for attack in ATTACKS}

PAUSES: Final = (1000, 3 * SECOND // 2)
"""A millisecond, and what is shorter than the holder's retry period but longer than a duration of 1 s."""

Trace = tuple[str, ...]
Moves = tuple[tuple[str, int], ...]


def scene(skew: int = 0) -> World:
    """Held and renewed, with a label that a person set and a second elector that has read the lease.

    `skew` is the holder's clock minus the true time.
    """
    holder = electors.elector(electors.CLIENT_GO, "checkout-a", skew=skew)
    other = electors.elector(electors.CLIENT_GO, "checkout-b")
    start = World(world.START, (0,), (holder, other))
    start = world.acted(start, 0, 0, world.STANDARD)
    assert start.lease is not None
    start = world.noted(start, Write("kubectl-label", start.lease.spec, (("team", "shop"),)), 0, world.STANDARD)
    for _ in range(15):
        start = world.acted(world.waited(start, 2 * SECOND), 0, 0, world.STANDARD)
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
        return _sent(here, _take(empty, here.now) if text == CREATE else None, attacker, policy)
    attack = _BY_TEXT[text]
    for _ in range(attack.repeats):
        after = _attacked(here, attack, attacker, policy)
        if after is None:
            return None
        here = after
    return here


def _attacked(here: World, attack: Attack, attacker: User, policy: str) -> World | None:
    write = None if here.lease is None else attack.send(here.lease, here.now)
    return None if write is None else _sent(here, write, attacker, policy)


def _sent(here: World, write: Write | None, attacker: User, policy: str) -> World | None:
    outcome = world.judge(here, attacker, write, 0, (policy,))
    if outcome is None:
        return None
    world.check_bound(here, outcome)
    if not outcome.verdicts[policy].allowed or outcome.after == outcome.before:
        return None
    return world.settled(here, outcome)


def has_two_leaders(here: World) -> bool:
    """Whether the first holder still acts while the lease names somebody else as a live holder."""
    holder = here.electors[0]
    named = here.lease.spec.holder if here.lease is not None else None
    return holder.believes(here.now) and named not in (None, "", holder.identity)


def threats(policy: str, attacker: User, depth: int, start: World | None = None) -> Iterator[Trace]:
    """Every minimal trace of at most `depth` steps, pauses between them left out; shorter ones first.

    `start` is the scene unless given. Minimal: it contains no shorter threat, nor another way to go on where the
    opening of one has done the harm.
    """
    openings: list[Trace] = []
    frontier: dict[Trace, set[World]] = {(): {start or scene()}}
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
        yield from threatening


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
    """Whether the trace, with some pauses, ends with two leaders."""
    worlds = {scene()}
    for text in trace:
        worlds = set(_next(worlds, text, attacker, policy))
    return any(map(has_two_leaders, worlds))


Table = dict[Trace, dict[str, tuple[str, ...]]]


def threat_table(depth: int) -> Table:
    """For each threat of any attacker under standard or strict: who can carry it out under which of the two."""
    policies = (world.STANDARD, world.STRICT)
    found = {
        trace
        for policy, attacker in product(policies, ATTACKERS.values())
        for trace in threats(policy, attacker, depth)
    }
    return {
        trace: {
            policy: tuple(name for name, attacker in ATTACKERS.items() if works(trace, policy, attacker))
            for policy in policies
        }
        for trace in sorted(found, key=lambda trace: (len(trace), *(STEPS.index(text) for text in trace)))
    }


def rendered(table: Table) -> str:
    """The table as the README shows it."""

    def who(names: tuple[str, ...]) -> str:
        if not names:
            return "nobody"
        return "anybody" if len(names) == len(ATTACKERS) else "; ".join(names)

    rows = [
        f"| {', then '.join(trace)} | {who(row[world.STANDARD])} | {who(row[world.STRICT])} |"
        for trace, row in table.items()
    ]
    return "\n".join(("| What is written | in `standard` by | in `strict` by |", "|---|---|---|", *rows))
