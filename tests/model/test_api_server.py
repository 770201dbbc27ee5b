"""The model API server against the real one: it must store the managedFields that kube-apiserver stored."""

from collections.abc import Iterator

import pytest

from tests.model import managed_fields
from tests.model.api_server import Lease, Spec, Write, stored, values
from tests.model.managed_fields import APPLY, SECOND, UPDATE, Entry
from tests.model.recordings import recorded_updates


def test_an_apply_that_repeats_the_renew_time_owns_it_without_a_time() -> None:
    old = lease(renewed=10 * SECOND)
    new = stored(old, Write("gitops", Spec(renewed=10 * SECOND), (), APPLY, frozenset({"renewed"})), 15 * SECOND)
    assert new.entries == (Entry("gitops", APPLY, None, frozenset({"renewed"})), *old.entries)


def test_emptied_entries_stay_empty_until_the_next_apply() -> None:
    old = lease(renewed=10 * SECOND)
    wiped = stored(old, Write("thief", old.spec, (("a", "1"),), entries=()), 15 * SECOND)
    renewed = stored(wiped, Write("keeper", Spec(holder="a", renewed=20 * SECOND), wiped.labels), 20 * SECOND)
    assert wiped.entries == renewed.entries == ()
    cured = stored(renewed, Write("admin", Spec(), (("b", "1"),), APPLY, frozenset({"labels.b"})), 25 * SECOND)
    assert {(entry.manager, entry.time) for entry in cured.entries} == {
        ("admin", 25 * SECOND),
        (managed_fields.BEFORE_FIRST_APPLY, 25 * SECOND),
    }


def test_times_alone_are_kept_and_forged_times_beside_a_label_are_stored() -> None:
    old = lease(renewed=10 * SECOND)
    forged = tuple(Entry(entry.manager, entry.operation, 0, entry.fields) for entry in old.entries)
    assert stored(old, Write("thief", old.spec, entries=forged), 15 * SECOND).entries == old.entries
    new = stored(old, Write("thief", old.spec, (("a", "1"),), entries=forged), 15 * SECOND)
    assert {(entry.manager, entry.time) for entry in new.entries} == {("keeper", 0), ("thief", 15 * SECOND)}


def test_more_than_ten_update_managers_are_merged() -> None:
    old = lease(renewed=10 * SECOND)
    for number in range(11):
        old = stored(old, Write(f"script{number}", old.spec, (*old.labels, (f"x{number}", "1"))), 20 * SECOND)
    assert len(old.entries) == managed_fields.MAX_UPDATE_MANAGERS
    assert sum(1 for entry in old.entries if "renewed" in entry.fields) == 1
    assert next(entry.time for entry in old.entries if "renewed" in entry.fields) == 20 * SECOND


def lease(renewed: int) -> Lease:
    return Lease(
        Spec(holder="a", renewed=renewed), (), (Entry("keeper", UPDATE, renewed, frozenset({"holder", "renewed"})),)
    )


# ---- recordings -----------------------------------------------------------------------------------------------------
RECORDED = list(recorded_updates())


def test_there_are_recordings_of_many_clients() -> None:
    assert len(RECORDED) >= 60
    assert len({name.partition("/")[0] for name, _, _ in RECORDED}) >= 12


@pytest.mark.parametrize(("old", "new"), [pytest.param(old, new, id=name) for name, old, new in RECORDED])
def test_the_model_stores_what_kube_apiserver_stored(old: Lease, new: Lease) -> None:
    """One of the managers must have written it, by update or apply, at the latest entry's time."""
    clock = max((entry.time or 0 for entry in new.entries), default=0)
    outcomes = [stored(old, write, clock) for write in explanations(new)]
    assert [entries(one) for one in outcomes if entries(one) == entries(new)]


def explanations(new: Lease) -> Iterator[Write]:
    yield Write("nobody who set anything", new.spec, new.labels, owners=new.owners)
    if not new.entries:
        yield Write("whoever empties them", new.spec, new.labels, entries=())
    for entry in new.entries:
        fields = entry.fields & values(new.spec, new.labels).keys() - {managed_fields.LABELS}
        if entry.operation == APPLY:
            yield Write(entry.manager, new.spec, new.labels, APPLY, fields)
        else:
            yield Write(entry.manager, new.spec, new.labels, owners=new.owners)


def entries(lease: Lease) -> set[Entry]:
    return set(lease.entries)
