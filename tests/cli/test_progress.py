"""A long run shows on a terminal how far it is, and nowhere else."""

import io
import itertools

import pytest

from webhook.cli.reading import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock is a second later."""
    monkeypatch.setattr("time.monotonic", itertools.count().__next__)


def test_the_count_is_shown_after_two_seconds_and_gone_at_the_end() -> None:
    stream = Terminal()
    assert list(Progress("documents", stream).watch("abcd")) == list("abcd")
    shown = [text for text in stream.getvalue().split("\r\x1b[K") if text]
    assert shown == ["2 documents ...", "3 documents ...", "4 documents ..."]
    assert stream.getvalue().endswith("\r\x1b[K")


def test_a_line_is_never_printed_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    stream = Terminal()
    shown = Progress("documents", stream)
    for letter in shown.watch("abc"):
        shown.print(f"line {letter}")
        assert not stream.getvalue() or stream.getvalue().endswith("\r\x1b[K")
    assert capsys.readouterr().out == "line a\nline b\nline c\n"


def test_a_short_run_and_a_pipe_show_nothing() -> None:
    for stream, items in ((Terminal(), "a"), (io.StringIO(), "abcdef")):
        assert list(Progress("documents", stream).watch(items)) == list(items)
        assert stream.getvalue() == ""
