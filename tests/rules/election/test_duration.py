"""leaseDurationSeconds: too long, and shortened."""

import pytest
from msgspec.structs import replace

from tests.factories import Document, drop, put
from tests.rules.findings import (
    DENY,
    FORBIDDEN,
    INVALID,
    SECOND,
    WARN,
    at,
    created,
    findings,
    said,
    take,
    update,
)
from webhook.rules.limits import DEFAULT_LIMITS

RENEW = "spec.renewTime"
DURATION = "spec.leaseDurationSeconds"
COUNT = "spec.leaseTransitions"


@pytest.mark.parametrize(
    ("review", "tier"),
    [
        pytest.param(created(put(DURATION, 86_400)), None, id="a day"),
        pytest.param(created(put(DURATION, 86_401)), WARN, id="more than a day"),
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


def test_an_override_that_denies_from_lower_on_than_another_warns() -> None:
    duration = replace(DEFAULT_LIMITS.duration_too_long, warn_above_seconds=50_000, deny_above_seconds=3_000)
    limits = replace(DEFAULT_LIMITS, duration_too_long=duration)
    (finding,) = findings(update(put(DURATION, 4_000)), limits=limits)["duration-too-long"]
    assert finding.tier is DENY


@pytest.mark.parametrize(
    ("review", "field"),
    [
        pytest.param(update(put(DURATION, 1)), DURATION, id="lowered, renewTime kept"),
        pytest.param(update(drop(RENEW)), RENEW, id="renewTime removed"),
        pytest.param(update(put(RENEW, "0001-01-01T00:00:00.000000Z")), RENEW, id="renewTime zero"),
        pytest.param(update(put(DURATION, 1), put(RENEW, at(SECOND))), None, id="lowered in a renewal"),
        pytest.param(update(put(DURATION, 30)), None, id="raised"),
        pytest.param(update(put(DURATION, 30), old=[drop(DURATION)]), None, id="set if there was none"),
        pytest.param(
            update(put(DURATION, 1), old=[put("spec.holderIdentity", "")]), None, id="of a lease without a holder"
        ),
        pytest.param(update(put(DURATION, 1), take("")), None, id="in a release"),
        pytest.param(update(put(COUNT, 6)), None, id="kept"),
    ],
)
def test_duration_shortened(review: Document, field: str | None) -> None:
    assert said("duration-shortened", review) == ({(FORBIDDEN, field, DENY)} if field else set())


def test_an_elector_that_sets_no_duration_removes_that_of_others() -> None:
    """A denial would end it for good, for what someone else set."""
    review = update(drop(DURATION), put(RENEW, at(SECOND)))
    assert said("duration-shortened", review) == {(FORBIDDEN, DURATION, WARN)}
