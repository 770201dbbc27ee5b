"""The server of the live page: who gets the page, what it may do, and what events say."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from itertools import repeat
from typing import Any

import pytest

from tests.history.fake_server import FakeServer
from tests.inputs.reading import read
from tests.waiting import PATIENCE, wait_for
from webhook.analysis.live import server as module
from webhook.analysis.live.server import MAX_LISTENERS, Feed, LiveServer

TOKEN = "a-token-of-32-characters-or-more"
PAGE = f"/{TOKEN}/"
EVENTS = f"/{TOKEN}/events"

Get = Callable[..., HTTPResponse]


@contextmanager
def listening(feed: Feed) -> Iterator[LiveServer]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        served = LiveServer(listener, feed, TOKEN, ["localhost"])
        threading.Thread(target=served.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield served
        finally:
            feed.end("the test has ended")
            served.shutdown()


def getter(served: LiveServer) -> Get:
    def get(path: str = PAGE, method: str = "GET", host: str = "localhost") -> HTTPResponse:
        connection = HTTPConnection("127.0.0.1", served.socket.getsockname()[1], timeout=PATIENCE)
        connection.request(method, path, headers={"Host": host})
        return connection.getresponse()

    return get


def filled(server: FakeServer) -> Feed:
    feed = Feed("kubectl get leases --watch")
    for item in read("kubectl", [server.watch()]):
        feed.observe(item)
    return feed


@pytest.fixture
def server() -> FakeServer:
    fake = FakeServer()
    fake.elector("a", "shop/db").lead(10)
    return fake


@pytest.fixture
def feed(server: FakeServer) -> Feed:
    return filled(server)


@pytest.fixture
def get(feed: Feed) -> Iterator[Get]:
    with listening(feed) as served:
        yield getter(served)


def parsed(lines: HTTPResponse) -> Iterator[Any]:
    """The data of each event, which is one line, followed by an empty one."""
    for line in lines:
        assert line.startswith(b"data: ")
        assert lines.readline() == b"\n"
        yield json.loads(line.removeprefix(b"data: "))


def test_the_page_is_there_for_whoever_knows_the_address(get: Get) -> None:
    response = get()
    assert (response.status, response.getheader("Content-Type")) == (200, "text/html; charset=utf-8")
    assert f'content="{EVENTS}"' in response.read().decode()


def test_the_policy_of_the_page_lets_it_load_and_send_nothing_elsewhere(get: Get) -> None:
    policy = get().headers["Content-Security-Policy"]
    directives = dict(one.strip().split(" ", 1) for one in policy.split(";"))
    assert directives["default-src"] == "'none'"
    assert directives["connect-src"] == "'self'"
    assert directives["frame-ancestors"] == "'none'"
    for part in ("script-src", "style-src"):
        assert all(source.startswith("'sha256-") for source in directives[part].split())


@pytest.mark.parametrize("path", [PAGE, "/", "/nothing/"])
def test_every_answer_is_hardened(path: str, get: Get) -> None:
    headers = get(path).headers
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "Set-Cookie" not in headers


STRANGE = [
    "/",
    f"/{TOKEN}",
    f"/{TOKEN}x/",
    f"/{TOKEN[:-1]}/",
    "/%C3%A9/",
    f"/{TOKEN}/?a",
    f"/{TOKEN}/other",
    f"/{TOKEN}/events/",
]


@pytest.mark.parametrize("path", STRANGE)
def test_another_address_shows_nothing(path: str, get: Get) -> None:
    response = get(path)
    assert response.status == 404
    assert response.read().startswith(b"There is nothing here.")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_nothing_can_be_sent(method: str, get: Get) -> None:
    assert get(method=method).status == 501


OWN = ["127.0.0.1", "127.0.0.1:8000", "[::1]:8000", "localhost:8000", "LOCALHOST", "10.1.2.3:80"]
FOREIGN = [
    "evil.example",
    "evil.example:8000",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "",
    "[evil]:80",
    "[",
]


@pytest.mark.parametrize("host", OWN)
def test_addresses_and_own_names_are_hosts(host: str, get: Get) -> None:
    assert get(host=host).status == 200


@pytest.mark.parametrize("host", FOREIGN)
def test_another_name_of_this_address_is_refused(host: str, get: Get) -> None:
    response = get(host=host)
    assert response.status == 421
    assert b"db" not in response.read()


def stream(get: Get) -> Iterator[Any]:
    response = get(EVENTS)
    assert (response.status, response.getheader("Content-Type")) == (200, "text/event-stream")
    return parsed(response)


def test_the_first_event_has_all_lanes_and_later_ones_the_status(get: Get, feed: Feed) -> None:
    updates = stream(get)
    first = next(updates)
    assert [lane["id"] for lane in first["lanes"]] == ["shop/db"]
    feed.show_status("kubectl runs again")
    second = next(data for data in updates if data["status"])
    assert (second["lanes"], second["status"], second["hasEnded"]) == ([], "kubectl runs again", False)
    assert second["ends"] >= first["ends"]


def test_a_change_sends_the_lane_and_no_other(get: Get, feed: Feed, server: FakeServer) -> None:
    server.elector("m", "shop/mail").take()
    for item in read("kubectl", [server.watch()]):
        feed.observe(item)
    updates = stream(get)
    assert len(next(updates)["lanes"]) == 2
    number = len(server.events)
    server.wait(2)
    server.elector("m", "shop/mail").renew()
    later = FakeServer(events=server.events[number:])
    for item in read("kubectl", [later.watch()]):
        feed.observe(item)
    changed = next(data["lanes"] for data in updates if data["lanes"])
    assert [lane["id"] for lane in changed] == ["shop/mail"]


def test_the_end_is_announced_and_ends_the_events(get: Get, feed: Feed) -> None:
    feed.end("kubectl has gone")
    (last,) = stream(get)
    assert (last["status"], last["hasEnded"]) == ("kubectl has gone", True)


def test_so_many_pages_may_listen_and_one_that_goes_makes_room(get: Get) -> None:
    responses = [get(EVENTS) for _ in range(MAX_LISTENERS)]
    assert {one.status for one in responses} == {200}
    refused = get(EVENTS)
    assert refused.status == 503
    assert b"Too many pages" in refused.read()
    responses[0].close()
    wait_for("room for a page", lambda: get(EVENTS).status == 200)


def test_texts_of_a_cluster_stay_within_their_event(server: FakeServer) -> None:
    hostile = "a\n\nevent: end\ndata: {}\n\n<script>"
    server.elector(hostile, "shop/evil").take()
    with listening(filled(server)) as served:
        data = next(stream(getter(served)))
    assert any("event: end" in text for text in data["strings"])


def test_clients_that_neither_send_nor_read_are_not_waited_for(
    feed: Feed, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module._Handler, "timeout", 0.2)
    monkeypatch.setattr(module, "MAX_LISTENERS", 1)
    monkeypatch.setattr(module, "_make_messages", lambda _: repeat(b"x" * 1_000_000))
    with listening(feed) as served:
        address = served.socket.getsockname()
        for sent in (b"", b"GET / HTTP/1.1\r\nHost: 127", b"GET /token/\x00 nothing\r\n\r\n"):
            with socket.create_connection(address, PATIENCE) as client:
                client.sendall(sent)
                while client.recv(4096):
                    pass
        with socket.create_connection(address, PATIENCE) as client:
            client.sendall(f"GET {EVENTS} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            assert client.recv(1)
            wait_for("its place", lambda: served.places.acquire(blocking=False))
    assert capfd.readouterr() == ("", "")


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PAUSE", 0.01)
    monkeypatch.setattr(module, "MIN_PAUSE", 0.0)
