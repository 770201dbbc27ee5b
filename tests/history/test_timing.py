"""OpenShift's arithmetic on the numbers that it publishes, and on those of client-go."""

import pytest

from webhook.analysis.history.renewals import Timing, estimate_timing


def test_openshifts_numbers() -> None:
    timing = Timing(137, 26, 107, is_seen=True)
    assert timing.survives == 78


def test_the_defaults_of_client_go_survive_eight_seconds() -> None:
    timing = estimate_timing(15, None)
    assert timing.survives == 8
    assert (timing.is_seen, timing.deadline, timing.missed_renewals) == (False, 10, 6)


def test_what_audit_proposes_survives_what_it_is_for() -> None:
    assert Timing(73, 10, 43, is_seen=True).survives >= 30


@pytest.mark.parametrize(
    ("interval", "retry"), [(2.01, 2.0), (1.9, 2.0), (10.02, 10.0), (0.3, 0.3), (2.3, 2.3), (0, 0.05)]
)
def test_the_retry_period_is_the_interval_without_the_time_of_a_request(interval: float, retry: float) -> None:
    assert estimate_timing(15, interval).retry == retry


def test_a_lease_that_is_renewed_more_rarely_than_it_lasts() -> None:
    timing = estimate_timing(4, 30)
    assert (timing.retry, timing.survives, timing.missed_renewals) == (4, 0, 0)
