"""Another user asks for a lease that is held, and the next renewal conflicts: a log of requests shows no more."""

from collections.abc import Callable

import pytest

from tests.claims.accounts import account, shop, text
from tests.history.fake_server import Elector, FakeServer, together
from tests.history.observing import advise, follow_log
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.claim import Claim
from webhook.findings import Severity

RUNNER = "system:serviceaccount:ci:runner"


def conflict(db: Elector) -> None:
    db.fail_as(db.identity, 409, "the object has been modified")


def play(
    answer: Callable[[Elector], object] = conflict,
    *,
    user: str = RUNNER,
    waits: float = 1,
    is_shown: bool = False,
    is_alone: bool = False,
) -> Account:
    """Have a user without a pod write a name into the lease that db-0 renews; db-0 takes it back once that is over."""
    server, (db, *others) = shop()
    others = others[2:] if is_alone else others
    together(20, db, *others)
    server.wait(0.9)
    thief = server.elector("db-9", "shop/db", user=user, pod="")
    thief.take()
    server.wait(waits)
    answer(db)
    together(10, thief, *others)
    for _ in range(10):
        server.wait(2)
        for other in others:
            other.renew()
    db.take()
    together(10, db, *others)
    return account(follow_log(server if is_shown else hide(server)), server.now)


def hide(server: FakeServer) -> FakeServer:
    """Leave what was stored out of the log."""
    for event in server.log:
        stored = event.pop("responseObject", {})
        if "spec" in stored and "requestObject" not in event:
            metadata = {key: stored["metadata"][key] for key in ("name", "namespace")}
            event["requestObject"] = {**stored, "metadata": metadata}
        event["objectRef"].pop("resourceVersion", None)
    return server


def find_theft(found: Account) -> Claim | None:
    thefts = (one for one in found.findings if isinstance(one, Claim) and one.check == "lease-stolen")
    return next(thefts, None)


def test_it_is_said_as_what_was_asked_for() -> None:
    found = play()
    theft = find_theft(found)
    assert theft is not None
    assert theft.severity is Severity.WARNING
    assert theft.message.startswith(
        "at 11:07:00Z ci/runner asked for the lease as db-9_1, 0.9 s after the last renewal by db-0_1, and was not "
        "refused; the next renewal by that one conflicted (409) at 11:07:01Z"
    )
    assert theft.message.endswith(
        "The log does not show what was stored; if that is what was asked for, two may have led at once"
    )


def test_what_a_thief_lost_is_lost_because_of_the_theft() -> None:
    found = play()
    assert "leader-lost: db-9_1 last renewed" in text(found)
    assert advise(found) == (
        "Find out why ci/runner asked for the lease while db-0_1 held it. "
        "Deleting ServiceAccount ci/runner revokes a stolen token. "
        "To see what gives ci/runner the right: lease-webhook writers shop/db"
    )


@pytest.mark.parametrize("is_alone", [False, True], ids=["beside other leases", "alone"])
def test_who_renewed_without_a_pod_is_looked_for_by_its_user(*, is_alone: bool) -> None:
    found = play(is_alone=is_alone)
    (lost,) = (one for one in found.findings if isinstance(one, Claim) and one.check == "leader-lost")
    assert lost.advice.startswith("Look where db-9_1 runs: it writes as ci/runner, and not with the token of a pod.")


def test_what_a_thief_lost_whose_theft_is_shown_is_lost_because_of_that() -> None:
    assert advise(play(is_shown=True)).startswith("Find out why ci/runner took the lease from shop/db.")


@pytest.mark.parametrize(
    "found",
    [
        play(lambda _: None),
        play(lambda db: db.fail_as("db-0_2", 409, "the object has been modified")),
        play(lambda db: db.fail_as(db.identity, 500)),
        play(waits=16),
        play(user="system:serviceaccount:shop:db"),
    ],
    ids=["no answer", "another name", "a failure", "long after", "of the holder's account"],
)
def test_without_a_conflict_of_the_holder_with_another_user_it_is_not_known(found: Account) -> None:
    assert find_theft(found) is None
