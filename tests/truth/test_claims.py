"""What `why` and `audit` claim of random histories is true, and each kind of claim has a meaning."""

from pathlib import Path

import pytest

from tests.truth.evaluation import COMMANDS, evaluate
from tests.truth.inputs import Kind, input_of
from tests.truth.plans import from_json
from tests.truth.play import play
from tests.truth.predicates import NOT_PLAYED, PREDICATES, UNCHECKED
from tests.truth.tally import tally_of
from webhook.analysis.claims.registry import KINDS

SEEDS = range(1000, 1008)
STORED = sorted((Path(__file__).parents[1] / "data" / "histories").glob("*.json"))


def test_every_kind_of_claim_has_a_meaning() -> None:
    assert KINDS.keys() - PREDICATES.keys() - UNCHECKED - NOT_PLAYED == set()


def test_no_claim_is_false_and_no_command_fails() -> None:
    tally = tally_of(SEEDS, [*Kind], COMMANDS)
    assert tally.false == {}
    assert tally.count("true") > 1000


@pytest.mark.parametrize("path", STORED, ids=[path.stem.replace("-", " ") for path in STORED])
def test_nothing_is_false_in_a_history_that_once_misled_a_command(path: Path) -> None:
    history = play(from_json(path.read_bytes()))
    inputs = [given for kind in Kind if (given := input_of(history, kind))]
    found = [one for given in inputs for one in evaluate(history, given)]
    assert [(one.command, one.claim) for one in found if one.is_true is not True] == []
    assert len(found) > 50
