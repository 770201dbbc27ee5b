"""Shortest histories that once misled a command: what commands claim and show of them is true now.

They were found among random histories, and shortened before they were stored. `make test` reads each as two of its
inputs, chosen by its name; `make histories` reads each as all of them.
"""

import zlib
from collections.abc import Sequence
from typing import Final

import pytest

from tests.truth.evaluation import evaluate
from tests.truth.inputs import Input, Kind, input_of
from tests.truth.records import History
from tests.truth.stored import NAMES, play_stored

SAMPLE: Final = NAMES[::8]


def spell(name: str) -> str:
    return name.replace("-", " ")


def make_inputs(history: History) -> list[Input]:
    return [given for kind in Kind if (given := input_of(history, kind))]


def choose(inputs: Sequence[Input], name: str) -> Sequence[Input]:
    """Return two inputs far from each other, the first by a checksum of the name."""
    first = zlib.crc32(name.encode())
    return [inputs[place % len(inputs)] for place in (first, first + len(inputs) // 2)]


def check(history: History, inputs: Sequence[Input], statements: int) -> None:
    """Assert that nothing that commands say of the inputs is false, and that they make more statements than these."""
    evaluations = [(given.kind, one) for given in inputs for one in evaluate(history, given)]
    false = [(kind, one.command, one.claim) for kind, one in evaluations if one.is_true is not True]
    assert false == []
    assert len(evaluations) > statements


@pytest.mark.parametrize("name", SAMPLE, ids=spell)
def test_a_stored_history_misleads_no_command(name: str) -> None:
    history = play_stored(name)
    check(history, choose(make_inputs(history), name), 0)


@pytest.mark.deep
@pytest.mark.parametrize("name", NAMES, ids=spell)
def test_a_stored_history_misleads_no_command_by_any_input(name: str) -> None:
    history = play_stored(name)
    inputs = make_inputs(history)
    assert len(inputs) > 10
    check(history, inputs, 350)
