"""Tables fit the terminal, and have the same content in a pipe."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.on_terminal import on_terminal, plain
from tests.factories import make_lease, put
from webhook.cli.tables import Cell, Column, fit_columns, print_table, shorten

SEEDED = "tests/data/leases/seeded.json"
LIST = ["why", "--input", SEEDED, "--now", "2026-11-22T12:00:00Z"]
COLUMNS = [Column("NAME", least=8), Column("STATE"), Column("HOLDER", least=6), Column("CHANGES", dispensable=1)]
SHORTER = [
    Column("NAME", least=8, shortest=6),
    Column("USUAL", dispensable=2),
    Column("HOLDER", least=6),
    Column("CHANGES", dispensable=1),
]


@pytest.mark.parametrize(
    ("total", "widths"),
    [
        pytest.param(60, [20, 7, 15, 7], id="everything fits"),
        pytest.param(50, [15, 7, 15, 7], id="the widest is shortened"),
        pytest.param(45, [12, 7, 13, 7], id="then both"),
        pytest.param(34, [8, 7, 6, 7], id="both to the least"),
        pytest.param(33, [11, 7, 11, 0], id="then a column is left out"),
        pytest.param(10, [8, 7, 6, 0], id="no column becomes narrower than its least"),
    ],
)
def test_columns_fit(total: int, widths: list[int]) -> None:
    assert fit_columns(COLUMNS, [20, 7, 15, 7], total) == widths


@pytest.mark.parametrize(
    ("total", "widths"),
    [
        pytest.param(34, [8, 7, 6, 7], id="all to the least"),
        pytest.param(33, [11, 0, 11, 7], id="a dispensable column is left out before any is shortened further"),
        pytest.param(25, [8, 0, 6, 7], id="without it all are again as short as the least"),
        pytest.param(24, [7, 0, 6, 7], id="then one is shortened further"),
        pytest.param(22, [10, 0, 10, 0], id="at last the other column is left out"),
    ],
)
def test_columns_are_shortened_further_before_the_last_one_is_left_out(total: int, widths: list[int]) -> None:
    assert fit_columns(SHORTER, [20, 7, 15, 7], total) == widths


@pytest.mark.parametrize(
    ("text", "width", "cell"),
    [
        ("kube-system/leader-election-controller", 38, "kube-system/leader-election-controller"),
        ("kube-system/leader-election-controller", 18, "ku…em/leader…oller"),
        ("kube-system/db", 9, "kub…em/db"),
        ("a/leader-election-controller", 10, "a/lead…ler"),
        ("leader-election", 7, "lea…ion"),
        ("kube-system/db", 3, "k…b"),
    ],
)
def test_both_sides_of_a_separator_stay_recognizable(text: str, width: int, cell: str) -> None:
    assert shorten(text, width, "/") == cell


@pytest.mark.parametrize(
    ("text", "width", "shortened"),
    [
        ("checkout", 8, "checkout"),
        ("checkout-7d4b9c-x2x8p", 11, "check…x2x8p"),
        ("checkout-7d4b9c-x2x8p", 2, "c…"),
        ("結帳結帳結帳", 7, "結帳…帳"),
    ],
)
def test_a_name_is_shortened_in_the_middle(text: str, width: int, shortened: str) -> None:
    assert shorten(text, width) == shortened


def test_an_empty_column_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    columns, rows = [Column("NAME"), Column("HOLDER"), Column("STATE")], [(Cell("a"), Cell(), Cell("live"))]
    print_table(columns, rows)
    assert capsys.readouterr().out.splitlines() == ["NAME  STATE", "a     live"]
    print_table(columns, rows, is_wide=True)
    assert capsys.readouterr().out.splitlines() == ["NAME  HOLDER  STATE", "a     -       live"]


@pytest.mark.parametrize("columns", [80, 100, 120, 200])
def test_no_line_is_wider_than_the_terminal(columns: int) -> None:
    code, screen = on_terminal(LIST, columns=columns)
    lines = plain(screen).splitlines()
    assert code == 0
    assert len([line for line in lines if not line.startswith("too narrow")]) == 16
    assert max(map(len, lines)) <= columns


def test_a_column_that_is_left_out_is_named() -> None:
    assert "too narrow for CAN BE TAKEN: -o wide" in plain(on_terminal(LIST, columns=80)[1])
    assert "too narrow" not in on_terminal(LIST, columns=200)[1]


def test_a_terminal_shows_states_in_color_unless_unwanted() -> None:
    assert "\x1b[31mfrozen" in on_terminal(LIST)[1]
    assert "\x1b" not in on_terminal(LIST, environment={"NO_COLOR": "1"})[1]


def test_a_pipe_has_the_whole_names_that_a_wide_terminal_shows(capsys: pytest.CaptureFixture[str]) -> None:
    piped = subprocess.run([sys.executable, "-m", "webhook", *LIST], capture_output=True, text=True, check=True).stdout
    wide = plain(on_terminal(LIST, columns=300)[1])
    assert [line.split() for line in wide.splitlines()] == [line.split() for line in piped.splitlines()]


def test_a_pipe_imports_no_rich() -> None:
    script = (
        f"import sys; from webhook.cli.main import main; main({LIST}); "
        "sys.exit(any(one.split('.')[0] in ('rich', 'pygments') for one in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, check=False).returncode == 0


def test_wide_rows_are_longer_than_the_terminal() -> None:
    code, screen = on_terminal([*LIST, "-o", "wide"], columns=60)
    assert code == 0
    assert "2093-12-08T15:14:07Z" in plain(screen).replace("\n", "")


def test_colors_take_no_columns_of_a_headline() -> None:
    words = ["why", "shop/cart", "--input", SEEDED, "--now", "2025-11-20T12:00:10Z"]
    colored = plain(on_terminal(words, columns=80)[1])
    bare = on_terminal(words, columns=80, environment={"NO_COLOR": "1"})[1]
    assert colored == bare


def test_the_head_of_a_finding_is_broken_between_words(tmp_path: Path) -> None:
    name = "payments-operator-leader-election-of-a-tenant"
    path = tmp_path / "lease.json"
    path.write_text(json.dumps(make_lease(put("metadata.name", name), put("spec.leaseDurationSeconds", 2**31 - 1))))
    words = ["audit", "--input", str(path), "--now", "2025-11-20T12:00:10Z"]
    lines = plain(on_terminal(words, columns=80)[1]).splitlines()
    assert lines[0].startswith("error ")
    assert lines[0].endswith(name)
    assert lines[1].startswith(" " * 9)
    piped = subprocess.run([sys.executable, "-m", "webhook", *words], capture_output=True, text=True, check=False)
    assert len(piped.stdout.splitlines()[0]) > 80
