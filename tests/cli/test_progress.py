"""Long work shows itself on a terminal, and Ctrl-C answers with what was read."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.cli.on_terminal import on_terminal, plain
from tests.factories import make_lease, put
from webhook.analysis.inputs.files import find_inputs, read_for_check
from webhook.analysis.inputs.meter import Meter
from webhook.cli.main import main
from webhook.cli.progress import INTERRUPTED, Progress, format_size

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


@pytest.mark.parametrize(
    "words",
    [
        ["why", "--input", "-"],
        ["timeline", "--input", "-"],
        ["suggest", "bindings", "--input", "-"],
        ["audit", "--input", "-"],
        ["check", "-"],
    ],
)
def test_ctrl_c_before_anything_was_read_does_not_say_that_there_is_nothing(words: list[str]) -> None:
    code, screen = on_terminal(words, columns=160, until=lambda output: "Ctrl-C answers" in output)
    assert code == INTERRUPTED
    assert "stopped by Ctrl-C: read 0 objects" in plain(screen)
    assert "is empty" not in plain(screen)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["why", "shop/gone"], id="a lease that why did not find yet"),
        pytest.param(["why", "-n", "gone"], id="a namespace that why did not find yet"),
        pytest.param(["timeline", "shop/gone"], id="a lease that timeline did not find yet"),
        pytest.param(["suggest", "bindings", "shop/gone"], id="a lease that suggest did not find yet"),
        pytest.param(["export", "alerts"], id="no lease yet"),
        pytest.param(["check", "--require", "9"], id="too little to check yet"),
    ],
)
def test_what_is_missing_when_it_is_stopped_may_be_in_the_rest(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "leases.json"
    path.write_text(json.dumps(make_lease()) if words != ["export", "alerts"] else "")

    def read(progress: Progress, items: Iterable[Any]) -> Iterator[Any]:
        yield from items
        progress._stopped_at.append("read a part")

    monkeypatch.setattr(Progress, "track_reading", read)
    assert main([*words, *([] if words[0] == "check" else ["--input"]), str(path)]) == INTERRUPTED
    _, err = capsys.readouterr()
    assert err.splitlines()[-1] == "stopped by Ctrl-C: read a part; the rest is not in this answer"


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
