"""The same application under gunicorn's worker with threads: the same answers, without some of the guards.

The cases of the wire contract that it does not keep are listed in tests/data/transport-gthread.json, each with what
may be heard instead; one that it learns to keep fails here as well, so that the list and docs/flask.md stay true.
All tests of a running server run against both by the fixture `start`.
"""

import http.client
import importlib
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.server import wire
from tests.server.conftest import LACKING as LACKING_TESTS
from tests.server.connections import REVIEW
from tests.server.harness import Server, make_certificates, running, running_gthread
from tests.server.launch import gthread_arguments
from tests.server.test_transport import CASES, check_all, play_all, servers_of
from webhook.kubernetes.request import MAX_REQUEST
from webhook.kubernetes.review_size import OPENING
from webhook.server.settings import Guards, Options

ROOT: Final = Path(__file__).parents[2]
LACKING: Final = ROOT / "tests" / "data" / "transport-gthread.json"
JSON: Final = {"Content-Type": "application/json"}
BODY = REVIEW.partition(b"\r\n\r\n")[2]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("gthread")
    make_certificates(directory)
    with running_gthread(directory, policy="strict") as server:
        yield server


def connect(service: Server) -> http.client.HTTPSConnection:
    return service.connect()


def ask(service: Server, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
    connection = connect(service)
    try:
        connection.request(method, path, body or None, JSON)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def heard_instead(what: wire.Heard) -> str:
    """The statuses of the responses, and how the connection ended."""
    statuses = re.findall(rb"HTTP/1\.1 (\d{3}) ", what.data)
    return " ".join([*(status.decode() for status in statuses), "closed" if what.closed else "open"])


def is_listed(instead: str, listed: list[str]) -> bool:
    """Return whether this may be heard instead.

    When gunicorn closes a connection that it has answered depends on how busy the machine is: later than a case waits,
    or with bytes unread, and then the client's kernel may drop the answer. So of an answer only the status counts, and
    a connection that was closed without one may have been answered.
    """
    if instead in listed:
        return True
    is_answered = any(status != "open" for status in listed)
    statuses = {other.rpartition(" ")[0] for other in listed}
    return is_answered and (instead == "closed" or instead.rpartition(" ")[0] in statuses - {""})


def is_kept(case: wire.Case, what: wire.Heard) -> bool:
    try:
        check_all(case, what)
    except (AssertionError, ValueError, KeyError, IndexError):
        return False
    return True


def test_the_wire_contract_is_kept_but_for_what_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "PATIENCE", 8.0)  # what is still open then stays open
    listed = json.loads(LACKING.read_text())
    with servers_of(tmp_path, running_gthread) as servers:
        heard = play_all(tmp_path, servers)
        for name, case in CASES:
            if name not in listed and not is_kept(case, heard[name]):
                # An answer that gunicorn lost while it was busy with all the others is not one that it lacks.
                heard |= play_all(tmp_path, servers, [(name, case)])
    lacking = {name: heard_instead(heard[name]) for name, case in CASES if not is_kept(case, heard[name])}
    assert lacking.keys() == listed.keys()
    others = {name: instead for name, instead in lacking.items() if not is_listed(instead, listed[name])}
    assert others == {}


def test_the_command_of_the_document_is_the_one_that_is_tested() -> None:
    page = (ROOT / "docs" / "flask.md").read_text()
    (command,) = re.findall(r"```sh needs=gunicorn\n(.*?)```", page, re.DOTALL)
    words = shlex.split(command.replace("\\\n", " "))
    assert words[:3] == ["LEASE_WEBHOOK_POLICY=strict", "gunicorn", "webhook.server.app:create_app()"]
    flags = set(words[3:][::2])
    tested = {argument.partition("=")[0] for argument in gthread_arguments(Options())}
    assert flags <= tested


def test_reviews_are_evaluated_by_the_policy_of_the_variable(service: Server) -> None:
    for path in ("/validate?timeout=10s", "/validate-coordination-k8s-io-v1-lease"):
        status, body = ask(service, "POST", path, BODY)
        assert status == 200
        assert b'"allowed":true' in body
        assert b'"policy":"strict ' in body


def test_what_is_listed_as_lacking_are_tests() -> None:
    for name in LACKING_TESTS:
        module, _, rest = name.partition("::")
        assert hasattr(importlib.import_module(f"tests.server.{module}"), rest.partition("[")[0]), name


def test_sizes_are_limited_as_on_our_own_server(service: Server, tmp_path: Path) -> None:
    make_certificates(tmp_path)
    with running(tmp_path) as ours:
        for size, beginning, status in (
            (MAX_REQUEST, b"{ ", 400),  # any form up to the size of a request
            (MAX_REQUEST + 1, b"{ ", 413),  # another form
            (MAX_REQUEST + 1, OPENING, 400),  # the form of an API server
        ):
            body = beginning.ljust(size)
            assert ask(service, "POST", "/validate", body)[0] == ours.post(body, "/validate")[0] == status


def test_a_body_that_is_too_large_is_refused_before_it_is_sent(service: Server) -> None:
    connection = connect(service)
    connection.putrequest("POST", "/validate")
    connection.putheader("Content-Length", str(Guards().max_body + 1))
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()
