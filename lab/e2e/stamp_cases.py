"""Writes of a stranger to a stamped lease that its holder keeps, and honest writes to leases of one's own."""

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from lab.e2e.api_client import APPLY, JSON_PATCH, Reply
from lab.e2e.manifests import format_micro_time
from lab.e2e.one_lease import API, FUTURE, OWNER, PAST, Entries, OneLease, make_entry

FIRST_MINOR: Final = 36
"""The first version that serves MutatingAdmissionPolicy v1."""
SUFFIX: Final = "5f3a9c1e"
KEYS: Final = tuple(f"lease-webhook/{name}-{SUFFIX}" for name in ("writer", "written", "term"))
FIELDS: Final[dict[str, Any]] = {
    "leaseTransitions": 7,
    "acquireTime": "2026-01-01T00:00:05.000000Z",
    "holderIdentity": "mallory",
    "renewTime": "2026-01-01T00:00:07.000000Z",
    "leaseDurationSeconds": 1,
}
ALL: Final[dict[str, Any]] = {"f:spec": {f"f:{name}": {} for name in FIELDS}}

Write = Callable[[OneLease], Reply]


class Attack(Struct, frozen=True):
    """Writes by a stranger while the lease is held. In any case the next steal of it must be refused."""

    name: str
    writes: tuple[Write, ...]
    refused: bool = True
    """True if the last of the writes must be refused; the others may be stored or not."""


def make_label_paths(number: int) -> dict[str, Any]:
    """Return the paths of one label, another one for each number."""
    return {"f:metadata": {"f:labels": {f"f:z{number}": {}}}}


def forge_stamps(*stamps: str) -> dict[str, str]:
    """Return annotations with the names of the stamps; one value, or one for each name."""
    return dict(zip(KEYS, stamps * 3 if len(stamps) == 1 else stamps, strict=True))


def _put(metadata: dict[str, Any] | None = None, *entries: dict[str, Any], only: bool = False, **spec: Any) -> Write:
    """Return a PUT of the stored lease with changes, and with more entries; `only`: with no others."""

    def change_entries(old: Entries) -> Entries:
        return [*entries] if only else [*old, *entries]

    def write(lease: OneLease) -> Reply:
        # renewTime is sent as it is stored unless the caller changes it.
        fields: dict[str, Any] = {"renewTime": lease.get().get("spec", {}).get("renewTime", ...)} | spec
        return lease.put(metadata, entries=change_entries, **fields)

    return write


def _merge(metadata: dict[str, Any] | None = None, **spec: Any) -> Write:
    return lambda lease: lease.patch({"metadata": metadata or {}, "spec": spec})


def take(lease: OneLease) -> Reply:
    """Take the lease with legal values."""
    return lease.put(
        holderIdentity="mallory", renewTime=format_micro_time(), acquireTime=format_micro_time(), leaseTransitions=9
    )


def take_by_apply(lease: OneLease) -> Reply:
    """Take the lease by server-side apply, which is dated even if managedFields are empty."""
    body = {"apiVersion": API, "kind": "Lease", "metadata": {"name": lease.name}}
    spec = {"holderIdentity": "mallory", "renewTime": format_micro_time()}
    return lease.patch(body | {"spec": spec}, APPLY, "evil", force=True)


def _delete_labeled(lease: OneLease) -> Reply:
    """Label the lease and delete all objects with the label; a collection is refused if one of its items is."""
    lease.patch({"metadata": {"labels": {"doomed": "1"}}}).expect(200)
    return lease.delete_all("doomed=1")


_LISTS: Final[Mapping[str, list[dict[str, Any]]]] = {
    "an owner of all in the future": [make_entry("zz", ALL, FUTURE)],
    "two owners": [make_entry("zz", ALL, FUTURE), make_entry("zy", ALL, FUTURE, operation="Apply")],
    "twelve owners": [make_entry(f"m{at}", ALL, FUTURE) for at in range(12)],
    "ancient-changes as owner": [make_entry("ancient-changes", ALL, FUTURE)],
    "the writer's own name": [make_entry("client", ALL, FUTURE)],
    "the name of the constant entry": [make_entry("lease-webhook-stamp", ALL, FUTURE)],
    "no entry": [{}],
    "an unreadable version": [make_entry("zz", ALL, FUTURE, apiVersion="a/b/c")],
    "an old version": [make_entry("zz", ALL, FUTURE, apiVersion="coordination.k8s.io/v1beta1")],
    "a subresource": [make_entry("zz", ALL, FUTURE, subresource="status")],
    "eleven entries and an apply": [
        *(make_entry(f"m{at}", make_label_paths(at), FUTURE) for at in range(11)),
        make_entry("zz", ALL, FUTURE, operation="Apply"),
    ],
}


def _list_metadata_attacks() -> Iterator[Attack]:
    """Yield an attack for each field alone, with each list."""
    for field, value in FIELDS.items():
        change, removed = {field: value}, dict[str, Any]({field: ...})
        for name, entries in _LISTS.items():
            yield Attack(f"{field} with {name}", (_put(None, *entries, only=True, **change),))
        below = make_entry("client", {"f:spec": {f"f:{field}": {"f:x": {}}}}, FUTURE)
        yield Attack(f"{field} with a path below it", (_put(None, below, **change),))
        yield Attack(f"{field} removed", (_put(None, make_entry("zz", ALL, FUTURE), **removed),))


ATTACKS: Final = (
    Attack("take", (take,)),
    Attack("take by apply", (take_by_apply,)),
    Attack(
        "take by a JSON patch",
        (lambda lease: lease.patch([{"op": "replace", "path": "/spec/holderIdentity", "value": "m"}], JSON_PATCH),),
    ),
    Attack("take in protobuf", (lambda lease: lease.put_protobuf(holderIdentity="mallory"),)),
    Attack("renew in the holder's name", (_merge(renewTime=FIELDS["renewTime"]),)),
    Attack("release for the holder", (_merge(holderIdentity=""),)),
    Attack("shorten", (_merge(leaseDurationSeconds=1),)),
    Attack("empty the spec", (lambda lease: lease.patch({"spec": None}),)),
    Attack("set preferredHolder", (_merge(strategy="OldestEmulationVersion", preferredHolder="m"),)),
    Attack("a duration of 68 years", (_merge(leaseDurationSeconds=2147483647),)),
    Attack("delete", (OneLease.delete,)),
    Attack("delete all with a label", (_delete_labeled,)),
    Attack("an owner that does not exist", (_merge({"ownerReferences": [OWNER]}),)),
    *_list_metadata_attacks(),
    *(
        Attack(
            f"{number} entries with the time of a known one",
            (
                _put(
                    None, *(make_entry(f"m{at}", make_label_paths(at), PAST, operation="Apply") for at in range(number))
                ),
            ),
            refused=False,
        )
        for number in (1_200, 8_000)
    ),
    Attack(
        "a known entry of the future, then another field",
        (
            _put(None, make_entry("k", make_label_paths(1), FUTURE, operation="Apply")),
            _put(None, make_entry("zz", ALL, FUTURE), leaseTransitions=7),
        ),
    ),
    Attack("empty the list", (_put(None, {}, only=True),), refused=False),
    Attack(
        "a padding entry of 1.5 MB",
        (
            _put(
                None,
                make_entry("pad", {"f:metadata": {"f:labels": {"f:" + "a" * 1_572_000: {}}}}, PAST, operation="Apply"),
            ),
        ),
        refused=False,
    ),
    Attack("forge the stamps", (_merge({"annotations": forge_stamps(PAST)}),), refused=False),
    Attack("forge them in words", (_merge({"annotations": forge_stamps("soon")}),), refused=False),
    Attack("forge them with the largest values", (_merge({"annotations": forge_stamps("x" * 80_000)}),), refused=False),
    Attack("remove the stamps", (_merge({"annotations": dict.fromkeys(KEYS)}),), refused=False),
    Attack("remove all annotations", (_merge({"annotations": None}),), refused=False),
    Attack(
        "apply the stamps, then another owner of them",
        (
            lambda lease: lease.patch(
                {
                    "apiVersion": API,
                    "kind": "Lease",
                    "metadata": {"name": lease.name, "annotations": forge_stamps(PAST)},
                },
                APPLY,
                "evil",
                force=True,
            ),
            lambda lease: lease.patch(
                {"apiVersion": API, "kind": "Lease", "metadata": {"name": lease.name}}, APPLY, "evil", force=True
            ),
        ),
        refused=False,
    ),
    Attack(
        "forge the stamps and take",
        (_put({"annotations": forge_stamps(PAST)}, holderIdentity="mallory", renewTime=FIELDS["renewTime"]),),
    ),
    Attack(
        "forge the constant entry and take",
        (
            _put(
                {"annotations": forge_stamps("- x", FUTURE, "1")},
                make_entry("lease-webhook-stamp", make_label_paths(1), "2000-01-01T00:00:00Z"),
                only=True,
                holderIdentity="m",
            ),
        ),
    ),
    Attack("fill the annotations", (_merge({"annotations": {"f": "x" * 262_000}}),)),
    Attack(
        "fill them to the bound with four-byte characters",
        (_merge({"annotations": {"f": "\U0001f40c" * 16_100}}),),
        refused=False,
    ),
    Attack("120 annotations", (_merge({"annotations": {f"a{at}": "" for at in range(120)}}),)),
    Attack("2,000 finalizers", (_merge({"finalizers": [f"a.b/c{at}" for at in range(2000)]}),)),
    Attack("20,000 labels", (_merge({"labels": {f"a{at}": "b" for at in range(20_000)}}),)),
    Attack("a generateName of 1 MB", (_merge({"generateName": "x" * 1_000_000}),)),
    Attack("a finalizer", (_merge({"finalizers": ["a.b/c"]}),), refused=False),
    Attack(
        "a year that no client reads, by protobuf",
        (lambda lease: lease.put_protobuf(renewTime="9999-12-31T23:59:59.999999-01:00"),),
    ),
    Attack("a year that no client reads", (_merge(renewTime="9999-12-31T23:59:59.999999-01:00"),)),
    Attack(
        "10,000 levels by protobuf",
        (lambda lease: lease.put_protobuf(fields=(b'{"f:a":' * 9_999 + b"{}" + b"}" * 9_999)),),
        refused=False,
    ),
    Attack("a label", (_merge({"labels": {"a": "b"}}),), refused=False),
)


class Takeover(Struct, frozen=True):
    """Writes by a stranger to a lease without a holder, and those that follow the claim of an honest holder."""

    name: str
    before: tuple[Write, ...]
    after: tuple[Write, ...]
    again: bool = False
    """True if the honest holder created the lease, held it and released it, before all this."""
    wait: float = 0
    """Seconds before the claim, so that what a stranger holds has expired."""


def _create(metadata: dict[str, Any] | None = None, **spec: Any) -> Write:
    empty = dict.fromkeys(
        ("holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime", "leaseTransitions"), ...
    )
    return lambda lease: lease.create(metadata, manager="planter", **(empty | spec))


def _name_many(count: int, first: int = 0) -> dict[str, str]:
    return {f"a{at}": "" for at in range(first, count)}


_BRIEF: Final[dict[str, Any]] = {
    "holderIdentity": "a",
    "leaseDurationSeconds": 1,
    "renewTime": "2026-01-01T00:00:00.000000Z",
}
"""Writes of a stranger in the name of the next holder."""
_FINALIZERS: Final = [f"a.b/c{at}" for at in range(201)]
_FULL: Final[Mapping[str, tuple[Write, ...]]] = {
    "1,001 labels": (_merge({"labels": _name_many(1_001)}),),
    "1,001 labels beside a renewal": (_put({"labels": _name_many(1_001)}),),
    "1,000 labels, then another": (_merge({"labels": _name_many(1_000)}), _merge({"labels": {"z": ""}})),
    "labels by the hundred": tuple(_merge({"labels": _name_many(at + 100, at)}) for at in range(0, 1_100, 100)),
    "1,001 labels by apply": (lambda lease: lease.apply({"labels": _name_many(1_001)}, **_BRIEF),),
    "201 annotations": (_merge({"annotations": _name_many(201)}),),
    "200 annotations, then another": (_merge({"annotations": _name_many(200)}), _merge({"annotations": {"z": ""}})),
    "49,153 characters": (_merge({"annotations": {"f": "x" * 49_152}}),),
    "201 finalizers": (_merge({"finalizers": _FINALIZERS}),),
    "200 finalizers, then another": (
        _merge({"finalizers": _FINALIZERS[:200]}),
        _merge({"finalizers": _FINALIZERS}),
    ),
    "101 owners": (_merge({"ownerReferences": [OWNER | {"uid": f"{at}"} for at in range(101)]}),),
    "an owner of 65,537 characters": (_merge({"ownerReferences": [OWNER | {"name": "x" * 65_537}]}),),
    "an owner of 65,537 characters with another holder": (
        _merge({"ownerReferences": [OWNER]}),
        _put({"ownerReferences": [OWNER, OWNER | {"name": "x" * 65_537, "uid": "2"}]}, holderIdentity="b"),
        _put(holderIdentity="a"),
    ),
    "a generateName of 32,769 characters": (_merge({"generateName": "x" * 32_769}),),
}
"""Writes by the stamped writer after which there would be no room for stamps."""

_HELD: Final[dict[str, Any]] = {
    "holderIdentity": "m",
    "leaseDurationSeconds": 600,
    "renewTime": "2026-01-01T00:00:00.000000Z",
}

BEFORE: Final = (
    Takeover("created with a name only", (_create(),), (take,)),
    Takeover(
        "created with a name only, filled to the bound", (_create({"annotations": {"f": "x" * 16_383}}),), (take,)
    ),
    Takeover(
        "created with forged stamps", (_create({"annotations": forge_stamps("- mallory", FUTURE, "1")}),), (take,)
    ),
    *(
        Takeover(f"created with {name}", (_create({"managedFields": entries}),), (take,))
        for name, entries in _LISTS.items()
    ),
    Takeover(
        "created with an owner, which is removed",
        (_create({"ownerReferences": [OWNER]}),),
        (_merge({"ownerReferences": []}),),
    ),
    Takeover(
        "held, owned and released",
        (_create(**_HELD), _merge({"ownerReferences": [OWNER]}), _merge(holderIdentity="")),
        (take,),
    ),
    Takeover("owned after its release", (_merge({"ownerReferences": [OWNER]}),), (take,), again=True),
    *(
        Takeover(
            f"{name} and an owner", (_create(**_BRIEF), *full, _merge({"ownerReferences": [OWNER]})), (take,), wait=1.5
        )
        for name, full in _FULL.items()
    ),
    Takeover(
        "1,001 labels and an owner, then none",
        (
            _create(**_BRIEF),
            _put({"labels": _name_many(1_001), "ownerReferences": [OWNER]}),
            _merge({"labels": None}),
        ),
        (take,),
        wait=1.5,
    ),
    Takeover(
        "1,001 labels and an empty list",
        (_create(**_BRIEF), _put({"labels": _name_many(1_001)}, {}, only=True)),
        (take,),
        wait=1.5,
    ),
    Takeover(
        "201 finalizers, deleted and released",
        (_create(**_BRIEF), _merge({"finalizers": _FINALIZERS}), OneLease.delete, _put(holderIdentity="")),
        (_merge({"finalizers": None}), take),
    ),
    Takeover(
        "200 finalizers, deleted and released",
        (_create(**_BRIEF), _merge({"finalizers": _FINALIZERS[:200]}), OneLease.delete, _put(holderIdentity="")),
        (_merge({"finalizers": None}), take),
    ),
    Takeover(
        "deleted with a finalizer, which is removed",
        (_create({"finalizers": ["a.b/c"]}), OneLease.delete),
        (_merge({"finalizers": []}), _merge({"finalizers": None})),
    ),
)


def draw_lists(seed: int, count: int) -> Iterator[tuple[list[dict[str, Any]], str]]:
    """Yield lists that a stranger may send with a label, and the name of the manager that sends them."""
    chance = random.Random(seed)
    managers = [
        "client",
        "ancient-changes",
        "lease-webhook-stamp",
        "before-first-apply",
        *(f"m{at}" for at in range(14)),
    ]
    times = [FUTURE, PAST, "1970-01-01T00:00:00Z", "0001-01-01T00:00:00Z"]
    owned: list[dict[str, Any]] = [
        ALL,
        make_label_paths(1),
        {"f:spec": {"f:renewTime": {"f:x": {}}}},
        {"f:spec": {".": {}}},
    ]
    for _ in range(count):
        entries = [
            make_entry(
                chance.choice(managers),
                chance.choice(owned),
                chance.choice(times),
                operation=chance.choice(["Update", "Apply"]),
            )
            for _ in range(chance.choice([1, 2, 9, 10, 11, 12, 30]))
        ]
        yield chance.choice([entries, [], [{}]]), chance.choice(managers[:4])
