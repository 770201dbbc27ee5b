"""Credentials that one of several API servers did not accept, by the logs of all."""

from collections.abc import Sequence

import pytest

from tests.claims.accounts import account, shop
from tests.factories import Document
from tests.history.fake_server import FakeServer, together
from tests.history.observing import advise, observe_all
from tests.inputs.reading import read
from webhook.analysis.history.follow import ClusterHistory

EXPIRED = "The API server did not accept the credentials, such as a token that had expired. To see the pods:"


def advise_on(*refusing: Sequence[str], other: str = "b/two.log") -> str:
    """Return the advice about a holder of which API servers answered requests with 401, by the logs of two of them."""
    server, (db, mail, cart) = shop()
    together(20, db, mail, cart)
    paths = {}
    for path, pod in refusing * 3:
        together(2, mail, cart)
        server.elector(pod, "shop/db").fail_unauthenticated()
        paths[len(server.log) - 1] = path
    together(20, mail, cart)
    logs: dict[str, list[Document]] = {"a/one.log": [], other: []}
    for number, event in enumerate(server.log):
        path = other if event["objectRef"]["name"] == "cart" else "a/one.log"
        logs[paths.get(number, path)].append(event)
    histories = ClusterHistory()
    observe_all(histories, *(read(path, [FakeServer(log=events).audit_log()]) for path, events in logs.items()))
    return advise(account(histories, server.now))


def test_an_api_server_that_alone_knows_no_client_is_named() -> None:
    advice = advise_on(("b/two.log", "db-0"), ("b/two.log", "db-0"))
    assert "Only the API server with the log two.log did not accept the credentials; " in advice
    assert "another one accepted some from the same addresses" in advice


@pytest.mark.parametrize(
    "refusing",
    [
        (("b/two.log", "db-0"), ("a/one.log", "db-0")),
        (("a/one.log", "db-0"),),
    ],
    ids=["both answered so", "the one that knew it before"],
)
def test_else_no_api_server_is_named(refusing: Sequence[Sequence[str]]) -> None:
    assert "Only the API server" not in advise_on(*refusing)
    assert EXPIRED in advise_on(*refusing)


def test_logs_of_one_name_name_none() -> None:
    advice = advise_on(("b/one.log", "db-0"), ("b/one.log", "db-0"), other="b/one.log")
    assert "Only the API server" not in advice
    assert EXPIRED in advice


def test_a_client_that_no_api_server_knew_names_none() -> None:
    assert "Only the API server" not in advise_on(("b/two.log", "db-7"))
