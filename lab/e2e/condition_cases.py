"""Writes that the shipped match condition must drop, and writes that it must let through to the webhook."""

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from lab.e2e.api_client import JSON_PATCH, STRATEGIC, Reply
from lab.e2e.one_lease import FIRST, FUTURE, NEXT, OWNER, PAST, Entries, OneLease, make_entry

Step = Callable[[OneLease], object]
Write = Callable[[OneLease], Reply]

WRITTEN: Final = "lease-webhook/written-1a2b3c4d"
THOUSANDS: Final = {f"n{number}": "" for number in range(20_000)}
NODE: Final = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "22222222-2222-2222-2222-222222222222"}
KEPT: Final = {"labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["e.f/g"], "ownerReferences": [OWNER]}
SPEC: Final[dict[str, Any]] = {"f:spec": {f"f:{name}": {} for name in ("holderIdentity", "renewTime")}}
LABEL: Final[dict[str, Any]] = {"f:metadata": {"f:labels": {"f:z": {}}}}


class Case(Struct, frozen=True):
    """One write after `setup`, and whether the webhook must see it."""

    name: str
    write: Write
    setup: Step = OneLease.create
    comparable: bool = True
    """Whether the objects before and after can be read, so that a CEL library is asked too."""


def _create(metadata: dict[str, Any] | None = None, **spec: Any) -> Step:
    return lambda lease: lease.create(metadata, **spec).expect(201)


def _create_then(*steps: Callable[[OneLease], Reply]) -> Step:
    """Create a lease and bring it further; each step must succeed."""

    def setup(lease: OneLease) -> None:
        lease.create().expect(201)
        for step in steps:
            step(lease).expect(200)

    return setup


def _plant(*entries: dict[str, Any]) -> Callable[[OneLease], Reply]:
    """Add entries by a write that is reviewed."""
    return lambda lease: lease.put(
        {"annotations": {"seen": "1"}}, entries=lambda old: [*old, *entries], manager="planter", renewTime=FIRST
    )


def _add_entries(*entries: dict[str, Any], **how: Any) -> Write:
    """Return a renewal that brings entries."""
    return lambda lease: lease.put(entries=lambda old: [*old, *entries], **how)


def _change_own_entry(**changes: Any) -> Write:
    """Return a renewal that changes the writer's own entry."""
    return lambda lease: lease.put(entries=lambda old: [entry | changes for entry in old])


def _change_other_entry(**changes: Any) -> Write:
    """Return a renewal that changes the entry of somebody else."""
    return lambda lease: lease.put(
        entries=lambda old: [entry if entry["manager"] == "client" else entry | changes for entry in old]
    )


def _renew_in_protobuf(**spec: Any) -> Write:
    """Return a renewal in protobuf, which can write times that JSON cannot."""
    return lambda lease: lease.put_protobuf(**spec)


def _nest_below(name: str) -> dict[str, Any]:
    return {"f:spec": {f"f:{name}": {"f:x": {}}}}


def _add_label(lease: OneLease) -> Reply:
    return lease.label("a", "b")


def _empty_entries(lease: OneLease) -> Reply:
    return lease.patch({"metadata": {"managedFields": [{}]}})


def _renew(**spec: Any) -> Write:
    return lambda lease: lease.put(**spec)


def _renew_with_metadata(**metadata: Any) -> Write:
    return lambda lease: lease.put(metadata)


def _rename_managers(old: Entries) -> Entries:
    return [entry | {"manager": "mallory"} for entry in old]


MANY: Final = [make_entry(f"m{at:02}", {"f:metadata": {"f:labels": {f"f:x{at}": {}}}}, FUTURE) for at in range(12)]
OLD: Final = [one | {"time": f"2020-01-01T00:00:{at:02}Z"} for at, one in enumerate(MANY)]
APPLIERS: Final = [MANY[0] | {"operation": "Apply", "manager": f"a{at}"} for at in range(50)]
"""Apply entries are not folded into one."""

DROPPED: Final = (
    Case("PUT", OneLease.put),
    Case("PUT without managedFields", _renew_with_metadata(managedFields=...)),
    Case("PUT in protobuf", OneLease.put_protobuf),
    Case("merge patch", OneLease.renew_by_patch),
    Case(
        "the time of a stamp",
        _renew_with_metadata(annotations={WRITTEN: FUTURE}),
        _create({"annotations": {WRITTEN: PAST}}),
    ),
    Case("20,000 annotations that stay", OneLease.renew_by_patch, _create({"annotations": THOUSANDS})),
    Case("strategic patch", lambda lease: lease.patch({"spec": {"renewTime": NEXT}}, STRATEGIC)),
    Case(
        "JSON patch",
        lambda lease: lease.patch([{"op": "replace", "path": "/spec/renewTime", "value": NEXT}], JSON_PATCH),
    ),
    Case("server-side apply", OneLease.apply, lambda lease: lease.apply(renewTime=FIRST).expect()),
    Case("dry run", lambda lease: lease.put(dry=True), comparable=False),
    Case("23 hours ahead", _renew(renewTime="2026-01-01T23:00:00.000000Z")),
    Case("5 hours back", _renew(renewTime="2025-12-31T19:00:00.000000Z")),
    Case(
        "a node's heartbeat", OneLease.put, _create({"ownerReferences": [NODE]}, acquireTime=..., leaseTransitions=...)
    ),
    Case("null for absent", _renew(leaseTransitions=None), _create(leaseTransitions=...)),
    Case("metadata kept", OneLease.put, _create(KEPT)),
    Case("coordinated election, kept", OneLease.put, _create(strategy="OldestEmulationVersion", preferredHolder="b")),
    Case("labeled before", OneLease.put, _create_then(_add_label)),
    Case("twelve managers stored", OneLease.put, _create_then(_plant(*OLD))),
    Case("managedFields emptied before", OneLease.put, _create_then(_empty_entries)),
    Case(
        "an owner below a scalar stored",
        OneLease.put,
        _create_then(_plant(make_entry("z", _nest_below("holderIdentity"), PAST))),
    ),
    Case("while it is deleted", OneLease.put, lambda lease: (lease.create(KEPT), lease.delete())),
    Case("its own entry dated ahead", _change_own_entry(time=FUTURE)),
    Case("entries in another order", lambda lease: lease.put(entries=lambda old: old[::-1]), _create_then(_add_label)),
)

REVIEWED: Final = (
    Case("takeover", _renew(holderIdentity="b")),
    Case("release", _renew(holderIdentity="")),
    Case("duration 15 to 14", _renew(leaseDurationSeconds=14)),
    Case("duration removed", _renew(leaseDurationSeconds=...)),
    Case("transitions from absent to 0", _renew(leaseTransitions=0), _create(leaseTransitions=...)),
    Case("strategy removed", _renew(strategy=...), _create(strategy="OldestEmulationVersion")),
    Case("preferredHolder", _renew(strategy="OldestEmulationVersion", preferredHolder="b")),
    Case("label", _renew_with_metadata(labels={"a": "b"})),
    Case("label by merge patch", lambda lease: lease.renew_by_patch({"labels": {"a": "b"}})),
    Case(
        "label by server-side apply",
        lambda lease: lease.apply({"labels": {"a": "b"}}),
        lambda lease: lease.apply(renewTime=FIRST).expect(),
    ),
    Case("label in protobuf", lambda lease: lease.put_protobuf({"labels": {"a": "b"}})),
    Case("label removed", _renew_with_metadata(labels=...), _create(KEPT)),
    Case("annotation", _renew_with_metadata(annotations={"a": "b"})),
    Case("annotation changed", _renew_with_metadata(annotations={"a": "c"}), _create({"annotations": {"a": "b"}})),
    Case(
        "annotation of another name",
        _renew_with_metadata(annotations={WRITTEN: PAST}),
        _create({"annotations": {"a": "b"}}),
    ),
    Case(
        "longer time of a stamp",
        _renew_with_metadata(annotations={WRITTEN: PAST * 2}),
        _create({"annotations": {WRITTEN: PAST}}),
    ),
    Case(
        "the time of a stamp beside 20,000",
        _renew_with_metadata(annotations=THOUSANDS | {"n": FUTURE, WRITTEN: FUTURE}),
        _create({"annotations": THOUSANDS | {"n": FUTURE, WRITTEN: PAST}}),
    ),
    Case(
        "one of 20,000 annotations",
        _renew_with_metadata(annotations=THOUSANDS | {"n1": "a"}),
        _create({"annotations": THOUSANDS}),
    ),
    Case("owner", _renew_with_metadata(ownerReferences=[OWNER])),
    Case("owner of kind Node", _renew_with_metadata(ownerReferences=[NODE])),
    Case("finalizer", _renew_with_metadata(finalizers=["e.f/g"])),
    Case(
        "the last finalizer of a deletion",
        _renew_with_metadata(finalizers=...),
        lambda lease: (lease.create(KEPT), lease.delete()),
    ),
    Case("label where managedFields are empty", _renew_with_metadata(labels={"a": "b"}), _create_then(_empty_entries)),
    Case("renewTime unchanged", _renew(renewTime=FIRST)),
    Case("renewTime removed", _renew(renewTime=...)),
    Case("renewTime zero", _renew(renewTime="0001-01-01T00:00:00.000000Z")),
    Case("renewTime after zero", OneLease.put, _create(renewTime="0001-01-01T00:00:00.000000Z")),
    Case("renewTime of year 0", _renew(renewTime="0000-01-01T00:00:00.000000Z")),
    Case("renewTime of year 9999", _renew(renewTime="9999-12-31T23:59:59.999999Z")),
    Case("renewTime after year 9999", OneLease.put, _create(renewTime="9999-12-31T23:59:59.999999Z")),
    *(
        Case(f"renewTime of year {year}", _renew_in_protobuf(renewTime=f"{year:05}-01-01T00:00:00Z"))
        for year in (-400, 10_000, 19_700, 20_000, 21_999, 200_000)
    ),
    Case(
        "renewTime after year 20000",
        OneLease.put_protobuf,
        _create_then(_renew_in_protobuf(renewTime="20000-01-01T00:00:00Z")),
    ),
    Case(
        "an entry of year 20000",
        lambda lease: lease.put_protobuf(more=[make_entry("z", LABEL, "20000-01-01T00:00:00Z", operation="Apply")]),
    ),
    Case("25 hours ahead", _renew(renewTime="2026-01-02T01:00:00.000000Z")),
    Case("managedFields emptied", lambda lease: lease.put(entries=lambda _: [{}])),
    Case("twelve entries of the future", _add_entries(*MANY)),
    Case("one entry of zero time", _add_entries(make_entry("z", LABEL, "0001-01-01T00:00:00Z"))),
    Case("a forged ancient-changes", _add_entries(make_entry("ancient-changes", SPEC, FUTURE), manager="mallory")),
    Case("as manager ancient-changes", lambda lease: lease.put(manager="ancient-changes")),
    Case("an owner below holderIdentity", _add_entries(make_entry("z", _nest_below("holderIdentity"), PAST))),
    Case("an owner below renewTime", _add_entries(make_entry("z", _nest_below("renewTime"), FUTURE))),
    Case("its own entry owns more", _change_own_entry(fieldsV1=SPEC | LABEL)),
    Case("its own entry renamed", lambda lease: lease.put(entries=_rename_managers, manager="mallory")),
    Case("another entry backdated", _change_other_entry(time=PAST), _create_then(_add_label)),
    Case("another entry renamed", _change_other_entry(manager="z"), _create_then(_add_label)),
    Case(
        "another entry for one below a scalar",
        _change_other_entry(fieldsV1=_nest_below("renewTime")),
        _create_then(_add_label),
    ),
    Case("another entry removed", lambda lease: lease.put(entries=lambda old: old[:1]), _create_then(_add_label)),
    Case("51 entries", OneLease.put, _create_then(_plant(*APPLIERS))),
    Case("the first renewal by another manager", lambda lease: lease.put(manager="kubectl-edit")),
    Case("DELETE", OneLease.delete, comparable=False),
    Case("CREATE", OneLease.create, lambda _: None, comparable=False),
)
