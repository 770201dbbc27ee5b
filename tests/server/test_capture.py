"""`serve --capture`: what was asked, byte for byte, ready to be replayed."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.factories import UID, make_lease, make_review, put
from tests.server.conftest import Start
from tests.server.harness import make_certificates
from tests.waiting import wait_for
from webhook.admission.policy.file import load
from webhook.cli.main import main
from webhook.server.capture import INDEX, MAX_BODY, Capture
from webhook.server.reviewer import ReviewRecord, ReviewResponse, respond

REVIEW = json.dumps(make_review(new=make_lease())).encode()
DENIED = json.dumps(make_review(new=make_lease(put("spec.leaseDurationSeconds", -1)))).encode()
HEAD = {"CONTENT_TYPE": "application/json", "HTTP_AUTHORIZATION": "Bearer secret"}


def entries(directory: Path) -> list[dict[str, Any]]:
    index = directory / INDEX
    return [json.loads(line) for line in index.read_text().splitlines()] if index.exists() else []


def reply(body: bytes) -> ReviewResponse:
    return respond(body, load(None), 0)


def test_reviews_over_tls_are_kept_and_replay_reads_them(start: Start, tmp_path: Path) -> None:
    make_certificates(tmp_path / "tls")
    kept = tmp_path / "kept"
    with start(tmp_path / "tls", capture=str(kept), workers=2) as server:
        for body in (REVIEW, DENIED, b"no review"):
            server.post(body)
        wait_for("two reviews on disk", lambda: len(entries(kept)) == 2)
    by_answer = {entry["verdict"]: entry for entry in entries(kept)}
    assert (kept / by_answer["allowed"]["file"]).read_bytes() == REVIEW
    assert (kept / by_answer["denied"]["file"]).read_bytes() == DENIED
    entry = by_answer["allowed"]
    assert (entry["operation"], entry["event"], entry["namespace"], entry["name"]) == (
        "CREATE",
        "create",
        "shop",
        "checkout",
    )
    assert entry["bytes"] == len(REVIEW)
    assert entry["headers"]["Content-Type"] == "application/json"
    assert entry["received"].endswith("Z")
    assert main(["check", str(kept)]) in {0, 1}


def test_the_ring_is_bounded_and_drops_the_oldest(tmp_path: Path) -> None:
    capture = Capture(tmp_path, max_reviews=20)
    capture.start()
    bodies = [REVIEW.replace(UID.encode(), f"uid-{number:032}".encode()) for number in range(100)]
    for body in bodies:
        capture.record(ReviewRecord(reply(body), body, HEAD, 0.0))
    capture.stop()
    left = entries(tmp_path)
    assert 0 < len(left) <= 21
    assert (tmp_path / left[-1]["file"]).read_bytes() == bodies[-1]
    assert {path.name for path in tmp_path.glob("*.json")} == {entry["file"] for entry in left}


def test_secrets_in_headers_are_left_out(tmp_path: Path) -> None:
    capture = Capture(tmp_path)
    capture.start()
    capture.record(ReviewRecord(reply(REVIEW), REVIEW, HEAD, 0.0))
    capture.stop()
    assert entries(tmp_path)[0]["headers"] == {"Content-Type": "application/json"}


def test_a_stuck_disk_costs_reviews_and_never_waits(tmp_path: Path) -> None:
    stuck = threading.Event()

    class StuckCapture(Capture):
        def _write(self, *_captured: Any) -> None:
            stuck.wait(10)

    capture = StuckCapture(tmp_path)
    capture.start()
    for _ in range(1000):
        capture.record(ReviewRecord(reply(REVIEW), REVIEW, HEAD, 0.0))
    assert capture.dropped >= 700
    stuck.set()
    capture.stop()


@pytest.mark.parametrize(
    "index",
    [
        b'{"file":"a","bytes":1}\n{"file":"trunca',
        b"\xff\n[" * 2000,
        b'{"file":"../precious.json","bytes":1}\n' * 50,
        b'{"file":"..","bytes":1}\n{"file":"a\\u0000.json","bytes":1}\n' * 50,
        b'{"file":"a.json","bytes":-1000000}\n{"file":"a.json"}\n' * 50,
        b'{"file":"a.json","bytes":1e400}\n' * 50,
    ],
    ids=["half a line", "no text", "elsewhere", "no name of a file", "no size", "no number"],
)
def test_no_line_of_the_index_ends_the_writing(index: bytes, tmp_path: Path) -> None:
    precious = tmp_path / "precious.json"
    precious.touch()
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / INDEX).write_bytes(index)
    capture = Capture(kept, max_reviews=20)
    capture.start()
    for _ in range(5):
        capture.record(ReviewRecord(reply(REVIEW), REVIEW, HEAD, 0.0))
    capture.stop()
    names = [path.name for path in kept.glob("2*.json")]
    lines = (kept / INDEX).read_bytes().splitlines()
    assert (len(names), capture.dropped, precious.exists()) == (5, 0, True)
    assert {json.loads(line)["file"] for line in lines[-5:]} == set(names)


def test_a_review_that_is_too_large_is_counted(tmp_path: Path) -> None:
    capture = Capture(tmp_path)
    capture.start()
    for body in (REVIEW.ljust(MAX_BODY), REVIEW.ljust(MAX_BODY + 1)):
        capture.record(ReviewRecord(reply(REVIEW), body, HEAD, 0.0))
    capture.stop()
    assert (len(entries(tmp_path)), capture.dropped) == (1, 1)


def test_what_is_captured_is_private(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    capture = Capture(kept, max_reviews=2)
    capture.start()
    for _ in range(5):
        capture.record(ReviewRecord(reply(REVIEW), REVIEW, HEAD, 0.0))
    capture.stop()
    assert kept.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in kept.iterdir()} == {0o600}


def test_a_link_in_the_directory_is_not_written_through(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_bytes(b"kept\n")
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / INDEX).symlink_to(precious)
    capture = Capture(kept)
    capture.start()
    capture.record(ReviewRecord(reply(REVIEW), REVIEW, HEAD, 0.0))
    capture.stop()
    assert (precious.read_bytes(), capture.dropped) == (b"kept\n", 1)


def test_a_review_that_cannot_be_indexed_leaves_no_file(tmp_path: Path) -> None:
    (tmp_path / INDEX).mkdir()
    capture = Capture(tmp_path)
    capture.start()
    capture.record(ReviewRecord(reply(REVIEW), REVIEW, HEAD, 0.0))
    capture.stop()
    assert capture.dropped == 1
    assert list(tmp_path.glob("*.json")) == []


def test_a_full_disk_is_reported_and_counted(tmp_path: Path) -> None:
    capture = Capture(tmp_path / "kept")
    capture.start()
    (tmp_path / "kept").rmdir()
    capture.record(ReviewRecord(reply(REVIEW), REVIEW, HEAD, 0.0))
    capture.stop()
    assert capture.dropped == 1
