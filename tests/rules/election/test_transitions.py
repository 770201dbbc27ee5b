"""leaseTransitions: jumps, falls, and changes without a new holder."""

import pytest

from tests.factories import Document, drop, put
from tests.rules import wording
from tests.rules.findings import (
    DENY,
    INVALID,
    RIVAL,
    SECOND,
    WARN,
    at,
    created,
    said,
    take,
    update,
)

RENEW = "spec.renewTime"
DURATION = "spec.leaseDurationSeconds"
COUNT = "spec.leaseTransitions"


@pytest.mark.parametrize(
    ("review", "tier"),
    [
        pytest.param(update(put(COUNT, 6), take(RIVAL)), None, id="by one"),
        pytest.param(update(put(COUNT, 7), take(RIVAL)), WARN, id="by two"),
        pytest.param(update(put(COUNT, 999_999_999)), WARN, id="to just below the bait"),
        pytest.param(update(put(COUNT, 1_000_000_000)), DENY, id="to a thousand million"),
        pytest.param(update(put(COUNT, 2_147_483_647)), DENY, id="to the largest number"),
        pytest.param(
            update(put(COUNT, 1_000_000_001), old=[put(COUNT, 1_000_000_000)]), None, id="by one, of a large number"
        ),
        pytest.param(update(put(COUNT, 2), old=[drop(COUNT)]), WARN, id="from absent to two"),
        pytest.param(update(put(COUNT, 1), old=[drop(COUNT)]), None, id="from absent to one"),
        pytest.param(created(put(COUNT, 999_999_999)), None, id="on CREATE"),
        pytest.param(created(put(COUNT, 1_000_000_000)), DENY, id="on CREATE to a thousand million"),
        pytest.param(update(drop(COUNT)), None, id="removed"),
    ],
)
def test_transitions_jump(review: Document, tier: object) -> None:
    assert said("transitions-jump", review) == ({(INVALID, COUNT, tier)} if tier else set())


@pytest.mark.parametrize(
    ("review", "speaks"),
    [
        pytest.param(update(put(COUNT, 4)), True, id="falls"),
        pytest.param(update(drop(COUNT)), True, id="removed"),
        pytest.param(update(drop(COUNT), old=[put(COUNT, 0)]), True, id="zero removed"),
        pytest.param(update(put(COUNT, 5), put(DURATION, 16), put("spec.strategy", "")), False, id="stays"),
        pytest.param(update(put(COUNT, 0), put(RENEW, at(SECOND)), old=[drop(COUNT)]), False, id="absent to zero"),
        pytest.param(update(put(COUNT, 6)), False, id="rises"),
    ],
)
def test_transitions_decrease(review: Document, speaks: bool) -> None:
    assert said("transitions-decrease", review) == ({(INVALID, COUNT, DENY)} if speaks else set())


@pytest.mark.parametrize(
    ("review", "speaks"),
    [
        pytest.param(update(take(RIVAL)), True, id="a new holder without a count"),
        pytest.param(update(take(RIVAL), put(COUNT, 7)), True, id="a new holder with two"),
        pytest.param(update(take(RIVAL), put(COUNT, 6)), False, id="a new holder with one"),
        pytest.param(update(put(COUNT, 6)), True, id="a count without a new holder"),
        pytest.param(update(take(""), put(COUNT, 6)), True, id="a count with a release"),
        pytest.param(update(take(RIVAL), put(COUNT, 6), old=[take("")]), False, id="a claim with one"),
        pytest.param(update(take(RIVAL), old=[take("")]), False, id="a claim without a count"),
        pytest.param(update(put(COUNT, 4)), False, id="a fall without a new holder"),
        pytest.param(update(take(RIVAL), put(COUNT, 1), old=[drop(COUNT)]), False, id="from absent to one"),
    ],
)
def test_transitions_mismatch(review: Document, speaks: bool) -> None:
    assert said("transitions-mismatch", review) == ({(INVALID, COUNT, DENY)} if speaks else set())


WORDING = [
    pytest.param(
        "transitions-jump",
        update(put("spec.leaseTransitions", 2147483647)),
        (
            "spec.leaseTransitions: Invalid value: 2147483647: must not jump to 1000000000 or more: after "
            "2147483647 the counter overflows, and no one else can take the lease; write 6"
        ),
        "leaseTransitions jumped from 5 to 2147483647: after 2147483647 it overflows and no takeover succeeds",
        id="a jump to the end",
    ),
    pytest.param(
        "transitions-jump",
        update(put("spec.leaseTransitions", 7)),
        "spec.leaseTransitions: Invalid value: 7: must not increase by more than 1 from 5; write 6",
        "leaseTransitions jumped from 5 to 7; it increases by 1 with each new holder",
        id="a small jump",
    ),
    pytest.param(
        "transitions-decrease",
        update(put("spec.leaseTransitions", 4)),
        (
            "spec.leaseTransitions: Invalid value: 4: must not be less than the old value 5; keep it, or "
            "write 6 with a new holder"
        ),
        "leaseTransitions decreased from 5 to 4: changes of holder can no longer be counted",
        id="fewer transitions",
    ),
    pytest.param(
        "transitions-decrease",
        update(drop("spec.leaseTransitions")),
        (
            "spec.leaseTransitions: Invalid value: null: must not be less than the old value 5; keep it, or "
            "write 6 with a new holder"
        ),
        "leaseTransitions was removed: changes of holder can no longer be counted",
        id="transitions removed",
    ),
    pytest.param(
        "transitions-mismatch",
        update(wording.EDIT),
        "spec.leaseTransitions: Invalid value: 6: must not increase without a new holder",
        "leaseTransitions increased without a new holder: one change of holder too many is counted",
        id="a transition without a new holder",
    ),
    pytest.param(
        "transitions-mismatch",
        update(wording.STOLEN),
        "spec.leaseTransitions: Invalid value: 5: must increase by 1 with a new holder",
        "leaseTransitions did not increase by 1 with the new holder: a change of holder is not counted",
        id="a new holder without a transition",
    ),
]
