"""Color and layout."""

import io

import pytest

from webhook.cli.terminal import indent, style, table, width


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def test_color_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", Terminal())
    assert style("denied", fg="red") == "\x1b[31mdenied\x1b[0m"


def test_no_color_in_a_pipe() -> None:
    assert style("denied", fg="red") == "denied"


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb"), ("NO_COLOR", "")])
def test_no_color_where_it_is_unwanted(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", Terminal())
    monkeypatch.setenv(name, value)
    assert ("\x1b" in style("denied", fg="red")) is not bool(value)


@pytest.mark.parametrize(("columns", "used"), [("20", 60), ("90", 90), ("400", 100)])
def test_lines_stay_readable(columns: str, used: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert width() == used


def test_long_text_wraps_under_itself() -> None:
    assert indent("must be greater than 0", 4, columns=20) == "    must be greater\n    than 0"


def test_a_table_aligns_all_but_the_last_column() -> None:
    assert [*table([("a", "Lease", "x"), ("bcd", "b", "long text")])] == ["  a    Lease  x", "  bcd  b      long text"]
