"""The Flask application: the same bytes as the fast path, for every route, and under a WSGI server."""

import subprocess
import sys
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from tests.server.connections import REVIEW, heard, in_a_loop, port, request, statuses
from tests.server.test_reviewer import DENIED
from webhook.policy_file import load
from webhook.server.flask_app import call, create_app, make_app
from webhook.server.http.message import Head, HttpResponse
from webhook.server.reviewer import Reviewer

ROOT = Path(__file__).parents[2]
REVIEWER = Reviewer(load(None))
APP = make_app(REVIEWER, lambda _kind: None)
BODY = REVIEW.partition(b"\r\n\r\n")[2]
JSON = {b"content-type": b"application/json", b"host": b"localhost"}
PATHS = ["/validate", "/validate-coordination-k8s-io-v1-lease"]
BODIES = [
    pytest.param(BODY, id="allowed"),
    pytest.param(DENIED, id="denied"),
    pytest.param(b"", id="empty"),
    pytest.param(b"{}", id="not an AdmissionReview"),
    pytest.param(b"\xff", id="not UTF-8"),
]


@pytest.fixture
def client() -> FlaskClient:
    return create_app().test_client()


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("headers", [JSON, {}, JSON | {b"content-encoding": b"gzip"}], ids=["JSON", "no type", "gzip"])
def test_the_fast_path_is_what_flask_responds(path: str, body: bytes, headers: dict[bytes, bytes]) -> None:
    head = Head(b"POST", path.encode(), b"timeout=10s", headers, len(body))
    fast = port().respond(head, body, 1e9)
    slow = call(APP, head, body)
    assert isinstance(fast, HttpResponse)
    assert (fast.status, fast.body, fast.content_type, fast.headers) == (
        slow.status,
        slow.body,
        slow.content_type,
        slow.headers,
    )


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
    response = client.open(path, method=method, data=REVIEW, content_type="application/json")
    assert response.status_code == status
    assert response.content_type == "text/plain; charset=utf-8"
    assert response.headers.get("Allow") == ("POST" if status == 405 else None)


@pytest.mark.parametrize(
    ("method", "path", "status"), [row for row in REFUSED if row.id != "a method that HTTP does not have"]
)
@in_a_loop
async def test_what_is_not_a_review_on_our_own_port(method: str, path: str, status: int) -> None:
    written, closed = await heard(port(), [request(f"{method} {path} HTTP/1.1".encode())] * 2)
    assert statuses(written) == [status] * 2
    assert (b"\r\nallow: POST\r\n" in written) is (status == 405)
    assert not closed


def test_the_kinds_of_refused_requests_are_counted() -> None:
    kinds: list[str] = []
    client = make_app(REVIEWER, kinds.append).test_client()
    client.get("/x")
    client.get("/validate")
    assert kinds == ["path", "method"]


def test_probes_and_metrics_under_another_server(client: FlaskClient) -> None:
    client.post("/validate", data=BODY, content_type="application/json")
    assert [client.get(path).status_code for path in ("/livez", "/readyz", "/metrics")] == [200] * 3
    assert 'verdict="allowed"} 1.0' in client.get("/metrics").text
    assert client.head("/livez").data == b""
    assert client.post("/livez").status_code == 405


SEND = """
import asyncio, sys
from tests.server.connections import heard, port, request

async def send():
    for line in (b"GET /validate", b"POST /x", b"POST /validate", b"POST /validat%65"):
        written, _ = await heard(port(), [request(line + b" HTTP/1.1")])
        print(written[9:12].decode(), "flask" in sys.modules)

asyncio.run(send())
"""


def test_only_a_review_with_an_escaped_path_imports_flask() -> None:
    lines = subprocess.run([sys.executable, "-c", SEND], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert lines.split() == ["405", "False", "404", "False", "200", "False", "200", "True"]


def test_a_bug_in_flask_is_a_500_without_a_trace() -> None:
    app = make_app(REVIEWER, lambda _kind: None)

    def bug() -> str:
        raise RuntimeError("put in by a test")

    app.add_url_rule("/bug", "bug", bug)
    response = call(app, Head(b"GET", b"/bug", b"", JSON, 0), b"")
    assert (response.status, response.body) == (500, b"internal server error\n")
