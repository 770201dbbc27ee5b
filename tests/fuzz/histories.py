"""Histories: `why`, `audit` and `timeline` answer for any input, in plain lines, by an exit code that they document."""

import contextlib
import io
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.acceptance import is_plain
from tests.fuzz.documents import beginning_of
from tests.incidents import incident
from webhook.cli import commands

COMMANDS: Final = (
    ("why", "--input", "-", "--now", "2026-11-20T12:00:00Z"),
    ("why", "--input", "-", "--format", "json"),
    ("audit", "--input", "-"),
    ("timeline", "--input", "-", "--format", "json"),
    ("check", "-"),
)
_INCIDENTS: Final = ("lease-stolen", "leader-killed", "leader-released", "lease-deleted", "coordinated", "fenced")


def check(data: bytes) -> None:
    """Ask each command about an input; raises AssertionError for a law that does not hold, and what a bug raises."""
    for words in COMMANDS:
        status, output, complaint = run(words, data)
        assert status in {0, 1, 2}, f"{words}: exit code {status}"
        assert status != 2 or output or complaint, f"{words}: exit code 2 without a word"
        for line in (output + complaint).splitlines():
            assert is_plain(line.replace("\t", " ")), f"{words}: {line!r}"
        if "json" in words and status == 0:
            for line in output.splitlines() if words[0] == "why" else [output]:
                json.loads(line)


def run(words: Sequence[str], data: bytes) -> tuple[int, str, str]:
    """Return exit code, output and complaint of a command with an input; unlike `main` it lets a bug raise."""
    output, complaint = io.StringIO(), io.StringIO()
    stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(data)))
    before, sys.stdin = sys.stdin, stdin
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(complaint):
            status = commands.run([*words], "lease-webhook")
    finally:
        sys.stdin = before
    return status, output.getvalue(), complaint.getvalue()


def seeds() -> Iterator[bytes]:
    """Yield a few changes of recorded incidents, as a watch and as a log."""
    for name in _INCIDENTS:
        for path in ("leases.json.gz", "audit.log.gz"):
            lines = beginning_of(incident(name).file(path), 1000).splitlines(keepends=True)
            step = max(1, len(lines) // 6)
            yield b"".join(lines[::step])
    yield (Path(__file__).parents[1] / "data" / "leases" / "seeded.json").read_bytes()[:20_000]
