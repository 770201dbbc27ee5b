"""Writes by others that leave the holder and its renewals as they are, such as of an annotation."""

from collections.abc import Callable

import pytest

from tests.claims.accounts import account
from tests.history.fake_server import FakeServer
from tests.history.observing import advise, follow_both, follow_log, follow_watch
from webhook.analysis.claims.presentation.happened import list_events, list_latest
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.lease import MAX_OTHERS

LEFT = "left the holder and its renewals as they were"
Follow = Callable[[FakeServer], ClusterHistory]
EXPORTER = ("exporter", "system:serviceaccount:shop:exporter", "exporter-0")
HOLDER = ("operator", "system:serviceaccount:shop:db", "db-0")


def play(*, count: int = 4, writer: tuple[str, str, str] = EXPORTER) -> FakeServer:
    """A held lease that somebody writes `count` times between its renewals, and changes nothing that counts."""
    server = FakeServer()
    holder = server.elector("db-0", "shop/db")
    holder.lead(20)
    for _ in range(count):
        server.wait(1)
        server.write("shop/db", server.leases["shop/db"]["spec"], *writer)
        server.wait(1)
        holder.renew()
    return server


@pytest.mark.parametrize(("count", "is_asked_for"), [(4, True), (2, False)], ids=["again and again", "twice"])
def test_who_writes_again_and_again_is_to_be_looked_for(count: int, *, is_asked_for: bool) -> None:
    server = play(count=count)
    advice = advise(account(follow_log(server), server.now))
    asked = "Find out why shop/exporter wrote it again and again. To see the pod that did it:"
    assert advice.startswith(asked if is_asked_for else "It is held and renewed; a lease does not show whether")


def list_texts(server: FakeServer, follow: Follow) -> list[str]:
    explained = account(follow(server), server.now)
    return [line.text for line in (*list_events(explained), *list_latest(explained)) if LEFT in line.text]


@pytest.mark.parametrize("follow", [follow_log, follow_both], ids=["log", "log and watch"])
def test_who_writes_again_and_again_beside_the_holder_is_named(follow: Follow) -> None:
    text = f"4 writes by shop/exporter from pod exporter-0 within 6 s {LEFT}"
    assert list_texts(play(), follow) == [text, text]


@pytest.mark.parametrize(
    ("server", "follow"),
    [
        pytest.param(play(count=2), follow_log, id="of a few writes"),
        pytest.param(play(writer=HOLDER), follow_log, id="of the holder itself"),
        pytest.param(play(), follow_watch, id="of a watch, which does not show who writes"),
    ],
)
def test_nothing_is_said(server: FakeServer, follow: Follow) -> None:
    assert list_texts(server, follow) == []


def test_of_more_writes_than_are_remembered_the_number_is_a_bound() -> None:
    (text, _) = list_texts(play(count=MAX_OTHERS + 1), follow_log)
    assert text.startswith(f"at least {MAX_OTHERS} writes by shop/exporter")
