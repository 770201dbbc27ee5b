"""A fence as API servers evaluate it, an old leader and a new one that do not know of each other, and two laws.

Every step is one event that an API server, its watch, or a pod's process may go through, in any order. A world is a
value. `a` leads first and never stops writing; `b` writes once it holds the lease. The search tries
every order, shortest first.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

MAX_WRITES: Final = 3
"""Of both pods together: two by the new leader with one of the old one between them."""


class Conditions(Struct, frozen=True):
    """What surrounds the pods. All writes are of one object; with `is_apart` those of `a` are of another one.

    `is_admitted_again`: the API server repeats admission if the object has changed since, as it does.
    """

    is_fenced: bool = True
    is_listed: bool = True
    servers: int = 1
    has_effects_outside: bool = False
    has_token: bool = False
    is_admitted_again: bool = True
    is_apart: bool = False


class Request(Struct, frozen=True):
    """A write on its way by one server. `is_late`: sent after a write of the new leader was stored.

    `base`: how many writes had been stored when it was admitted.
    """

    pod: str
    server: int
    is_late: bool
    is_admitted: bool = False
    base: int = 0


class Entry(Struct, frozen=True):
    """A write that took effect. `was_expired`: its pod's lease had expired, and nobody had taken it."""

    pod: str
    is_late: bool
    was_expired: bool


class World(Struct, frozen=True):
    """The lease in etcd, as the informer of each server has it, what is on its way, and what took effect."""

    seen: tuple[str, ...]
    holder: str = "a"
    is_expired: bool = False
    requests: tuple[Request, ...] = ()
    entries: tuple[Entry, ...] = ()
    writes: int = 0


Step = tuple[str, World]
Law = Callable[[World], bool]


def old_writes_are_in_flight(world: World) -> bool:
    """Between two writes of a new leader there is none of an old one, but for requests in flight."""
    own = [number for number, entry in enumerate(world.entries) if entry.pod == "b"]
    between = world.entries[own[0] : own[-1]] if own else ()
    return not any(entry.pod == "a" and entry.is_late for entry in between)


def no_old_write_follows(world: World) -> bool:
    """After a write of a new leader there is none of an old one, not even one that was in flight."""
    pods = [entry.pod for entry in world.entries]
    return "b" not in pods or "a" not in pods[pods.index("b") :]


def nobody_writes_after_expiry(world: World) -> bool:
    """A holder whose lease has expired does not write."""
    return not any(entry.was_expired for entry in world.entries)


LIMITS: Final[Mapping[str, tuple[Conditions, Law]]] = {
    "without a fence": (Conditions(is_fenced=False), old_writes_are_in_flight),
    "the expressions have no clock": (Conditions(), nobody_writes_after_expiry),
    "only the listed writers are fenced": (Conditions(is_listed=False), old_writes_are_in_flight),
    "each API server follows the lease through its own watch": (Conditions(servers=2), old_writes_are_in_flight),
    "with a token: what the new leader has not written": (
        Conditions(servers=2, has_token=True, is_apart=True),
        old_writes_are_in_flight,
    ),
    "effects outside the API are not fenced": (Conditions(has_effects_outside=True), old_writes_are_in_flight),
}
"""Where a law does not hold: each has a trace, and the docs show it."""


def steps(world: World, conditions: Conditions) -> Iterator[Step]:
    """Every next event in words, and the world after it."""
    if world.holder == "a" and not world.is_expired:
        yield "the lease of a expires", replace(world, is_expired=True)
    if world.holder == "a" and world.is_expired:
        yield "b takes the lease", replace(world, holder="b", is_expired=False)
    for server, seen in enumerate(world.seen):
        if seen != world.holder:
            changed = (*world.seen[:server], world.holder, *world.seen[server + 1 :])
            yield f"the watch of server {server + 1} brings the lease of {world.holder}", replace(world, seen=changed)
    if world.writes < MAX_WRITES:
        for pod in ("a", "b") if world.holder == "b" else ("a",):
            yield from _writes(world, pod, conditions)
    for number, request in enumerate(world.requests):
        yield _progress(world, number, request, conditions)


def counterexample(conditions: Conditions, law: Law, depth: int) -> tuple[str, ...] | None:
    """The shortest trace after which a law does not hold, in words; None if there is none within the depth."""
    start = World(seen=("a",) * conditions.servers)
    known = {start}
    frontier: list[tuple[World, tuple[str, ...]]] = [(start, ())]
    for _ in range(depth):
        following: list[tuple[World, tuple[str, ...]]] = []
        for world, trace in frontier:
            for words, after in steps(world, conditions):
                if after in known:
                    continue
                known.add(after)
                longer = (*trace, words)
                if not law(after):
                    return longer
                following.append((after, longer))
        frontier = following
    return None


def _writes(world: World, pod: str, conditions: Conditions) -> Iterator[Step]:
    is_late = any(entry.pod == "b" for entry in world.entries)
    again = replace(world, writes=world.writes + 1)
    if conditions.has_effects_outside:
        yield (
            f"{pod} changes something outside",
            replace(again, entries=(*world.entries, _entry(world, pod, late=is_late))),
        )
        return
    for server in range(conditions.servers):
        request = Request(pod, server, is_late)
        yield f"{pod} sends a write to server {server + 1}", replace(again, requests=(*world.requests, request))


def _progress(world: World, number: int, request: Request, conditions: Conditions) -> Step:
    rest = world.requests[:number] + world.requests[number + 1 :]
    pod, server = request.pod, f"server {request.server + 1}"
    has_changed = conditions.has_token and conditions.is_admitted_again and request.base != len(world.entries)
    if request.is_admitted and has_changed and not _is_admitted(world, request, conditions):
        return f"{server} refuses the write of {pod}: the object has changed", replace(world, requests=rest)
    if request.is_admitted:
        entries = (*world.entries, _entry(world, pod, late=request.is_late))
        return f"the write of {pod} is stored", replace(world, requests=rest, entries=entries)
    if not _is_admitted(world, request, conditions):
        return f"{server} refuses the write of {pod}", replace(world, requests=rest)
    admitted = replace(request, is_admitted=True, base=len(world.entries) if conditions.has_token else 0)
    return f"{server} admits the write of {pod}", replace(world, requests=(*rest, admitted))


def _is_admitted(world: World, request: Request, conditions: Conditions) -> bool:
    """By what the server knows: the holder of the lease, and beside the token of the object the term of the lease."""
    if not conditions.is_fenced or not (conditions.is_listed or request.pod != "a"):
        return True
    known = world.seen[request.server]
    if known != request.pod:
        return False
    if not conditions.has_token or (conditions.is_apart and request.pod == "a"):
        return True
    return known == "b" or all(entry.pod == "a" for entry in world.entries)


def _entry(world: World, pod: str, *, late: bool) -> Entry:
    return Entry(pod, late and pod == "a", world.is_expired and world.holder == pod)
