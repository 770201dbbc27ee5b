"""In which of several logs refusals and failures are: each may be the log of another API server."""

import json

import pytest

from tests.claims.accounts import account, text
from tests.factories import Document
from tests.history.fake_server import FakeServer
from tests.history.observing import observe_all
from tests.inputs.reading import read
from webhook.analysis.history.follow import ClusterHistory

REFUSED = "3 writes by shop/db from pod db-0 were refused with 422 within 4 s"


def refuse() -> FakeServer:
    """A holder whose last three writes were refused."""
    server = FakeServer()
    db = server.elector("db-0", "shop/db")
    db.lead(20)
    for _ in range(3):
        server.wait(2)
        db.fail(422, "no")
    return server


def explain(server: FakeServer, logs: dict[str, list[Document]]) -> str:
    histories = ClusterHistory()
    lines = {
        path: [json.dumps(one, separators=(",", ":")).encode() + b"\n" for one in log] for path, log in logs.items()
    }
    observe_all(histories, *(read(path, found) for path, found in lines.items()))
    return text(account(histories, server.now))


def test_the_log_that_has_refusals_is_named() -> None:
    server = refuse()
    output = explain(server, {"logs/first": server.log[:-3], "logs/second": server.log[-3:]})
    assert f"{REFUSED} (log second)\n" in output


def test_two_logs_that_have_them_are_named() -> None:
    server = refuse()
    output = explain(server, {"first": server.log[:-1], "second": server.log[-1:]})
    assert f"{REFUSED} (log first and second)\n" in output


@pytest.mark.parametrize(
    "names",
    [["first"], ["one/audit", "two/audit"], ["a", "b", "c", "d"]],
    ids=["one log", "two of one name", "three of four logs"],
)
def test_where_names_would_not_tell_much_none_is_given(names: list[str]) -> None:
    server = refuse()
    logs = {name: server.log[-3:][number : number + 1] for number, name in enumerate(names[1:])}
    logs[names[0]] = [*server.log[:-3], *server.log[-3:][len(logs) :]]
    assert f"{REFUSED}\n" in explain(server, logs)
