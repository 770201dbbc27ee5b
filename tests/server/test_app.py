"""The Flask application: its routes, and its two ways to the same answer."""

import io
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from tests.corpus import corpus
from tests.recordings import FOLDER
from tests.server.connections import REVIEW, heard, in_a_loop, make_port, request, served, statuses
from tests.server.test_reviewer import DENIED
from webhook.admission.policy.file import PolicyFile
from webhook.admission.policy.model import Policy
from webhook.kubernetes.request import MAX_REQUEST
from webhook.kubernetes.review_size import OPENING
from webhook.server.app import create_app, make_review_app
from webhook.server.reviewer import Respond, ReviewResponse, respond
from webhook.server.service import Service
from webhook.server.service_hooks import MAX_ON_LOOP, ServiceHooks
from webhook.server.settings import Guards, Options

BODY = REVIEW.partition(b"\r\n\r\n")[2]
JSON = "application/json"
STEAL = (FOLDER / "1.36.3/kubectl-unusual/18-update-steal-unexpired-by-other-namespace.json").read_bytes()
pytestmark = pytest.mark.usefixtures("the_log_as_it_was")
Answer = tuple[str, list[tuple[str, str]], bytes]


def service(policy: str = "standard", respond: Respond = respond) -> Service:
    return Service(Options(), PolicyFile(policy), respond)


def environ_of(body: bytes, **more: str) -> dict[str, Any]:
    return {
        "REQUEST_METHOD": "POST",
        "SCRIPT_NAME": "",
        "PATH_INFO": "/validate",
        "QUERY_STRING": "timeout=10s",
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "443",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "CONTENT_TYPE": JSON,
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.url_scheme": "https",
        "wsgi.input": io.BytesIO(body),
        **more,
    }


def answer(way: Any, environ: dict[str, Any]) -> Answer:
    """What a WSGI callable answers."""
    head: list[Any] = []
    blocks = way(environ, lambda status, headers: head.extend((status, headers)))
    body = b"".join(blocks)
    status, headers = head
    return status, headers, body


@pytest.fixture
def client() -> FlaskClient:
    return create_app().test_client()


@pytest.mark.parametrize("policy", ["standard", "strict"])
def test_both_ways_answer_every_review_of_the_corpora_by_the_same_bytes(policy: str) -> None:
    def at_one_moment(body: bytes, in_force: Policy, _now: int) -> ReviewResponse:
        return respond(body, in_force, 1_763_640_002_000_000)

    app = make_review_app(service(policy, at_one_moment))
    short, routed = 0, 0
    routes = app.view_functions["validate"]

    def count(**rest: str) -> Any:
        nonlocal routed
        routed += 1
        return routes(**rest)

    app.view_functions["validate"] = count
    for name, body in corpus():
        before = routed
        first = answer(app.wsgi_app, environ_of(body))
        if routed == before:
            short += 1
        second = answer(lambda *given: Flask.wsgi_app(app, *given), environ_of(body))
        assert first == second, name
    assert short > 900, "reviews took the short way"
    assert routed > short


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"PATH_INFO": "/validate-coordination-k8s-io-v1-lease"}, id="the path of one kind"),
        pytest.param({"CONTENT_TYPE": "application/json; charset=utf-8"}, id="a charset"),
        pytest.param({"HTTP_CONTENT_ENCODING": "gzip"}, id="a content encoding"),
        pytest.param({"CONTENT_TYPE": "text/plain"}, id="another media type"),
        pytest.param({"CONTENT_LENGTH": ""}, id="no length"),
        pytest.param({"CONTENT_LENGTH": "-5"}, id="a negative length"),
        pytest.param({"CONTENT_LENGTH": "9" * 5000}, id="a length with more digits than Python reads"),
        pytest.param({"CONTENT_LENGTH": str(MAX_ON_LOOP + 1)}, id="a large body"),
        pytest.param({"REQUEST_METHOD": "PUT"}, id="another method"),
    ],
)
def test_any_other_request_goes_through_flask(more: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    app, routed = make_review_app(service()), []
    way = Flask.wsgi_app

    def watched(self: Flask, environ: dict[str, Any], start_response: Any) -> Any:
        routed.append(environ["PATH_INFO"])
        return way(self, environ, start_response)

    monkeypatch.setattr(Flask, "wsgi_app", watched)
    answer(app.wsgi_app, environ_of(BODY, **more))
    assert len(routed) == 1
    answer(app.wsgi_app, environ_of(BODY))
    assert len(routed) == 1


REFUSED = [
    pytest.param("GET", "/validate", 405, id="another method"),
    pytest.param("OPTIONS", "/validate", 405, id="OPTIONS is not an exception"),
    pytest.param("BREW", "/validate", 405, id="a method that HTTP does not have"),
    pytest.param("POST", "/validate/", 404, id="no redirect to the right path"),
    pytest.param("POST", "//validate", 404, id="doubled slashes"),
    pytest.param("POST", "/validate-apps-v1-deployment", 404, id="a kind that is not ours"),
    pytest.param("GET", "/static/x", 404, id="no static files"),
]


@pytest.mark.parametrize(("method", "path", "status"), REFUSED)
def test_what_is_not_a_review(client: FlaskClient, method: str, path: str, status: int) -> None:
    response = client.open(path, method=method, data=REVIEW, content_type=JSON)
    assert response.status_code == status
    assert response.content_type == "text/plain; charset=utf-8"
    assert response.headers.get("Allow") == ("POST" if status == 405 else None)


@pytest.mark.parametrize(
    ("method", "path", "status"), [row for row in REFUSED if row.id != "a method that HTTP does not have"]
)
@in_a_loop
async def test_what_is_not_a_review_on_our_own_port(method: str, path: str, status: int) -> None:
    written, closed = await heard(make_port(), [request(f"{method} {path} HTTP/1.1".encode())] * 2)
    assert statuses(written) == [status] * 2
    assert (b"\r\nallow: POST\r\n" in written) is (status == 405)
    assert not closed


def test_a_path_with_escapes_is_the_path_that_it_means(client: FlaskClient) -> None:
    assert client.post("/validat%65", data=DENIED, content_type=JSON).json["response"]["allowed"] is False  # type: ignore[index]


@pytest.mark.parametrize(
    ("size", "beginning", "status"),
    [
        pytest.param(MAX_REQUEST, b"{ ", 400, id="any form up to the size of a request"),
        pytest.param(MAX_REQUEST + 1, b"{ ", 413, id="a larger one that no API server writes"),
        pytest.param(MAX_REQUEST + 1, OPENING, 400, id="a larger one in the form of an API server"),
    ],
)
def test_a_body_is_refused_by_its_size_and_beginning(
    client: FlaskClient, size: int, beginning: bytes, status: int
) -> None:
    assert client.post("/validate", data=beginning.ljust(size), content_type=JSON).status_code == status


def test_the_largest_body_is_that_of_the_guards_in_force() -> None:
    used = Service(Options(guards=Guards(max_body=100)), PolicyFile("standard"))
    client = make_review_app(used).test_client()
    sent = [client.post("/validate-coordination-k8s-io-v1-lease", data=b" " * n, content_type=JSON) for n in (100, 101)]
    assert [response.status_code for response in sent] == [400, 413]


def test_each_refused_request_is_counted_once() -> None:
    used = service()
    client = make_review_app(used).test_client()
    client.get("/x")
    client.get("/validate")
    client.post("/validate", data=BODY, content_type="text/plain")
    client.post("/validate", data=b"{}", content_type=JSON)
    counted = used.metrics.render().decode()
    for kind in ("path", "method", "media-type", "body"):
        assert f'lease_webhook_malformed_total{{class="{kind}"}} 1.0' in counted


def test_probes_and_metrics_share_the_address_of_reviews(client: FlaskClient) -> None:
    client.post("/validate", data=BODY, content_type=JSON)
    assert [client.get(path).status_code for path in ("/livez", "/readyz", "/metrics")] == [200] * 3
    assert 'verdict="allowed"} 1.0' in client.get("/metrics").text
    assert client.head("/livez").data == b""
    assert client.post("/livez").status_code == 405


def test_an_application_of_their_own_has_the_probes_and_nothing_else() -> None:
    app = make_review_app(service())
    reviews = app.test_client()
    assert isinstance(app.server_hooks.health, Flask)
    health = app.server_hooks.health.test_client()
    assert [health.get(path).text for path in ("/livez", "/readyz")] == ["ok\n"] * 2
    assert health.get("/x").text == "not found; try /livez, /readyz or /metrics\n"
    refused = health.post("/livez")
    assert (refused.status_code, refused.text, refused.headers["Allow"]) == (405, "use GET\n", "GET, HEAD")
    assert health.post("/validate", data=BODY).status_code == 404
    assert reviews.get("/livez").status_code == 404


def test_a_bug_in_a_route_is_a_500_without_a_trace() -> None:
    app = make_review_app(service())

    def bug() -> str:
        raise RuntimeError("put in by a test")

    app.add_url_rule("/bug", "bug", bug)
    response = app.test_client().get("/bug")
    assert (response.status_code, response.data) == (500, b"internal server error\n")


def test_the_hooks_of_a_server_are_those_of_the_service() -> None:
    hooks = served().hooks
    assert isinstance(hooks, ServiceHooks)
    assert hooks.find_problem_of_body(MAX_REQUEST + 1, b"{ ")
    assert not hooks.find_problem_of_body(MAX_REQUEST + 1, OPENING)
