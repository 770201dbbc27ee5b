"""renewTime, duration, transitions and acquireTime of a Lease, and renewTime of a candidate."""

import pytest

from tests.factories import Document, changed, drop, make_candidate, make_lease, make_review, put
from tests.rules.verdicts import (
    DAY,
    DENY,
    FORBIDDEN,
    HOUR,
    INVALID,
    NOW,
    RIVAL,
    SECOND,
    WARN,
    in_namespace,
    said,
    take,
    update,
    written,
)
from webhook.api import micro_time

RENEW, DURATION, COUNT, ACQUIRE = (
    "spec.renewTime",
    "spec.leaseDurationSeconds",
    "spec.leaseTransitions",
    "spec.acquireTime",
)
TOMORROW = "2025-11-21T12:00:00Z"


def at(offset: int) -> str:
    """A MicroTime this many microseconds from NOW."""
    return micro_time.canonical(NOW + offset)


def create(*tweaks: object) -> Document:
    return make_review(new=make_lease(*tweaks))  # type: ignore[arg-type]


def candidate(*tweaks: object, old: tuple[object, ...] = ()) -> Document:
    before = make_candidate(*old)  # type: ignore[arg-type]
    return make_review(old=before, new=changed(before, *tweaks))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("review", "tier"),
    [
        pytest.param(update(put(RENEW, at(DAY))), None, id="a renewal a day ahead"),
        pytest.param(update(put(RENEW, at(DAY + 1))), DENY, id="a renewal more than a day ahead"),
        pytest.param(
            update(put(RENEW, at(61 * SECOND))), None, id="a renewal a minute ahead: only the deny tier speaks"
        ),
        pytest.param(update(put(RENEW, at(60 * SECOND)), take(RIVAL)), None, id="a steal 60 s ahead"),
        pytest.param(update(put(RENEW, at(60 * SECOND + 1)), take(RIVAL)), WARN, id="a steal more than 60 s ahead"),
        pytest.param(update(put(RENEW, at(14 * HOUR)), take(RIVAL)), WARN, id="a takeover east of Greenwich"),
        pytest.param(create(put(RENEW, at(60 * SECOND + 1))), WARN, id="CREATE more than 60 s ahead"),
        pytest.param(create(put(RENEW, at(DAY + 1))), DENY, id="CREATE more than a day ahead"),
        pytest.param(create(put(RENEW, at(-HOUR))), None, id="CREATE in the past"),
        pytest.param(
            update(put(RENEW, at(3 * DAY)), old=[put(RENEW, at(2 * DAY))]), None, id="a day ahead of the old value"
        ),
        pytest.param(
            update(put(RENEW, at(3 * DAY + 1)), old=[put(RENEW, at(2 * DAY))]),
            DENY,
            id="more than a day ahead of the old value",
        ),
        pytest.param(
            update(take(RIVAL), put(RENEW, at(2 * DAY + 61 * SECOND)), old=[put(RENEW, at(2 * DAY))]),
            WARN,
            id="a steal 61 s ahead of an old value in the future",
        ),
        pytest.param(
            update(put(COUNT, 7), old=[put(RENEW, at(9 * DAY))]), None, id="an old value in the future, unchanged"
        ),
        pytest.param(update(put(RENEW, at(HOUR)), old=[put(RENEW, at(9 * DAY))]), None, id="lowered from the future"),
        pytest.param(
            update(put(RENEW, at(61 * SECOND)), put(COUNT, 7), old=[drop(RENEW)]), WARN, id="set where there was none"
        ),
        pytest.param(update(put(RENEW, "10000-01-01T00:00:00.000000Z")), None, id="unreadable: another rule speaks"),
        pytest.param(
            changed(update(put(RENEW, at(DAY + 1))), in_namespace("kube-node-lease", "n1")),
            WARN,
            id="a heartbeat more than a day ahead",
        ),
        pytest.param(
            update(written(put(RENEW, at(2 * DAY)), at=TOMORROW)),
            None,
            id="measured from the stamp where that is later than our clock",
        ),
    ],
)
def test_renew_time_in_future(review: Document, tier: object) -> None:
    assert said("renew-time-in-future", review) == ({(INVALID, RENEW, tier)} if tier else set())


def test_renew_time_is_measured_by_our_clock_where_that_is_later_than_the_stamp() -> None:
    assert said("renew-time-in-future", update(put(RENEW, at(2 * DAY))), now=NOW + DAY) == set()


def test_renew_time_is_measured_by_our_clock_where_there_is_no_stamp() -> None:
    review = create(put(RENEW, at(2 * DAY)), drop("metadata.managedFields"))
    assert said("renew-time-in-future", review) == {(INVALID, RENEW, DENY)}


@pytest.mark.parametrize(
    ("review", "speaks"),
    [
        pytest.param(update(put(RENEW, at(-HOUR))), False, id="an hour back"),
        pytest.param(update(put(RENEW, at(-HOUR - 1))), True, id="more than an hour back, in a renewal"),
        pytest.param(update(put(RENEW, at(-DAY)), take(RIVAL)), False, id="by a new holder with a slower clock"),
        pytest.param(update(drop(RENEW)), False, id="removed"),
        pytest.param(
            update(put(RENEW, at(0)), old=[put(RENEW, "10000-01-01T00:00:00.000000Z")]),
            False,
            id="the repair of year 10000",
        ),
        pytest.param(update(put(RENEW, "-0001-12-31T23:00:00.000000Z")), False, id="unreadable: another rule speaks"),
    ],
)
def test_renew_time_backwards(review: Document, speaks: bool) -> None:
    assert said("renew-time-backwards", review) == ({(INVALID, RENEW, DENY)} if speaks else set())


@pytest.mark.parametrize(
    ("review", "tier"),
    [
        pytest.param(create(put(DURATION, 86_400)), None, id="a day"),
        pytest.param(create(put(DURATION, 86_401)), WARN, id="more than a day"),
        pytest.param(update(put(DURATION, 31_536_000)), WARN, id="a year"),
        pytest.param(update(put(DURATION, 31_536_001)), DENY, id="more than a year"),
        pytest.param(
            update(put(DURATION, 2_147_483_647), put(RENEW, at(2 * SECOND))), DENY, id="68 years, in a renewal"
        ),
        pytest.param(
            update(put(RENEW, at(2 * SECOND)), old=[put(DURATION, 2_147_483_647)]), None, id="what was there, renewed"
        ),
        pytest.param(update(put(DURATION, 15), old=[put(DURATION, 3600)]), None, id="lowered"),
        pytest.param(update(drop(DURATION)), None, id="removed"),
    ],
)
def test_duration_too_long(review: Document, tier: object) -> None:
    assert said("duration-too-long", review) == ({(INVALID, DURATION, tier)} if tier else set())


@pytest.mark.parametrize(
    ("review", "field"),
    [
        pytest.param(update(put(DURATION, 1)), DURATION, id="lowered, renewTime kept"),
        pytest.param(update(drop(DURATION), put(RENEW, at(SECOND))), DURATION, id="removed, renewTime new"),
        pytest.param(update(drop(RENEW)), RENEW, id="renewTime removed"),
        pytest.param(update(put(RENEW, "0001-01-01T00:00:00.000000Z")), RENEW, id="renewTime zero"),
        pytest.param(update(put(DURATION, 1), put(RENEW, at(SECOND))), None, id="lowered in a renewal"),
        pytest.param(update(put(DURATION, 30)), None, id="raised"),
        pytest.param(update(put(DURATION, 30), old=[drop(DURATION)]), None, id="set where there was none"),
        pytest.param(
            update(put(DURATION, 1), old=[put("spec.holderIdentity", "")]), None, id="of a lease that nobody holds"
        ),
        pytest.param(update(put(DURATION, 1), take("")), None, id="in a release"),
        pytest.param(update(put(COUNT, 6)), None, id="kept"),
    ],
)
def test_duration_shortened(review: Document, field: str | None) -> None:
    assert said("duration-shortened", review) == ({(FORBIDDEN, field, DENY)} if field else set())


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
        pytest.param(create(put(COUNT, 999_999_999)), None, id="on CREATE"),
        pytest.param(create(put(COUNT, 1_000_000_000)), DENY, id="on CREATE to a thousand million"),
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
        pytest.param(update(EDIT, put(ACQUIRE, at(0)), old=[drop(ACQUIRE)]), False, id="set where there was none"),
        pytest.param(update(put(ACQUIRE, at(HOUR)), put(RENEW, at(SECOND))), False, id="in a renewal, as Pekko does"),
    ],
)
def test_acquire_time_changed(review: Document, speaks: bool) -> None:
    assert said("acquire-time-changed", review) == ({(INVALID, ACQUIRE, DENY)} if speaks else set())


@pytest.mark.parametrize(
    ("review", "tier"),
    [
        pytest.param(candidate(put(RENEW, at(10 * SECOND))), None, id="10 s ahead"),
        pytest.param(candidate(put(RENEW, at(10 * SECOND + 1))), WARN, id="more than 10 s ahead"),
        pytest.param(candidate(put(RENEW, at(DAY + 1))), DENY, id="more than a day ahead"),
        pytest.param(make_review(new=make_candidate(put(RENEW, at(DAY + 1)))), DENY, id="on CREATE"),
        pytest.param(
            candidate(put(RENEW, at(3 * DAY)), old=(put(RENEW, at(2 * DAY)),)), WARN, id="a day ahead of the old value"
        ),
        pytest.param(
            candidate(put("spec.leaseName", "other"), old=(put(RENEW, at(9 * DAY)),)), None, id="what was there"
        ),
        pytest.param(candidate(put(RENEW, None)), None, id="removed"),
    ],
)
def test_candidate_renew_time_in_future(review: Document, tier: object) -> None:
    assert said("candidate-renew-time-in-future", review) == ({(INVALID, RENEW, tier)} if tier else set())


@pytest.mark.parametrize(
    ("review", "speaks"),
    [
        pytest.param(candidate(put(RENEW, at(-HOUR))), False, id="an hour back"),
        pytest.param(candidate(put(RENEW, at(-HOUR - 1))), True, id="more than an hour back"),
        pytest.param(candidate(put(RENEW, None)), False, id="removed"),
        pytest.param(candidate(put(RENEW, at(0)), old=(drop(RENEW),)), False, id="set where there was none"),
    ],
)
def test_candidate_renew_time_backwards(review: Document, speaks: bool) -> None:
    assert said("candidate-renew-time-backwards", review) == ({(INVALID, RENEW, DENY)} if speaks else set())
