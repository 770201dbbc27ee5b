"""A service account that is no pod and writes from an address of its own: where that is, and what revokes its token."""

from collections.abc import Callable

import pytest

from tests.claims.accounts import account, shop
from tests.history.fake_server import Elector, FakeServer, together
from tests.history.observing import advise, follow_log
from tests.history.test_refusal import RIGHTS
from webhook.analysis.inputs.items import Writer

ADDRESS = "10.9.9.9"
CI = "system:serviceaccount:shop:ci"
REVOKED = "Deleting ServiceAccount shop/ci revokes a stolen token."
WROTE = f"It wrote from {ADDRESS}; deleting ServiceAccount shop/ci revokes a stolen token."

Act = Callable[[FakeServer, Elector], None]


def release(server: FakeServer, stranger: Elector) -> None:
    stranger.release()


def write_in(server: FakeServer, stranger: Elector) -> None:
    stranger.take()


def take(server: FakeServer, stranger: Elector) -> None:
    stranger.lead(4)


def take_without_answer(server: FakeServer, stranger: Elector) -> None:
    """Take it in a log that shows what was asked for, and the conflict of the holder's next renewal."""
    stranger.take()
    for event in server.log:
        if event["verb"] in {"create", "update"}:
            event["level"], event["requestObject"] = "Request", event.pop("responseObject")


def edit(server: FakeServer, stranger: Elector) -> None:
    """Change how long it lasts, three times."""
    for seconds in (14, 13, 12):
        server.wait(2)
        spec = server.leases["shop/db"]["spec"] | {"leaseDurationSeconds": seconds}
        server.write("shop/db", spec, "curl", stranger.user, stranger.pod)


def refuse_later(server: FakeServer, stranger: Elector) -> None:
    """Release it, take it, and lack the right to renew it then."""
    stranger.release()
    stranger.take()
    server.wait(2)
    stranger.fail(403, RIGHTS)


def said_of(act: Act, *, user: str = CI, pod: str = "", address: str = ADDRESS) -> str:
    """Return the advice after a stranger did something to a lease that was held."""
    server, (db, mail, cart) = shop()
    together(20, db, mail, cart)
    server.wait(1)
    done = len(server.log)
    act(server, server.elector("x", "shop/db", user=user, pod=pod, manager="curl"))
    for event in server.log[done:]:
        event["sourceIPs"] = [address]
    server.wait(1)
    if act is take_without_answer:
        db.fail(409, "the object has been modified")
        server.log[-1]["requestObject"] = {"spec": {"holderIdentity": db.identity}, "kind": "Lease"}
    if act is refuse_later:
        together(20, mail, cart)
        db.take()
        together(20, db, mail, cart)
    elif act is edit:
        db.renew()
    return advise(account(follow_log(server), server.now))


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (release, WROTE),
        (refuse_later, WROTE),
        (edit, WROTE),
        (take, REVOKED),
        (take_without_answer, REVOKED),
    ],
)
def test_what_revokes_the_token_of_a_service_account_is_said_with_its_address(act: Act, said: str) -> None:
    found = said_of(act)
    assert f"{said} To see" in found
    assert (f"wrote from {ADDRESS}" in found) is (said == WROTE)


def annotate(server: FakeServer, stranger: Elector) -> None:
    """Write the lease three times as it is, as who keeps notes in its annotations does."""
    for _ in range(3):
        server.wait(2)
        server.write("shop/db", dict(server.leases["shop/db"]["spec"]), "curl", stranger.user, stranger.pod)


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(said_of(annotate), id="of one who keeps notes on it"),
        pytest.param(said_of(write_in), id="of one who writes another's name, as a restore does"),
        pytest.param(said_of(release, user="alice"), id="of a person"),
        pytest.param(said_of(release, pod="x"), id="of a pod"),
        pytest.param(said_of(release, address="10.160.202.69"), id="of the address of the holder's pod"),
    ],
)
def test_without_a_service_account_of_an_address_of_its_own_nothing_is_revoked(found: str) -> None:
    assert "revokes" not in found


def test_the_account_of_other_holders_is_not_to_be_deleted() -> None:
    server, (db, *others) = shop()
    together(20, db, *others)
    server.elector("x", "shop/db", user=db.user, pod="").release()
    server.log[-1]["sourceIPs"] = [ADDRESS]
    server.wait(1)
    found = account(follow_log(server), server.now).findings
    assert "foreign-release" in {one.check for one in found}
    assert "revokes" not in advise(account(follow_log(server), server.now))


def test_a_user_that_acts_as_a_service_account_has_no_token_of_it() -> None:
    server, (db, *others) = shop()
    together(20, db, *others)
    server.elector("x", "shop/db", user=CI, pod="").release()
    server.log[-1]["sourceIPs"] = [ADDRESS]
    server.log[-1] |= {"user": {"username": "bob"}, "impersonatedUser": {"username": CI}}
    found = account(follow_log(server), server.now)
    assert Writer(CI, impersonator="bob") in {one.removal.writer for one in found.history.tenures}
    assert "revokes" not in advise(found)
