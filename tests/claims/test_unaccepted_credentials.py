"""Credentials that one of several API servers did not accept, by the logs of all."""

from collections.abc import Sequence

import pytest

from tests.claims.accounts import account, shop, text
from tests.factories import Document
from tests.history.fake_server import FakeServer, together
from tests.history.observing import advise, follow_log, observe_all
from tests.inputs.reading import read
from webhook.analysis.history.follow import ClusterHistory

UNKNOWN = "The API server accepted no credentials with these requests, and the log does not show why, or who sent them."


def advise_on(*refusing: Sequence[str], other: str = "b/two.log", is_watched: bool = False) -> str:
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
    watches = [read("watch.json", [server.watch()])] if is_watched else []
    inputs = [read(path, [FakeServer(log=events).audit_log()]) for path, events in logs.items()]
    observe_all(histories, *watches, *inputs)
    return advise(account(histories, server.now))


@pytest.mark.parametrize(
    "is_watched", [False, True], ids=["by its log", "and a watch beside the log takes none of that"]
)
def test_an_api_server_that_alone_knows_no_client_is_named(*, is_watched: bool) -> None:
    advice = advise_on(("b/two.log", "db-0"), ("b/two.log", "db-0"), is_watched=is_watched)
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
    assert UNKNOWN in advise_on(*refusing)


def test_logs_of_one_name_name_none() -> None:
    advice = advise_on(("b/one.log", "db-0"), ("b/one.log", "db-0"), other="b/one.log")
    assert "Only the API server" not in advice
    assert UNKNOWN in advice


def test_a_client_that_no_api_server_knew_names_none() -> None:
    assert "Only the API server" not in advise_on(("b/two.log", "db-7"))


def play_stranger(*, verb: str = "update", address: str = "", is_known: bool = False, sources: int = 1) -> FakeServer:
    """Have an unknown process ask for the lease of another one: from how many addresses, and after it was known."""
    server, (db, *others) = shop()
    together(10, db, *others)
    if is_known:
        server.elector("job-1", "shop/db").ask()
    for number in range(4):
        together(2, db, *others)
        server.elector(f"job-{number % sources + 1}", "shop/db").fail_unauthenticated(verb)
        if address:
            server.log[-1]["sourceIPs"] = [address]
    return server


def say(server: FakeServer) -> str:
    return text(account(follow_log(server), server.now))


@pytest.mark.parametrize(("verb", "what"), [("update", "write"), ("get", "read")])
def test_who_is_not_known_is_said_by_address_and_program(verb: str, what: str) -> None:
    said = say(play_stranger(verb=verb, address="10.9.9.9"))
    assert f"{what}-refused: 4 {what}s by one or more unknown users (test at 10.9.9.9) refused with 401" in said
    assert "who may not read" not in said
    assert "expired" not in said
    assert (
        f"{UNKNOWN} To see which pod has the address: kubectl get pods -A --field-selector status.podIP=10.9.9.9"
        in (said)
    )


def test_other_addresses_are_counted() -> None:
    assert "4 writes by one or more unknown users (test at 10." in say(play_stranger(sources=3))
    assert " and 2 others) refused with 401" in say(play_stranger(sources=3))


def test_who_was_accepted_from_there_is_said() -> None:
    said = say(play_stranger(is_known=True))
    assert "; from there, those of shop/db from pod job-1 were accepted) refused" in said
    assert "were accepted)" not in say(play_stranger())


def test_without_an_address_nothing_is_said_of_who_it_was() -> None:
    server = play_stranger()
    for event in server.log:
        if event["responseStatus"]["code"] == 401:
            del event["sourceIPs"]
    said = say(server)
    assert "4 writes by one or more unknown users refused with 401" in said
    assert f"{UNKNOWN} To see the pods: kubectl -n shop get pods" in said


def test_pods_of_one_name_are_named_once() -> None:
    server = play_stranger(is_known=True)
    server.uids["job-1"] = "another"
    ask = server.elector("job-1", "shop/db")
    ask.ask()
    ask.fail_unauthenticated()
    assert "; from there, those of shop/db from pod job-1 were accepted) refused" in say(server)
