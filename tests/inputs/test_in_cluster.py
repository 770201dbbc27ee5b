"""The list of leases from inside a pod, from an API server that is played by a small server with TLS."""

import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.factories import as_version, make_candidate, make_lease, put
from webhook.analysis.inputs import cluster
from webhook.analysis.inputs.items import Observation, OtherObject, Unreadable
from webhook.cli.main import main
from webhook.errors import InputError

LEASES = [make_lease(put("metadata.name", f"lease-{number}")) for number in range(3)]


def event(kind: str, version: int, **others: object) -> bytes:
    """A line of a watch."""
    return (
        json.dumps({"type": kind, "object": {"metadata": {"resourceVersion": str(version)}, **others}}).encode() + b"\n"
    )


class ApiServer(BaseHTTPRequestHandler):
    """Gives leases in pages of two; `candidates` is the status of the newest versions of candidates, which lack them.

    `expired` is the continue token that it no longer knows, `afresh` the one with which it goes on instead.
    """

    candidates = 404
    leases = 200
    expired = ""
    afresh = ""
    created: ClassVar[list[tuple[str, str, object]]] = []

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        assert self.headers["Authorization"] == "Bearer secret"
        if "watch=true" in url.query:
            self.show(url.query.rpartition("=")[2])
        elif url.path.endswith("/leases"):
            token = parse_qs(url.query).get("continue", ["0"])[0]
            place = int(token)
            following = {"continue": str(place + 2)} if place + 2 < len(LEASES) else {}
            if token == self.expired:
                self.answer(410, "", [], {"continue": self.afresh})
            else:
                self.answer(self.leases, "Lease", LEASES[place : place + 2], following)
        elif not url.path.endswith("/v1alpha1/leasecandidates") and url.path.endswith("/leasecandidates"):
            self.answer(self.candidates, "LeaseCandidate", [])
        elif url.path.endswith("/leasecandidates"):
            self.answer(200, "LeaseCandidate", [make_candidate(as_version("v1alpha1"))])
        else:
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "shop"}}
            self.answer(200, "Pod", [pod])

    def do_POST(self) -> None:
        """Create an Event, in one namespace only."""
        sent = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path != "/api/v1/namespaces/shop/events":
            self.answer(403, "Status", [])
            return
        self.created.append((self.headers["Authorization"], self.headers["Content-Type"], json.loads(sent)))
        self.answer(201, "Event", [])

    def show(self, version: str) -> None:
        """Answer with events in pieces that end anywhere, then close; later with an event that ends the watch."""
        self.send_response(200)
        self.end_headers()
        events = [event("MODIFIED", 7), event("BOOKMARK", 9)] if version != "9" else [event("ERROR", 0, code=410)]
        whole = b"".join(events)
        for piece in (whole[:10], whole[10:-5], whole[-5:]):
            self.wfile.write(piece)
            time.sleep(0.01)

    def answer(self, status: int, kind: str, items: list[Any], metadata: dict[str, str] | None = None) -> None:
        head = {"kind": f"{kind}List", "apiVersion": "coordination.k8s.io/v1", "metadata": metadata or {}}
        body = json.dumps({**head, "items": items}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        """Nothing."""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    assert main(["certs", str(tmp_path), "--san", "127.0.0.1"]) == 0
    (tmp_path / "token").write_text("secret\n")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    listener = HTTPServer(("127.0.0.1", 0), ApiServer)
    listener.socket = context.wrap_socket(listener.socket, server_side=True)
    thread = threading.Thread(target=listener.serve_forever, args=(0.01,))
    thread.start()
    monkeypatch.setattr(cluster, "ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(listener.server_port))
    yield
    listener.shutdown()
    thread.join()
    listener.server_close()


def test_an_event_is_created(server: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ApiServer, "created", [])
    event = {"kind": "Event", "metadata": {"namespace": "shop", "generateName": "db."}}
    cluster.post_event(cluster.Cluster(), event, is_in_cluster=True)
    assert ApiServer.created == [("Bearer secret", "application/json", event)]
    other = {"kind": "Event", "metadata": {"namespace": "other", "generateName": "db."}}
    with pytest.raises(InputError, match="returned 403 for /api/v1/namespaces/other/events"):
        cluster.post_event(cluster.Cluster(), other, is_in_cluster=True)


def test_pages_are_followed_and_versions_tried(server: None) -> None:
    notes: list[str] = []
    items = list(cluster.list_in_cluster(cluster.Cluster(), notes))
    assert [one.name for one in items if isinstance(one, Observation)] == [
        "lease-0",
        "lease-1",
        "lease-2",
        "checkout-6d5f9c-x2x8p_1f0e",
    ]
    assert notes == []


@pytest.mark.parametrize(
    ("afresh", "names"),
    [
        pytest.param("02", ["lease-0", "lease-1", "lease-2"], id="goes on with the present state"),
        pytest.param("", None, id="no token: fails"),
        pytest.param("2", None, id="the same token again: fails"),
    ],
)
def test_a_list_that_expires_between_its_pages(
    server: None, monkeypatch: pytest.MonkeyPatch, afresh: str, names: list[str] | None
) -> None:
    monkeypatch.setattr(ApiServer, "expired", "2")
    monkeypatch.setattr(ApiServer, "afresh", afresh)
    leases = (
        one
        for one in cluster.list_in_cluster(cluster.Cluster(), [])
        if isinstance(one, Observation) and one.kind == "Lease"
    )
    if names is None:
        with pytest.raises(InputError, match="returned 410"):
            list(leases)
    else:
        assert [one.name for one in leases] == names


def test_candidates_that_may_not_be_read_are_a_note(server: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ApiServer, "candidates", 403)
    notes: list[str] = []
    assert len(list(cluster.list_in_cluster(cluster.Cluster(), notes))) == 3
    (note,) = notes
    assert note.startswith("candidates were not read: the API server returned 403 for /apis/")


def test_one_namespace(server: None) -> None:
    items = [
        one for one in cluster.list_in_cluster(cluster.Cluster(namespace="shop"), []) if isinstance(one, Observation)
    ]
    assert items[0].place.path == "/apis/coordination.k8s.io/v1/namespaces/shop/leases"


def test_pods_and_nodes_if_wanted(server: None) -> None:
    items = list(cluster.list_in_cluster(cluster.Cluster(), [], with_pods=True))
    assert [one.name for one in items if isinstance(one, OtherObject)] == ["p", "p"]


def test_leases_that_may_not_be_read_are_a_failure(server: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ApiServer, "leases", 403)
    with pytest.raises(InputError, match="returned 403 for /apis/"):
        list(cluster.list_in_cluster(cluster.Cluster(), []))


def test_outside_of_a_pod(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(InputError, match="works in a pod only"):
        list(cluster.list_in_cluster(cluster.Cluster(), []))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    with pytest.raises(InputError, match="service account cannot be used"):
        list(cluster.list_in_cluster(cluster.Cluster(), []))


def test_an_api_server_that_is_away(server: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
    with pytest.raises(InputError, match="cannot be reached"):
        list(cluster.list_in_cluster(cluster.Cluster(), []))


def test_an_answer_that_is_not_http_is_shown_in_part(server: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(handler: ApiServer) -> None:
        handler.wfile.write(b"HTTP/1.1 \x1b[31m" + b"x" * 10_000 + b"\r\n\r\n")

    monkeypatch.setattr(ApiServer, "do_GET", answer)
    with pytest.raises(InputError) as failure:
        list(cluster.list_in_cluster(cluster.Cluster(), []))
    assert str(failure.value).startswith("the API server cannot be reached: HTTP/1.1 \\x1b[31mxxx")
    assert len(str(failure.value)) < 200


def test_the_audit_of_the_cron_job(server: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    gauge = tmp_path / "leases.prom"
    code = main(["audit", "--in-cluster", "--format", "json", "--metrics", str(gauge), "--now", "2025-11-20T12:00:04Z"])
    checks = [json.loads(line)["check"] for line in capsys.readouterr().out.splitlines()]
    assert (code, set(checks)) == (0, {"timing-tight"})
    assert 'lease_audit_findings{check="timing-tight",severity="info"} 3.0' in gauge.read_text()
    assert "lease_audit_examined 4.0" in gauge.read_text()
    assert main(["audit", "--in-cluster", "--input", "x"]) == 2


def test_a_watch_goes_on_where_it_was_closed_until_that_place_is_unknown(
    server: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_PAUSE", 0.0)
    outputs: list[bytes] = []
    with pytest.raises(InputError, match="410"):
        outputs.extend(cluster.watch_in_cluster("", cluster.LEASES))
    assert [json.loads(line)["type"] for line in outputs] == [*["ADDED"] * 3, "MODIFIED", "BOOKMARK", "ERROR"]


DEEP = b'{"metadata":{"name":"deep","managedFields":' + b"[" * 5000 + b"]" * 5000 + b"}}"
PAGE = b'{"kind":"LeaseList","apiVersion":"coordination.k8s.io/v1","metadata":{"resourceVersion":"5"%s},"items":[%s]}'


def answer_with(*answers: bytes) -> Callable[..., Iterator[bytes]]:
    left = iter(answers)
    return lambda *_: filter(None, next(left).split(b"\n"))


def test_a_lease_that_nests_too_deeply_hides_no_other_in_a_list(server: None, monkeypatch: pytest.MonkeyPatch) -> None:
    leases = [b'{"metadata":{"name":"%s"},"spec":{}}' % name for name in (b"a", b"b")]
    page = PAGE % (b"", b",".join([leases[0], DEEP, leases[1]]))
    monkeypatch.setattr(cluster.InClusterClient, "read_lines", answer_with(page))
    items = list(cluster.InClusterClient().list("/leases"))
    assert [one.name for one in items if isinstance(one, Observation)] == ["a", "b"]
    assert [one.error for one in items if isinstance(one, Unreadable)] == ["nested too deeply"]


def test_a_lease_that_nests_too_deeply_ends_no_watch(server: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_PAUSE", 0.0)
    deep = b'{"type":"MODIFIED","object":' + DEEP + b"}"
    expected = [event("MODIFIED", 7).strip(), deep, event("MODIFIED", 8).strip(), event("ERROR", 0, code=410).strip()]
    monkeypatch.setattr(cluster.InClusterClient, "read_lines", answer_with(PAGE % (b"", DEEP), b"\n".join(expected)))
    lines: list[bytes] = []
    with pytest.raises(InputError, match="410"):
        lines.extend(cluster.watch_in_cluster("", cluster.LEASES))
    head = b'{"type":"ADDED","object":{"kind":"Lease","apiVersion":"coordination.k8s.io/v1",'
    assert [line.strip() for line in lines] == [head + DEEP[1:] + b"}", *expected]


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        pytest.param(b"[]", "the API server did not return a list for /leases", id="no list"),
        pytest.param(DEEP, "the answer of the API server for /leases is nested too deeply", id="nested, and no list"),
        pytest.param(
            PAGE % (b',"a":' + b"[" * 5000 + b"]" * 5000, b"{}"),
            "the answer of the API server for /leases is nested too deeply",
            id="nested beside the items",
        ),
    ],
)
def test_a_page_that_cannot_be_read(page: bytes, problem: str, server: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster.InClusterClient, "read_lines", answer_with(page))
    with pytest.raises(InputError, match=problem):
        list(cluster.InClusterClient().list("/leases"))


def test_a_watch_must_begin_with_one_state(server: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ApiServer, "expired", "2")
    monkeypatch.setattr(ApiServer, "afresh", "02")
    with pytest.raises(InputError, match="returned 410"):
        list(cluster.watch_in_cluster("", cluster.LEASES))


def test_candidates_are_watched_in_the_version_that_is_served(server: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_PAUSE", 0.0)
    first = json.loads(next(iter(cluster.watch_in_cluster("", cluster.CANDIDATES))))
    assert first["object"]["spec"]["preferredStrategies"] == ["OldestEmulationVersion"]
    monkeypatch.setattr(ApiServer, "candidates", 403)
    with pytest.raises(InputError, match=r"returned 403 for /apis/coordination\.k8s\.io/v1beta1/leasecandidates"):
        next(iter(cluster.watch_in_cluster("", cluster.CANDIDATES)))
