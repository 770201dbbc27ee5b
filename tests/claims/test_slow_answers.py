"""Answers that took long: which part of the API server took most of that time, where its log says so."""

import pytest

from tests.claims.accounts import account, shop, text
from tests.claims.test_related_writes import ADMISSION, log_write
from tests.factories import put
from tests.history.fake_server import SECOND, FakeServer, together
from tests.history.observing import advise, follow_log
from webhook.analysis.claims.presentation.happened import list_latest
from webhook.kubernetes.times import format_micro_time

BY = {"apiserver.latency.k8s.io/total": "3s", "apiserver.latency.k8s.io/mutating-webhook": "2.9s"}


SLOW = "at least 4 writes by shop/db from pod db-0 were answered after up to 3 s"


def delay(server: FakeServer, annotations: dict[str, str]) -> None:
    """Have the last answer take 3 s."""
    event = server.log[-1]
    put("annotations", annotations)(event)
    put("requestReceivedTimestamp", event["stageTimestamp"])(event)
    second = int(event["stageTimestamp"][17:19])
    assert second >= 3
    put("requestReceivedTimestamp", f"{event['stageTimestamp'][:17]}{second - 3:02}{event['stageTimestamp'][19:]}")(
        event
    )


def renew_slowly(times: int, *annotations: dict[str, str]) -> FakeServer:
    """A holder whose renewals are answered late from a moment on, at which a webhook was configured."""
    server, (db, *others) = shop()
    together(24, db, *others)
    server.wait(0.5)
    log_write(server, "mutatingwebhookconfigurations", ADMISSION, put("verb", "create"))
    server.wait(3)
    for number in range(times):
        server.wait(4)
        db.renew()
        delay(server, annotations[number % len(annotations)])
    together(4, db, *others)
    return server


def list_lines(server: FakeServer) -> list[str]:
    return [line.text for line in list_latest(account(follow_log(server), server.now))]


def test_renewals_that_take_long_because_of_webhooks_are_listed_with_a_webhook_that_was_new_then() -> None:
    lines = list_lines(renew_slowly(4, BY))
    assert (
        "at least 4 writes by shop/db from pod db-0 were answered after up to 3 s, most of that for mutating webhooks"
        in lines
    )
    assert any(line.startswith("MutatingWebhookConfiguration shop/db was created by alice") for line in lines)


@pytest.mark.parametrize("annotations", [[{}], [{}, BY]], ids=["of none", "of some only"])
def test_what_took_long_may_not_be_shown(annotations: list[dict[str, str]]) -> None:
    lines = list_lines(renew_slowly(4, *annotations))
    assert SLOW in lines


def test_an_answer_now_and_then_that_takes_long_is_no_news() -> None:
    assert not [line for line in list_lines(renew_slowly(2, BY)) if "answered after" in line]


def fail_slowly(part: str) -> FakeServer:
    server, (db, *others) = shop()
    together(20, db, *others)
    for _ in range(8):
        together(2, *others)
        db.fail(504, "timed out", took=1.5)
        took = {"apiserver.latency.k8s.io/total": "1.5s", f"apiserver.latency.k8s.io/{part}": "1.4s"}
        put("annotations", took)(server.log[-1])
    together(4, *others)
    return server


def test_of_writes_that_failed_after_long_it_is_said_that_webhooks_took_that_time() -> None:
    server = fail_slowly("mutating-webhook")
    answer = account(follow_log(server), server.now)
    words = "; of the 1.5 s of the last one, mutating webhooks took most, as the log says; 2 other leases"
    assert words in text(answer)
    assert "See which webhooks the API server calls for each write, and why they are slow: " in advise(answer)


def test_of_writes_for_which_etcd_took_long_others_may_be_at_another_api_server() -> None:
    server = fail_slowly("etcd")
    answer = account(follow_log(server), server.now)
    words = "etcd took most, as the log says; 2 other leases were renewed on time, so not everywhere: perhaps at one"
    assert words in text(answer)
    assert "See which webhooks" not in advise(answer)


def test_what_took_most_of_a_slow_renewal_may_be_etcd() -> None:
    server, (db, *_) = shop()
    db.lead(40)
    server.wait(6)
    server.log_request("shop/db", "update", db.user, db.pod, server.leases["shop/db"], took=5)
    put("annotations", {"apiserver.latency.k8s.io/total": "5s", "apiserver.latency.k8s.io/etcd": "4.8s"})(
        server.log[-1]
    )
    server.wait(6)
    db.lead(10)
    assert "it took up to 5 s to answer a write, most of it by etcd." in text(account(follow_log(server), server.now))


BY_ETCD = {"apiserver.latency.k8s.io/total": "5.003s", "apiserver.latency.k8s.io/etcd": "5.0004s"}


def stall(server: FakeServer, *, took: float = 5, annotations: dict[str, str]) -> None:
    """Have a lease time out for its holder, and a read of another process fail."""
    db, waiting = server.elector("db-0", "shop/db"), server.elector("db-1", "shop/db")
    waiting.fail(500, "context deadline exceeded", took=took, verb="get")
    put("annotations", annotations)(server.log[-1])
    db.fail(504, "Timeout: context deadline exceeded", took=took)


def lose_while_reads_fail(*, annotations: dict[str, str], others_hang: bool = False) -> FakeServer:
    server, (db, *others) = shop()
    waiting = server.elector("db-1", "shop/db")
    waiting.ask()
    together(40, db, *others)
    for _ in range(2):
        together(4, *others)
        server.wait(1)
        stall(server, annotations=annotations)
        for other in others if others_hang else ():
            other.renew()
            server.log[-1]["requestReceivedTimestamp"] = format_micro_time(server.now - 3 * SECOND)
    together(6, *others)
    waiting.take()
    together(4, *others)
    return server


def test_reads_that_waited_for_etcd_are_told_of_first_and_no_webhook() -> None:
    server = lose_while_reads_fail(annotations=BY_ETCD)
    answer = account(follow_log(server), server.now)
    words = "2 reads of this lease failed, having waited up to 5 s for etcd, as the log says; at least 2 requests "
    assert words in text(answer)
    assert "webhook" not in text(answer)
    assert "Look at etcd, for which the API server waited: its disk, and the network between them: " in advise(answer)


@pytest.mark.parametrize(
    "annotations",
    [{}, {"apiserver.latency.k8s.io/total": "5s", "etcd.example.com/etcd": "5s"}],
    ids=["the API server does not say what took long", "a webhook says it"],
)
def test_reads_that_fail_as_well_leave_no_webhook_as_the_cause(annotations: dict[str, str]) -> None:
    server = lose_while_reads_fail(annotations=annotations)
    answer = account(follow_log(server), server.now)
    assert "so not everywhere: perhaps at one API server only" in text(answer)
    assert "etcd, as the log says" not in text(answer)
    assert "perhaps a webhook" not in text(answer)
    assert "lease-webhook doctor" not in advise(answer)


def test_leases_whose_writes_took_for_seconds_were_not_renewed_on_time() -> None:
    server = lose_while_reads_fail(annotations=BY_ETCD, others_hang=True)
    output = text(account(follow_log(server), server.now))
    assert "writes of both other leases due at least twice failed or hung meanwhile" in output
    assert "on time" not in output
