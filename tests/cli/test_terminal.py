"""Color and layout."""

import io

import pytest

from webhook.cli.terminal import Paint, indent, paint_for, table, width


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def test_color_on_a_terminal() -> None:
    assert paint_for(Terminal()).red("denied") == "\x1b[31mdenied\x1b[0m"


def test_no_color_in_a_pipe() -> None:
    assert paint_for(io.StringIO()).red("denied") == "denied"


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_no_color_where_it_is_unwanted(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    assert paint_for(Terminal()) == Paint(color=False)


def test_an_empty_no_color_means_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "")
    assert paint_for(Terminal()).color


@pytest.mark.parametrize(("columns", "used"), [("20", 60), ("90", 90), ("400", 100)])
def test_lines_stay_readable(columns: str, used: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert width() == used


def test_long_text_wraps_under_itself() -> None:
    assert indent("must be greater than 0", 4, columns=20) == "    must be greater\n    than 0"


def test_a_table_aligns_all_but_the_last_column() -> None:
    assert table([("a", "Lease", "x"), ("bcd", "b", "long text")]) == ["  a    Lease  x", "  bcd  b      long text"]
