"""An attack as data: what the lease is before, who writes what, and what must happen to each write.

A file in `known/` is one attack. `variants` are rows of values; a text that is `$name` is replaced by the row's value,
and `${name}` inside a longer text by the same as text. Instants are `now`, `now+90s` or `now-10y` (s, m, h, d, y; the
writer's clock), or written out; in protobuf also the first second of a year such as `year 20000`.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml
from msgspec import Struct, field

KNOWN: Final = Path(__file__).parent / "known"
STANDARD: Final = "standard"
STRICT: Final = "strict"
PRESETS: Final = (STANDARD, STRICT)
_PLACE: Final = re.compile(r"\$\{(\w+)\}")


class Expected(Struct, frozen=True, forbid_unknown_fields=True):
    """Every rule that must speak, and at which level; with no rule in `denied` the write is stored."""

    denied: tuple[str, ...] = ()
    warned: tuple[str, ...] = ()
    audited: tuple[str, ...] = ()

    @property
    def findings(self) -> dict[str, str]:
        """Rule id to level."""
        levels = {"deny": self.denied, "warn": self.warned, "audit": self.audited}
        return {rule: level for level, rules in levels.items() for rule in rules}


class Deep(Struct, frozen=True, forbid_unknown_fields=True):
    """Objects of one key `f:a`, nested below a path of fieldsV1; managedFields itself is the first of `levels`."""

    levels: int
    below: tuple[str, ...]


class Invented(Struct, frozen=True, forbid_unknown_fields=True):
    """Entries of managedFields that the writer adds; in `manager` and in `fields` a `#` is the entry's number.

    `padding` is the length of the key of one more label that the entry owns.
    """

    manager: str
    count: int = 1
    operation: str = "Update"
    time: str = ""
    api_version: str = field(name="apiVersion", default="coordination.k8s.io/v1")
    subresource: str = ""
    fields: dict[str, Any] = {}
    deep: Deep | None = None
    padding: int = 0


class Changed(Struct, frozen=True, forbid_unknown_fields=True):
    """Changes to the stored entries of one manager; without a manager, to all."""

    manager: str = ""
    to: str = ""
    operation: str = ""
    time: str = ""
    without: tuple[str, ...] = ()
    fields: dict[str, Any] = {}
    drop: bool = False


class Forged(Struct, frozen=True, forbid_unknown_fields=True):
    """The managedFields that the writer sends: `only` as it stands, or the stored ones, changed, and invented ones."""

    only: list[dict[str, Any]] | None = None
    change: tuple[Changed, ...] = ()
    add: tuple[Invented, ...] = ()


class Step(Struct, frozen=True, forbid_unknown_fields=True):
    """One write, or a wait.

    `does` is a change of spec as election clients make it: `take`, `renew` or `release`; `spec`, `labels`,
    `ownerReferences` and `finalizers` are changed besides, null removes; a create sends `resourceVersion`. `manager` is
    the fieldManager that the client names. With `repeat` it is written so often, and a `#` in `manager` and `labels` is
    the number. A write of which nothing is expected must be stored without a word.
    """

    by: str = ""
    method: str = "put"
    does: str = ""
    manager: str = ""
    repeat: int = 1
    spec: dict[str, Any] = {}
    labels: dict[str, str | None] = {}
    owner_references: list[dict[str, Any]] | None = field(name="ownerReferences", default=None)
    finalizers: list[str] | None = None
    resource_version: str = field(name="resourceVersion", default="")
    managed_fields: Forged | None = field(name="managedFields", default=None)
    wait: float = 0.0
    always: Expected | None = None
    standard: Expected | None = None
    strict: Expected | None = None

    def one_by_one(self) -> Iterator["Step"]:
        """The step as often as it is repeated."""
        for number in range(self.repeat):
            labels = {_numbered(key, number): value for key, value in self.labels.items()}
            yield msgspec.structs.replace(self, manager=_numbered(self.manager, number), labels=labels, repeat=1)

    def expected(self, preset: str) -> Expected:
        """Return what must happen under a preset."""
        return self.always or (self.standard if preset == STANDARD else self.strict) or Expected()


def _numbered(text: str, number: int) -> str:
    return text.replace("#", str(number))


class Before(Struct, frozen=True, forbid_unknown_fields=True):
    """The lease that the keeper makes and then renews; with `absent` there is none."""

    duration: int = 600
    labels: dict[str, str] = {}
    name: str = ""
    namespace: str = "shop"
    bound: bool = False
    absent: bool = False
    renewed: bool = True


class Attack(Struct, frozen=True, forbid_unknown_fields=True):
    """One attack, or one variant of it, with nothing left to fill in.

    `since` and `until` are the first and last minor version of Kubernetes in which the API server does what the attack
    rests on.
    """

    about: str
    writes: tuple[Step, ...]
    lease: Before = Before()
    variants: dict[str, dict[str, Any]] = {}
    since: int = 0
    until: int = 99
    id: str = ""

    def lease_name(self, preset: str) -> str:
        """The name of its lease; both presets may be played in one namespace."""
        return f"{self.lease.name or 'db'}-{preset}-{self.id}"


@cache
def attacks() -> tuple[Attack, ...]:
    """Every variant of every file. Raises ValueError where a file is not an attack."""
    return tuple(attack for path in sorted(KNOWN.glob("*.yaml")) for attack in parse(path.stem, path.read_text()))


def parse(name: str, text: str) -> Iterator[Attack]:
    """The variants of one file. Raises ValueError that names it."""
    document = yaml.safe_load(text)
    variants: dict[str, dict[str, Any]] = document.pop("variants", None) or {"": {}}
    for variant, values in variants.items():
        try:
            attack = msgspec.convert(_filled(document, values), Attack, strict=False)
        except (msgspec.ValidationError, KeyError) as error:
            raise ValueError(f"{name}, variant {variant!r}: {error}") from None
        yield msgspec.structs.replace(attack, id=f"{name}.{_slug(variant)}" if variant else name)


def _slug(text: str) -> str:
    """Words for a file and for an object in a cluster."""
    return "-".join(re.findall(r"[a-z0-9]+", text.lower()))


def _filled(node: Any, values: dict[str, Any]) -> Any:
    if isinstance(node, dict):
        return {_filled(key, values): _filled(value, values) for key, value in node.items()}
    if isinstance(node, list):
        return [_filled(item, values) for item in node]
    if not isinstance(node, str):
        return node
    if node.startswith("$") and node[1:].isidentifier():
        return values[node[1:]]
    return _PLACE.sub(lambda place: str(values[place[1]]), node)


def policy_text(preset: str) -> str:
    """The policy that the attacks are played under: a preset, and a binding for each lease that has one."""
    bindings = "".join(
        f"- {{namespace: {attack.lease.namespace}, lease: {attack.lease_name(preset)},"
        " writers: [shop/checkout-0, shop/checkout-1], holder: ['${pod}_*']}\n"
        for attack in attacks()
        if attack.lease.bound
    )
    return f"apiVersion: lease-webhook/v1\npreset: {preset}\n" + (f"bindings:\n{bindings}" if bindings else "")
