"""The laws can be broken: each by one change of a record that keeps all of them."""

from typing import Any

import pytest
from msgspec.structs import replace

from lab.evidence.history import Forgery, History, Step
from lab.evidence.reduction import reduce_history
from tests.evidence.laws import (
    CALLED_TAMPERED,
    FROZEN,
    HONEST_REFUSED,
    NO_VERDICT,
    REPLACED,
    TOO_LONG,
    WEAKENED,
    broken_law,
)
from tests.evidence.records import SECOND, Record, Write
from tests.evidence.reviews import ATTACKER, TAMPERED, WITHOUT_STAMPS, Outcome, elector
from tests.evidence.stored_lease import Entry, Lease

START = 1_767_225_600 * SECOND
DENIED = Outcome(200, allowed=False, denied_by=frozenset({"takeover-before-expiry"}))
ALLOWED = Outcome(200, allowed=True)
WARNED = Outcome(200, allowed=True, warned_by=frozenset({"takeover-before-expiry"}))


FOLDED = (
    Entry("tool", time="2016-01-01T00:00:00Z"),
    Entry("ancient-changes", time="2026-01-01T00:00:00Z", fields='{"f:spec":{"f:renewTime":{}}}'),
)


def make_lease(holder: str, *, entries: tuple[Entry, ...] = (Entry("checkout"),)) -> Lease:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"}
    return Lease({"metadata": {"name": "checkout"}, "spec": spec}, entries)


STEAL = Write(
    honest=False,
    kind="steal",
    manager="mallory",
    mutations=(),
    at=START + 2 * SECOND,
    now=START + 2 * SECOND,
    user=ATTACKER,
    old=make_lease("checkout-0_a"),
    new=make_lease("mallory-0_1"),
    renewed_by_holder=START,
    moved=START,
    clocks_differ=0,
    stamped=True,
    final_try=False,
)
LATE = START + 16 * SECOND
TAKEOVER = replace(
    STEAL, honest=True, kind="takeover", at=LATE, now=LATE, user=elector("checkout-1_b"), new=make_lease("checkout-1_b")
)


def find_law(write: Write, outcome: Outcome, *, sent: bool = True, attacked: bool = True) -> str:
    return broken_law(Record(write, sent, outcome, probe=False), attacked=attacked)


def change_write(write: Write, **changes: Any) -> Write:
    return replace(write, **changes)


@pytest.mark.parametrize(
    ("write", "outcome", "broken"),
    [
        pytest.param(STEAL, DENIED, "", id="a denied steal"),
        pytest.param(STEAL, ALLOWED, REPLACED, id="a silent steal"),
        pytest.param(STEAL, WARNED, REPLACED, id="a steal with a warning"),
        pytest.param(change_write(STEAL, new=None), ALLOWED, REPLACED, id="a delete"),
        pytest.param(change_write(STEAL, new=make_lease("")), ALLOWED, REPLACED, id="a release"),
        pytest.param(change_write(STEAL, at=LATE), ALLOWED, "", id="a takeover by the attacker after the end"),
        pytest.param(change_write(STEAL, stamped=False), WARNED, "", id="no stamps: a warning"),
        pytest.param(change_write(STEAL, stamped=False), ALLOWED, REPLACED, id="no stamps: silent"),
        pytest.param(
            change_write(STEAL, stamped=False, now=LATE), ALLOWED, "", id="no stamps: silent after the end by renewTime"
        ),
        pytest.param(change_write(STEAL, clocks_differ=61 * SECOND), WARNED, "", id="a clock beyond the bound"),
        pytest.param(TAKEOVER, ALLOWED, "", id="an honest takeover"),
        pytest.param(TAKEOVER, DENIED, "", id="an honest takeover refused once, after an attack"),
        pytest.param(change_write(TAKEOVER, final_try=True), DENIED, FROZEN, id="an honest takeover refused forever"),
        pytest.param(
            TAKEOVER, Outcome(200, allowed=True, warned_by=frozenset({WITHOUT_STAMPS})), WEAKENED, id="stamps not seen"
        ),
        pytest.param(
            TAKEOVER,
            Outcome(200, allowed=False, denied_by=frozenset({TAMPERED})),
            CALLED_TAMPERED,
            id="called tampered",
        ),
        pytest.param(
            change_write(TAKEOVER, stamped=False, kind="label", clocks_differ=61 * SECOND),
            Outcome(200, allowed=False, denied_by=frozenset({TAMPERED})),
            "",
            id="first stamps, dated by a clock beyond the bound",
        ),
        pytest.param(
            change_write(TAKEOVER, old=make_lease("checkout-0_a", entries=FOLDED), kind="label"),
            Outcome(200, allowed=False, denied_by=frozenset({TAMPERED})),
            "",
            id="a label folds an entry into that of somebody who renewed as ancient-changes",
        ),
        pytest.param(
            change_write(TAKEOVER, new=make_lease("checkout-0_a", entries=()), kind="label"),
            Outcome(200, allowed=False, denied_by=frozenset({TAMPERED})),
            "",
            id="the last field removed",
        ),
        pytest.param(change_write(TAKEOVER, kind="renewal"), DENIED, HONEST_REFUSED, id="an honest renewal refused"),
        pytest.param(TAKEOVER, Outcome(500, allowed=True, trouble="RecursionError"), NO_VERDICT, id="an exception"),
    ],
)
def test_law(write: Write, outcome: Outcome, broken: str) -> None:
    assert find_law(write, outcome) == broken


def test_unsent_steal_breaks_the_law() -> None:
    assert find_law(STEAL, ALLOWED, sent=False) == REPLACED


def test_honest_takeover_without_an_attack_waits_only_as_long_as_the_clocks_differ() -> None:
    assert find_law(TAKEOVER, DENIED, attacked=False) == TOO_LONG
    assert find_law(change_write(TAKEOVER, clocks_differ=3 * SECOND + 1), DENIED, attacked=False) == ""


def test_history_is_reduced_to_what_breaks_the_law() -> None:
    forgeries = tuple(Forgery(f"forgery {number}", number) for number in range(3))
    steps = tuple(Step(f"step {number}", number, forgeries) for number in range(20))

    def breaks(history: History) -> bool:
        actions = {step.action: step for step in history.steps}
        planted = actions.get("step 7")
        return "step 13" in actions and planted is not None and forgeries[1] in planted.forgeries

    shortest = reduce_history(History(1, steps), breaks).steps
    assert [step.action for step in shortest] == ["step 0", "step 7", "step 13"]
    assert [step.forgeries for step in shortest] == [(), (forgeries[1],), ()]
