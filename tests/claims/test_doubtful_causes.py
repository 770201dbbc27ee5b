"""Tests of answers that need not explain why a holder stopped: it may have stopped before, or always been refused."""

import json
from collections.abc import Callable

import pytest

from tests.claims.accounts import account, shop, taken_after_tries, text
from tests.history.fake_server import SECOND, Elector, FakeServer, together
from tests.history.observing import advise, follow_log, observe_all
from tests.inputs.reading import read
from webhook.analysis.history.audit_log.kept_refusals import MAX_FIRST, MAX_REFUSALS
from webhook.analysis.history.follow import ClusterHistory

PATCHES = (
    'leases.coordination.k8s.io "db" is forbidden: User "system:serviceaccount:shop:db" cannot patch resource "leases" '
    'in API group "coordination.k8s.io" in the namespace "shop"'
)
PATCHES_SHOWN = PATCHES.partition(" in API group")[0]
MAY_HAVE_STOPPED = "It may have stopped as well."

Try = Callable[[Elector], None]


def lose(*tries: tuple[float, Try]) -> FakeServer:
    """A holder that does something, so many seconds after its last renewal, until another one takes its lease."""
    server, (db, *others) = shop()
    together(20, db, *others)
    last = server.now
    for after, attempt in tries:
        together(after - (server.now - last) // 1_000_000, *others)
        attempt(db)
    together(18 - (server.now - last) // 1_000_000, *others)
    server.elector("db-1", "shop/db").take()
    together(4, *others)
    return server


def explain(server: FakeServer) -> str:
    found = account(follow_log(server), server.now)
    (lost,) = (one.message for one in found.findings if one.check == "leader-lost")
    return lost


def answer(code: int, message: str = "no") -> Try:
    return lambda db: db.fail(code, message)


def conflict_with_another(db: Elector) -> None:
    server = db.server
    server.write("shop/db", server.leases["shop/db"]["spec"] | {"leaseTransitions": 7}, "kubectl", "alice", "")
    db.fail(409, "the object has been modified")


@pytest.mark.parametrize(
    ("once", "said"),
    [
        (answer(403), "The writes of db-0_1 were refused: 1 write answered with 403: no."),
        (answer(500), "The API server could not store the writes of db-0_1: at least 1 request answered with 500: no;"),
        (
            answer(429),
            "The API server answered that there were too many requests: at least 1 request answered with 429, and none",
        ),
        (answer(404, ""), "The API server that it reached did not serve leases, or not the version that it asked for:"),
        (conflict_with_another, "1 of its updates conflicted with other writes (409)."),
    ],
    ids=["refused", "failed", "throttled", "not served", "conflicted"],
)
def test_a_holder_that_asked_once_may_have_stopped_as_well(once: Try, said: str) -> None:
    rarely = explain(lose((8, once)))
    assert said in rarely
    assert rarely.endswith(MAY_HAVE_STOPPED)
    often = explain(lose(*((after, once) for after in (2, 4, 6, 8, 10))))
    assert MAY_HAVE_STOPPED not in often


def limit_another(db: Elector) -> None:
    db.fail(429)
    db.server.elector("mail-1", "shop/mail", pod="").fail(429)


def limit_often(db: Elector) -> None:
    for _ in range(MAX_REFUSALS + MAX_FIRST + 1):
        db.server.wait(0.01)
        db.fail(429)


@pytest.mark.parametrize(
    ("once", "is_said"),
    [(answer(429), True), (limit_another, False), (limit_often, False)],
    ids=["one account", "another account, too", "more than are remembered"],
)
def test_that_one_account_alone_asked_too_much_is_said_if_it_is_known(once: Try, *, is_said: bool) -> None:
    assert (", and none for a lease by another account" in explain(lose((8, once)))) is is_said


def test_whether_others_asked_too_much_is_not_known_if_no_other_is_logged() -> None:
    server = lose((8, answer(429)))
    server.log = [one for one in server.log if one["objectRef"]["name"] == "db"]
    assert "answered with 429." in explain(server)


def test_which_of_several_logs_has_the_answers_is_said() -> None:
    server = lose((6, answer(429)), (8, answer(429)))
    limited = [one for one in server.log if one["responseStatus"]["code"] == 429]
    rest = [one for one in server.log if one not in limited]
    logs = (b"\n".join(json.dumps(one).encode() for one in part) for part in (rest, limited))
    histories = ClusterHistory()
    observe_all(histories, *(read(f"audit-{number}.log", [log]) for number, log in enumerate(logs, 1)))
    said = text(account(histories, server.now))
    assert "at least 2 requests answered with 429 (log audit-2.log), and none" in said


def test_refusals_with_different_codes_are_counted_with_all_of_these() -> None:
    output = explain(lose((2, answer(422)), (4, answer(422)), (6, answer(403, PATCHES)), (8, answer(403, PATCHES))))
    assert f"4 writes answered with 403 and 422, the last one: {PATCHES_SHOWN}." in output


def refuse_patches(*, before: bool) -> FakeServer:
    """A holder whose pod may not patch the lease, which it tries while it renews, too, if `before`; then it stops."""
    server, (db, *others) = shop()
    together(20, db, *others)
    for _ in range(3):
        if before:
            db.fail(403, PATCHES, verb="patch")
        together(4, db, *others)
    for _ in range(4):
        together(4, *others)
        db.fail(403, PATCHES, verb="patch")
    server.elector("db-1", "shop/db").take()
    together(4, *others)
    return server


def test_what_was_refused_while_it_renewed_is_not_why_it_stopped() -> None:
    server = refuse_patches(before=True)
    output = explain(server)
    assert (
        f"Why is not known: 4 writes answered with 403, the last one: {PATCHES_SHOWN}; some were refused alike while"
        in output
    )
    assert advise(account(follow_log(server), server.now)).startswith("See the pod of db-0_1, which lost the lease")


def test_of_a_writer_that_was_refused_all_refusals_are_counted() -> None:
    """Also those that came while it was silent, which another finding is about."""
    server = refuse_patches(before=True)
    found = account(follow_log(server), server.now)
    (refused,) = (one.message for one in found.findings if one.check == "write-refused")
    assert refused.startswith("7 writes by shop/db from pod db-0 refused with 403 for lack of permission, the last one")


def test_what_was_not_refused_before_may_be_why_it_stopped() -> None:
    assert "The writes of db-0_1 were refused: 4 writes answered with 403" in explain(refuse_patches(before=False))


def test_refusals_in_an_earlier_silence_are_no_sign_of_another_write() -> None:
    server, (db, *others) = shop()
    together(20, db, *others)
    for _ in range(5):
        together(2, *others)
        db.fail(403, PATCHES)
    together(2, db, *others)
    for _ in range(8):
        together(2, *others)
        db.fail(403, PATCHES)
    server.elector("db-1", "shop/db").take()
    together(4, *others)
    assert "The writes of db-0_1 were refused: 8 writes answered with 403" in explain(server)


def test_a_holder_without_a_pod_in_a_log_is_looked_for() -> None:
    server = FakeServer()
    first = server.elector("leader", "shop/db", pod="")
    first.identity = "leader"
    first.lead(20)
    server.wait(20)
    second = server.elector("next", "shop/db", pod="", user="other")
    second.lead(4)
    assert advise(account(follow_log(server), server.now)) == (
        "Check whether leader, which lost the lease, is one of the pods: kubectl -n shop get pods"
    )


def test_a_bound_by_default_is_said_of_the_default_duration_only() -> None:
    said = []
    for duration in (15, 30):
        server, (db, *others) = shop()
        db.duration = duration
        together(20, db, *others)
        together(24, *others)
        together(6, db, *others)
        said.append(text(account(follow_log(server), server.now)))
    assert "By default client-go stops leading after 10 s to 12 s; the lease expired, and no one took it." in said[0]
    assert "By default" not in said[1]


def test_a_request_that_was_not_answered_is_not_said_to_be_none() -> None:
    """An API server that hangs logs that it received a request, if its policy has that stage, and not the answer."""
    server, (db, *others) = shop()
    together(20, db, *others)
    for _ in range(8):
        together(2, *others)
        db.ask()
        event = server.log[-1]
        event["stage"] = "RequestReceived"
        del event["responseStatus"], event["responseObject"]
    server.elector("db-1", "shop/db").take()
    together(4, *others)
    assert "the log has no answered request for the lease from its pod" in explain(server)


def test_what_came_after_the_end_of_an_input_is_left_open() -> None:
    server, (db, *others) = shop()
    db.duration = 3600
    together(20, db, *others)
    together(40, *others)
    for after, said in (
        (0, "db-0_1 has not renewed since 11:07:00Z, for 40 s, although"),
        (60, "db-0_1 did not renew from 11:07:00Z until 11:07:40Z, when the input ends, for 40 s, although"),
    ):
        found = account(follow_log(server), server.now + after * SECOND)
        (late,) = (one.message for one in found.findings if one.check == "renewal-late")
        assert late.startswith(said)


def test_failures_of_a_late_taker_are_counted_at_least_if_some_are_forgotten() -> None:
    def fail(_server: FakeServer, successor: Elector) -> None:
        successor.ask()
        successor.fail(500, "full")

    server = taken_after_tries(fail, times=120)
    (late,) = (one.message for one in account(follow_log(server), server.now).findings if one.check == "taken-late")
    assert late.endswith(": at least 100 writes by its pod failed, the last one with 500: full")
