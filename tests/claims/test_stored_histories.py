"""Shortest histories that once had a command say something false: every claim about them is true now.

`tests/truth` finds and shortens them.
"""

from pathlib import Path

import pytest

from tests.truth.evaluation import CLAIMING, evaluate
from tests.truth.inputs import Kind, input_of
from tests.truth.plans import from_json
from tests.truth.play import play

STORED = sorted((Path(__file__).parents[1] / "data" / "histories").glob("*.json"))


@pytest.mark.parametrize("path", STORED, ids=[path.stem.replace("-", " ") for path in STORED])
def test_nothing_is_false_in_a_history_that_once_misled_a_command(path: Path) -> None:
    history = play(from_json(path.read_bytes()))
    inputs = [given for kind in Kind if (given := input_of(history, kind))]
    found = [one for given in inputs for one in evaluate(history, given, CLAIMING)]
    assert [(one.command, one.claim) for one in found if one.is_true is not True] == []
    assert len(found) > 50
