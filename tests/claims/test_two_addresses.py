"""A user that writes one lease from two addresses in turn, as two machines with its credentials do."""

import pytest

from tests.claims.accounts import account
from tests.history.fake_server import FakeServer
from tests.history.observing import View, advise, follow_both, follow_log
from webhook.analysis.claims.assemble import make_account
from webhook.analysis.claims.presentation.advise import advise as advise_account
from webhook.analysis.claims.presentation.happened import list_events, list_latest
from webhook.analysis.history.visibility.bounds import MAX_LISTED

NODE = "system:node:a"
OLD, NEW = "10.0.0.7", "10.0.0.9"


def play(
    lease: str = "shop/db", *, conflicts: int = 5, addresses: tuple[str, ...] = (OLD, NEW), after: float = 0
) -> FakeServer:
    """A user renews; then each renewal is stored from one address, and conflicts from the next one."""
    server = FakeServer()
    server.wait(after)
    kubelet = server.elector("a", lease, user=NODE, pod="", retry=10.0, duration=40)
    kubelet.lead(60)
    for event in server.log:
        event["sourceIPs"] = [OLD]
    for number in range(conflicts):
        server.wait(5)
        kubelet.renew()
        server.log[-1]["sourceIPs"] = [addresses[number % len(addresses)]]
        server.wait(1)
        kubelet.fail(409, "the object has been modified")
        server.log[-1]["sourceIPs"] = [addresses[(number + 1) % len(addresses)]]
    return server


def list_texts(server: FakeServer) -> list[list[str]]:
    explained = account(follow_log(server), server.now)
    return [
        [one.text for one in lines if "409" in one.text] for lines in (list_events(explained), list_latest(explained))
    ]


@pytest.mark.parametrize("follow", [follow_log, follow_both], ids=["log", "log and watch"])
def test_the_addresses_and_their_numbers_are_said(follow: View) -> None:
    server = play()
    explained = account(follow(server), server.now)
    text = (
        "system:node:a writes it from 2 addresses in turn: of 17 writes in the log, 12 from 10.0.0.7, "
        "5 from 10.0.0.9; 5 of them conflicted (409)"
    )
    assert text in [one.text for one in list_events(explained)]
    assert text in [one.text for one in list_latest(explained)]


def test_of_one_address_it_may_be_several_electors_or_lost_answers() -> None:
    for texts in list_texts(play(addresses=(OLD,))):
        (text,) = texts
        assert "as with lost answers or several electors in it" in text


def test_of_few_conflicts_nothing_is_said() -> None:
    assert list_texts(play(conflicts=4)) == [[], []]


def test_the_advice_is_about_the_address_that_came_later() -> None:
    server = play()
    assert advise(account(follow_log(server), server.now)).startswith(
        "Find out what writes as system:node:a from 10.0.0.9, which the log first has at 11:07:46Z:"
    )


def test_of_a_node_the_command_shows_its_address() -> None:
    server = play("kube-node-lease/a")
    histories = follow_log(server)
    found = histories.leases["kube-node-lease", "a"]
    advice = advise_account(make_account(histories, found, server.now))
    assert advice.command == "kubectl describe node a"


@pytest.mark.parametrize("count", [3, MAX_LISTED + 4], ids=["of four addresses", "of more than are remembered"])
def test_the_addresses_of_a_pool_say_nothing(count: int) -> None:
    server = play(addresses=tuple(f"10.0.1.{number}" for number in range(count)), conflicts=count + 4)
    assert not any("in turn" in text for texts in list_texts(server) for text in texts)


def steal(*, thief_pod: str = "", source: str = "10.9.9.9", also: str = "") -> str:
    """Another user takes a live lease under a name of its own; return what the finding says."""
    server = FakeServer()
    holder = server.elector("db-0", "shop/db")
    holder.lead(20)
    server.wait(1)
    thief = server.elector("db-1", "shop/db", user="ci-deployer", pod=thief_pod)
    for number in range(4):
        (thief.renew if number else thief.take)()
        server.log[-1]["sourceIPs"] = [also if also and number == 3 else source]
        server.wait(2)
    holder.ask()
    found = account(follow_log(server), server.now).findings
    return next(one.message for one in found if one.check == "lease-stolen")


def test_a_user_that_is_no_pod_is_shown_with_the_address_that_no_one_else_has() -> None:
    said = "Its writer has no token of a pod, and wrote from 10.9.9.9, where no one else asked for it"
    assert steal().endswith(said)


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(steal(thief_pod="ci-0"), id="of a pod"),
        pytest.param(steal(also="10.9.9.8"), id="of two addresses"),
        pytest.param(steal(source="10.160.202.69"), id="of the address of the holder's pod"),
    ],
)
def test_the_address_of_a_thief_is_not_shown(message: str) -> None:
    assert "where no one else asked for it" not in message


def test_an_address_that_was_first_seen_on_another_day_has_its_date() -> None:
    server = play(after=46_324)
    said = advise(account(follow_log(server), server.now))
    assert "which the log first has at 2026-11-18T23:59:50Z:" in said
