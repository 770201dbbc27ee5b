"""The first signal that ends programs raises KeyboardInterrupt, and those after it do nothing."""

import signal
from collections.abc import Iterator

import pytest

from webhook.cli.ending import ignore_signals, raise_at_first_signal

ENDING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Put back what pytest does with signals."""
    before = {number: signal.getsignal(number) for number in ENDING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("first", ENDING, ids=lambda one: one.name)
def test_the_first_signal_interrupts_and_later_ones_do_not(first: signal.Signals) -> None:
    raise_at_first_signal()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(first)
    for later in ENDING:
        signal.raise_signal(later)


def test_a_program_that_is_ending_is_not_interrupted() -> None:
    raise_at_first_signal()
    ignore_signals()
    for number in ENDING:
        signal.raise_signal(number)
