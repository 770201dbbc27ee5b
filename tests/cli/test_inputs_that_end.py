"""Files that end before a lease could expire, evaluated later: what was seen until then is all that is said."""

import json
from pathlib import Path

import pytest

from tests.history.fake_server import SECOND, Elector, FakeServer, together
from tests.history.observing import observe_all
from tests.inputs.reading import read
from webhook.analysis.history.follow import ClusterHistory
from webhook.cli.main import main
from webhook.kubernetes.times import format_micro_time, format_time


def record(folder: Path, *, others: int = 5, rest: float = 0) -> tuple[str, FakeServer]:
    """Write a watch of some leases: all end with it, or all but shop/db are renewed for the `rest`."""
    server = FakeServer()
    leader = server.elector("db-0", "shop/db")
    electors = [server.elector(f"mail{number}-0", f"shop/mail{number}") for number in range(others)]
    together(60, leader, *electors)
    if rest:
        together(rest, *electors)
    (folder / "watch.json").write_bytes(server.watch())
    return str(folder / "watch.json"), server


def explain(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    main(list(words))
    return " ".join(capsys.readouterr().out.split())


def test_a_watch_that_ended_while_a_lease_was_live_shows_no_cause_and_calls_no_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, server = record(tmp_path)
    now = format_time(server.now + 36 * SECOND)
    found = explain(capsys, "why", "shop/db", "--input", path, "--now", now)
    assert "unknown: db-0_1 held it when the input ended at 11:07:40Z, 0 s after the last renewal" in found
    assert "36 s after the input's end: what happened since is not in it" in found
    assert (
        "The input ends at 11:07:40Z, before the lease could expire, so it does not show whether it was renewed since."
        in found
    )
    assert not [text for text in ("Act now", "Why ", "Can be taken", "warning") if text in found]
    assert "nothing found" in explain(capsys, "audit", "--input", path, "--now", now)


def say_rhythm(folder: Path, capsys: pytest.CaptureFixture[str], document: bytes, server: FakeServer) -> str:
    """Return what is said after the time of the last renewal, of an input that ended a minute ago."""
    (folder / "input.json").write_bytes(document)
    found = explain(
        capsys, "why", "shop/db", "--input", str(folder / "input.json"), "--now", format_time(server.now + 60 * SECOND)
    )
    assert "when the input ended at" in found
    return found.partition(" after the last renewal")[2].partition(" as of ")[0]


def lead(*, pause: float = 0, renewals: int = 30) -> tuple[FakeServer, Elector]:
    """Have db-0 renew shop/db, with a pause after as many renewals."""
    server = FakeServer()
    leader = server.elector("db-0", "shop/db")
    leader.lead(2 * renewals)
    server.wait(pause)
    leader.lead(20)
    return server, leader


def test_a_holder_that_missed_no_renewal_until_the_input_ended_is_said_to_have_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server, _ = lead()
    every = "; it was renewed every 2 s from 11:06:40Z on, without a gap"
    for document in (server.watch(), server.audit_log()):
        assert say_rhythm(tmp_path, capsys, document, server) == every


def test_what_a_holder_renewed_is_said_since_it_took_the_lease(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server, leader = lead(pause=9)
    leader.release()
    server.wait(1)
    server.elector("db-1", "shop/db").lead(20)
    every = "; it was renewed every 2 s from 11:08:10Z on, without a gap"
    assert say_rhythm(tmp_path, capsys, server.audit_log(), server) == every


def end_silent() -> FakeServer:
    server, _ = lead()
    for _ in server.elector("mail-0", "shop/mail").ticks(8):
        server.elector("mail-0", "shop/mail").take()
    return server


def end_with_slow_holder() -> FakeServer:
    server, leader = lead()
    leader.release()
    server.elector("db-1", "shop/db", retry=4).lead(20)
    return server


def end_with_renewal_by_another() -> FakeServer:
    server, leader = lead()
    server.wait(1)
    server.elector("db-9", "shop/db", user="jane", pod="").renew(holderIdentity=leader.identity)
    server.wait(1)
    leader.lead(20)
    return server


def end_with_hidden_write() -> FakeServer:
    server, leader = lead()
    server.wait(1)
    server.write("shop/db", server.leases["shop/db"]["spec"], "curl", "jane", "")
    server.log[-1] |= {"verb": "patch", "responseObject": None, "level": "Metadata"}
    server.wait(1)
    leader.lead(20)
    return server


@pytest.mark.parametrize(
    "server",
    [
        lead(pause=9)[0],
        end_silent(),
        end_with_slow_holder(),
        end_with_renewal_by_another(),
        end_with_hidden_write(),
    ],
    ids=["a gap", "silent at the end", "another rhythm than before", "another renewed it", "not all is shown"],
)
def test_a_holder_that_may_have_missed_a_renewal_is_not_said_to_have_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], server: FakeServer
) -> None:
    assert say_rhythm(tmp_path, capsys, server.audit_log(), server) == ""


def test_a_holder_of_which_few_renewals_are_known_is_not_said_to_have_missed_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(4)
    assert say_rhythm(tmp_path, capsys, server.audit_log(), server) == ""


def test_a_holder_whose_own_clock_alone_dates_its_renewals_is_not_said_to_have_missed_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server, _ = lead()
    assert say_rhythm(tmp_path, capsys, server.watch(managed_fields=False), server) == ""


def test_no_answer_says_that_a_lease_expired_after_the_end_of_the_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, server = record(tmp_path, others=0)
    late = ("--input", path, "--now", format_time(server.now + 36 * SECOND))
    assert "expired" not in explain(capsys, "why", *late)
    assert "expired" not in explain(capsys, "why", "shop/db", "--verbose", *late)
    main(["why", "shop/db", *late, "--format", "json"])
    found = json.loads(capsys.readouterr().out)
    assert found["state"] == "unknown"
    assert found["takeable_at"] is None
    assert found["leaderless_seconds"] == 0


def test_a_heartbeat_without_a_holder_was_renewed_when_its_input_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = FakeServer()
    for number in range(4):
        server.wait(10 * min(number, 1))
        spec = {"leaseDurationSeconds": 40, "renewTime": format_micro_time(server.now)}
        server.write("shop/beat", spec, "beater", "beater", "")
    (tmp_path / "watch.json").write_bytes(server.watch())
    now = format_time(server.now + 60 * SECOND)
    found = explain(capsys, "why", "shop/beat", "--input", str(tmp_path / "watch.json"), "--now", now)
    assert "unknown: the input ended at 11:07:10Z, 0 s after the last renewal" in found


def test_a_watch_in_which_others_go_on_shows_that_a_lease_expired(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, server = record(tmp_path, rest=36)
    found = explain(capsys, "why", "shop/db", "--input", path, "--now", format_time(server.now))
    assert "has not renewed it for 36 s as of" in found
    assert "Act now if a program still uses this lease" in found


def record_lock(folder: Path, *, created: str = "") -> tuple[str, FakeServer]:
    """Write a watch of a node's lease, renewed at 11:06:40Z for the last time, and of a lock of 11:08:20Z."""
    server = FakeServer()
    server.elector("node-1", "shop/mail").lead(0)
    server.wait(100)
    server.elector("db-0", "shop/db").take(renewTime=None, leaseDurationSeconds=None)
    if created:
        kind, object_ = server.events[-1][1], server.events[-1][2]
        metadata = {**object_["metadata"], "creationTimestamp": created}
        server.events[-1] = (server.now, kind, {**object_, "metadata": metadata})
    (folder / "watch.json").write_bytes(server.watch())
    return str(folder / "watch.json"), server


def test_an_input_reaches_the_creation_of_a_lease_that_is_never_renewed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, server = record_lock(tmp_path)
    found = explain(capsys, "why", "shop/db", "--input", path, "--now", format_time(server.now + 20 * SECOND))
    assert "20 s after the input's end" in found


def test_an_unreadable_time_of_a_creation_does_not_move_the_end_of_an_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, server = record_lock(tmp_path, created="never")
    found = explain(capsys, "why", "shop/db", "--input", path, "--now", format_time(server.now + 20 * SECOND))
    assert "after the input's end" in found
    assert "20 s after" not in found


def test_a_creation_after_the_last_moment_that_is_believed_does_not_move_the_end_of_an_input(tmp_path: Path) -> None:
    path, server = record_lock(tmp_path)
    histories = ClusterHistory()
    histories.bounds.latest = server.now - 10 * SECOND
    observe_all(histories, read("in", [Path(path).read_bytes()]))
    assert (histories.bounds.until or 0) <= histories.bounds.latest
