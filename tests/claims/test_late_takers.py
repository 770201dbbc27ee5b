"""Late takers in a log that lacks requests: their refusals, and when their pods got a node."""

from collections.abc import Callable

import pytest

from tests.claims.accounts import account, shop
from tests.claims.test_pods import log_pod
from tests.factories import Tweak, put
from tests.history.fake_server import Elector, FakeServer, together
from tests.history.observing import follow_log
from webhook.analysis.claims.claim import Claim
from webhook.findings import ReportFinding

UNKNOWN = "the log does not show whether it ran then, and asked for the lease"
BOUND = "its pod got a node only at 11:07:30Z, and did not run before"


def late(attempt: Callable[[FakeServer, Elector], object], *, user: str = "system:serviceaccount:shop:db") -> str:
    """Return why db-1 took the lease late, after it tried something 45 s before, by a log that lacks requests."""
    server, (db, *others) = shop()
    db.ask()
    successor = server.elector("db-1", "shop/db", user=user)
    successor.ask()
    together(20, db, *others)
    for second in range(0, 60, 2):
        together(2, *others)
        if second == 28:
            attempt(server, successor)
    successor.take()
    together(10, successor, *others)
    histories = follow_log(server)
    histories.bounds.is_log_leaky = True
    (finding,) = (one for one in account(histories, server.now).findings if one.check == "taken-late")
    return finding.message.partition("11:07:15Z: ")[2]


def refuse(*names: str, is_named: bool = True) -> Callable[[FakeServer, Elector], None]:
    """Have requests of pods refused: by name, or without accepted credentials."""

    def attempt(server: FakeServer, _: Elector) -> None:
        for name in names:
            elector = server.elector(name, "shop/db")
            server.wait(0.001)
            if is_named:
                elector.fail(403, "no", verb="get")
            else:
                elector.fail_unauthenticated("get")

    return attempt


def test_requests_that_were_refused_are_requests() -> None:
    assert late(refuse("db-1")) == (
        "its pod asked for the lease; 1 request by shop/db from pod db-1 was refused in that time with 403"
    )


def test_writes_that_conflicted_are_requests() -> None:
    assert late(lambda _, elector: elector.fail(409, "the object has been modified")) == (
        "its pod asked for the lease, and at least 1 of its updates conflicted with other writes (409)"
    )


def test_requests_of_another_replica_that_were_refused_say_nothing_of_the_taker() -> None:
    assert late(refuse("db-2")) == UNKNOWN


def test_requests_without_credentials_from_its_address_may_be_its_own() -> None:
    assert late(refuse("db-1", "db-1", is_named=False)) == (
        "2 requests from its address and program were answered with 401 in that time: it may have asked for the lease"
    )


def test_requests_without_credentials_from_elsewhere_say_nothing_of_the_taker() -> None:
    assert late(refuse("db-2", is_named=False)) == UNKNOWN


def test_requests_without_credentials_from_a_shared_address_are_said_to_be_so() -> None:
    def attempt(server: FakeServer, successor: Elector) -> None:
        successor.fail_unauthenticated("get")
        address = server.log[-1]["sourceIPs"]
        server.elector("db-2", "shop/db").ask()
        server.log[-1]["sourceIPs"] = address

    assert late(attempt) == (
        "1 request from its address and program, which others use, too, was answered with 401 in that time: it may "
        "have asked for the lease"
    )


def bind(pod: str, *tweaks: Tweak) -> Callable[[FakeServer, Elector], None]:
    """Have a pod get a node."""

    def attempt(server: FakeServer, _: Elector) -> None:
        named = put("objectRef.name", pod), put("objectRef.subresource", "binding"), put("verb", "create")
        log_pod(server, *named, put("responseStatus.code", 201), *tweaks)

    return attempt


def test_a_pod_that_got_its_node_later_did_not_run_before() -> None:
    assert late(bind("db-1")) == BOUND


@pytest.mark.parametrize(
    "attempt",
    [
        bind("db-2"),
        bind("db-1", put("objectRef.namespace", "other")),
        bind("db-1", put("responseStatus.code", 409)),
        bind("db-1", put("objectRef.subresource", "status"), put("verb", "patch")),
        bind("db-1", put("stageTimestamp", "2026-11-18T11:07:00.000000Z")),
    ],
    ids=["another pod", "in another namespace", "a refused one", "a status", "before the lease was free"],
)
def test_what_else_is_written_of_pods_does_not_show_when_a_taker_began(
    attempt: Callable[[FakeServer, Elector], None],
) -> None:
    assert late(attempt) == UNKNOWN


def test_a_taker_that_is_no_service_account_has_no_pod_that_a_log_shows() -> None:
    assert late(bind("db-1"), user="nina@example.org") == UNKNOWN


def take_late(*, has_asked: bool, bound_before: int | None = None) -> ReportFinding:
    """Have db-1 take a lease a minute after its release: it had asked before, or had got a node so many seconds before.

    Return the finding that it came late.
    """
    server, (db, *others) = shop()
    server.uids["db-1"] = "u-1"
    db.ask()
    if bound_before is not None:
        together(50 - bound_before, db, *others)
        log_binding(server)
    successor = server.elector("db-1", "shop/db")
    if has_asked:
        successor.ask()
    together(20 if bound_before is None else bound_before, db, *others)
    db.release()
    together(60, *others)
    successor.ask()
    successor.take()
    together(10, successor, *others)
    (finding,) = (one for one in account(follow_log(server), server.now).findings if one.check == "taken-late")
    return finding


@pytest.mark.parametrize("has_asked", [False, True], ids=["it never asked before", "it asked before"])
def test_why_a_pod_that_never_asked_before_started_late_is_not_in_its_log(has_asked: bool) -> None:
    finding = take_late(has_asked=has_asked)
    assert "the log has no answered request for it by its pod" in finding.message
    started = "kubectl -n shop describe pod db-1; kubectl -n shop logs db-1"
    assert finding.fix == ("kubectl -n shop logs db-1" if has_asked else started)


def log_binding(server: FakeServer, user: str = "system:kube-scheduler") -> None:
    """Have db-1 get a node."""
    named = put("objectRef.name", "db-1"), put("objectRef.subresource", "binding"), put("verb", "create")
    log_pod(server, *named, put("responseStatus.code", 201), put("user.username", user))


@pytest.mark.parametrize(
    ("user", "by", "sentence"),
    [
        ("system:kube-scheduler", "", "See why no other pod took the lease earlier, "),
        (
            "system:serviceaccount:volcano:scheduler",
            " from volcano/scheduler",
            "See why volcano/scheduler gave the pod no node before:",
        ),
    ],
    ids=["of Kubernetes", "another one"],
)
def test_a_scheduler_that_is_not_the_one_of_kubernetes_is_named(user: str, by: str, sentence: str) -> None:
    server, (db, *others) = shop()
    server.uids["db-1"] = "u-1"
    db.ask()
    together(20, db, *others)
    db.release()
    together(60, *others)
    log_binding(server, user)
    server.wait(1)
    successor = server.elector("db-1", "shop/db")
    successor.ask()
    successor.take()
    together(10, successor, *others)
    (finding,) = (one for one in account(follow_log(server), server.now).findings if one.check == "taken-late")
    assert finding.message.endswith(f"its pod got a node only at 11:08:00Z{by}, and did not run before")
    assert isinstance(finding, Claim)
    assert finding.advice.startswith(sentence)
    assert ("kubectl -n volcano get pods,events" in finding.fix) is bool(by)


@pytest.mark.parametrize(
    ("before", "has_asked", "is_said"),
    [(10, False, True), (40, False, False), (10, True, False)],
    ids=["shortly before", "long before, as of an earlier pod of that name", "it ran before"],
)
def test_a_pod_that_had_a_node_and_did_not_ask_is_said_to(before: int, has_asked: bool, is_said: bool) -> None:
    finding = take_late(has_asked=has_asked, bound_before=before)
    assert "the log has no answered request for it by its pod" in finding.message
    assert (", which got a node at 11:07:20Z, until 11:08:29Z" in finding.message) is is_said
    assert ("got a node" in finding.message) is is_said
