"""A lease as a row of a table, and the table of many: what `why` and `top` list."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from msgspec import Struct

from webhook.analysis.claims.account import Account
from webhook.analysis.claims.words import format_age, format_clock, format_name
from webhook.analysis.history.status import LeaseState
from webhook.cli.tables import EMPTY, Cell, Column, Row
from webhook.findings import Severity
from webhook.kubernetes.times import SECOND, format_length
from webhook.text.quoting import escape, truncate

STATE_COLORS: Final = {
    LeaseState.LIVE: "green",
    LeaseState.FROZEN: "red",
    LeaseState.EXPIRED: "red",
    LeaseState.RELEASED: "yellow",
    LeaseState.NEVER_HELD: "bright_black",
    LeaseState.UNKNOWN: "yellow",
}
SEVERITY_COLORS: Final = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
COLUMNS: Final = (
    Column("LEASE", least=17, shortest=13, separator="/"),
    Column("STATE"),
    Column("HOLDER", least=13, shortest=9),
    Column("RENEWED"),
    Column("CAN BE TAKEN", dispensable=3),
    Column("CHANGES", dispensable=1),
    Column("WRONG", least=22, shortest=12),
)
WIDE: Final = (Column("USUAL", dispensable=2), Column("DURATION"), Column("DATED BY"))
"""Columns that come after those."""
TOP: Final = ("LEASE", "STATE", "HOLDER", "RENEWED", "USUAL", "CHANGES", "WRONG")
"""The columns of a table that lives."""
_MAX_LEASE: Final = 320
"""Characters, as many as valid names have at most: the longest one makes every row as long."""


class LeaseRow(Struct, frozen=True, gc=False):
    """One lease in a table; `trouble` sorts the worst first, and `renewed` is in microseconds since 1970."""

    key: tuple[str, str]
    cells: Row
    trouble: tuple[int, int, bool]
    needs_attention: bool
    renewed: int
    changes: int


def make_row(account: Account, *, is_wide: bool = True) -> LeaseRow:
    """Return a lease as a row, with the columns of WIDE if `is_wide`."""
    history, now = account.history, account.now
    worst, late = account.worst, "yellow" if account.is_late else ""
    holder, renewed, changes = account.known_holder, account.last_renewal, history.changes
    cells = (
        Cell(escape(truncate(f"{history.namespace}/{history.name}", _MAX_LEASE))),
        _make_cell(account.state.value, STATE_COLORS[account.state]),
        Cell(escape(format_name(holder))) if holder else _make_cell(),
        _make_cell() if renewed is None else _make_cell(format_age(renewed, now), late),
        _make_cell(_describe_takeable(account)),
        _make_cell(str(changes)) if changes else _make_cell(),
        _make_cell(worst.check, SEVERITY_COLORS[worst.severity]) if worst else _make_cell(),
    )
    return LeaseRow(
        key=(history.namespace, history.name),
        cells=(*cells, *_make_wide_cells(account)) if is_wide else cells,
        trouble=account.trouble,
        needs_attention=worst is not None,
        renewed=renewed or 0,
        changes=changes,
    )


def _describe_takeable(account: Account) -> str:
    """Return from when another holder may take a lease: `now`, a time, or that it is never or not known.

    No one takes a heartbeat.
    """
    if account.is_heartbeat:
        return EMPTY
    takeable = account.takeable_at
    if account.state in {LeaseState.RELEASED, LeaseState.NEVER_HELD} or (
        takeable is not None and takeable <= account.now
    ):
        return "now"
    return EMPTY if takeable is None else format_clock(takeable, account.now)


def _make_wide_cells(account: Account) -> Row:
    status, usual = account.status, account.history.interval
    duration = status.duration if status else None
    is_dated = status is not None and status.last_renewal is not None
    dated_by = "API server" if status and status.from_stamps else "holder"
    dated_by = "stamp" if status and status.is_disputed else dated_by
    return (
        Cell() if usual is None else Cell(format_length(int(usual * SECOND))),
        Cell() if duration is None else Cell(format_length(duration * SECOND)),
        Cell(dated_by) if is_dated else Cell(),
    )


@lru_cache(1000)
def _make_cell(text: str = EMPTY, color: str = "") -> Cell:
    """Return a cell; many of 100,000 rows share one."""
    return Cell(text, color)


def format_heading(rows: Sequence[LeaseRow]) -> str:
    """Return `3 of 11 leases need attention`, or that none does."""
    troubled, total = sum(row.needs_attention for row in rows), len(rows)
    leases, need = "lease" if total == 1 else "leases", "need" if troubled > 1 else "needs"
    return f"{format(troubled, ',') if troubled else 'none'} of {total:,} {leases} {need} attention"
