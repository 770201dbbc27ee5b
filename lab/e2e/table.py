"""Results of a run: rows as JSON, and the page that is made of them, with a table for each topic."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from lab.e2e.topic_list import TOPICS
from lab.e2e.world import Row
from tools.circumstances import Circumstances

PAGE: Final = Path(__file__).with_name("RESULTS.md")
RESULTS: Final = Path(__file__).with_name("results.json")
MAX_CELL: Final = 400

Rows = Mapping[str, Sequence[Row]]
"""Rows by the name of their topic."""


class Results(Struct, frozen=True):
    """The results of one run on all versions.

    They have its minutes after the builds, its programs, and the rows by Kubernetes version and topic. `is_repeated`: a
    topic that failed ran once more, and both runs are shown.
    """

    circumstances: Circumstances
    minutes: float
    is_repeated: bool
    programs: str
    rows: dict[str, dict[str, list[Row]]]


def write(results: Results) -> None:
    """Store the results of a run, and write their page."""
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")
    PAGE.write_text(render_page(results))


def load() -> Results:
    """Return the stored results of the latest whole run."""
    return msgspec.json.decode(RESULTS.read_bytes(), type=Results)


def render_page(results: Results) -> str:
    """Return the page of one run."""
    repeated = " A topic that failed ran once more, and both are shown." if results.is_repeated else ""
    return (
        "<!-- Written by `make e2e`. Do not edit. -->\n\n"
        "# What real API servers showed\n\n"
        f"Made by `make e2e` {results.circumstances}, in {results.minutes:.0f} minutes after the builds.{repeated}\n"
        f"{results.programs}.\n"
        "Lanes ran side by side on a busy machine: compare times within a topic only.\n\n"
        f"{render(results.rows)}"
    )


def render(rows: Mapping[str, Rows]) -> str:
    """Return a table of each topic: the result that all versions had alike, or that of each."""
    sections = ("\n".join(_render_section(topic.name, topic.title, rows)) for topic in TOPICS)
    return "\n".join(one for one in sections if one) + "\n"


def _render_section(name: str, title: str, rows: Mapping[str, Rows]) -> Iterator[str]:
    rows_by_version = {version: topics[name] for version, topics in rows.items() if name in topics}
    if not rows_by_version:
        return
    ran = ", ".join(rows_by_version) if len(rows_by_version) < len(rows) else "all versions"
    yield from (f"## {title}", "", f"Ran on {ran}.", "", "| what | seen |", "|---|---|")
    for claim in dict.fromkeys(row.claim for entries in rows_by_version.values() for row in entries):
        observations = {version: _describe_result(claim, entries) for version, entries in rows_by_version.items()}
        yield f"| {claim} | {_escape_cell(observations)} |"
    yield ""


def _describe_result(claim: str, rows: Sequence[Row]) -> str:
    row = next((row for row in rows if row.claim == claim), None)
    if row is None:
        return "not served"
    text = row.observation.replace("|", "\\|").replace("\n", " ")[:MAX_CELL]
    return text if row.mark == "ok" else f"**{row.mark}** {text}"


def _escape_cell(observations: Mapping[str, str]) -> str:
    versions = {
        text: [version for version, one in observations.items() if one == text] for text in observations.values()
    }
    if len(versions) == 1:
        return next(iter(versions))
    return "<br>".join(f"{', '.join(those)}: {text}" for text, those in versions.items())
