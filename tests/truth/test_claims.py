"""What `why` and `audit` claim of random histories is true, and each kind of claim has a meaning."""

from tests.truth.evaluation import COMMANDS
from tests.truth.inputs import Kind
from tests.truth.predicates import NOT_PLAYED, PREDICATES, UNCHECKED
from tests.truth.tally import tally_of
from webhook.analysis.claims.registry import KINDS

SEEDS = range(1000, 1003)


def test_every_kind_of_claim_has_a_meaning() -> None:
    assert KINDS.keys() - PREDICATES.keys() - UNCHECKED - NOT_PLAYED == set()


def test_no_claim_is_false_and_no_command_fails() -> None:
    tally = tally_of(SEEDS, [*Kind], COMMANDS)
    assert tally.false == {}
    assert tally.count("true") > 300
