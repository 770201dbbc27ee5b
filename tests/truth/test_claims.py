"""What `why` and `audit` claim of random histories is true, and each kind of claim has a meaning."""

import pytest

from tests.truth.evaluation import COMMANDS
from tests.truth.inputs import Kind
from tests.truth.predicates import NOT_PLAYED, PREDICATES, UNCHECKED
from tests.truth.tally import tally_of
from webhook.analysis.claims.registry import KINDS


def test_every_kind_of_claim_has_a_meaning() -> None:
    hint = "say in tests/truth/predicates.py when it is true, or that histories cannot have it"
    assert KINDS.keys() - PREDICATES.keys() - UNCHECKED - NOT_PLAYED == set(), hint


@pytest.mark.parametrize(
    ("seeds", "statements"),
    [
        pytest.param(range(1000, 1003), 300, id="three histories"),
        pytest.param(range(1003, 1008), 700, id="five more", marks=pytest.mark.deep),
    ],
)
def test_no_claim_is_false_and_no_command_fails(seeds: range, statements: int) -> None:
    tally = tally_of(seeds, [*Kind], COMMANDS)
    assert tally.false == {}
    assert tally.count("true") > statements
