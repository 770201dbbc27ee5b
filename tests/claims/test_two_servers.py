"""Identity leases that several API servers renew, as their hosts have one name: by the addresses that they write."""

import pytest

from tests.claims.accounts import text
from tests.history.fake_server import FakeServer
from tests.history.observing import View, advise, follow_both, follow_log, follow_watch
from webhook.analysis.claims.account import Account
from webhook.analysis.claims.assemble import make_account
from webhook.analysis.claims.presentation.happened import list_latest

NAME = "apiserver-m7yxsmfu7r6kb4gth3ixukmnva"
FIRST, SECOND_ADDRESS = "10.0.0.1:6443", "10.0.0.2:6443"
SERVERS = (FIRST, SECOND_ADDRESS)


def renew_from(
    *addresses: str, name: str = NAME, user: str = "system:apiserver", host: str = "golden", apart: float = 5
) -> FakeServer:
    """A server on which an identity lease is renewed from one address after another, "" for none."""
    server = FakeServer()
    elector = server.elector("x", f"kube-system/{name}", user=user, pod="", duration=3600)
    elector.take()
    for address in addresses:
        server.wait(apart)
        elector.renew()
        metadata = server.leases[f"kube-system/{name}"]["metadata"]
        metadata["annotations"] = {"kubernetes.io/peer-advertise-address": address} if address else {}
        metadata["labels"] = {"kubernetes.io/hostname": host} if host else {}
    return server


def account_of(server: FakeServer, follow: View = follow_log, name: str = NAME) -> Account:
    histories = follow(server)
    return make_account(histories, histories.leases["kube-system", name], server.now)


@pytest.mark.parametrize("follow", [follow_log, follow_watch, follow_both])
def test_two_that_renew_one_lease_in_turn_are_said(follow: View) -> None:
    found = account_of(renew_from(*SERVERS * 3), follow)
    words = "2 API servers renewed it in turn under one identity, as they do if their hosts have one name golden: "
    assert f"{words}by its annotations, those at {SECOND_ADDRESS} and {FIRST}" in text(found)
    assert any(words in line.text for line in list_latest(found))
    assert "no longer since" not in text(found)
    assert "so it does not show whether each of them runs" in advise(found)


def test_one_that_renews_it_no_longer_is_said() -> None:
    said = text(account_of(renew_from(*SERVERS * 3, *[FIRST] * 7, host="")))
    assert f"one name: by its annotations, those at {FIRST} and {SECOND_ADDRESS}" in said
    assert f"; that at {SECOND_ADDRESS} no longer since 11:07:10Z" in said


@pytest.mark.parametrize(
    ("server", "name"),
    [
        (renew_from(*[FIRST] * 6), NAME),
        (renew_from(*[FIRST] * 6, *[SECOND_ADDRESS] * 6), NAME),
        (renew_from(*[""] * 6), NAME),
        (renew_from(*SERVERS * 3, user="alice"), NAME),
        (renew_from(*SERVERS * 3, name="apiserver-extension"), "apiserver-extension"),
    ],
    ids=["one", "one that moved", "no address", "another writer", "no API server"],
)
def test_one_after_another_is_not_two(server: FakeServer, name: str) -> None:
    assert "API servers renewed it" not in text(account_of(server, name=name))


def test_of_very_many_addresses_some_are_named() -> None:
    """A client that writes such annotations cannot fill the memory with them."""
    server = renew_from(*[f"10.0.0.{number}:6443" for number in range(20)], apart=1)
    assert "8 API servers renewed it in turn" in text(account_of(server))
