"""What is counted of histories: claims by outcome, and how much is said of each loss of a holder."""

import pytest
from msgspec.structs import replace

from tests.truth.completeness import HOW, LOSSES, TAKER, count_losses
from tests.truth.evaluation import COMMANDS, CRASH, evaluate
from tests.truth.inputs import Kind, input_of
from tests.truth.page import page
from tests.truth.plans import ElectorPlan, Fault, FaultKind, Plan
from tests.truth.play import play
from tests.truth.shrink import shrink
from tests.truth.tally import tally_of
from webhook.analysis.history.follow import ClusterHistory

KILLED = Plan(
    seed=1,
    length=90_000,
    electors=(
        ElectorPlan(pod="a", identity="a"),
        ElectorPlan(pod="b", identity="b", begins=500),
        ElectorPlan(pod="dns", identity="dns", lease="infra/dns"),
    ),
    faults=(Fault(kind=FaultKind.KILL, at=40_000, target="a"),),
)


def test_a_killed_holder_counts_with_its_taker_and_how_it_took_the_lease() -> None:
    history = play(KILLED)
    given = input_of(history, Kind.LOG)
    assert given is not None
    evaluations = count_losses(history, given, evaluate(history, given, ("why",)))
    assert (evaluations[LOSSES], evaluations[TAKER], evaluations[HOW]) == (1, 1, 1)


def test_what_no_command_reports_does_not_count_as_reported() -> None:
    history = play(KILLED)
    given = input_of(history, Kind.LOG)
    assert given is not None
    losses = count_losses(history, given, ())
    assert (losses[LOSSES], losses[TAKER], losses[HOW]) == (1, 0, 0)


def test_an_input_on_which_reading_fails_is_a_crash_of_every_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RecursionError

    history = play(KILLED)
    given = input_of(history, Kind.LOG)
    assert given is not None
    monkeypatch.setattr(ClusterHistory, "add", fail)
    evaluations = list(evaluate(history, given))
    assert [(one.command, one.id, one.is_true) for one in evaluations] == [
        (command, CRASH, False) for command in COMMANDS
    ]


@pytest.mark.parametrize("kind", [Kind.LOG_WITH_POLICY, Kind.LIST])
def test_commands_that_share_what_was_read_say_the_same_as_each_by_itself(kind: Kind) -> None:
    history = play(replace(KILLED, is_stamped=True))
    given = input_of(history, kind)
    assert given is not None

    def evaluate_commands(*commands: str) -> list[tuple[str, str, bool | None]]:
        # What audit says has the path of the file, which is in another folder each time.
        found = evaluate(history, given, commands, without=("source",))
        return [(one.command, str(one.claim), one.is_true) for one in found]

    alone = [one for command in COMMANDS for one in evaluate_commands(command)]
    assert len(alone) > len(COMMANDS)
    assert evaluate_commands(*COMMANDS) == alone


def test_a_plan_is_shrunk_to_what_is_needed() -> None:
    def has_loss(plan: Plan) -> bool:
        return "b" in {one.after.lease.spec.holder for one in play(plan).stores if one.after and one.after.lease}

    follower = replace(KILLED.electors[1], skew=3)
    larger = replace(KILLED, electors=(KILLED.electors[0], follower, KILLED.electors[2]), offsets=(5, 7))
    small = shrink(larger, has_loss)
    assert [one.pod for one in small.electors] == ["b", "dns"]
    assert (small.faults, small.offsets) == ((), (0,))
    assert small.length < KILLED.length


def test_the_page_has_a_row_for_each_input_and_each_claim() -> None:
    tally = tally_of(range(2), [Kind.WATCH, Kind.LIST], ("why",))
    text = page(tally, 0, 2)
    assert f"| watch | 2 | {tally.count_input('watch').total()} |" in text
    assert f"| `holder` | {tally.count_claim('holder')['true']} |" in text
    assert tally.count("true") > 20
