"""Two electors that take a lease from each other: one finding, which goes on as long as they do."""

from collections.abc import Callable

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import SECOND, FakeServer
from tests.history.observing import advise, follow_log, follow_watch
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.claim import Claim
from webhook.analysis.claims.urgency import advise_with_urgency
from webhook.analysis.history.follow import ClusterHistory

Follow = Callable[[FakeServer], ClusterHistory]


def contend(times: int, *, names: tuple[str, ...] = ("db-0", "db-1")) -> FakeServer:
    """A lease that each of some replicas takes in turn, every five seconds, as if it were free."""
    server = FakeServer(uids={name: f"uid-of-{name}" for name in names})
    electors = [server.elector(name, "shop/db") for name in names]
    electors[0].lead(20)
    for number in range(times):
        server.wait(5)
        electors[(number + 1) % len(electors)].take()
    return server


def claims_of(one: Account, check: str) -> list[Claim]:
    return [found for found in one.findings if isinstance(found, Claim) and found.check == check]


@pytest.mark.parametrize(
    ("follow", "words"),
    [
        (follow_log, "db-1_1 and db-0_1 took the lease from each other 6 times"),
        (follow_watch, "db-1_1 and db-0_1 were written into the lease in place of each other 6 times"),
    ],
)
def test_takeovers_in_turns_are_one_finding(follow: Follow, words: str) -> None:
    server = contend(6)
    one = account(follow(server), server.now)
    (found,) = claims_of(one, "lease-contended")
    assert found.message == f"{words} from 11:07:05Z to 11:07:30Z, while it was live: both may lead"
    assert not claims_of(one, "lease-stolen")
    assert found.over_since == 0
    assert advise(one).startswith("Both may lead: stop one of them, and find out why they do not wait")
    assert advise_with_urgency(one).sentence.startswith("Act now. ")


def test_a_contest_that_is_over_says_when_it_was() -> None:
    server = contend(6)
    server.elector("db-0", "shop/db").lead(60)
    server.elector("db-0", "shop/db").release()
    one = account(follow_log(server), server.now)
    (found,) = claims_of(one, "lease-contended")
    assert found.message.endswith("while it was live: both may have led all the time")
    assert found.over_since is not None
    assert found.over_since < server.now - 50 * SECOND


def test_three_takeovers_are_thefts() -> None:
    server = contend(3)
    one = account(follow_log(server), server.now)
    assert not claims_of(one, "lease-contended")
    assert len(claims_of(one, "lease-stolen")) == 3


def test_thefts_by_three_in_a_circle_are_no_contest_of_two() -> None:
    server = contend(6, names=("db-0", "db-1", "db-2"))
    assert not claims_of(account(follow_log(server), server.now), "lease-contended")


def test_takeovers_after_the_expiry_are_no_contest() -> None:
    server = FakeServer()
    first, second = server.elector("db-0", "shop/db"), server.elector("db-1", "shop/db")
    for _ in range(4):
        first.lead(4)
        server.wait(20)
        second.lead(4)
        server.wait(20)
    assert not claims_of(account(follow_log(server), server.now), "lease-contended")


def test_another_writer_that_puts_both_there_in_turns_is_named_and_no_contest() -> None:
    server = contend(0)
    for number in range(6):
        server.wait(2)
        spec = server.leases["shop/db"]["spec"] | {"holderIdentity": f"db-{(number + 1) % 2}_1"}
        server.write("shop/db", spec, "kubectl-patch", "mallory", "")
    one = account(follow_log(server), server.now)
    assert not claims_of(one, "lease-contended")
    assert "mallory wrote db-1_1 into the lease" in text(one)
