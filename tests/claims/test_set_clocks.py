"""The clock of an API server is set: its times leap, and no holder was late, nor is the clock of any wrong."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import SECOND, Elector, FakeServer, together
from tests.history.observing import View, follow_both, follow_log, follow_watch
from webhook.analysis.claims.account import Account
from webhook.cli.main import main
from webhook.kubernetes.times import format_time

HOUR = 3600
CLOCKS = (
    "Clocks: at 11:07:40Z the times of the API server moved ahead 1 h 0 min more than the renewTimes of this holder "
    "and of others: the clock of the API server was set, or all of theirs were at the same moment"
)
VIEWS = pytest.mark.parametrize("view", [follow_log, follow_watch, follow_both])


def leap(electors: list[Elector], seconds: float = HOUR) -> None:
    """Set the clock of the API server ahead of those of some holders."""
    electors[0].server.now += int(seconds * SECOND)
    for one in electors:
        one.ahead -= seconds


def run(
    deed: Callable[[list[Elector]], None], *, leases: tuple[str, ...] = ("db", "mail", "cart", "pay")
) -> FakeServer:
    """Some leases that are renewed for a minute before a deed and for another one after it."""
    server = FakeServer()
    electors = [server.elector(f"{lease}-0", f"shop/{lease}") for lease in leases]
    together(60, *electors)
    deed(electors)
    together(60, *electors)
    return server


def explain(server: FakeServer, view: View) -> Account:
    return account(view(server), server.now)


@VIEWS
def test_no_holder_is_late_and_no_clock_of_a_holder_is_wrong_if_all_show_one_step_at_once(view: View) -> None:
    found = explain(run(leap), view)
    assert CLOCKS in text(found)
    assert {one.check for one in found.findings} <= {"timing-tight"}
    assert text(found).endswith("ADVICE It is held and renewed; a lease does not show whether its holder works.")


def test_audit_blames_no_holder_for_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = run(leap)
    (tmp_path / "audit.log").write_bytes(server.audit_log())
    main(["audit", "--input", str(tmp_path / "audit.log"), "--now", format_time(server.now)])
    said = capsys.readouterr().out
    assert "renewal-late" not in said
    assert "holder-clock" not in said


def test_a_clock_that_is_set_by_less_than_a_deadline_makes_no_holder_late() -> None:
    """A renewal that comes late by 6 s is none: only the clock is said to have been set."""
    said = text(explain(run(lambda electors: leap(electors, 6)), follow_log))
    assert "moved ahead 5 s more than" in said or "moved ahead 6 s more than" in said
    assert "renewal-late" not in said


def _set_clocks_of_two(electors: list[Elector]) -> None:
    """The holder and another one come back after an hour, and write times as if none had passed."""
    leap(electors[:2])


def _set_clock_of_one(electors: list[Elector]) -> None:
    leap(electors[:1])


def _pause(electors: list[Elector]) -> None:
    """All are silent for an hour, and their clocks go on."""
    electors[0].server.wait(HOUR)


@VIEWS
@pytest.mark.parametrize("deed", [_set_clock_of_one, _set_clocks_of_two, _pause])
def test_a_step_that_most_others_do_not_show_excuses_no_late_renewal(
    deed: Callable[[list[Elector]], None], view: View
) -> None:
    found = explain(run(deed), view)
    assert "renewal-late" in {one.check for one in found.findings}
    assert "Clocks" not in text(found)


def test_a_renewal_that_was_held_back_shows_no_step() -> None:
    """It has the time at which its client made it, and the next one is right again."""

    def hold_back(electors: list[Elector]) -> None:
        leap(electors)
        electors[0].server.wait(2)
        for one in electors:
            one.renew()
            one.ahead += HOUR

    found = explain(run(hold_back), follow_log)
    assert "renewal-late" in {one.check for one in found.findings}
    assert "Clocks" not in text(found)


def test_a_holder_that_was_late_and_whose_server_was_set_meanwhile_is_late_by_the_rest() -> None:
    def wait_and_leap(electors: list[Elector]) -> None:
        electors[0].server.wait(30)
        leap(electors)

    found = explain(run(wait_and_leap), follow_log)
    assert "renewal-late" in {one.check for one in found.findings}
    assert CLOCKS in text(found)


@VIEWS
def test_no_clock_of_a_holder_is_wrong_if_that_of_the_api_server_was_set_back(view: View) -> None:
    found = explain(run(lambda electors: leap(electors, -40)), view)
    said = text(found)
    assert any(
        f"the times of the API server fell {length} behind the renewTimes of this holder" in said
        for length in ("39 s", "40 s")
    )
    assert {one.check for one in found.findings} <= {"timing-tight"}


def test_of_a_clock_that_is_wrong_throughout_nothing_says_whose_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = FakeServer()
    together(60, *(server.elector(f"{lease}-0", f"shop/{lease}", ahead=40) for lease in ("db", "mail", "cart")))
    (tmp_path / "watch.json").write_bytes(server.watch())
    main(["audit", "--input", str(tmp_path / "watch.json"), "--now", format_time(server.now)])
    said = " ".join(capsys.readouterr().out.split())
    assert said.count("(NTP); if other holders are off by as much, the API server's") == 3
