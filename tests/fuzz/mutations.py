"""Changes to a text that keep its form: bytes alone rarely leave JSON that is still JSON."""

import json
import random
from collections.abc import Callable, Iterator
from typing import Any, Final

VALUES: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 1, 15, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 10**30, 1.5, 1e300),
    *("", "x", "{}", "CREATE", "UPDATE", "DELETE", "Apply", "ancient-changes", "before-first-apply", "1.36.0", "v1"),
    *("2026-11-20T12:00:00.000000Z", "2026-11-20T12:00:00Z", "10000-01-01T00:00:00.000000Z", "0001-01-01T00:00:00Z"),
    *("coordination.k8s.io/v1", "Lease", "LeaseCandidate", "system:serviceaccount:shop:checkout", "system:node:node-1"),
    *("\u202e", "\n", "\x00", "\ud800", "f:spec", "f:renewTime", "f:holderIdentity", ".", 'k:{"uid":"u"}', "x" * 300),
    *([], {}, [{}], {".": {}}),
)
_Parent = Any
_Mutate = Callable[[random.Random, list[tuple[_Parent, Any]]], None]


def mutate(data: bytes, draw: random.Random, *, limit: int) -> bytes | None:
    """Return JSON, or lines of it, with one to four values changed; None if it is not JSON, or becomes too long."""
    lines = data.splitlines(keepends=True)
    number = draw.randrange(len(lines)) if lines else 0
    before, text, after = (
        b"".join(lines[:number]),
        b"".join(lines[number : number + 1]),
        b"".join(lines[number + 1 :]),
    )
    changed = _changed(data, draw) or _changed(text, draw)
    if changed is None:
        return None
    whole = changed if _is_json(data) else before + changed + b"\n" + after
    return whole if len(whole) <= limit else None


def graft(data: bytes, other: bytes, draw: random.Random, *, limit: int) -> bytes | None:
    """Return JSON in which one value is replaced by one from another text; None as in `mutate`."""
    try:
        value, donor = json.loads(data), json.loads(other)
        places, gifts = [*_places(value)], [*_places(donor)]
        if not places or not gifts:
            return None
        parent, key = draw.choice(places)
        giver, gift = draw.choice(gifts)
        named = [place for place in gifts if place[1] == key]
        giver, gift = draw.choice(named) if named and draw.random() < 0.7 else (giver, gift)
        parent[key] = giver[gift]
        whole = _written(value)
    except (ValueError, RecursionError):
        return None
    return whole if len(whole) <= limit else None


def _is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


def _changed(text: bytes, draw: random.Random) -> bytes | None:
    try:
        value = json.loads(text)
        for _ in range(draw.choice((1, 1, 1, 2, 4))):
            places = [*_places(value)]
            if not places:
                return None
            draw.choice(_WAYS)(draw, places)
        return _written(value)
    except (ValueError, RecursionError):
        return None


def _written(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _places(value: Any) -> Iterator[tuple[_Parent, Any]]:
    """Yield (container, key) of every value inside of another."""
    items: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    for key, inner in items:
        yield value, key
        yield from _places(inner)


def _replace(draw: random.Random, places: list[tuple[_Parent, Any]]) -> None:
    parent, key = draw.choice(places)
    parent[key] = draw.choice(VALUES)


def _adjust(draw: random.Random, places: list[tuple[_Parent, Any]]) -> None:
    """Change a little: a number by one, a text by one character."""
    parent, key = draw.choice(places)
    value = parent[key]
    if isinstance(value, str):
        at = draw.randint(0, len(value))
        parent[key] = (
            value[:at] + draw.choice(("", "0", "9", ":", "Z", "-", " ", "*", "é")) + value[at + draw.randint(0, 1) :]
        )
    elif isinstance(value, int | float):
        parent[key] = value + draw.choice((-1, 1, 10))
    else:
        parent[key] = draw.choice(VALUES)


def _remove(draw: random.Random, places: list[tuple[_Parent, Any]]) -> None:
    parent, key = draw.choice(places)
    del parent[key]


def _copy(draw: random.Random, places: list[tuple[_Parent, Any]]) -> None:
    """Put a value where another one is; a copy, so that nothing contains itself."""
    (parent, key), (giver, gift) = draw.choice(places), draw.choice(places)
    parent[key] = json.loads(json.dumps(giver[gift]))


def _rename(draw: random.Random, places: list[tuple[_Parent, Any]]) -> None:
    parent, key = draw.choice(places)
    if isinstance(parent, dict):
        names = [name for holder, name in places if isinstance(holder, dict)]
        parent[draw.choice(names)] = parent.pop(key)
    else:
        parent.insert(draw.randint(0, len(parent)), parent[key])


_WAYS: Final[tuple[_Mutate, ...]] = (_replace, _replace, _adjust, _adjust, _remove, _copy, _rename)
