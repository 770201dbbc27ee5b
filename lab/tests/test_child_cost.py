"""The measured cost is that of the command, without the memory of the process that measures."""

import sys

import pytest

from lab.child_cost import measure_cost

ALLOCATE = "held = bytearray(60_000_000)"


def test_the_peak_is_of_the_command_alone() -> None:
    own = bytearray(150_000_000)
    small, large = (measure_cost([sys.executable, "-c", text]).mebibytes for text in ("", ALLOCATE))
    assert 50 < large - small < 100
    assert large < len(own) / 2**20


def test_another_status_is_an_error_with_the_end_of_the_output() -> None:
    with pytest.raises(RuntimeError, match="the reason"):
        measure_cost([sys.executable, "-c", "import sys; print('the reason'); sys.exit(3)"])


def test_an_exception_is_an_error_though_its_status_is_that_of_a_finding() -> None:
    with pytest.raises(RuntimeError, match="the reason"):
        measure_cost([sys.executable, "-c", "raise ValueError('the reason')"])
