"""What `has_usual_entries` passes at first sight, the search for tampering passes as well."""

import random
from typing import Any

from tests.factories import make_lease, make_review, put, to_bytes
from tests.rules.known_changes import known_changes
from webhook.admission.rules.change import LeaseChange, make_change
from webhook.admission.rules.election.renewal_stamp import _owns_what_is_not_there
from webhook.admission.rules.tampering import (
    find_tampering_in_create,
    find_tampering_in_update,
    has_usual_entries,
    is_stamped,
)
from webhook.kubernetes.review import decode

NOW = 1_763_640_000_000_000  # 2025-11-20T12:00:00Z
DRAWN = 5_000
FIELDS: tuple[dict[str, Any], ...] = (
    {"f:spec": {"f:renewTime": {}, "f:holderIdentity": {}}},
    {"f:spec": {"f:renewTime": {}}},
    {"f:spec": {"f:renewTime": {"f:below": {}}}},
    {"f:spec": {"f:renewTime": {".": {}, "f:below": {}}}},
    {"f:spec": {"f:holderIdentity": {}}},
    {"f:metadata": {"f:labels": {"f:a": {}}}},
    {},
)


def search(change: LeaseChange) -> str | None:
    """Return what the search finds."""
    find = find_tampering_in_create if change.is_create else find_tampering_in_update
    return find(change) or _owns_what_is_not_there(change)


def draw_entry(numbers: random.Random) -> dict[str, Any]:
    moment = numbers.choice((None, "2025-11-20T11:59:59Z", "2025-11-20T12:00:00Z", "2025-11-20T12:30:00Z"))
    return {
        "manager": numbers.choice(("client", "kubectl", "ancient-changes", "before-first-apply")),
        "operation": numbers.choices(("Update", "Apply"), (4, 1))[0],
        "apiVersion": "coordination.k8s.io/v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": numbers.choices(FIELDS, (6, 4, 1, 1, 2, 2, 1))[0],
        **({} if moment is None else {"time": moment}),
    }


def draw_change(numbers: random.Random) -> LeaseChange:
    """Return a write that may be anything from a plain renewal to an attack."""
    before = [draw_entry(numbers) for _ in range(numbers.choice((0, 1, 1, 2)))]
    after = [entry if numbers.random() < 0.5 else draw_entry(numbers) for entry in before]
    after += [draw_entry(numbers) for _ in range(numbers.choice((0, 0, 1, 2)))]
    renewed = numbers.choice((None, "2025-11-20T11:59:59.000000Z", "2025-11-20T12:00:00.000000Z"))
    old = make_lease(put("metadata.managedFields", before), put("spec.renewTime", "2025-11-20T11:59:59.000000Z"))
    new = make_lease(put("metadata.managedFields", after), put("spec.renewTime", renewed))
    review = make_review(new=new) if numbers.random() < 0.2 else make_review(new=new, old=old)
    change = make_change(decode(to_bytes(review)), NOW)
    assert isinstance(change, LeaseChange)
    return change


def test_entries_that_look_usual_are() -> None:
    numbers = random.Random(1)
    drawn = [draw_change(numbers) for _ in range(DRAWN)]
    usual = [change for change in drawn if has_usual_entries(change)]
    assert len(usual) > DRAWN // 50
    assert {change.is_create for change in usual} == {True, False}
    assert any(len(change.new_entries) > 1 for change in usual)
    assert not [problem for change in usual if (problem := search(change))]


def test_so_are_those_of_the_corpora() -> None:
    leases = [change for change in known_changes() if isinstance(change, LeaseChange) and change.request.new]
    usual = [change for change in leases if has_usual_entries(change)]
    assert len(usual) > 100
    assert not [problem for change in usual if not is_stamped(change) and (problem := search(change))]
