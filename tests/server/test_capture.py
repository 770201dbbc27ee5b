"""`serve --capture`: what was asked, byte for byte, ready to be replayed."""

import json
import threading
from pathlib import Path
from typing import Any

from tests.factories import UID, make_lease, make_review, put
from tests.server.harness import make_certificates, running, wait_until
from webhook.cli.main import main
from webhook.server.capture import INDEX, Capture
from webhook.server.policy_file import load
from webhook.server.respond import Reply, respond

REVIEW = json.dumps(make_review(new=make_lease())).encode()
DENIED = json.dumps(make_review(new=make_lease(put("spec.leaseDurationSeconds", -1)))).encode()
HEAD = {b"content-type": b"application/json", b"authorization": b"Bearer secret"}


def entries(directory: Path) -> list[dict[str, Any]]:
    index = directory / INDEX
    return [json.loads(line) for line in index.read_text().splitlines()] if index.exists() else []


def reply(body: bytes) -> Reply:
    return respond(body, load(None), 0)


def test_reviews_over_tls_are_kept_and_replay_reads_them(tmp_path: Path) -> None:
    make_certificates(tmp_path / "tls")
    kept = tmp_path / "kept"
    with running(tmp_path / "tls", capture=str(kept), workers=2) as server:
        for body in (REVIEW, DENIED, b"no review"):
            server.post(body)
        wait_until(lambda: len(entries(kept)) == 2, "two reviews on disk")
    by_answer = {entry["recorder_answer"]: entry for entry in entries(kept)}
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
    assert main(["replay", str(kept)]) in {0, 1}


def test_the_ring_is_bounded_and_drops_the_oldest(tmp_path: Path) -> None:
    capture = Capture(tmp_path, most_reviews=20)
    capture.start()
    bodies = [REVIEW.replace(UID.encode(), f"uid-{number:032}".encode()) for number in range(100)]
    for body in bodies:
        capture.replied(reply(body), body, HEAD, 0.0)
    capture.stop()
    left = entries(tmp_path)
    assert 0 < len(left) <= 21
    assert (tmp_path / left[-1]["file"]).read_bytes() == bodies[-1]
    assert {path.name for path in tmp_path.glob("*.json")} == {entry["file"] for entry in left}


def test_secrets_in_headers_are_left_out(tmp_path: Path) -> None:
    capture = Capture(tmp_path)
    capture.start()
    capture.replied(reply(REVIEW), REVIEW, HEAD, 0.0)
    capture.stop()
    assert entries(tmp_path)[0]["headers"] == {"Content-Type": "application/json"}


def test_a_stuck_disk_costs_reviews_and_never_waits(tmp_path: Path) -> None:
    stuck = threading.Event()

    class StuckCapture(Capture):
        def _write(self, taken: Any) -> None:  # noqa: ARG002 - it stands in for the disk
            stuck.wait(10)

    capture = StuckCapture(tmp_path)
    capture.start()
    for _ in range(1000):
        capture.replied(reply(REVIEW), REVIEW, HEAD, 0.0)
    assert capture.dropped >= 700
    stuck.set()
    capture.stop()


def test_a_full_disk_is_told_and_counted(tmp_path: Path) -> None:
    capture = Capture(tmp_path / "kept")
    capture.start()
    (tmp_path / "kept").rmdir()
    capture.replied(reply(REVIEW), REVIEW, HEAD, 0.0)
    capture.stop()
    assert capture.dropped == 1
