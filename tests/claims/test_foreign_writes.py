"""A user that took a lease from those it belongs to, and then lost the right: no advice gives that right back.

Source: the recorded incident of an account of another program that released a lease in the name of its holder.
"""

import pytest

from tests.claims.accounts import account, text
from tests.history.fake_server import Elector, FakeServer, together
from tests.history.observing import follow_log
from webhook.analysis.claims.claim import Claim

NO_RIGHT = 'leases.coordination.k8s.io "db" is forbidden: User "{}" cannot update resource "leases" in API group'
SCRAPER = "system:serviceaccount:shop:scraper"


def try_in_vain(elector: Elector) -> None:
    elector.fail(403, NO_RIGHT.format(elector.user))
    elector.server.log[-1]["annotations"] = {"authorization.k8s.io/decision": "forbid"}


def play(*, is_release: bool = True) -> FakeServer:
    """Have a stranger take the lease of db-0, and lose the right; db-0 takes it back once it has expired."""
    server = FakeServer()
    own, stranger = server.elector("db-0", "shop/db"), server.elector("db-9", "shop/db", user=SCRAPER, pod="")
    mail = server.elector("mail-0", "shop/mail")
    together(40, own, mail)
    server.wait(1)
    if is_release:
        spec = {**server.leases["shop/db"]["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
        server.write("shop/db", spec, "curl", SCRAPER, "")
        server.wait(0.01)
    stranger.take()
    together(40, stranger, mail)
    for pause in (2, 8, 6):
        together(pause, mail)
        server.wait(0.1)
        try_in_vain(stranger)
    own.take()
    together(20, own, mail)
    try_in_vain(stranger)
    return server


def said_of(server: FakeServer) -> str:
    return text(account(follow_log(server), server.now))


@pytest.mark.parametrize(("is_release", "did"), [(True, "removed"), (False, "replaced")], ids=["release", "theft"])
def test_who_took_the_lease_from_another_user_is_granted_no_right(is_release: bool, did: str) -> None:
    server = play(is_release=is_release)
    found = account(follow_log(server), server.now)
    advice = " ".join(one.advice for one in found.findings if isinstance(one, Claim))
    lacked = "at 11:07:21Z, and lacked the right to update the lease later: leave it so"
    assert f"shop/scraper {did} the holder {lacked}" in advice
    assert "grant that right" not in advice + text(found)


def test_an_elector_that_lacks_a_right_is_granted_it() -> None:
    server = FakeServer()
    own = server.elector("db-0", "shop/db")
    own.lead(40)
    for _ in own.ticks(20):
        try_in_vain(own)
    said = said_of(server)
    assert "shop/db lacked the right to update the lease; grant that right, if it is meant to lead." in said


def test_who_is_refused_again_and_again_has_not_stopped() -> None:
    said = said_of(play())
    assert "The writes of db-9_1 were refused: 3 writes answered with 403" in said
    assert "It may have stopped as well." not in said


def test_who_is_refused_and_then_asks_no_more_may_have_stopped() -> None:
    server = FakeServer()
    own, other = server.elector("db-0", "shop/db"), server.elector("db-1", "shop/db")
    mail = server.elector("mail-0", "shop/mail")
    together(40, own, mail)
    for pause in (2, 6):
        together(pause, mail)
        try_in_vain(own)
    together(30, mail)
    other.take()
    together(20, other, mail)
    assert "It may have stopped as well." in said_of(server)
