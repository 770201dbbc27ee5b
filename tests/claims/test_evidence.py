"""Claims of a client do not count as evidence: each test adds one write, or changes one clock, in a sound history."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.claims.accounts import account, shop, text
from tests.factories import Document, make_entry, to_bytes
from tests.history.fake_server import SECOND, FakeServer, together
from tests.history.observing import LEASE, cluster_of, follow_log, follow_watch, merge_inputs
from tests.inputs.reading import read
from webhook.analysis.claims.presentation.account_json import make_account_json
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Handover
from webhook.analysis.history.status import LeaseState
from webhook.cli.main import main
from webhook.kubernetes.times import format_micro_time, format_time

HOUR = 3600 * SECOND


def healthy() -> tuple[FakeServer, list[Any]]:
    """Three leaders that have renewed for 40 s."""
    server, electors = shop()
    together(40, *electors)
    return server, electors


def patch(server: FakeServer, lease: str = "shop/db", **changes: Any) -> Document:
    """Have somebody else write a lease, and return it as stored."""
    spec = {key: value for key, value in (server.leases[lease]["spec"] | changes).items() if value is not None}
    server.write(lease, spec, "kubectl-patch", "mallory", "")
    return server.leases[lease]


def create(server: FakeServer, ahead: int) -> Document:
    spec = {"holderIdentity": "m", "leaseDurationSeconds": 15, "renewTime": format_micro_time(server.now + ahead)}
    server.write("evil/x", spec, "kubectl-create", "mallory", "")
    return server.leases["evil/x"]


def renew_without_stamps(server: FakeServer, ahead: int) -> None:
    del create(server, ahead)["metadata"]["managedFields"]


def add_label(server: FakeServer, ahead: int) -> None:
    entry = {**make_entry(manager="m", time=format_time(server.now + ahead)), "fieldsV1": {"f:metadata": {}}}
    create(server, 0)["metadata"]["managedFields"].append(entry)


def renew_unstamped(server: FakeServer, ahead: int) -> None:
    renew_without_stamps(server, 0)
    server.events[-1][2]["metadata"]["managedFields"] = [
        make_entry("renewTime", manager=one, time=format_time(server.now + ahead)) for one in "ab"
    ]
    renew_without_stamps(server, ahead)


FORGED = pytest.mark.parametrize(
    "forge",
    [
        pytest.param(renew_without_stamps, id="a lease without managedFields"),
        pytest.param(add_label, id="an invented entry for a label"),
        pytest.param(renew_unstamped, id="renewTime with two owners"),
    ],
)


@FORGED
def test_a_time_that_a_client_invents_does_not_move_the_end_of_a_watch(
    forge: Callable[[FakeServer, int], None],
) -> None:
    server, _ = healthy()
    forge(server, 30 * HOUR)
    histories = follow_watch(server)
    assert histories.bounds.until is not None
    assert abs(histories.bounds.until - server.now) < SECOND
    assert account(histories, histories.bounds.until).state is LeaseState.LIVE


@FORGED
def test_no_live_lease_is_proposed_for_deletion(
    forge: Callable[[FakeServer, int], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server, _ = healthy()
    forge(server, 30 * HOUR)
    path = tmp_path / "leases.json"
    path.write_bytes(server.watch())
    main(["audit", "--input", str(path), "--format", "json"])
    documents = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert not [one for one in documents if one["check"] == "abandoned"]


@pytest.mark.parametrize(
    ("forge", "ahead"),
    [(renew_without_stamps, 30 * HOUR), (add_label, 30 * HOUR)],
    ids=["without managedFields", "with a label"],
)
def test_of_states_alone_the_second_latest_lease_says_when_a_watch_ends(
    forge: Callable[[FakeServer, int], None], ahead: int
) -> None:
    server, _ = healthy()
    forge(server, ahead)
    server.events = [(server.now, "ADDED", one) for one in server.leases.values()]
    until = follow_watch(server).bounds.until
    assert until is not None
    assert abs(until - server.now) < SECOND


def test_two_writes_of_one_second_reach_the_later_one() -> None:
    server, (db, *_) = healthy()
    server.now += SECOND // 4
    db.renew()
    server.wait(0.5)
    db.renew()
    assert follow_watch(server).bounds.until == server.now - 3000


def stolen_after(server: FakeServer, **changes: Any) -> ClusterHistory:
    server.wait(1)
    patch(server, **changes)
    server.wait(1)
    server.elector("db-1", "shop/db").take()
    return follow_log(server)


@pytest.mark.parametrize("view", [follow_watch, follow_log], ids=["watch", "audit log"])
def test_a_renew_time_of_somebody_else_says_nothing_of_the_holder_s_clock(view: Callable[..., ClusterHistory]) -> None:
    server, _ = healthy()
    stolen_after(server, renewTime=format_micro_time(server.now - HOUR))
    output = text(account(view(server), server.now))
    assert "the lease while db-0_1 still held it" in output
    assert "holder's clock" not in output


def test_a_clock_that_two_renewals_show_is_blamed() -> None:
    server, (db, *_) = shop()
    db.ahead = -3600
    db.lead(10)
    server.wait(1)
    server.elector("db-1", "shop/db").take()
    assert "The old holder's clock is 1 h 0 min behind the API server's" in text(
        account(follow_watch(server), server.now)
    )


def test_one_renewal_that_was_held_back_does_not_show_a_clock() -> None:
    server, (db, *_) = healthy()
    server.wait(6)
    db.renew(renewTime=format_micro_time(server.now - 6 * SECOND))
    assert make_account_json(account(follow_watch(server), server.now))["holder_clock_ahead_seconds"] is None


def test_in_a_list_another_manager_s_renew_time_says_nothing_of_the_holder_s_clock() -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(10)
    patch(server, renewTime=format_micro_time(server.now + 2 * HOUR))
    answer = account(cluster_of(server.dump()), server.now)
    assert answer.status is not None
    assert answer.status.ahead is None
    assert "holder-clock" not in {found.check for found in answer.findings}
    assert "Held by: db-0_1, since 11:06:39Z" in text(answer), "acquireTime is not corrected by it"


def test_a_touch_by_somebody_else_is_no_renewal_by_the_holder() -> None:
    server, (_, mail, cart) = healthy()
    together(14, mail, cart)
    patch(server, renewTime=format_micro_time(server.now))
    histories = follow_log(server)
    output = text(account(histories, server.now))
    assert "Last renewed: 11:07:20Z, 14 s ago, by shop/db from pod db-0\n" in output
    assert "Renewed for it: 11:07:34Z, 0 s ago, by mallory, which is not known as the holder" in output
    assert "db-0_1 has not renewed since 11:07:20Z, for 14 s" in output
    assert make_account_json(account(histories, server.now))["last_renewal_by"]["pod"] == "db-0"
    together(16, mail, cart)
    assert "db-0_1 has not renewed it for 30 s" in text(account(follow_log(server), server.now))
    server.elector("db-1", "shop/db").take()
    output = text(account(follow_log(server), server.now))
    assert "11:07:49Z: the lease expired, 15 s after the last renewal by mallory" in output
    assert (
        "db-0_1 last renewed at 11:07:20Z, 30 s before db-1_1 took the expired lease at 11:07:50Z "
        "(mallory went on in the name of db-0_1 until 11:07:34Z)" in output
    )


def test_a_touch_by_a_pod_of_another_namespace_with_the_name_of_the_holder_s_is_none() -> None:
    server, (_, mail, cart) = healthy()
    together(14, mail, cart)
    spec = server.leases["shop/db"]["spec"] | {"renewTime": format_micro_time(server.now)}
    server.write("shop/db", spec, "db", "system:serviceaccount:evil:evil", "db-0")
    output = text(account(follow_log(server), server.now))
    assert "Last renewed: 11:07:20Z, 14 s ago, by shop/db from pod db-0\n" in output
    assert "Renewed for it: 11:07:34Z, 0 s ago, by evil/evil from pod db-0" in output


def test_somebody_who_goes_on_renewing_a_pod_s_lease_is_not_its_holder() -> None:
    server, (_, mail, cart) = healthy()
    for _ in range(4):
        together(6, mail, cart)
        patch(server, renewTime=format_micro_time(server.now))
    output = text(account(follow_log(server), server.now))
    assert "Last renewed: 11:07:20Z, 24 s ago, by shop/db from pod db-0\n" in output
    assert "Renewed for it: 11:07:44Z, 0 s ago, by mallory" in output


def test_the_removal_of_renew_time_is_no_renewal() -> None:
    server, _ = healthy()
    server.wait(5)
    patch(server, renewTime=None)
    output = text(account(follow_log(server), server.now))
    assert "Last renewed: 11:07:20Z, 5 s ago, by shop/db from pod db-0, field manager operator\n" in output
    assert "renewTime was removed by mallory" in output


def test_field_managers_that_a_later_write_sends_say_nothing_of_the_last_renewal() -> None:
    server, _ = healthy()
    patch(server)
    entry = server.leases["shop/db"]["metadata"]["managedFields"][0]
    entry["manager"] = "mallory"
    assert make_account_json(account(follow_watch(server), server.now))["last_renewal_by"]["manager"] == "operator"


def show_requests(server: FakeServer) -> bytes:
    """Return the log at level Request: with the object as it was sent, which has the stamps of the write before."""
    stamps: dict[str, Any] = {}
    for event in server.log:
        stored, name = event.pop("responseObject"), event["objectRef"]["name"]
        sent = {**stored["metadata"], "managedFields": stamps.get(name, [])}
        event |= {"level": "Request", "requestObject": {**stored, "metadata": sent}}
        stamps[name] = [{**one, "time": "2026-11-18T05:00:00Z"} for one in stored["metadata"]["managedFields"]]
    return server.audit_log()


def test_at_level_request_the_log_dates_renewals_and_not_the_stamps_that_were_sent() -> None:
    server, _ = healthy()
    server.wait(5)
    answer = account(cluster_of(show_requests(server)), server.now)
    assert answer.state is LeaseState.LIVE
    assert answer.last_renewal == server.now - 5 * SECOND


@pytest.mark.parametrize("ahead", [-60, 60], ids=["a clock that is behind", "a clock that is ahead"])
def test_a_log_dates_the_renewals_of_a_lease_without_stamps(ahead: int) -> None:
    server = FakeServer()
    db = server.elector("db-0", "shop/db", ahead=ahead)
    db.lead(20)
    for event in server.log:
        del event["responseObject"]["metadata"]["managedFields"]
    answer = account(follow_log(server), server.now + 5 * SECOND)
    assert answer.status is not None
    assert (answer.state, answer.status.last_renewal) == (LeaseState.LIVE, server.now)
    assert account(follow_log(server), server.now + 15 * SECOND).state is LeaseState.EXPIRED


def test_a_log_that_begins_with_a_write_without_stamps_does_not_say_when_the_lease_was_renewed() -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(20)
    del server.log[:-1]
    del server.log[0]["responseObject"]["metadata"]["managedFields"]
    assert "Evidence: the holder's own clock: the log says when requests were answered" in (
        text(account(follow_log(server), server.now))
    )


def test_without_stamps_the_clocks_of_two_holders_are_not_compared() -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db", ahead=60).lead(20)
    server.wait(17)
    server.elector("db-1", "shop/db").lead(20)
    for _, _, lease in server.events:
        del lease["metadata"]["managedFields"]
    history = follow_watch(server).leases[LEASE]
    assert [one.began for one in history.tenures] == [Handover.SEEN, Handover.UNKNOWN]
    output = text(account(follow_watch(server), server.now))
    assert "db-1_1 took it from db-0_1, by its writer's clock: whether it had expired is not known" in output
    assert "typically every 2 s" in output
    assert "lease-stolen" not in output


def test_without_stamps_a_release_is_no_measure_of_time() -> None:
    server = FakeServer()
    db = server.elector("db-0", "shop/db", ahead=60)
    db.lead(20)
    db.release()
    server.wait(3)
    server.elector("db-1", "shop/db").lead(20)
    for _, _, lease in server.events:
        del lease["metadata"]["managedFields"]
    history = follow_watch(server).leases[LEASE]
    assert (history.tenures[1].began, history.tenures[1].leaderless, history.leaderless) == (Handover.RELEASED, None, 0)


def describe_taking(
    view: Callable[[FakeServer], ClusterHistory], ahead: float, seconds: float, *, is_release: bool
) -> str:
    server, (db, *_) = healthy()
    server.wait(0.2)
    write = db.release if is_release else db.renew
    write()
    server.wait(seconds)
    server.elector("db-1", "shop/db", ahead=ahead).take()
    return text(account(view(server), server.now))


@pytest.mark.parametrize("ahead", [0, 60], ids=["whose clock is right", "whose clock is wrong"])
def test_a_bound_contains_the_truth_though_a_stamp_has_whole_seconds(ahead: float) -> None:
    assert "not renewed for up to 19 s" in describe_taking(follow_watch, ahead, 18.5, is_release=False)


@pytest.mark.parametrize(
    ("view", "ahead", "expected"),
    [
        pytest.param(follow_log, 60, "the lease was free for 1.5 s", id="a log is exact"),
        pytest.param(follow_watch, 0, "the lease was free for up to 2 s", id="a watch is not"),
        pytest.param(follow_watch, 60, "the lease was free for up to 2 s", id="nor with a wrong clock"),
    ],
)
def test_only_a_log_measures_the_time_after_a_release(
    view: Callable[[FakeServer], ClusterHistory], ahead: float, expected: str
) -> None:
    assert expected in describe_taking(view, ahead, 1.5, is_release=True)


def test_the_sum_has_every_time_in_which_no_one_may_have_led() -> None:
    server, (db, *_) = healthy()
    other = server.elector("db-1", "shop/db")
    db.release()
    server.wait(1)
    other.lead(20)
    server.wait(400)
    other.lead(20)
    server.wait(100)
    server.delete("shop/db")
    server.wait(80)
    db.lead(20)
    server.wait(30)
    answer = account(follow_log(server), server.now)
    assert make_account_json(answer)["leaderless_seconds"] == 1 + 402 + 180 + 30
    assert make_account_json(answer)["leaderless_seconds"] == 613


def test_a_free_lease_counts_until_now() -> None:
    server, (db, *_) = healthy()
    db.release()
    server.wait(30)
    assert make_account_json(account(follow_log(server), server.now))["leaderless_seconds"] == 30


def test_a_watch_bounds_when_a_lease_was_deleted() -> None:
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(20)
    server.wait(599)
    server.delete("shop/db")
    server.wait(1)
    server.elector("db-1", "shop/db").lead(10)
    output = text(account(follow_watch(server), server.now))
    assert "the lease was deleted while db-0_1 held it, then or later" in output
    assert "the lease had no holder for up to 10 min 1 s" in output
    assert "it was created again with the holder db-1_1 at 11:17:00Z" in output
    assert "or later" not in text(account(follow_log(server), server.now))


def follow_two_servers(*, off: float, seconds: float, in_one_file: bool, is_release: bool = False) -> ClusterHistory:
    """What the log of one API server shows, and that of another one whose clock is behind, which got the takeover."""
    server, (db, mail, _) = healthy()
    if is_release:
        db.release()
    server.wait(seconds - 0.5)
    mail.renew()
    server.wait(0.5)
    server.elector("db-1", "shop/db").take()
    taken = server.log.pop()
    for key in ("requestReceivedTimestamp", "stageTimestamp"):
        taken[key] = format_micro_time(server.now - int(off * SECOND))
    for entry in taken["responseObject"]["metadata"]["managedFields"]:
        entry["time"] = format_time(server.now - int(off * SECOND))
    server.wait(0.5)
    mail.renew()
    parts = [list(read(f"in-{number}", map(to_bytes, log))) for number, log in enumerate((server.log, [taken]))]
    histories = ClusterHistory()
    for item in merge_inputs([one for part in parts for one in part]) if in_one_file else merge_inputs(*parts):
        histories.add(item)
    return histories


IN_ONE = pytest.mark.parametrize("in_one_file", [True, False], ids=["one file", "two files"])


@IN_ONE
def test_clocks_of_api_servers_that_differ_widen_a_bound(in_one_file: bool) -> None:
    histories = follow_two_servers(off=1.8, seconds=1.5, in_one_file=in_one_file, is_release=True)
    (_, after) = histories.leases[LEASE].tenures
    assert after.leaderless is not None
    assert after.leaderless >= 1.5 * SECOND
    assert not after.is_exact


@IN_ONE
@pytest.mark.parametrize(
    ("off", "seconds"),
    [pytest.param(10, 20, id="expired, by times stolen"), pytest.param(-16, 10, id="stolen, by times expired")],
)
def test_clocks_of_api_servers_that_differ_leave_open_how_a_lease_was_taken(
    off: float, seconds: float, in_one_file: bool
) -> None:
    histories = follow_two_servers(off=off, seconds=seconds, in_one_file=in_one_file)
    (_, after) = histories.leases[LEASE].tenures
    assert after.began is Handover.UNKNOWN


def test_a_clock_is_not_the_holder_s_if_those_of_api_servers_differ_as_much() -> None:
    histories = follow_two_servers(off=-16, seconds=10, in_one_file=True)
    assert histories.leases[LEASE].tenures[1].clock.ahead is None


def test_the_longest_gap_is_kept_however_many_follow() -> None:
    server, (db, *_) = shop()
    db.lead(4)
    server.wait(58)
    db.lead(500)
    answer = account(follow_log(server), server.now)
    assert make_account_json(answer)["renewals"]["longest_silence_seconds"] == 60
    assert "db-0_1 did not renew for 1 min 0 s, from 11:06:44Z on" in text(answer)


def test_a_lease_that_is_renewed_too_rarely_to_be_late_shows_that_the_api_server_stored_writes() -> None:
    server = FakeServer()
    first, second = server.elector("db-0", "shop/db"), server.elector("db-1", "shop/db")
    node = server.elector("node-1", "kube-node-lease/node-1", retry=10, duration=40)
    node.take()
    for _ in range(6):
        first.lead(10)
        node.renew()
    server.wait(10)
    node.renew()
    server.wait(7)
    second.take()
    server.wait(3)
    for _ in range(4):
        node.renew()
        second.lead(10)
    output = text(account(follow_log(server), server.now))
    assert (
        "Why is not known: 1 other lease was renewed meanwhile, at least every 10 s, so the API server stored writes "
        "then; no other lease in the input shows whether it was unavailable at other times"
    ) in output


@pytest.mark.parametrize(
    ("is_read", "words"),
    [
        (
            True,
            "For most of that time the log has no answered request for the lease from its pod (it may have ended",
        ),
        (False, "Why is not known: no other lease in the input shows whether"),
    ],
    ids=["others read it", "no one reads it"],
)
def test_reads_by_others_show_that_the_api_server_was_there(*, is_read: bool, words: str) -> None:
    server = FakeServer()
    first, second = server.elector("db-0", "shop/db"), server.elector("db-1", "shop/db")
    first.lead(40)
    for _ in second.ticks(16):
        if is_read:
            second.ask()
        else:
            server.elector("mail-0", "shop/mail").ask()
    second.lead(10)
    output = text(account(follow_log(server), server.now))
    assert words in output
    assert ("reads of this lease by others meanwhile" in output) is is_read
