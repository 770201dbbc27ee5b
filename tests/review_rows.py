"""The bad inputs of `tests/data/reviews`: one file for each row, every case a body and the answer it must get.

A case starts from a sound review (`base`) and changes it: `put` and `drop` values by path, `raw` JSON text that no
encoder would write, `bytes` inside a string, `cut`, `append`, `encoding`; or is `text` or `hex` as it stands. What
would make a file huge is written as a recipe: `{"repeat": ["9", 5000]}`.
"""

import json
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from tests.factories import (
    NOW,
    Document,
    changed,
    drop,
    make_candidate,
    make_entry,
    make_lease,
    make_review,
    put,
    to_bytes,
)

FOLDER: Final = Path(__file__).parent / "data" / "reviews"
WHEN: Final = NOW + 5_000_000
"""When the reviews are evaluated: the update is a renewal five seconds after the last one."""

_PLACE: Final = '"@@"'


class Case(Struct, frozen=True, dict=True):
    """One input, which is made when it is used; `times` says how often the same bytes are evaluated."""

    name: str
    recipe: Document
    expect: Document
    times: int = 1

    @cached_property
    def body(self) -> bytes:
        return _body(self.recipe)


class PolicyCase(Struct, frozen=True):
    """A policy file at start; None is one that is not there."""

    name: str
    policy: str | None
    exit_code: int


@cache
def policy_cases() -> tuple[PolicyCase, ...]:
    """The rows about a policy file."""
    return tuple(
        PolicyCase(f"{file.stem}: {case['id']}", case["policy"], case["expect"]["exit"])
        for file in sorted(FOLDER.glob("*.json"))
        for case in json.loads(file.read_text())["cases"]
        if "policy" in case
    )


@cache
def cases() -> tuple[Case, ...]:
    """Every case of every row."""
    loaded = []
    for file in sorted(FOLDER.glob("*.json")):
        for case in json.loads(file.read_text())["cases"]:
            if "policy" in case:
                continue
            name = f"{file.stem}: {case['id']}"
            loaded.append(Case(name, case, case["expect"], case.get("times", 1)))
    return tuple(loaded)


def one_of_each_row() -> tuple[Case, ...]:
    """The first case of each row."""
    return tuple({case.name.partition(":")[0]: case for case in reversed(cases())}.values())


def base(name: str) -> Document:
    """A sound review: `create`, `update`, `delete`, or `candidate` (a CREATE)."""
    lease = make_lease()
    owned = ("acquireTime", "holderIdentity", "leaseDurationSeconds", "leaseTransitions", "renewTime")
    renewed = changed(
        lease,
        put("spec.renewTime", "2025-11-20T12:00:05.000000Z"),
        put("metadata.managedFields[0]", make_entry(*owned, time="2025-11-20T12:00:05Z")),
    )
    reviews = {
        "create": make_review(new=lease),
        "update": make_review(new=renewed, old=lease),
        "delete": make_review(old=make_lease(put("spec.holderIdentity", ""))),
        "candidate": make_review(new=make_candidate()),
    }
    return reviews[name]


def _body(case: Document) -> bytes:
    if "hex" in case:
        return bytes.fromhex(case["hex"])
    if "text" in case:
        return str(_cooked(case["text"])).encode()
    review = base(case["base"])
    tweaks = [put(path, _cooked(value)) for path, value in case.get("put", {}).items()]
    tweaks += [drop(path) for path in case.get("drop", ())]
    tweaks += [put(path, "@@") for path in (*case.get("raw", ()), *case.get("bytes", ()))]
    text: bytes = to_bytes(changed(review, *tweaks))
    for raw in case.get("raw", {}).values():
        text = text.replace(_PLACE.encode(), str(_cooked(raw)).encode(), 1)
    for digits in case.get("bytes", {}).values():
        text = text.replace(_PLACE.encode(), b'"' + bytes.fromhex(digits) + b'"', 1)
    text = text[: case.get("cut")] + case.get("append", "").encode()
    encoding: str = case.get("encoding", "utf-8")
    return text if encoding == "utf-8" else text.decode().encode(encoding)


def _cooked(value: Any) -> Any:
    """Return what a recipe makes; anything else as it is."""
    if not isinstance(value, dict) or len(value) != 1:
        return value
    ((name, amount),) = value.items()
    match name:
        case "repeat":
            text, times = amount
            return text * times
        case "nest":
            return "[" * amount + "]" * amount
        case "keys":
            return "{" + ",".join(f'"k{number}":"v"' for number in range(amount)) + "}"
        case "lists":
            return "{" + ",".join(f'"k{number}":["v"]' for number in range(amount)) + "}"
        case "items":
            return "[" + ",".join(['"x"'] * amount) + "]"
    return value
