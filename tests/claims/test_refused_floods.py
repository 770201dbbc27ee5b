"""Many refused reads of a lease: those of others displace nothing, and those that count are counted as far as kept."""

import pytest

from tests.claims.accounts import account, shop, text
from tests.factories import put
from tests.history.fake_server import Elector, FakeServer, together
from tests.history.observing import follow_log
from tests.inputs.test_related_writes import write_event
from webhook.analysis.history.visibility.bounds import MAX_LISTED
from webhook.kubernetes.times import format_micro_time

DENIED = 'admission webhook "w.example.com" denied the request: no'


def flood(server: FakeServer, *users: Elector, number: int = 150) -> None:
    """Have reads be refused, each of another moment."""
    for _ in range(number):
        server.wait(0.2)
        for one in users:
            one.fail(403, "forbidden", verb="get")


def lose(*, is_flooded: bool) -> str:
    """Return the text about a lease that another process takes after a webhook has refused its holder."""
    server, (db, *others) = shop()
    together(20, db, *others)
    for _ in range(8):
        server.wait(2)
        db.fail(403, DENIED)
    if is_flooded:
        flood(server, server.elector("x-0", "shop/db", user="system:serviceaccount:evil:x"))
    else:
        server.wait(30)
    server.elector("db-1", "shop/db").lead(20)
    return text(account(follow_log(server), server.now))


@pytest.mark.parametrize(
    "is_flooded", [False, True], ids=["alone", "beside refused reads of an account without rights"]
)
def test_what_refused_a_holder_is_known(*, is_flooded: bool) -> None:
    assert "The writes of db-0_1 were refused: 8 writes answered with 403" in lose(is_flooded=is_flooded)


def test_of_the_refused_reads_of_a_late_taker_the_latest_are_counted() -> None:
    server, (db, *others) = shop()
    together(20, db, *others)
    successor = server.elector("new-0", "shop/db", user="system:serviceaccount:shop:new")
    server.wait(15)
    flood(server, successor)
    successor.lead(10)
    said = text(account(follow_log(server), server.now))
    assert "at least 108 requests by shop/new from pod new-0 were refused in that time" in said


def test_of_reads_without_accepted_credentials_the_latest_are_counted() -> None:
    server, (db, *others) = shop()
    together(20, db, *others)
    for _ in range(60):
        together(2, *others)
        for _ in range(2):
            server.wait(0.01)
            db.fail_unauthenticated("get")
    said = text(account(follow_log(server), server.now))
    assert "at least 108 reads answered with 401 (Unauthorized)" in said


@pytest.mark.parametrize(("number", "is_told"), [(20, True), (150, False)], ids=["few", "of one of many pods"])
def test_what_may_have_begun_the_refusals_of_one_that_never_held_it(number: int, *, is_told: bool) -> None:
    """If the first refusal is forgotten, as those of many other pods are kept, no role is said to be before it."""
    server, (db, *others) = shop()
    together(20, db, *others)
    user = "system:serviceaccount:shop:x"
    reader, *crowd = (server.elector(f"x-{one}", "shop/db", user=user) for one in range(MAX_LISTED + 1))
    message = 'leases.coordination.k8s.io "db" is forbidden: User "x" cannot get resource "leases"'
    for other in () if is_told else crowd:
        other.fail(403, message, verb="get")
    reader.fail(403, message, verb="get")
    for one in range(number):
        if one == number // 3 + 1 and not is_told:
            log_role(server)
        server.wait(4)
        reader.fail(403, message, verb="get")
    if is_told:
        server.wait(1)
        log_role(server)
    db.lead(10)
    assert ("Role shop/db was updated" in text(account(follow_log(server), server.now))) is is_told


def log_role(server: FakeServer) -> None:
    at = put("stageTimestamp", format_micro_time(server.now))
    server.log.append(write_event("roles", "rbac.authorization.k8s.io", put("verb", "update"), at))
