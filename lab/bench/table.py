"""What a measurement hands back: a table for people, the bars it was held against, and numbers for a plot."""

from msgspec import Struct


class Bar(Struct, frozen=True):
    """One promise of the project and what was measured.

    `of_load` marks what a busy machine can miss without any fault of the server: latency, and memory under a backlog.
    """

    what: str
    bar: str
    measured: str
    met: bool
    stretch: str = ""
    of_load: bool = False


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
    date: str = ""
    command: str = ""


def span(values: list[float], digits: int = 2) -> str:
    """`median (lowest..highest)`."""
    return f"{median(values):.{digits}f} ({min(values):.{digits}f}..{max(values):.{digits}f})"


def median(values: list[float]) -> float:
    """The middle value; of an even number the upper one."""
    return sorted(values)[len(values) // 2]
