"""Who asks for a lease that is free, and who took it long after it could have."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.claims.accounts import account, shop, taken_after_tries, text
from tests.factories import Tweak, put
from tests.history.fake_server import SECOND, START, Elector, FakeServer, together
from tests.history.observing import advise, cluster_of, follow_both, follow_log, follow_watch
from tests.history.test_refusal import APPLY_CONFLICT
from tests.inputs.test_pod_requests import status_event
from webhook.analysis.claims.findings.headline import make_headline
from webhook.analysis.claims.findings.late_takers import find_late_takers
from webhook.analysis.claims.presentation.account_json import make_account_json
from webhook.analysis.claims.presentation.happened import list_latest
from webhook.analysis.history.audit_log.refusal import UNKNOWN_RESOURCE
from webhook.analysis.history.follow import ClusterHistory
from webhook.kubernetes.times import format_micro_time

USER = "system:serviceaccount:shop:db"


def claims(histories: ClusterHistory, server: FakeServer, kind: str) -> list[dict[str, Any]]:
    return [one for one in make_account_json(account(histories, server.now))["claims"] if one["claim"] == kind]


def abandoned(*, is_read: bool = True) -> tuple[FakeServer, list[Elector]]:
    """A server on which the holder of db has stopped, half a minute ago, and two other leases are renewed."""
    server, (db, *others) = shop()
    if is_read:
        db.ask()
    together(20, db, *others)
    together(40, *others)
    return server, others


def headline(server: FakeServer) -> str:
    return make_headline(account(follow_log(server), server.now))


def test_nobody_asks_for_an_expired_lease() -> None:
    server, _ = abandoned()
    assert headline(server).endswith("for 40 s, and no other process has asked for it since it expired")
    (claim,) = claims(follow_log(server), server, "no-candidate")
    assert (claim["identity"], "how" in claim) == ("db-0_1", False)
    advice = advise(account(follow_log(server), server.now))
    assert advice.startswith("No other replica asks for it: see whether any runs, and whether db-0_1 still does:")
    assert advice.endswith("kubectl -n shop get pods; kubectl -n shop describe pod db-0")


def test_without_reads_a_log_shows_who_tries_to_write() -> None:
    server, _ = abandoned(is_read=False)
    assert headline(server).endswith("and no other process has tried to write it since it expired")
    (claim,) = claims(follow_log(server), server, "no-candidate")
    assert claim["how"] == "writes"
    assert "No other replica tries to take it" in advise(account(follow_log(server), server.now))


def play_reads_of_a_person(server: FakeServer) -> None:
    """An audit policy may leave out the reads by service accounts, and have those of people."""
    server.elector("alice", "shop/db", user="alice", pod="").ask()


def test_reads_by_a_person_do_not_show_that_a_log_has_those_of_replicas() -> None:
    server, (db, *others) = shop()
    play_reads_of_a_person(server)
    together(20, db, *others)
    together(40, *others)
    assert headline(server).endswith("and no other process has tried to write it since it expired")
    assert "No other replica tries to take it" in advise(account(follow_log(server), server.now))


def test_reads_by_a_person_do_not_show_that_a_late_taker_was_silent() -> None:
    server, _ = abandoned(is_read=False)
    play_reads_of_a_person(server)
    server.elector("db-1", "shop/db").lead(10)
    (taker,) = find_late_takers(follow_log(server), follow_log(server).leases["shop", "db"], server.now)
    assert "whether it ran then, and who asked for the lease, is not known" in taker.message


def ask_by(server: FakeServer, pod: str, verb: str, stage: str = "ResponseComplete") -> None:
    """Ask for the lease by its name, with a list or a watch."""
    server.elector(pod, "shop/db").ask()
    server.log[-1] |= {"verb": verb, "stage": stage}
    server.log[-1]["requestURI"] = (
        "/apis/coordination.k8s.io/v1/namespaces/shop/leases?fieldSelector=metadata.name%3Ddb"
    )


def test_a_list_of_one_name_asks_for_the_lease() -> None:
    server, _ = abandoned()
    ask_by(server, "db-1", "list")
    assert headline(server).endswith("; pod db-1 asks for it")


@pytest.mark.parametrize("stage", ["ResponseStarted", "ResponseComplete"])
def test_who_watches_a_lease_need_not_ask_for_it(stage: str) -> None:
    server, (db, *others) = shop()
    db.ask()
    ask_by(server, "db-1", "watch", stage)
    together(20, db, *others)
    together(40, *others)
    assert headline(server).endswith("db-0_1 has not renewed it for 40 s")


def test_a_list_of_one_name_does_not_show_that_the_lease_exists() -> None:
    server, (db, *others) = shop()
    together(20, db, *others)
    del server.leases["shop/db"]
    server.wait(2)
    db.fail(404, 'leases.coordination.k8s.io "db" not found')
    server.wait(2)
    ask_by(server, "db-1", "list")
    assert headline(server) == "the lease was deleted: 1 request answered with 404"


def test_a_list_of_one_name_does_not_show_that_a_deletion_was_a_dry_run() -> None:
    server, (db, *others) = shop()
    together(20, db, *others)
    server.delete("shop/db")
    server.log[-1]["level"] = "Metadata"
    del server.log[-1]["responseObject"]
    server.wait(4)
    ask_by(server, "db-1", "list")
    assert headline(server) == "the lease may have been deleted 4 s ago by admin"


def test_of_a_holder_without_a_pod_there_are_pods_to_look_at() -> None:
    server, (db, *others) = shop()
    db.identity, db.pod = "leader", ""
    together(20, db, *others)
    together(40, *others)
    assert advise(account(follow_log(server), server.now)).endswith("kubectl -n shop get pods")


def test_nobody_asks_for_a_lease_that_was_released() -> None:
    server, (db, *others) = shop()
    db.ask()
    together(20, db, *others)
    db.release()
    together(30, *others)
    assert headline(server) == "no one holds it: it was released 30 s ago, and no process has asked for it since"
    (claim,) = claims(follow_log(server), server, "no-candidate")
    assert not claim.get("identity")


@pytest.mark.parametrize(
    ("pod", "user", "code", "asks"),
    [
        ("db-1", "system:serviceaccount:shop:db", 200, "; pod db-1 asks for it"),
        ("db-1", "system:serviceaccount:shop:db", 403, "; pod db-1 asks for it, and is answered with 403"),
        ("", "", 401, "; one without accepted credentials asks for it, and is answered with 401"),
    ],
)
def test_who_asks_for_it_is_named(pod: str, user: str, code: int, asks: str) -> None:
    server, others = abandoned()
    server.log_request("shop/db", "get", user, pod, {"message": "no"}, code)
    together(2, *others)
    assert headline(server).endswith(asks)
    assert claims(follow_log(server), server, "no-candidate") == []
    is_looked_at = "See why pod db-1, which asks for it, does not take it" in advise(
        account(follow_log(server), server.now)
    )
    assert is_looked_at == (bool(pod) and code == 200)


def test_who_only_looks_need_not_want_it() -> None:
    server, others = abandoned()
    server.log_request("shop/db", "get", "alice", "", {"message": "no"}, 200)
    together(2, *others)
    assert headline(server).endswith("42 s")
    assert claims(follow_log(server), server, "no-candidate") == []


def test_who_of_another_account_tries_to_write_it_wants_it() -> None:
    server, others = abandoned()
    server.log_request("shop/db", "update", "alice", "", {"message": "no"}, 403)
    together(2, *others)
    assert headline(server).endswith("; alice asks for it, and is answered with 403")


@pytest.mark.parametrize(
    ("message", "end"),
    [(APPLY_CONFLICT, ", as another field manager owns fields that it applies"), ("the object has been modified", "")],
)
def test_the_headline_names_a_pod_that_applies_without_force_in_vain(message: str, end: str) -> None:
    server, others = abandoned()
    server.elector("db-1", "shop/db").fail(409, message, verb="patch")
    together(2, *others)
    assert headline(server).endswith(f"; pod db-1 asks for it, and is answered with 409{end}")


def read_on(server: FakeServer, others: Sequence[Elector], *pods: str) -> None:
    """Have pods read the expired lease for half a minute, unchanged as the log shows, and not write it."""
    for _ in range(8):
        together(4, *others)
        for pod in pods:
            server.elector(pod, "shop/db").ask(is_shown=True)


@pytest.mark.parametrize(
    ("pods", "end"),
    [
        (("db-1",), "; pod db-1 reads it again and again, and has not tried to take it"),
        (("db-2", "db-1"), "; pods db-1 and db-2 read it again and again, and have not tried to take it"),
    ],
    ids=["one pod", "two pods"],
)
def test_who_reads_an_expired_lease_has_not_tried_to_take_it(pods: tuple[str, ...], end: str) -> None:
    server, others = abandoned()
    read_on(server, others, *pods)
    assert headline(server).endswith(end)
    assert "which reads it, does not take it:" in advise(account(follow_log(server), server.now))


def test_who_tried_once_asks_for_it() -> None:
    server, others = abandoned()
    read_on(server, others, "db-1")
    server.elector("db-1", "shop/db").fail(409)
    read_on(server, others, "db-1")
    assert headline(server).endswith("; pod db-1 asks for it")


def test_a_watch_does_not_show_who_asks() -> None:
    server, _ = abandoned()
    assert "asked" not in make_headline(account(follow_watch(server), server.now))
    assert "asked" in make_headline(account(follow_both(server), server.now))


def test_just_after_it_expired_nobody_may_have_asked_yet() -> None:
    server, (db, *others) = shop()
    together(20, db, *others)
    together(18, *others)
    assert headline(server) == "db-0_1 has not renewed it for 18 s"


def test_of_many_who_ask_it_is_not_known_who_else_does() -> None:
    server, others = abandoned()
    for number in range(20):
        server.log_request("shop/db", "get", f"user-{number}", "", {})
    together(2, *others)
    assert "ask" not in headline(server)


def test_a_held_lease_has_no_candidates() -> None:
    server, (db, *others) = shop()
    together(20, db, *others)
    assert claims(follow_log(server), server, "no-candidate") == []


# ---- taken late -----------------------------------------------------------------------------------------------------


def taken_late(*asked: int, is_read: bool = True) -> FakeServer:
    """A server on which db-1 takes the lease of db-0 after a minute, and asked for it so many seconds before."""
    server, (db, *others) = shop()
    if is_read:
        db.ask()
    successor = server.elector("db-1", "shop/db")
    together(20, db, *others)
    for second in range(0, 60, 2):
        together(2, *others)
        if 58 - second in asked:
            successor.ask()
    successor.take()
    together(10, successor, *others)
    return server


def late(server: FakeServer, of: Any = follow_log) -> str:
    shown_claims = claims(of(server), server, "taken-late")
    return shown_claims[0]["text"] if shown_claims else ""


def test_a_taker_that_made_no_request_was_not_there() -> None:
    server = taken_late()
    assert late(server) == (
        "db-1_1 took it 45 s after it had expired at 11:07:15Z: the log has no answered request for it by its "
        "pod until 11:07:59Z"
    )
    (claim,) = claims(follow_log(server), server, "taken-late")
    assert claim["how"] == "silent"


def test_a_taker_that_stopped_asking_was_heard_before() -> None:
    assert "the log has no answered request for it by its pod from 11:07:21Z until 11:07:59Z" in late(taken_late(38))


def test_a_taker_that_asked_more_often_than_is_remembered_was_not_silent() -> None:
    def ask_often(server: FakeServer, successor: Elector) -> None:
        for _ in range(5):
            server.wait(0.001)
            successor.ask()

    assert late(taken_after_tries(ask_often)).endswith("its pod had asked for it at least 63 times meanwhile")


def test_a_taker_that_asked_all_the_time_waited() -> None:
    output = late(taken_late(*range(0, 60, 2)))
    assert output.endswith("its pod had asked for it 22 times meanwhile")


def refuse(*, times: int = 1, **elector: Any) -> Callable[[FakeServer, Elector], None]:
    """Return what has requests refused: of the successor, or of another elector."""

    def attempt(server: FakeServer, successor: Elector) -> None:
        replica = server.elector("mon-0", "shop/db", **elector) if elector else successor
        successor.ask()
        for _ in range(times):
            server.wait(0.001)
            replica.fail(403, "no", verb="get")

    return attempt


@pytest.mark.parametrize(
    ("attempt", "end"),
    [
        (refuse(), "; 22 requests by shop/db from pod db-1 were refused in that time, the last one with 403"),
        (
            refuse(times=5),
            "; at least 99 requests by shop/db from pod db-1 were refused in that time, the last one with 403",
        ),
        (refuse(user="system:serviceaccount:shop:mon"), "its pod had asked for it 23 times meanwhile"),
        (refuse(user="system:serviceaccount:shop:db"), "its pod had asked for it 23 times meanwhile"),
    ],
    ids=["its own", "more than are remembered", "a stranger's", "another replica's"],
)
def test_refusals_of_a_late_taker_are_counted(attempt: Callable[[FakeServer, Elector], None], end: str) -> None:
    assert late(taken_after_tries(attempt)).endswith(end)


def test_a_single_refusal_of_a_late_taker_is_one() -> None:
    def refuse_once(server: FakeServer, successor: Elector) -> None:
        if server.now == START + 60 * SECOND:
            successor.fail(403, "no")

    server = taken_after_tries(refuse_once)
    assert "; 1 request by shop/db from pod db-1 was refused in that time with 403" in late(server)


def test_requests_without_accepted_credentials_may_be_the_takers() -> None:
    server = taken_after_tries(lambda _, successor: successor.fail_unauthenticated("get"))
    assert late(server).endswith(
        "no request by its name was answered from 11:07:15Z until 11:07:59Z; some of 22 requests without "
        "accepted credentials, answered with 401, may be its own"
    )


@pytest.mark.parametrize("of", [follow_watch, follow_log])
def test_without_reads_it_is_not_known_who_waited(of: Any) -> None:
    server = taken_late(is_read=False)
    assert "whether it ran then, and who asked for the lease, is not known" in late(server, of)


def test_one_who_takes_it_as_followers_do_is_not_late() -> None:
    server, (db, *others) = shop()
    together(20, db, *others)
    together(18, *others)
    server.elector("db-1", "shop/db").lead(4)
    assert "taken-late" not in text(account(follow_log(server), server.now))


# ---- what else is said ----------------------------------------------------------------------------------------------


def test_a_log_that_was_read_is_not_to_be_read_again() -> None:
    server, (db, *others) = shop()
    together(20, db, *others)
    server.write("shop/db", {**server.leases["shop/db"]["spec"], "holderIdentity": "db-9_1"}, "other", "", "")
    together(4, *others)
    advice = advise(account(follow_watch(server), server.now))
    assert advice.endswith("lease-webhook why shop/db --input AUDIT-LOG")
    assert "AUDIT-LOG" not in advise(account(follow_log(server), server.now))


# ---- reads that are refused -----------------------------------------------------------------------------------------

NO_READS = (
    'leases.coordination.k8s.io "db" is forbidden: User "system:serviceaccount:shop:db" cannot get resource "leases"'
)


def test_one_who_may_not_read_an_unheld_lease_lacks_a_right() -> None:
    server, (db, *others) = shop()
    for _ in range(4):
        together(2, *others)
        db.fail(403, NO_READS, verb="get")
    answer = account(follow_log(server), server.now)
    assert make_headline(answer) == "the log has no write of it: 4 requests for it were refused"
    assert advise(answer).startswith("shop/db lacked the right to get the lease;")
    (claim,) = claims(follow_log(server), server, "read-refused")
    assert (claim["count"], claim["code"], claim["ongoing"]) == (4, 403, True)
    assert claim["text"].startswith(
        "4 reads by shop/db from pod db-0 refused with 403 for lack of permission, the last"
    )


def test_a_single_refused_read_is_one_request() -> None:
    server, (db, *others) = shop()
    together(4, *others)
    db.fail(403, "", verb="get")
    answer = account(follow_log(server), server.now)
    assert make_headline(answer) == "the log has no write of it: 1 request for it was refused"
    assert claims(follow_log(server), server, "read-refused") == []


def test_reads_that_a_webhook_does_not_know_are_by_an_unknown_user() -> None:
    server, (db, *others) = shop()
    together(10, db, *others)
    for _ in range(3):
        together(2, db, *others)
        server.log_request("shop/db", "get", "", "", {"message": ""}, 403)
    (claim,) = claims(follow_log(server), server, "read-refused")
    assert claim["text"].startswith(
        "3 reads by one or more unknown users (test at 10.0.0.0) refused with 403, the last one at "
    )


def test_reads_are_not_counted_beside_writes_that_were_refused() -> None:
    server, (db, *others) = shop()
    together(10, db, *others)
    other = server.elector("db-1", "shop/db")
    for _ in range(3):
        together(2, db, *others)
        other.fail(403, NO_READS, verb="get")
        other.fail(403, NO_READS.replace("get", "update"))
    assert claims(follow_log(server), server, "read-refused") == []


def late_with(wait: int = 20, of: Any = follow_log, **changes: object) -> str:
    """The claim about a process that took an expired lease late, after another user wrote it and a wait."""
    server, (db, *others) = shop()
    db.ask()
    successor = server.elector("db-1", "shop/db")
    together(20, db, *others)
    for _ in range(20):
        together(2, *others)
        successor.ask()
    server.write("shop/db", {**server.leases["shop/db"]["spec"], **changes}, "kubectl", "alice", "")
    for _ in range(wait // 2):
        together(2, *others)
        successor.ask()
    successor.take()
    return late(server, of)


def test_a_write_that_leaves_the_spec_hides_no_one_who_asked() -> None:
    assert "its pod had asked for it 22 times meanwhile" in late_with()


def test_an_elector_that_waits_anew_after_a_change_of_the_lease_is_not_blamed() -> None:
    changed = (
        "db-1_1 took it 45 s after it had expired at 11:07:15Z: it was changed meanwhile, the last time at 11:07:40Z "
        "(leaseTransitions 0 -> 5 by alice): an elector of client-go waits for the whole lease duration after each "
        "change"
    )
    assert late_with(leaseTransitions=5) == changed
    assert late_with(wait=14, leaseTransitions=5) == changed.replace("45 s", "39 s")
    assert late_with(of=follow_watch, leaseTransitions=5) == (
        changed.replace("45 s", "at least 44 s").replace(" by alice", ", under field manager kubectl")
    )


def test_an_elector_that_waits_for_longer_than_a_change_explains_is_late_all_the_same() -> None:
    assert late_with(wait=40, leaseTransitions=5).endswith(
        "waits for the whole lease duration after each change; of the time since 11:07:55Z: its pod had asked for it "
        "12 times meanwhile"
    )


def test_a_log_that_lacks_requests_shows_how_often_it_asked_at_least() -> None:
    server = taken_late(*range(0, 60, 2))
    histories = follow_log(server)
    histories.bounds.is_log_leaky = True
    (claim,) = claims(histories, server, "taken-late")
    assert claim["text"].endswith(
        "asked for the lease at least 22 times meanwhile, as far as is shown from 11:07:15Z on"
    )
    assert claim["how"] == "unknown"


def test_when_a_lease_of_another_duration_could_be_taken_is_not_known() -> None:
    assert late_with(leaseDurationSeconds=1) == ""


def test_no_one_is_late_to_take_a_heartbeat() -> None:
    server = FakeServer()
    node, neighbor = server.elector("n1", "kube-node-lease/n1"), server.elector("n2", "kube-node-lease/n1")
    together(20, node)
    server.wait(60)
    neighbor.take()
    together(10, neighbor)
    (history,) = follow_log(server).leases.values()
    assert [one.holder for one in history.tenures] == ["n1_1", "n2_1"]
    assert [*find_late_takers(follow_log(server), history, server.now)] == []


def test_a_taker_that_only_began_to_ask_waits_once() -> None:
    text = late(taken_late(*range(0, 17, 2)))
    assert text.endswith(
        "an elector of client-go that has not read it before, or not for a long time, waits for the whole lease "
        "duration"
    )


def late_after_release(**changes: Any) -> FakeServer:
    """A server on which db-1 takes the lease of db-0 half a minute after its release."""
    server, (db, *others) = shop()
    db.ask()
    together(20, db, *others)
    db.release()
    together(30, *others)
    server.elector("db-1", "shop/db").take(**changes)
    together(4, *others)
    return server


def test_a_lease_that_was_free_for_long_was_taken_late() -> None:
    output = late(late_after_release())
    assert output.startswith(
        "db-1_1 took it 30 s after it was freed at 11:07:00Z: the log has no answered request for it by its pod until"
    )
    assert late(late_after_release(), follow_watch).startswith("db-1_1 took it at least 29 s after it was freed at")


def test_a_taker_whose_updates_conflict_is_late_for_that() -> None:
    def conflict(server: FakeServer, successor: Elector) -> None:
        successor.fail(409)
        spec = server.leases["shop/db"]["spec"]
        server.write("shop/db", {**spec, "leaseTransitions": spec["leaseTransitions"] + 1}, "x", "cost-agent", "")

    output = late(taken_after_tries(conflict))
    assert "22 of its updates conflicted with other writes (409): others wrote it at least 23 times" in output


def test_of_a_user_without_a_pod_it_is_not_known_which_process_asked() -> None:
    server, (db, *others) = shop()
    db.ask()
    successor = server.elector("db-1", "shop/db")
    successor.pod = db.pod = ""
    together(20, db, *others)
    together(60, *others)
    successor.take()
    assert late(server).endswith(
        "its requests name no pod, so the log does not show which process asked for the lease, and which ran"
    )


def test_since_when_a_lease_is_free_that_another_one_shortened_is_not_known() -> None:
    server, (db, *others) = shop()
    together(4, *others)
    db.take()
    spec = {**server.leases["shop/db"]["spec"], "leaseDurationSeconds": 1}
    server.write("shop/db", spec, "kubectl", "alice", "")
    together(20, *others)
    assert headline(server).startswith("no one holds it: it lasts 1 s, so anyone may take it")
    (claim,) = claims(follow_log(server), server, "free")
    assert "from" not in claim


def test_a_taker_whose_writes_failed_is_late_for_that() -> None:
    output = late(taken_after_tries(lambda _, successor: successor.fail(500, "mvcc: database space exceeded")))
    assert "22 writes by its pod failed, the last one with 500: mvcc: database space exceeded" in output


def test_a_hole_in_the_log_does_not_show_that_a_taker_was_away() -> None:
    server, (db, *others) = shop()
    db.ask()
    together(20, db, *others)
    db.release()
    server.wait(60)
    together(2, *others)
    server.elector("db-1", "shop/db").take()
    assert "the log has nothing at all for a part of that time: nothing was answered then" in late(server)


def test_a_follower_of_a_rare_renewer_may_ask_as_rarely() -> None:
    server = FakeServer()
    first = server.elector("db-0", "shop/db", duration=3600, retry=9.0)
    first.lead(90)
    first.release()
    server.wait(14)
    server.elector("db-1", "shop/db", duration=3600, retry=9.0).lead(20)
    assert claims(follow_log(server), server, "taken-late") == []


def test_since_when_a_lease_is_free_that_another_one_shortened_is_not_known_of_a_list() -> None:
    server, (db, *_) = shop()
    db.take()
    server.wait(2)
    server.write("shop/db", {**server.leases["shop/db"]["spec"], "leaseDurationSeconds": 1}, "kubectl", "alice", "")
    server.wait(20)
    histories = cluster_of(server.dump())
    assert make_headline(account(histories, server.now)) == "no one holds it: it lasts 1 s, so anyone may take it"
    (claim,) = claims(histories, server, "free")
    assert "from" not in claim


def test_a_taker_whose_reads_failed_is_late_for_that() -> None:
    output = late(taken_after_tries(lambda _, successor: successor.fail(500, "corrupt object", verb="get")))
    assert "22 requests by its pod failed, the last one with 500: corrupt object" in output


def test_a_refused_taker_is_not_blamed_for_waiting_too_long() -> None:
    output = late(taken_after_tries(lambda _, successor: successor.fail(403, "no", verb="get")))
    assert "were refused in that time" in output
    assert "waits for longer than it must" not in output


def test_a_version_that_is_not_served_is_why_nobody_takes_it() -> None:
    server, others = abandoned()
    successor = server.elector("db-1", "shop/db")
    for _ in range(5):
        together(2, *others)
        successor.fail(404, UNKNOWN_RESOURCE, verb="get")
    asked = "; pod db-1 asks for it, and is answered with 404"
    assert headline(server).endswith(f"{asked}, as the API server does not serve the version that it asks for")


def test_a_taker_that_was_heard_before_the_lease_expired_is_not_said_not_to_have_run() -> None:
    """It was cut off with the holder: whoever reads a lease runs."""
    server = FakeServer()
    db, successor, mail = (server.elector(f"{name}-0", f"shop/{lease}") for name, lease in _CUT_OFF)
    together(20, db, mail)
    for _ in db.ticks(20):
        successor.ask()
        server.wait(0.5)
        db.renew()
        mail.renew()
    together(60, mail)
    for _ in mail.ticks(18):
        mail.renew()
        successor.ask()
        db.ask()
    successor.take()
    together(10, successor, mail)
    assert late(server) == (
        "standby-0_1 took it 1 min 2 s after it had expired at 11:07:35Z: the log has no answered request for it by "
        "its pod from 11:07:35Z until 11:08:21Z; an elector of client-go that has not read it before, or not for a "
        "long time, waits for the whole lease duration"
    )
    assert "Its pod asked for the lease again from 11:08:21Z on" in text(account(follow_log(server), server.now))


_CUT_OFF = (("db", "db"), ("standby", "db"), ("mail", "mail"))


@pytest.mark.parametrize(
    ("code", "message", "waits"),
    [(404, "", False), (403, "leases is forbidden", False), (401, "Unauthorized", False), (200, "", True)],
    ids=["not served", "forbidden", "not authenticated", "answered"],
)
def test_who_is_turned_away_at_each_read_does_not_wait_for_the_lease(code: int, message: str, waits: bool) -> None:
    server = FakeServer()
    db, other = server.elector("db-0", "shop/db"), server.elector("db-1", "shop/db")
    db.take()
    for _ in db.ticks(30):
        db.renew()
        other.fail(code, message, verb="get")
    assert ("Waiting: db-1 (reads the lease again and again)" in text(account(follow_log(server), server.now))) is waits


def restart_asker(
    every: int = 10, *tweaks: Tweak, pod: str = "db-1", user: str = USER, is_asked_at_once: bool = True
) -> FakeServer:
    """A server on which db has expired, and a pod asks for it that restarts again and again, as its kubelet writes."""
    server, others = abandoned()
    for _ in range(60 // every):
        if is_asked_at_once:
            log_status(server, *tweaks)
        server.log_request("shop/db", "get", user, pod, {"message": "no"}, 200)
        together(every, *others)
        if not is_asked_at_once:
            server.log_request("shop/db", "get", user, pod, {"message": "no"}, 200)
            together(every, *others)
            log_status(server, *tweaks)
            together(4, *others)
    return server


def log_status(server: FakeServer, *tweaks: Tweak) -> None:
    """Have the kubelet of db-1 write its status."""
    now = format_micro_time(server.now)
    at = put("requestReceivedTimestamp", now), put("stageTimestamp", now)
    server.log.append(status_event(*at, put("objectRef.name", "db-1"), *tweaks))


def test_a_pod_that_restarts_before_it_may_take_the_lease() -> None:
    server = restart_asker()
    found = account(follow_log(server), server.now)
    assert "Pod db-1 asks for it, and may be restarted before it has waited for 15 s; see its restarts" in advise(found)
    assert advise(found).endswith(
        "kubectl -n shop describe pod db-1; kubectl -n shop logs db-1 --previous --all-containers --ignore-errors"
    )
    assert "the kubelet of pod db-1, which asks for it, wrote the status of that at 11:0" in text(found)
    assert any("then it may never have waited for 15 s" in line.text for line in list_latest(found))


@pytest.mark.parametrize(
    "server",
    [
        restart_asker(20),
        restart_asker(60),
        restart_asker(10, put("user.username", "alice")),
        restart_asker(10, put("objectRef.subresource", "binding"), put("verb", "create")),
        restart_asker(10, put("objectRef.name", "db-2")),
        restart_asker(10, is_asked_at_once=False),
        restart_asker(10, pod=""),
        restart_asker(10, user="alice"),
    ],
    ids=[
        "it had the time to wait",
        "it was written once",
        "not by a kubelet",
        "no status",
        "another pod",
        "it asked at other times",
        "no pod",
        "no account",
    ],
)
def test_a_pod_of_which_nothing_hints_that_it_restarts(server: FakeServer) -> None:
    assert "restart" not in text(account(follow_log(server), server.now))
