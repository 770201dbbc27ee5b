"""Counts of a run: what was written, what was refused, and which laws were broken."""

from collections import Counter
from collections.abc import Sequence
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


def counted(records: Sequence[Record], law: str) -> Counter[str]:
    """The rows to which the records of one history add."""
    count: Counter[str] = Counter()
    for record in records:
        write, outcome = record.write, record.outcome
        count[WRITES] += 1
        count["probes"] += record.probe
        count["not sent: plain renewals"] += not record.sent
        if write.honest:
            count["honest writes"] += 1
            takeover = write.kind == "takeover"
            count["honest takeovers"] += takeover and outcome.allowed
            count["honest takeovers refused at first, allowed later"] += takeover and not outcome.allowed
            count["honest writes refused, as known"] += not takeover and not outcome.allowed
            continue
        count["attacker's writes"] += 1
        if write.mutations:
            answer = "accepted" if outcome.allowed else "refused"
            count[f"attacker's lists: {answer if record.sent else 'not sent'}"] += 1
        if replaces_a_live_holder(write):
            dated = "stamped" if is_well_dated(write) else "never stamped, or clock beyond the bound"
            count[f"live holders replaced, {dated}: {_result(record)}"] += 1
    if law:
        count[f"BROKEN: {law}"] += 1
    return count


def _result(record: Record) -> str:
    if not record.allowed:
        return "denied"
    return "allowed" if is_well_dated(record.write) else "warned of, or allowed by renewTime"


def table(counts: Sequence[tuple[str, Counter[str]]]) -> str:
    """A table in Markdown, one column for each category."""
    broken = sorted({row for _, count in counts for row in count if row not in ROWS})
    lines = [
        "| | " + " | ".join(name for name, _ in counts) + " |",
        "|---|" + "---:|" * len(counts),
    ]
    shown = (f"| {row} | " + " | ".join(f"{count[row]:,}" for _, count in counts) + " |" for row in (*ROWS, *broken))
    return "\n".join([*lines, *shown])
