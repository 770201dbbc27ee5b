"""The result of a measurement: a table for people, the bars that apply to it, and numbers for a plot."""

from msgspec import Struct

from tools.circumstances import Circumstances


class Bar(Struct, frozen=True):
    """One promise of the project and its measured value.

    `of_load` marks what a busy machine can miss without any fault of the server: latency, and memory under a backlog.
    `of_answers`: it must be met on every machine, since a cost is meaningless without correct answers.
    """

    what: str
    bar: str
    measured: str
    met: bool
    stretch: str = ""
    of_load: bool = False
    of_answers: bool = False


class Table(Struct, frozen=True):
    """One table of RESULTS.md.

    `notes` are lines under the title; `series` are named lines of (x, y) for the plots; `foreign_cores` is the load by
    other programs of the machine in the busiest round, which makes every figure worse.
    """

    title: str
    notes: tuple[str, ...]
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    bars: tuple[Bar, ...] = ()
    series: dict[str, list[tuple[float, float]]] = {}
    foreign_cores: float = 0.0
    seconds: float = 0.0
    command: str = ""
    circumstances: Circumstances = Circumstances("", "", "")


def make_answers_bar(what: str, wrong_or_missing: int) -> Bar:
    """Return the bar that every review of a measurement got its right answer."""
    return Bar(f"{what}: wrong or missing answers", "0", str(wrong_or_missing), wrong_or_missing == 0, of_answers=True)


def format_span(values: list[float], digits: int = 2) -> str:
    """Return `median (lowest..highest)`."""
    return f"{find_median(values):.{digits}f} ({min(values):.{digits}f}..{max(values):.{digits}f})"


def find_median(values: list[float]) -> float:
    """Return the middle value; of an even number the upper one."""
    return sorted(values)[len(values) // 2]
