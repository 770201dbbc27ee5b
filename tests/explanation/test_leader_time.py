"""How long no one led after a holder stopped renewing, as far as that can be known."""

from webhook.explanation.leader_time import without_leader
from webhook.rules.times import SECOND


def test_a_client_that_lived_may_have_led_the_whole_time() -> None:
    assert without_leader(11 * SECOND, 15) == "no one led for up to 11 s"


def test_a_longer_time_has_a_least_one_too() -> None:
    assert without_leader(18 * SECOND, 15).startswith("no one led for 6 s to 18 s (most clients lead for up to 12 s")


def test_without_a_duration_that_of_client_go_is_assumed() -> None:
    assert without_leader(18 * SECOND, None) == without_leader(18 * SECOND, 15)
