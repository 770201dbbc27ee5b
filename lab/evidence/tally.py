"""Counts of a run: writes, refusals, and broken laws."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from tests.evidence.laws import is_well_dated, replaces_a_live_holder
from tests.evidence.records import Record

WRITES: Final = "writes"
ROWS: Final = (
    WRITES,
    "not sent: plain renewals",
    "honest writes",
    "honest takeovers",
    "honest takeovers refused at first, allowed later",
    "honest writes refused, as known",
    "probes",
    "attacker's writes",
    "attacker's lists: refused",
    "attacker's lists: accepted",
    "attacker's lists: not sent",
    "live holders replaced, stamped: denied",
    "live holders replaced, stamped: allowed",
    "live holders replaced, never stamped, or clock beyond the bound: denied",
    "live holders replaced, never stamped, or clock beyond the bound: warned of, or allowed by renewTime",
)
"""In the order of the table; broken laws follow."""


def count_rows(records: Sequence[Record], law: str) -> Counter[str]:
    """Count the rows to which the records of one history add; `law` is the one that it breaks, if it does."""
    count = Counter(row for record in records for row in _list_rows(record))
    if law:
        count[f"BROKEN: {law}"] += 1
    return count


def _list_rows(record: Record) -> Iterator[str]:
    """Yield each row that a record belongs to."""
    write = record.write
    yield WRITES
    if record.probe:
        yield "probes"
    if not record.sent:
        yield "not sent: plain renewals"
    if write.honest:
        yield "honest writes"
        yield from _list_rows_of_honest(is_takeover=write.kind == "takeover", is_allowed=record.outcome.allowed)
        return
    yield "attacker's writes"
    if write.mutations:
        answer = "accepted" if record.outcome.allowed else "refused"
        yield f"attacker's lists: {answer if record.sent else 'not sent'}"
    if replaces_a_live_holder(write):
        dated = "stamped" if is_well_dated(write) else "never stamped, or clock beyond the bound"
        yield f"live holders replaced, {dated}: {_name_result(record)}"


def _list_rows_of_honest(*, is_takeover: bool, is_allowed: bool) -> Iterator[str]:
    if is_takeover:
        yield "honest takeovers" if is_allowed else "honest takeovers refused at first, allowed later"
    elif not is_allowed:
        yield "honest writes refused, as known"


def _name_result(record: Record) -> str:
    if not record.allowed:
        return "denied"
    return "allowed" if is_well_dated(record.write) else "warned of, or allowed by renewTime"


def render_table(counts: Sequence[tuple[str, Counter[str]]]) -> str:
    """Return a table in Markdown, one column for each category."""
    laws = sorted({row for _, count in counts for row in count if row not in ROWS})
    lines = [
        "| | " + " | ".join(name for name, _ in counts) + " |",
        "|---|" + "---:|" * len(counts),
    ]
    rows = (f"| {row} | " + " | ".join(f"{count[row]:,}" for _, count in counts) + " |" for row in (*ROWS, *laws))
    return "\n".join([*lines, *rows])
