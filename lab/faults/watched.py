"""The common part of every fault: a server under a steady load of reviews with known answers, and a verdict on both."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.bench.load import Report, run_load, start_load, wait_for_load, write_cases
from lab.bench.processes import Usage, measure_tree
from lab.bench.reviews import Case, list_mixture
from lab.bench.servers import Running
from lab.bench.table import Bar, Table

HEADER = ("fault", "reviews", "lost", "wrong verdicts", "tracebacks", "p99 ms", "worst ms", "what else")


class Load:
    """A running load; `report` is there after the block of `under_load`."""

    report: Report
    spent: Usage


@contextmanager
def run_under_load(
    server: Running, work: Path, seconds: float, *flags: str, rate: int = 200, cases: list[Case] | None = None
) -> Iterator[Load]:
    """Send mixed reviews for some seconds while the block breaks something."""
    listed = write_cases(cases or list_mixture(), work / "mixed")
    run_load(server, "open", listed, "-requests", "100", "-rate", "200")
    load = Load()
    with measure_tree(server.pid) as load.spent:
        loading = start_load(server, "open", listed, "-rate", str(rate), "-duration", f"{seconds}s", *flags)
        try:
            yield load
        finally:
            load.report = wait_for_load(loading)


def make_row(fault: str, server: Running, report: Report, what_else: str = "") -> tuple[str, ...]:
    """Return a row under HEADER; losses stand with their most frequent reason."""
    if report.not_answered:
        reasons = report.errors or {f"HTTP {status}": n for status, n in report.statuses.items() if status != "200"}
        what_else = f"{what_else}; lost: {max(reasons, key=lambda reason: reasons[reason])}".removeprefix("; ")
    return (
        fault,
        str(report.sent),
        str(report.not_answered),
        str(report.wrong),
        str(server.log.count("Traceback")),
        f"{report.p99_ms:.1f}",
        f"{report.max_ms:.1f}",
        what_else,
    )


def make_correctness_bar(what: str, *reports: Report) -> Bar:
    """Return the bar of every fault."""
    wrong = sum(report.wrong for report in reports)
    return Bar(f"{what}: wrong verdicts", "0", str(wrong), wrong == 0)


def make_loss_bar(what: str, lost: int) -> Bar:
    """Return the bar that no review may go without an answer."""
    return Bar(f"{what}: lost", "0", str(lost), lost == 0)


def make_bar(what: str, bar: str, measured_value: str, *, met: bool, of_load: bool = False) -> Bar:
    """Return a bar of another kind."""
    return Bar(what, bar, measured_value, met, of_load=of_load)


def make_table(
    title: str, notes: tuple[str, ...], rows: list[tuple[str, ...]], bars: list[Bar], foreign_cores: float
) -> Table:
    """Return the table of one fault."""
    return Table(title, notes, HEADER, tuple(rows), tuple(bars), {}, foreign_cores)
