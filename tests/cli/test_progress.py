"""Long work shows itself on a terminal, and Ctrl-C answers with what was read."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.cli.on_terminal import on_terminal, plain
from tests.factories import make_lease, put
from webhook.analysis.inputs.files import find_inputs, read_for_check
from webhook.analysis.inputs.meter import Meter
from webhook.cli.progress import INTERRUPTED, format_size

NOW = "2026-11-24T17:21:05Z"


@contextmanager
def slow_input(path: Path, seconds: float) -> Iterator[str]:
    """Yield the path of a pipe through which ten leases come, and an eleventh so much later."""
    pipe = path / "leases.json"
    os.mkfifo(pipe)
    leases = [json.dumps(make_lease(put("metadata.name", f"checkout-{number}"))) + "\n" for number in range(11)]
    is_read = threading.Event()

    def write() -> None:
        with suppress(BrokenPipeError), pipe.open("w") as file:
            file.write("".join(leases[:10]))
            file.flush()
            is_read.wait(seconds)
            file.write(leases[10])

    writer = threading.Thread(target=write)
    writer.start()
    yield str(pipe)
    is_read.set()
    writer.join()


@pytest.mark.parametrize(
    ("words", "answer"), [(["why"], "of 11 leases"), (["audit"], "11 examined"), (["check"], "11 evaluated")]
)
def test_a_line_shows_what_was_read_and_is_gone_at_the_end(words: list[str], answer: str, tmp_path: Path) -> None:
    with slow_input(tmp_path, 4) as path:
        option = [path] if words == ["check"] else ["--input", path]
        _, screen = on_terminal([*words, *option, "--now", NOW], columns=120)
    assert "Ctrl-C answers with what was read" in screen
    *_, rest = screen.split("\r\x1b[2K")
    assert answer in rest
    assert "Ctrl-C" not in rest


@pytest.mark.parametrize(("command", "answer"), [("why", "10 leases"), ("audit", "10 examined")])
def test_ctrl_c_answers_with_what_was_read(command: str, answer: str, tmp_path: Path) -> None:
    with slow_input(tmp_path, 60) as path:
        words = [command, "--input", path, "--now", NOW]
        code, screen = on_terminal(words, columns=120, until=lambda output: "Ctrl-C answers" in output)
    assert code == INTERRUPTED
    assert "stopped by Ctrl-C: read " in plain(screen)
    assert answer in plain(screen)


def test_nothing_is_shown_in_a_pipe(tmp_path: Path) -> None:
    with slow_input(tmp_path, 3) as path:
        done = subprocess.run(
            [sys.executable, "-m", "webhook", "why", "--input", path, "--now", NOW],
            capture_output=True,
            text=True,
            check=True,
        )
    assert "Ctrl-C" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1500, "1.5 kB"), (12_345_678, "12 MB"), (2_500_000_000, "2.5 GB")],
)
def test_sizes_are_those_of_files(number: int, text: str) -> None:
    assert format_size(number) == text


def test_a_meter_counts_bytes_and_items_and_ends_inputs(tmp_path: Path) -> None:
    path = tmp_path / "leases.json"
    path.write_text("\n".join(json.dumps(make_lease()) for _ in range(3)))
    meter = Meter()
    (source,) = find_inputs([str(path)], meter)
    assert meter.size == path.stat().st_size
    items = source.read()
    next(items)
    assert (meter.read, meter.items) == (meter.size, 1)
    meter.is_stopped = True
    assert list(items) == []
    assert list(read_for_check([str(path)], meter=meter)) == []


def test_a_stopped_pipe_that_nothing_comes_through_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    with open(reader) as pipe, open(writer, "w"):  # noqa: PTH123 - a file descriptor
        monkeypatch.setattr("sys.stdin", pipe)
        (source,) = find_inputs(["-"], Meter(is_stopped=True))
        assert list(source.read()) == []
