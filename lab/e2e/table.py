"""The result as one Markdown table: a line for each claim, a column for each Kubernetes version."""

from collections.abc import Mapping, Sequence

from lab.e2e.topic_list import TOPICS
from lab.e2e.world import Row

LONGEST_CELL = 400

Rows = Mapping[str, Sequence[Row]]
"""Rows by the name of their topic."""


def render(rows: Mapping[str, Rows]) -> str:
    """The table for rows by Kubernetes version."""
    lines = [f"| | | {' | '.join(rows)} |", f"|---|---|{'---|' * len(rows)}"]
    for topic in TOPICS:
        found = [as_version.get(topic.name) for as_version in rows.values()]
        claims = dict.fromkeys(row.claim for entries in found for row in entries or ())
        lines += [f"| {topic.title} | {claim} | {' | '.join(_cell(claim, one) for one in found)} |" for claim in claims]
    return "\n".join(lines) + "\n"


def _cell(claim: str, rows: Sequence[Row] | None) -> str:
    if rows is None:
        return "not run"
    row = next((row for row in rows if row.claim == claim), None)
    if row is None:
        return "not served"
    seen = row.seen.replace("|", "\\|").replace("\n", " ")[:LONGEST_CELL]
    return seen if row.passed else f"**FAILED** {seen}"
