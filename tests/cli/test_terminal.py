"""Color and layout."""

import io

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.cli.terminal import format_advice, format_table, indent, measure_width, print_message, style


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
    assert measure_width() == used


def test_long_text_wraps_under_itself() -> None:
    assert indent("must be greater than 0", 4, columns=20) == "    must be greater\n    than 0"


@pytest.mark.parametrize(
    ("stream", "text", "expected"),
    [
        (Terminal(), "not evaluated, as the input does not show it", "not evaluated, as the\ninput does not show it\n"),
        (Terminal(), "see lease-webhook rules lease-duration", "see lease-webhook rules lease-duration\n"),
        (
            io.StringIO(),
            "not evaluated, as the input does not show it",
            "not evaluated, as the input does not show it\n",
        ),
    ],
    ids=["on a terminal", "with a command", "in a pipe"],
)
def test_a_message_is_broken_between_words(
    stream: io.StringIO, text: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("COLUMNS", "24")
    print_message(text)
    assert stream.getvalue() == expected


def test_a_message_and_its_end_are_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    stream = io.StringIO()
    monkeypatch.setattr(stream, "write", written.append)
    monkeypatch.setattr("sys.stderr", stream)
    print_message("the watch of leases ended")
    assert written == ["the watch of leases ended\n"]


def test_a_table_aligns_all_but_the_last_column() -> None:
    rows = [("a", "Lease", "x"), ("bcd", "b", "long text")]
    assert [*format_table(rows)] == [
        "  a    Lease  x",
        "  bcd  b      long text",
    ]


POD = "operator-6d5f8b-x2x8p"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("kubectl -n shop get pods", "  -> kubectl -n shop get pods", id="short"),
        pytest.param(
            f"kubectl -n shop get lease a --show-managed-fields -o=json -o name-of-{POD}",
            f"  -> kubectl -n shop get lease a --show-managed-fields -o=json -o name-of-{POD}",
            id="a long command is one line",
        ),
        pytest.param(
            "correct it in the manifest or the client that writes it; an API server refuses it",
            "  -> correct it in the manifest or the client that writes\n     it; an API server refuses it",
            id="a sentence is wrapped",
        ),
        pytest.param(
            f"if its program is gone for good: kubectl -n shop delete lease 'a; kubectl delete pod {POD}'",
            f"  -> if its program is gone for good: kubectl -n shop delete lease 'a; kubectl delete pod {POD}'",
            id="a name that contains a command",
        ),
    ],
)
def test_advice_is_wrapped_unless_it_has_a_command(text: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert format_advice("->", text, 2, 5) == expected


STYLED = st.tuples(st.text("ab -\xa0\t", max_size=12), st.sampled_from([None, "red"]))


@given(parts=st.lists(STYLED), hanging=st.integers(0, 4))
def test_styles_take_no_columns(parts: list[tuple[str, str | None]], hanging: int) -> None:
    plain = "".join(text for text, _ in parts)
    styled = "".join(click.style(text, fg=color) if color else text for text, color in parts)
    assert click.unstyle(indent(styled, 2, 12, hanging)) == indent(plain, 2, 12, hanging)


def test_a_style_begins_and_ends_with_what_it_is_for() -> None:
    styled = indent(f"shop/db is {click.style('live and well', fg='green')} since noon", 0, 16, 2)
    assert styled == "shop/db is \x1b[32mlive\n  and well\x1b[0m since\n  noon"
