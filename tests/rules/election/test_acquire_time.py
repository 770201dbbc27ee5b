"""acquireTime while the holder stays."""

import pytest

from tests.factories import Document, drop, put
from tests.rules import dates_in_cel, wording
from tests.rules.findings import (
    DENY,
    HOUR,
    INVALID,
    RIVAL,
    SECOND,
    at,
    said,
    take,
    update,
)

RENEW = "spec.renewTime"
COUNT = "spec.leaseTransitions"
ACQUIRE = "spec.acquireTime"


EDIT = put(COUNT, 6)


@pytest.mark.parametrize(
    ("review", "speaks"),
    [
        pytest.param(update(EDIT, put(ACQUIRE, at(SECOND)), old=[put(ACQUIRE, at(0))]), False, id="by a second"),
        pytest.param(
            update(EDIT, put(ACQUIRE, at(SECOND + 1)), old=[put(ACQUIRE, at(0))]),
            True,
            id="forward by more than a second",
        ),
        pytest.param(
            update(EDIT, put(ACQUIRE, at(-SECOND - 1)), old=[put(ACQUIRE, at(0))]),
            True,
            id="back by more than a second",
        ),
        pytest.param(update(EDIT, put(ACQUIRE, at(HOUR)), take(RIVAL)), False, id="with a new holder"),
        pytest.param(update(EDIT, drop(ACQUIRE)), False, id="removed"),
        pytest.param(update(EDIT, old=[drop(ACQUIRE)]), False, id="absent"),
        pytest.param(update(EDIT, put(ACQUIRE, at(0)), old=[drop(ACQUIRE)]), False, id="set if there was none"),
        pytest.param(update(put(ACQUIRE, at(HOUR)), put(RENEW, at(SECOND))), False, id="in a renewal, as Pekko does"),
    ],
)
def test_acquire_time_changed(review: Document, speaks: bool) -> None:
    assert said("acquire-time-changed", review) == ({(INVALID, ACQUIRE, DENY)} if speaks else set())


WORDING = [
    pytest.param(
        "acquire-time-changed",
        update(wording.EDIT, put("spec.acquireTime", "2025-11-20T12:00:00.000000Z")),
        (
            'spec.acquireTime: Invalid value: "2025-11-20T12:00:00.000000Z": must stay within 1 s of the old '
            "value while the holder stays"
        ),
        'acquireTime moved by 1 h 0 min while "checkout-6d5f9c-x2x8p_1f0e" stays the holder',
        id="acquireTime moved",
    ),
]


def is_of_fractions(request: Document, _field: str) -> bool:
    """A policy compares whole seconds, and acquireTime may move by one."""
    new, old = (str((one.get("spec") or {}).get("acquireTime"))[:15] for one in dates_in_cel.find_objects(request))
    return new == old or dates_in_cel.has_year_0(request)


WHERE_CEL_DIFFERS = {"acquire-time-changed": is_of_fractions}
