"""API servers whose program has another name than kube-apiserver, and so writes under another field manager.

Source: the recorded incident of two candidates of the same second.
"""

import pytest

from tests.claims.accounts import account, text
from tests.claims.test_coordinated import STRATEGY, start_coordinated, writes
from tests.history.fake_server import FakeServer
from tests.history.observing import follow_log, follow_watch

CHOSEN = "b_1 was written into it (field manager k3s) after a_1 had been asked to step down (preferredHolder)"


def swap(server: FakeServer, *holders: str, manager: str = "k3s", strategy: str = STRATEGY) -> FakeServer:
    """Let an API server, or who has that field manager, ask each holder to step down for the next, and write that in.

    Each renews for 10 s.
    """
    for one in holders:
        writes(server, manager=manager, preferredHolder=one)
        server.wait(17)
        writes(server, manager=manager, holderIdentity=one, preferredHolder=None, leaseDurationSeconds=5)
        elector = server.elector(one.removesuffix("_1"), "shop/db")
        for _ in elector.ticks(10):
            elector.renew(strategy=strategy)
    return server


def explain(server: FakeServer) -> str:
    return text(account(follow_watch(server), server.now))


def test_a_field_manager_does_not_say_that_it_is_not_an_api_servers() -> None:
    said = explain(swap(start_coordinated()[0], "b_1"))
    asked = 'a_1 was asked to step down for "b_1" (preferredHolder), under field manager k3s'
    assert f"{asked} (API servers write under kube-apiserver by default)" in said
    assert "not that of" not in said


@pytest.mark.parametrize(
    ("name", "is_one"), [("apiserver-rplpdvtx3lntmi4xy2xnxookk4", True), ("controller-rplpdvtx", False)]
)
def test_a_field_manager_of_the_lease_of_an_api_server_is_said_to_be_that(name: str, *, is_one: bool) -> None:
    server, _ = start_coordinated()
    own = server.elector("cp-1", f"kube-system/{name}", user="system:apiserver", manager="k3s")
    own.lead(20)
    said = explain(swap(server, "b_1"))
    assert ("under field manager k3s, as the lease of an API server is" in said) is is_one
    assert ("API servers write under kube-apiserver by default" in said) is not is_one


def test_who_may_have_been_chosen_is_not_said_to_have_taken_the_lease() -> None:
    said = explain(swap(start_coordinated()[0], "b_1"))
    assert CHOSEN in said
    assert "b_1 took it" not in said


@pytest.mark.parametrize("manager", ["kube-apiserver", "operator"], ids=["the default", "its own"])
def test_who_was_chosen_or_took_it_under_its_own_field_manager_is(manager: str) -> None:
    said = explain(swap(start_coordinated()[0], "b_1", manager=manager))
    assert "was written into it" not in said


def test_a_log_shows_who_wrote_the_holder() -> None:
    server = swap(start_coordinated()[0], "b_1")
    assert "the API server chose b_1" in text(account(follow_log(server), server.now))


@pytest.mark.parametrize(("strategy", "is_told"), [(STRATEGY, True), ("example.com/own", False)])
def test_of_holders_that_change_often_the_candidates_are_to_be_compared(strategy: str, is_told: bool) -> None:
    server, first = start_coordinated()
    first.renew(strategy=strategy)
    said = explain(swap(server, *["b_1", "a_1"] * 3, strategy=strategy))
    sentence = "API servers choose it by its LeaseCandidates: compare versions and times of creation:"
    assert (f"{sentence} kubectl -n shop get leasecandidates -o yaml" in said) == is_told
    assert ("Its log may say why" in said) != is_told
