"""Reads that an API server answered while a holder was silent: which of them show that it could have renewed."""

from collections.abc import Sequence

import pytest
from msgspec import Struct

from tests.claims.accounts import account, shop, text
from tests.history.fake_server import SECOND, FakeServer, together
from tests.history.observing import follow_log


class Reader(Struct, frozen=True):
    """Read a lease while its holder is silent, with the token of a pod or as another user."""

    user: str = "nina@example.org"
    pod: str = ""
    impersonated: str = ""
    query: str = ""
    verb: str = "get"


_OWN = "system:serviceaccount:shop:db"


def read_meanwhile(reader: Reader, *, seconds: Sequence[float] = tuple(range(2, 24, 2)), pod: str = "db-0") -> str:
    """Return what is said of a holder that was silent for 24 s, while the API server answered a reader at times."""
    server = FakeServer()
    first, second = server.elector("db-0", "shop/db", pod=pod), server.elector("db-1", "shop/db")
    first.lead(40)
    began = server.now
    for at in seconds:
        server.now = began + int(at * SECOND)
        server.log_request("shop/db", reader.verb, reader.user, reader.pod, {})
        server.log[-1]["requestURI"] += reader.query
        if reader.impersonated:
            server.log[-1]["impersonatedUser"] = {"username": reader.impersonated}
        server.elector("mail-0", "shop/mail").ask()
    server.now = began + 24 * SECOND
    second.lead(10)
    return text(account(follow_log(server), server.now))


_ANSWERED = "reads of this lease by others meanwhile"


@pytest.mark.parametrize(
    ("reader", "counts"),
    [
        (Reader(), True),
        (Reader(_OWN, "db-1"), True),
        (Reader(_OWN, "db-1", impersonated="system:serviceaccount:shop:reader"), False),
        (Reader("nina@example.org", impersonated="system:serviceaccount:shop:reader"), True),
        (Reader(_OWN, "db-0", impersonated="system:serviceaccount:shop:reader"), False),
        (Reader(_OWN), False),
        (Reader(query="?resourceVersion=0"), False),
        (Reader(query="?fieldManager=x"), True),
        (Reader(verb="watch"), False),
    ],
    ids=[
        "a person",
        "another pod of its account",
        "a pod of its account as another user",
        "a person as another user",
        "its own pod as another user",
        "a token of its account without a pod",
        "from the cache",
        "with another parameter",
        "a watch",
    ],
)
def test_reads_of_others_that_need_etcd_show_that_it_answered(reader: Reader, *, counts: bool) -> None:
    output = read_meanwhile(reader)
    assert (_ANSWERED in output) is counts
    assert ("For most of that time the log has no answered request for the lease from its pod" in output) is counts
    assert ("Why is not known: no other lease" in output) is not counts


def test_a_pod_that_reads_as_another_user_is_not_called_silent() -> None:
    server, (db, *others) = shop()
    together(40, db, *others)
    for _ in range(10):
        together(2, *others)
        server.log_request("shop/db", "get", db.user, db.pod, {})
        server.log[-1]["impersonatedUser"] = {"username": "system:serviceaccount:shop:reader"}
    together(10, server.elector("db-1", "shop/db"), *others)
    assert "For most of that time the log has no answered request for the lease from its pod" not in text(
        account(follow_log(server), server.now)
    )


@pytest.mark.parametrize(
    ("seconds", "counts"),
    [([4], False), ([2, 4], False), ([2, 4, 6, 8, 10, 12], True), ([5, 10, 15], True), ([14, 16, 18], False)],
    ids=["a single one", "two at its start", "one each two seconds", "one each five seconds", "only at its end"],
)
def test_an_api_server_that_answered_at_times_may_have_been_away(seconds: list[float], *, counts: bool) -> None:
    assert (_ANSWERED in read_meanwhile(Reader(), seconds=seconds)) is counts


def test_a_log_that_ends_with_the_last_renewal_shows_no_answered_reads() -> None:
    """It was copied before the present: nothing in it is later than the renewal."""
    server = FakeServer()
    server.elector("db-0", "shop/db").lead(60)
    said = text(account(follow_log(server), server.now + 60 * SECOND))
    assert "reads of this lease" not in said
    assert "For most of that time the log has no answered request for the lease from its pod" not in said
