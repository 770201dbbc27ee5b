"""What timelines, tables and metrics show of histories with known truth is true."""

from pathlib import Path
from typing import Final

import pytest

from tests.truth.evaluation import SHOWING, evaluate
from tests.truth.inputs import Kind, input_of
from tests.truth.plans import from_json
from tests.truth.play import play

STORED: Final = sorted((Path(__file__).parents[1] / "data" / "histories").glob("*.json"))


@pytest.mark.parametrize("path", STORED, ids=[path.stem.replace("-", " ") for path in STORED])
def test_what_is_shown_of_a_stored_history_is_true(path: Path) -> None:
    history = play(from_json(path.read_bytes()))
    inputs = [given for kind in Kind if (given := input_of(history, kind))]
    found = [one for given in inputs for one in evaluate(history, given, SHOWING)]
    assert [one.claim for one in found if one.is_true is not True] == []
    assert len(found) > 300
