"""How long no one led after a holder stopped renewing, as far as that can be known."""

from webhook.api.times import SECOND
from webhook.explanation.findings import without_leader


def test_a_client_that_lived_may_have_led_the_whole_time() -> None:
    assert without_leader(11 * SECOND, 15) == "no one led for up to 11 s"


def test_a_longer_time_says_for_how_much_of_it_most_clients_led() -> None:
    assert without_leader(18 * SECOND, 15).endswith(
        "for up to 18 s (if the old process kept running, most clients led for the first 12 s of it)"
    )


def test_without_a_duration_that_of_client_go_is_assumed() -> None:
    assert without_leader(18 * SECOND, None) == without_leader(18 * SECOND, 15)
