"""Expiry, asked directly: which stamp counts, and to which second."""

import pytest
from msgspec import Raw

from tests.factories import make_entry, to_bytes
from webhook.api import micro_time
from webhook.api.managed_fields import Entry, entries_of
from webhook.rules.evidence import Expiry, expiry_of, tolerance_of
from webhook.rules.instants import DAY, SECOND

NOW = 1_763_640_000_000_000


@pytest.mark.parametrize(
    ("duration", "tolerance"),
    [
        pytest.param(None, 2_000_000, id="no duration"),
        pytest.param(0, 2_000_000, id="no length"),
        pytest.param(-1, 2_000_000, id="negative"),
        pytest.param(1, 200_000, id="a released lease"),
        pytest.param(3, 600_000, id="three seconds"),
        pytest.param(9, 1_800_000, id="nine seconds"),
        pytest.param(10, 2_000_000, id="ten seconds"),
        pytest.param(3600, 2_000_000, id="an hour"),
    ],
)
def test_tolerance(duration: int | None, tolerance: int) -> None:
    assert tolerance_of(duration) == tolerance


def stamped(at: int, *fields: str) -> Entry:
    entry = make_entry(*(fields or ("renewTime",)), time=micro_time.canonical_seconds(at))
    return entries_of(Raw(to_bytes([entry])))[0]


def judged(
    *entries: Entry,
    written_at: int | None = NOW,
    renew_time: int = NOW,
    duration: int | None = 15,
    now: int = NOW,
    held: bool = True,
) -> Expiry:
    return expiry_of(
        held=held,
        duration_seconds=duration,
        renew_time=renew_time,
        entries=entries,
        written_at=written_at,
        now=now,
    )


@pytest.mark.parametrize(
    ("ahead", "used"),
    [
        pytest.param(2 * SECOND, True, id="within the tolerance"),
        pytest.param(3 * SECOND, False, id="beyond it, which is never honest"),
    ],
)
def test_a_stamp_later_than_this_write(ahead: int, used: bool) -> None:
    expiry = judged(stamped(NOW + ahead))
    assert expiry.from_stamps is used
    assert expiry.seen_at == (NOW + ahead if used else NOW)


def test_nothing_is_later_than_a_write_without_a_stamp() -> None:
    assert judged(stamped(NOW + 60 * SECOND), written_at=None).seen_at == NOW + 60 * SECOND


def test_the_owner_of_renew_time_counts_before_owners_of_spec() -> None:
    later = stamped(NOW - SECOND, "leaseTransitions")
    assert judged(stamped(NOW - 9 * SECOND), later).seen_at == NOW - 9 * SECOND
    assert judged(later).seen_at == NOW - SECOND


@pytest.mark.parametrize(
    ("late", "used"),
    [
        pytest.param(DAY + 15 * SECOND, True, id="a day and the duration after renewTime"),
        pytest.param(DAY + 16 * SECOND, False, id="a second more"),
    ],
)
def test_a_stamp_long_after_renew_time(late: int, used: bool) -> None:
    assert judged(stamped(NOW), renew_time=NOW - late).from_stamps is used


def test_an_unheld_lease_rests_on_nothing() -> None:
    assert judged(held=False, written_at=NOW + SECOND) == Expiry(
        expired=True, seen_at=None, written_at=NOW + SECOND, duration_seconds=15, from_stamps=True
    )


def test_a_time_before_the_readable_years_has_expired() -> None:
    ages_ago = micro_time.FIRST_READABLE - SECOND
    forever = 2**31 - 1
    readable = judged(renew_time=micro_time.FIRST_READABLE, now=micro_time.FIRST_READABLE + SECOND, written_at=None)
    assert not readable.expired
    assert judged(renew_time=ages_ago, now=ages_ago + SECOND, written_at=None, duration=forever).expired


def test_a_lease_without_a_duration_has_expired() -> None:
    assert judged(stamped(NOW), duration=None).expired
