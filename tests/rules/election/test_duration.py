"""leaseDurationSeconds: too long, and shortened."""

import pytest

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
from webhook.admission.rules.election.duration import DurationLimits
from webhook.admission.rules.limits import DEFAULT_LIMITS

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
    limits = dict(DEFAULT_LIMITS)
    limits[DurationLimits] = DurationLimits(warn_above_seconds=50_000, deny_above_seconds=3_000)
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


@pytest.mark.parametrize("field", [DURATION, RENEW])
def test_an_elector_of_which_acquire_time_is_the_heartbeat_removes_what_others_set(field: str) -> None:
    """Pekko writes neither `renewTime` nor a duration."""
    heartbeat = put("spec.acquireTime", at(SECOND))
    assert said("duration-shortened", update(drop(field), heartbeat)) == {(FORBIDDEN, field, WARN)}
    assert said("duration-shortened", update(drop(field), drop("spec.acquireTime"))) == {(FORBIDDEN, field, DENY)}
    assert said("duration-shortened", update(put(DURATION, 1), heartbeat)) == {(FORBIDDEN, DURATION, DENY)}


WORDING = [
    pytest.param(
        "duration-too-long",
        created(put("spec.leaseDurationSeconds", 31536001)),
        (
            "spec.leaseDurationSeconds: Invalid value: 31536001: must not be greater than 31536000; a dead "
            "holder would keep the lease for as long"
        ),
        "leaseDurationSeconds is 31536001: a dead holder keeps the lease for 365 d 0 h",
        id="longer than a year",
    ),
    pytest.param(
        "duration-too-long",
        created(put("spec.leaseDurationSeconds", 86401)),
        (
            "spec.leaseDurationSeconds: Invalid value: 86401: must not be greater than 86400; a dead holder "
            "would keep the lease for as long"
        ),
        "leaseDurationSeconds is 86401: a dead holder keeps the lease for 1 d 0 h",
        id="longer than a day",
    ),
    pytest.param(
        "duration-shortened",
        update(drop("spec.leaseDurationSeconds")),
        (
            'spec.leaseDurationSeconds: Forbidden: may not be removed while "checkout-6d5f9c-x2x8p_1f0e" '
            "holds the lease (11 s left); renew or release instead"
        ),
        (
            'leaseDurationSeconds was removed while "checkout-6d5f9c-x2x8p_1f0e" holds the lease: '
            "there may be two leaders"
        ),
        id="duration removed",
    ),
    pytest.param(
        "duration-shortened",
        update(drop("spec.renewTime")),
        (
            'spec.renewTime: Forbidden: may not be removed while "checkout-6d5f9c-x2x8p_1f0e" holds the '
            "lease (11 s left); renew or release instead"
        ),
        ('renewTime was removed while "checkout-6d5f9c-x2x8p_1f0e" holds the lease: there may be two leaders'),
        id="renewTime removed",
    ),
    pytest.param(
        "duration-shortened",
        update(put("spec.leaseDurationSeconds", 1)),
        (
            "spec.leaseDurationSeconds: Forbidden: may not be decreased from 15 to 1 without a new renewTime "
            'while "checkout-6d5f9c-x2x8p_1f0e" holds the lease (11 s left); renew or release instead'
        ),
        (
            'leaseDurationSeconds decreased from 15 to 1 while "checkout-6d5f9c-x2x8p_1f0e" holds the lease: '
            "there may be two leaders"
        ),
        id="duration lowered",
    ),
    pytest.param(
        "duration-shortened",
        update(put("spec.leaseDurationSeconds", 1), old=[put("spec.leaseDurationSeconds", 4)]),
        (
            "spec.leaseDurationSeconds: Forbidden: may not be decreased from 4 to 1 without a new renewTime "
            'while "checkout-6d5f9c-x2x8p_1f0e" holds the lease; renew or release instead'
        ),
        (
            'leaseDurationSeconds decreased from 4 to 1 while "checkout-6d5f9c-x2x8p_1f0e" holds the lease: '
            "there may be two leaders"
        ),
        id="duration of an expired lease lowered",
    ),
]

TEXT_DIFFERS_IN_CEL = {"duration-shortened": r" \(\d+ s left\)"}
WRITES_IT_SPEAKS_OF = {"duration-shortened": [update(drop(DURATION), put(RENEW, at(SECOND)))]}
