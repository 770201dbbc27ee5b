"""Tables of leases: plain text in a pipe; on a terminal as wide as that, with colors, by rich.

rich is imported only where the output is a terminal.
"""

import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from webhook.cli.terminal import has_color

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

EMPTY: Final = "-"
_GAP: Final = 2
"""Columns of a terminal between those of a table."""
_SIDES: Final = 3
"""The text before a separator gets at least one part of so many."""
MAX_ROWS: Final = 1000
"""Rows on a terminal: more scroll away before anyone reads them."""


class Cell(Struct, frozen=True, gc=False):
    """One column of a row; the color is one that both click and rich know."""

    text: str = EMPTY
    color: str = ""


class Column(Struct, frozen=True):
    """A column of a table.

    On a narrow terminal its text is shortened in the middle down to `least` characters, unless that is 0. If all are
    shortened and it is still too narrow, columns are left out, those with the highest `dispensable` first; 0 is never.
    Before one with 1 is, all are shortened further, down to `shortest`. `separator` is kept, and what is on each side
    of it is shortened.
    """

    head: str
    least: int = 0
    dispensable: int = 0
    shortest: int = 0
    separator: str = ""


Row = tuple[Cell, ...]


def print_table(columns: Sequence[Column], rows: Sequence[Row], *, is_wide: bool = False) -> None:
    """Print rows below their heads, without columns that are empty; `is_wide` prints all of them, and in full.

    If there are very many rows, a terminal shows the first ones.
    """
    kept = range(len(columns)) if is_wide else find_filled(columns, rows)
    if not sys.stdout.isatty():
        for line in _format_plain(columns, rows, kept):
            print(line)
        return
    columns, shown = [columns[n] for n in kept], [tuple(row[n] for n in kept) for row in rows[:MAX_ROWS]]
    widths = measure_widths(columns, shown)
    total = shutil.get_terminal_size().columns
    widths = widths if is_wide else fit_columns(columns, widths, total)
    make_console(max(total, sum(widths) + _GAP * len(widths))).print(draw(columns, widths, shown))
    if hidden := [column.head for column, width in zip(columns, widths, strict=True) if not width]:
        print(f"too narrow for {', '.join(hidden)}: -o wide prints all columns")
    if len(rows) > len(shown):
        print(f"... {len(rows) - len(shown):,} more: select some, or pipe this into less, which gets all of them")


def _format_plain(columns: Sequence[Column], rows: Sequence[Row], kept: Sequence[int]) -> Iterator[str]:
    """Yield lines for a pipe; of 100,000 rows no second copy is made."""
    widths = [max([len(columns[n].head), *(len(row[n].text) for row in rows)]) for n in kept]
    pairs = list(zip(kept, widths, strict=True))
    yield (" " * _GAP).join(columns[n].head.ljust(width) for n, width in pairs).rstrip()
    for row in rows:
        yield (" " * _GAP).join(row[n].text.ljust(width) for n, width in pairs).rstrip()


def find_filled(columns: Sequence[Column], rows: Sequence[Row]) -> list[int]:
    """Return the numbers of the columns in which some row has something."""
    return [n for n in range(len(columns)) if any(row[n].text != EMPTY for row in rows) or not rows]


def measure_widths(columns: Sequence[Column], rows: Sequence[Row]) -> list[int]:
    """Return how wide each column would be in full."""
    from rich.cells import cell_len  # noqa: PLC0415 - only on a terminal

    heads = [len(one.head) for one in columns]
    return [max([head, *(cell_len(row[n].text) for row in rows)]) for n, head in enumerate(heads)]


def fit_columns(columns: Sequence[Column], widths: Sequence[int], total: int) -> list[int]:
    """Return widths that fit in `total` columns of a terminal if possible; 0 is that of a column which is left out."""
    shown = [*widths]
    least = [one.least for one in columns]
    fits = _squeeze(shown, least, total)
    for number in sorted(range(len(columns)), key=lambda n: -columns[n].dispensable):
        if columns[number].dispensable <= 1:
            least = [one.shortest or one.least for one in columns]
            fits = _squeeze(fits, least, total)
        if _measure_excess(fits, total) <= 0 or not columns[number].dispensable:
            break
        shown[number] = 0
        fits = _squeeze(shown, least, total)
    return fits


def _squeeze(widths: Sequence[int], least: Sequence[int], total: int) -> list[int]:
    """Return widths of which the widest were reduced first, so that what is shorter stays whole."""
    fits = [*widths]
    for _ in range(_measure_excess(fits, total)):
        wide = [n for n, limit in enumerate(least) if 0 < limit < fits[n]]
        if not wide:
            break
        fits[max(wide, key=fits.__getitem__)] -= 1
    return fits


def _measure_excess(widths: Sequence[int], total: int) -> int:
    shown = [one for one in widths if one]
    return sum(shown) + _GAP * (len(shown) - 1) - total


def shorten(text: str, width: int, separator: str = "") -> str:
    """Return a text that is as wide as `width` at most, without its middle: names differ at both ends.

    What is on each side of `separator` is shortened by itself, and what comes before it gets a third if both are long.
    """
    from rich.cells import cell_len  # noqa: PLC0415 - only on a terminal

    if cell_len(text) <= width:
        return text
    before, found, after = text.partition(separator) if separator else ("", "", text)
    if found and width > _SIDES * len(found):
        rest = width - cell_len(found)
        first = min(cell_len(before), max(rest - cell_len(after), rest // _SIDES))
        return f"{shorten(before, first)}{found}{shorten(after, rest - first)}"
    for kept in range(width - 1, 0, -1):
        tail = kept // 2
        cut = f"{text[: kept - tail]}…{text[len(text) - tail :]}"
        if cell_len(cut) <= width:
            return cut
    return "…"


def make_console(width: int | None = None) -> "Console":
    """Return the terminal that standard output is; without colors where they are not wanted."""
    from rich.console import Console  # noqa: PLC0415 - only on a terminal

    return Console(
        color_system="auto" if has_color() else None,
        width=width,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )


def draw(columns: Sequence[Column], widths: Sequence[int], rows: Sequence[Row]) -> "Table":
    """Return rows as rich draws them; a column of width 0 is left out."""
    from rich.table import Table  # noqa: PLC0415 - only on a terminal
    from rich.text import Text  # noqa: PLC0415

    shown = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="bold")

    def fit_cell(column: Column, cell: Cell, width: int) -> Text:
        return Text(shorten(cell.text, width, column.separator), style=cell.color)

    numbers = [n for n, width in enumerate(widths) if width]
    for n in numbers:
        shown.add_column(columns[n].head, width=widths[n], no_wrap=True, overflow="ellipsis")
    for row in rows:
        shown.add_row(*(fit_cell(columns[n], row[n], widths[n]) for n in numbers))
    return shown
