"""The Flask application: who gets the page, what it may do, and what events say."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.history.fake_server import FakeServer
from tests.inputs.reading import read
from webhook.live import app
from webhook.live.app import MAX_LISTENERS, make_app
from webhook.live.feed import Feed

TOKEN = "a-token-of-32-characters-or-more"
PAGE = f"/{TOKEN}/"
EVENTS = f"/{TOKEN}/events"


def filled(server: FakeServer) -> Feed:
    feed = Feed("kubectl get leases --watch")
    for item in read("kubectl", [server.watch()]):
        feed.observe(item, "leases")
    return feed


@pytest.fixture
def server() -> FakeServer:
    found = FakeServer()
    found.elector("a", "shop/db").lead(10)
    return found


@pytest.fixture
def feed(server: FakeServer) -> Feed:
    return filled(server)


@pytest.fixture
def client(feed: Feed) -> FlaskClient:
    return make_app(feed, TOKEN, ["localhost"]).test_client()


def parsed(chunk: bytes) -> Any:
    """The data of one event."""
    found = re.fullmatch(rb"data: ([^\n]*)\n\n", chunk)
    assert found
    return json.loads(found[1])


def test_the_page_is_there_for_whoever_knows_the_address(client: FlaskClient) -> None:
    response = client.get(PAGE)
    assert (response.status_code, response.content_type) == (200, "text/html; charset=utf-8")
    assert f'content="{EVENTS}"' in response.text


def test_the_policy_of_the_page_lets_it_load_and_send_nothing_elsewhere(client: FlaskClient) -> None:
    policy = client.get(PAGE).headers["Content-Security-Policy"]
    directives = dict(one.strip().split(" ", 1) for one in policy.split(";"))
    assert directives["default-src"] == "'none'"
    assert directives["connect-src"] == "'self'"
    assert directives["frame-ancestors"] == "'none'"
    for part in ("script-src", "style-src"):
        assert all(source.startswith("'sha256-") for source in directives[part].split())


@pytest.mark.parametrize("path", [PAGE, "/", "/nothing/"])
def test_every_answer_is_hardened(path: str, client: FlaskClient) -> None:
    headers = client.get(path).headers
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "Set-Cookie" not in headers


STRANGE = ["/", f"/{TOKEN}", f"/{TOKEN}x/", f"/{TOKEN[:-1]}/", "/%C3%A9/", f"/{TOKEN}/other", f"/{TOKEN}/events/"]


@pytest.mark.parametrize("path", STRANGE)
def test_another_address_shows_nothing(path: str, client: FlaskClient) -> None:
    response = client.get(path)
    assert response.status_code in {308, 404}
    assert "db" not in response.text
    assert response.status_code == 404 or response.headers["Location"].endswith(PAGE)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_nothing_can_be_sent(method: str, client: FlaskClient) -> None:
    assert client.open(PAGE, method=method).status_code == 405


OWN = ["127.0.0.1", "127.0.0.1:8000", "[::1]:8000", "localhost:8000", "LOCALHOST", "10.1.2.3:80"]
FOREIGN = ["evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.evil.example", "", "[evil]:80"]


@pytest.mark.parametrize("host", OWN)
def test_addresses_and_own_names_are_hosts(host: str, client: FlaskClient) -> None:
    assert client.get(PAGE, headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", FOREIGN)
def test_another_name_of_this_address_is_refused(host: str, client: FlaskClient) -> None:
    response = client.get(PAGE, headers={"Host": host})
    assert response.status_code in {400, 421}
    assert "db" not in response.text


def stream(client: FlaskClient) -> Iterator[bytes]:
    response = client.get(EVENTS)
    assert (response.status_code, response.mimetype) == (200, "text/event-stream")
    return iter(response.response)  # type: ignore[arg-type]


def test_the_first_event_has_all_lanes_and_later_ones_the_status(client: FlaskClient, feed: Feed) -> None:
    found = stream(client)
    first = parsed(next(found))
    assert [lane["id"] for lane in first["lanes"]] == ["Lease/shop/db"]
    feed.show_status("kubectl runs again")
    second = parsed(next(found))
    assert (second["lanes"], second["status"], second["hasEnded"]) == ([], "kubectl runs again", False)
    assert second["ends"] >= first["ends"]


def test_a_change_sends_the_lane_and_no_other(client: FlaskClient, feed: Feed, server: FakeServer) -> None:
    server.elector("m", "shop/mail").take()
    for item in read("kubectl", [server.watch()]):
        feed.observe(item, "leases")
    found = stream(client)
    assert len(parsed(next(found))["lanes"]) == 2
    number = len(server.events)
    server.wait(2)
    server.elector("m", "shop/mail").renew()
    one = FakeServer(events=server.events[number:])
    for item in read("kubectl", [one.watch()]):
        feed.observe(item, "leases")
    changed = next(lanes for chunk in found if (lanes := parsed(chunk)["lanes"]))
    assert [lane["id"] for lane in changed] == ["Lease/shop/mail"]


def test_the_end_is_said_and_ends_the_events(client: FlaskClient, feed: Feed) -> None:
    feed.end("kubectl has gone")
    (last,) = map(parsed, stream(client))
    assert (last["status"], last["hasEnded"]) == ("kubectl has gone", True)


def test_so_many_pages_may_listen_and_one_that_goes_makes_room(client: FlaskClient) -> None:
    responses = [client.get(EVENTS) for _ in range(MAX_LISTENERS)]
    assert {one.status_code for one in responses} == {200}
    refused = client.get(EVENTS)
    assert refused.status_code == 503
    assert "Too many pages" in refused.text
    responses[0].close()
    responses[0].close()
    assert client.get(EVENTS).status_code == 200


def test_texts_of_a_cluster_stay_within_their_event(server: FakeServer) -> None:
    hostile = "a\n\nevent: end\ndata: {}\n\n<script>"
    server.elector(hostile, "shop/evil").take()
    data = parsed(next(stream(make_app(filled(server), TOKEN, ["localhost"]).test_client())))
    assert any("event: end" in text for text in data["strings"])


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "MAX_PAUSE", 0.01)
    monkeypatch.setattr(app, "MIN_PAUSE", 0.0)
