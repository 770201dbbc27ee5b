"""For how long a lease lasts, by who wrote its duration."""

import pytest

from webhook.analysis.history.holders.duration import HeldDuration

OTHER = {"is_own": False, "may_be_own": False}


@pytest.mark.parametrize(
    ("written", "lasts"),
    [
        ((3600,), 3600),
        ((5,), 15),
        ((3600, 15), 15),
        ((3600, 5), 15),
        ((3600, 60), 60),
        ((60, 3600, 30), 30),
    ],
    ids=[
        "longer",
        "shorter than its holder counts",
        "longer and put back",
        "longer and then shorter than its holder counts",
        "longer and then less so",
        "twice longer and then less so",
    ],
)
def test_a_lease_lasts_as_another_one_wrote_and_as_its_holder_counts(written: tuple[int, ...], lasts: int) -> None:
    held = HeldDuration(15)
    for seconds in written:
        held = held.follow(seconds, 1, **OTHER)
    assert held.seconds == lasts


def test_a_duration_that_its_holder_wrote_counts_after_another_one_put_it_back() -> None:
    held = HeldDuration(15).follow(3600, 1, **OTHER).follow(60, 2, is_own=True, may_be_own=True)
    assert held.follow(15, 3, **OTHER).seconds == 60


def test_a_renewal_that_keeps_a_duration_makes_it_that_of_the_holder() -> None:
    held = HeldDuration(15).follow(3600, 1, **OTHER).confirm()
    assert held.follow(15, 2, **OTHER).seconds == 3600
