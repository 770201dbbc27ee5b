"""The result as one Markdown table: a line for each claim, a column for each Kubernetes version."""

from collections.abc import Mapping, Sequence

from tests.e2e.world import Row

LONGEST_CELL = 400
TITLES = {
    1: "Manifests",
    2: "kubectl",
    3: "Elections",
    4: "Our outage",
    5: "What reaches us",
    6: "Rotation and restart",
    7: "Audit log and warnings",
    8: "Cost per write",
}


def render(rows: Mapping[str, Sequence[Row]]) -> str:
    """The table for rows by Kubernetes version."""
    versions = list(rows)
    claims = dict.fromkeys((row.item, row.claim) for entries in rows.values() for row in entries)
    lines = [f"| | | {' | '.join(versions)} |", f"|---|---|{'---|' * len(versions)}"]
    for item, claim in sorted(claims, key=lambda key: key[0]):
        cells = [
            _cell(next((row for row in rows[version] if (row.item, row.claim) == (item, claim)), None))
            for version in versions
        ]
        lines.append(f"| {item} {TITLES[item]} | {claim} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(row: Row | None) -> str:
    if row is None:
        return "not served"
    seen = row.seen.replace("|", "\\|").replace("\n", " ")[:LONGEST_CELL]
    return seen if row.passed else f"**FAILED** {seen}"
