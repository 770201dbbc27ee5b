"""An API server that stands still while another one goes on: leases that the other one renews do not clear it."""

import pytest

from tests.claims.accounts import account, text
from tests.claims.test_logs_that_end import follow
from tests.history.fake_server import FakeServer
from tests.history.observing import follow_log
from webhook.analysis.claims.presentation.urgency import advise_with_urgency
from webhook.analysis.history.audit_log.log_spans import LogChanges, LogSpans, SilentLog
from webhook.kubernetes.times import SECOND, format_micro_time

SILENT = "Why is not known: log 1.log, which has the last renewal, has no answer about any lease from "
WAS_THERE = ", although 1 other lease was renewed there before, and another log goes on: "
STOPPED = "For most of that time the log has no answered request for the lease from its pod"


def freeze_a_server(*, others: int, goes_on: bool = False, identity: str = "") -> FakeServer:
    """db-0 and others are with the first API server, which stands still for 30 s; db-1 is with the second one."""
    server = FakeServer()
    first, second = server.elector("db-0", "shop/db"), server.elector("db-1", "shop/db")
    elsewhere = [server.elector(f"queue-{number}", f"shop/queue-{number}") for number in range(3)]
    beside = [server.elector(f"{name}-0", f"shop/{name}") for name in ("mail", "news")[:others]]
    beside += [server.elector("bill-0", identity)] if identity else []
    for elector in (first, *elsewhere, *beside):
        elector.take()
    for _ in first.ticks(40):
        for elector in (first, *elsewhere, *beside):
            elector.renew()
    for _ in first.ticks(24):
        for elector in (*elsewhere, *(beside if goes_on else ())):
            elector.renew()
    second.take()
    for _ in first.ticks(30):
        for elector in (second, *elsewhere, *beside):
            elector.renew()
        first.ask()
    return server


def explain(server: FakeServer) -> str:
    found = account(follow(server), server.now)
    advice = advise_with_urgency(found)
    return f"{text(found)} {advice.sentence} {advice.command}"


def test_an_api_server_that_answered_nobody_is_not_cleared_by_what_another_one_answered() -> None:
    output = explain(freeze_a_server(others=1))
    assert SILENT in output
    assert WAS_THERE in output
    assert "Look at the API server that wrote log 1.log" in output
    assert "get leases -l apiserver.kubernetes.io/identity" in output
    assert "on time" not in output
    assert STOPPED not in output


@pytest.mark.parametrize(
    ("name", "is_own"),
    [("kube-system/apiserver-rplpdvtx3lntmi4xy2xnxookk4", True), ("kube-system/apiserver-own", False)],
)
def test_an_api_server_whose_own_lease_stood_still_did_so_itself(name: str, *, is_own: bool) -> None:
    output = explain(freeze_a_server(others=0, identity=name))
    own = f", not even about that of its API server, {name}, and another log goes on: that API server may have stood"
    assert (own in output) is is_own
    assert ("or the process of the holder" in output) is not is_own


def test_nothing_clears_an_api_server_of_which_no_other_lease_is_known() -> None:
    output = explain(freeze_a_server(others=0))
    assert SILENT in output
    assert "The pod of db-0_1, which lost the lease, asked for it again; see what it did meanwhile. Look at " in output
    assert (
        "kubectl -n shop logs db-0 --previous --all-containers --ignore-errors; kubectl -n kube-system get leases -l"
        in output
    )
    assert "renewed there before" not in output


def test_an_api_server_that_answered_others_shows_what_a_holder_did_not_send() -> None:
    output = explain(freeze_a_server(others=2, goes_on=True))
    assert SILENT not in output
    assert STOPPED in output


def test_of_several_leases_that_stopped_the_number_is_said() -> None:
    assert "although 2 other leases were renewed there before" in explain(freeze_a_server(others=2))


@pytest.mark.parametrize(
    ("ahead", "heard"),
    [
        pytest.param(-20, [], id="made before the takeover, it hung somewhere"),
        pytest.param(0, [1], id="made after it, its process asks again"),
    ],
)
def test_a_write_of_a_former_holder_counts_by_when_it_was_made(ahead: int, heard: list[int]) -> None:
    server = FakeServer()
    first, second = server.elector("db-0", "shop/db"), server.elector("db-1", "shop/db")
    first.lead(40)
    server.wait(20)
    second.lead(10)
    first.fail(504)
    stored, made = server.leases["shop/db"], format_micro_time(server.now + ahead * SECOND)
    server.log[-1]["requestObject"] = stored | {"spec": stored["spec"] | {"holderIdentity": "db-0", "renewTime": made}}
    before = follow_log(server).leases["shop", "db"].tenures[0].processes
    assert [1 for _ in before.requests_after_loss] == heard
    first.ask()
    assert len(follow_log(server).leases["shop", "db"].tenures[0].processes.requests_after_loss) == len(heard) + 1


SILENCE = SilentLog("a", 100 * SECOND, 130 * SECOND)


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        pytest.param({"a": [90, 100, 130], "b": range(80, 140, 4)}, SILENCE, id="one is silent and one goes on"),
        pytest.param({"a": [90, 100, 130]}, None, id="there is one log"),
        pytest.param({"a": [90, 100, 130], "b": [80, 84, 131]}, None, id="both are silent"),
        pytest.param({"a": [90, 100, 130], "b": range(104, 140, 4)}, None, id="the other one begins meanwhile"),
        pytest.param({"a": [90, 100, 130], "b": range(80, 128, 4)}, None, id="the other one ends meanwhile"),
        pytest.param({"a": [90, 100, 120, 130], "b": range(80, 140, 4)}, None, id="it is silent for less than most"),
        pytest.param({"a": [90, 100], "b": range(80, 140, 4)}, None, id="it has ended"),
        pytest.param({"b": range(80, 140, 4)}, None, id="it is not known"),
    ],
)
def test_a_log_is_silent_only_while_another_one_goes_on(answers: dict[str, list[int]], found: SilentLog | None) -> None:
    logs = LogSpans()
    for path, times in answers.items():
        for at in times:
            logs.note(path, at * SECOND)
    assert logs.find_silent("a", 100 * SECOND, 128 * SECOND) == found


def test_the_log_of_a_lease_is_that_of_its_last_write() -> None:
    changes = LogChanges()
    for at, path in ((1, "a"), (2, "a"), (3, "b")):
        changes.note(path, at)
    assert [changes.find_at(at) for at in range(5)] == ["", "a", "a", "b", "b"]
