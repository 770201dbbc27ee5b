"""Reviews posted over TLS to the real gunicorn get the same bytes as in process, where all of them are evaluated.

One of each kind is enough here: a recording of each client, and a bad input of each row of the wire contract.
"""

import http.client
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.acceptance import accept
from tests.recordings import Recording, one_of_each_client, recordings
from tests.review_rows import Case, one_of_each_row
from tests.server.conftest import Start
from tests.server.harness import Server, make_certificates
from webhook.admission.policy.file import load
from webhook.admission.policy.model import Policy
from webhook.admission.rules.registry import RULES
from webhook.server.reviewer import ReviewResponse, respond

POLICY = load("standard")


@pytest.fixture(scope="module")
def server(start: Start, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory: Path = tmp_path_factory.mktemp("tls")
    make_certificates(directory)
    with start(directory) as started:
        yield started


@pytest.fixture(scope="module")
def connection(server: Server) -> Iterator[http.client.HTTPSConnection]:
    opened = server.connect()
    yield opened
    opened.close()


def post(connection: http.client.HTTPSConnection, body: bytes) -> tuple[int, str, bytes]:
    connection.request("POST", "/validate?timeout=10s", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    return answer.status, answer.headers.get_content_type(), answer.read()


def check(status: int, body: bytes, review: bytes, since: int, policy: Policy = POLICY) -> ReviewResponse:
    """Compare with the reply in process, at either end of the time that the server had: a text may name seconds."""
    reply = respond(review, policy, since)
    if reply.body != body:
        reply = respond(review, policy, time.time_ns() // 1000)
    assert (reply.status, reply.body) == (status, body)
    return reply


@pytest.mark.parametrize("recording", [pytest.param(one, id=one.file) for one in one_of_each_client()])
def test_a_recording_gets_the_same_bytes_as_in_process(
    recording: Recording, connection: http.client.HTTPSConnection
) -> None:
    since = time.time_ns() // 1000
    status, content_type, body = post(connection, recording.body)
    assert (status, content_type) == (200, "application/json")
    accept(body, recording.document()["request"]["uid"])
    verdict = check(status, body, recording.body, since).verdict
    assert verdict
    assert [finding for finding in verdict.findings if RULES[finding.rule].parity] == []


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in one_of_each_row()])
def test_a_bad_input_gets_the_same_bytes_as_in_process(case: Case, connection: http.client.HTTPSConnection) -> None:
    since = time.time_ns() // 1000
    status, content_type, body = post(connection, case.body)
    assert status == case.expect.get("status", 200)
    assert content_type == ("application/json" if status == 200 else "text/plain")
    check(status, body, case.body, since)


def test_one_uid_in_parallel_gets_one_answer(server: Server) -> None:
    body = recordings()[0].body
    with ThreadPoolExecutor(16) as pool:
        answers = set(pool.map(server.post, [body] * 100))
    assert len(answers) == 1
    ((status, answer),) = answers
    assert status == 200
    accept(answer, json.loads(body)["request"]["uid"])
