"""The log of one of several API servers that ends in a silence: what its clients sent after that is not shown."""

import json

import pytest

from tests.claims.accounts import account, text
from tests.factories import Document
from tests.history.fake_server import FakeServer
from tests.history.observing import merge_inputs
from tests.inputs.reading import read
from webhook.analysis.claims.presentation.urgency import advise_with_urgency
from webhook.analysis.history.audit_log.log_spans import MAX_LOGS, EndedLog, LogSpans
from webhook.analysis.history.follow import ClusterHistory
from webhook.kubernetes.times import SECOND

ENDS = (
    "and another goes on, which has no request for the lease from its pod: its API server may have ended, or the rest "
    "of it is missing"
)
FIRST = {"db-0", "mail-0", "news-0", "bill-0"}


def split_log(server: FakeServer) -> tuple[list[Document], list[Document]]:
    """Return the requests of the first processes as the log of one API server, the others as that of another one."""
    logs: tuple[list[Document], list[Document]] = ([], [])
    for event in server.log:
        (pod,) = event["user"]["extra"]["authentication.kubernetes.io/pod-name"]
        logs[pod not in FIRST].append(event)
    return logs


def lose_a_server(*, is_ended: bool = True) -> FakeServer:
    """The first processes end with their API server; db-1 takes over at another one, where queue-0 goes on."""
    server = FakeServer()
    first, second = server.elector("db-0", "shop/db"), server.elector("db-1", "shop/db")
    queue = server.elector("queue-0", "shop/queue")
    others = [server.elector(f"{name}-0", f"shop/{name}") for name in ("mail", "news", "bill")]
    for elector in (first, queue, *others):
        elector.take()
    for _ in queue.ticks(40):
        for elector in (first, queue, *others):
            elector.renew()
    for _ in queue.ticks(24):
        for elector in (queue,) if is_ended else (queue, *others):
            elector.renew()
    second.take()
    for _ in queue.ticks(20):
        queue.renew()
        second.renew()
    return server


def explain(server: FakeServer, *, is_watched: bool = False) -> str:
    histories = follow(server, is_watched=is_watched)
    return f"{text(account(histories, server.now))} {advise_with_urgency(account(histories, server.now)).command}"


def follow(server: FakeServer, *, is_watched: bool = False) -> ClusterHistory:
    logs = split_log(server)
    texts = ["\n".join(json.dumps(event, separators=(",", ":")) for event in log).encode() for log in logs]
    items = [list(read(f"logs/{number}.log", [log])) for number, log in enumerate(texts, 1)]
    if is_watched:
        items.append(list(read("watch.json", [server.watch()])))
    histories = ClusterHistory()
    for item in merge_inputs(*items):
        histories.add(item)
    return histories


@pytest.mark.parametrize("is_watched", [False, True], ids=["logs", "logs and a watch"])
def test_a_log_that_ends_while_another_goes_on_is_named(is_watched: bool) -> None:
    output = explain(lose_a_server(), is_watched=is_watched)
    assert "; log 1.log ends at " in output
    assert ENDS in output
    assert "For most of that time the log has no answered request for the lease from its pod" not in output
    assert "get leases -l apiserver.kubernetes.io/identity" in output


@pytest.mark.parametrize("is_heard", [False, True], ids=["at one API server", "at both"])
def test_a_pod_that_was_heard_by_one_api_server_only_may_know_no_other(is_heard: bool) -> None:
    server = lose_a_server()
    if is_heard:
        server.elector("db-0", "shop/db").ask()
        asked = server.log.pop()
        asked |= {key: server.log[0][key] for key in ("requestReceivedTimestamp", "stageTimestamp")}
        server.log.insert(0, asked)
    logs = split_log(server)
    if is_heard:
        logs[1].insert(0, logs[0].pop(0))
    items = [
        list(read(f"logs/{number}.log", ["\n".join(json.dumps(one, separators=(",", ":")) for one in log).encode()]))
        for number, log in enumerate(logs, 1)
    ]
    histories = ClusterHistory()
    for item in merge_inputs(*items):
        histories.add(item)
    answer = account(histories, server.now)
    assert ("which has no request for the lease from its pod" in text(answer)) is not is_heard
    assert ("why its pod asked only the one whose log ends" in advise_with_urgency(answer).sentence) is not is_heard


def test_a_log_that_goes_on_shows_what_a_holder_did_not_send() -> None:
    output = explain(lose_a_server(is_ended=False))
    assert ENDS not in output
    assert "For most of that time the log has no answered request for the lease from its pod" in output


SPANS = {"a": (0, 100), "b": (0, 200)}


@pytest.mark.parametrize(
    ("spans", "path"),
    [
        pytest.param(SPANS, "a", id="one ends and one goes on"),
        pytest.param({"a": (0, 100)}, None, id="there is one log"),
        pytest.param({**SPANS, "c": (98, 300)}, None, id="another begins where it ends"),
        pytest.param({**SPANS, "c": (150, 300)}, None, id="another begins later"),
        pytest.param({**SPANS, "c": (0, 101)}, None, id="two end"),
        pytest.param({"a": (0, 100), "b": (0, 150)}, None, id="none goes on"),
        pytest.param({"a": (0, 80), "b": (0, 200)}, None, id="it ended before"),
        pytest.param({"a": (0, 160), "b": (0, 200)}, None, id="it ends late"),
    ],
)
def test_a_log_ends_only_where_nothing_can_be_its_next_part(
    spans: dict[str, tuple[int, int]], path: str | None
) -> None:
    logs = LogSpans()
    for name, times in spans.items():
        for at in reversed(times):
            logs.note(name, at * SECOND)
    ended = logs.find_ended(90 * SECOND, 190 * SECOND)
    assert ended == (None if path is None else EndedLog(path, 100 * SECOND))


def test_of_too_many_logs_none_is_said_to_end() -> None:
    logs = LogSpans()
    for name, (first, last) in SPANS.items():
        logs.note(name, first * SECOND)
        logs.note(name, last * SECOND)
    for number in range(MAX_LOGS):
        logs.note(f"{number}", 0)
    assert logs.find_ended(90 * SECOND, 190 * SECOND) is None
