"""Incidents of operators that were recorded on real API servers: sentences that `why` must say of each, and never.

`truth.md` beside a recording says what happened, also what the recording does not show.
"""

import json
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.factories import Document
from webhook.cli.main import main

FOLDER: Final = Path(__file__).parents[1] / "data" / "operator-incidents"
LOG, WATCH = "audit.log.gz", "watch.json.gz"
FILES: Final = {"log": (LOG,), "watch": (WATCH,), "both": (LOG, WATCH)}


@cache
def expected_of(name: str) -> Document:
    found: Document = json.loads((FOLDER / name / "expected.json").read_text())
    return found


NAMES: Final = sorted(path.name for path in FOLDER.iterdir())


def explain(name: str, source: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what `why` prints of the lease of an incident, with single blanks."""
    wanted = expected_of(name)
    files = [word for file in FILES[source] for word in ("--input", str(FOLDER / name / file))]
    main(["why", wanted["lease"], *files, "--now", wanted["now"], "--verbose"])
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("name", "source"),
    [
        *((name, "log") for name in NAMES),
        *((name, "watch") for name in NAMES if "watch" in expected_of(name)),
    ],
)
def test_what_is_said_of_an_incident(name: str, source: str, capsys: pytest.CaptureFixture[str]) -> None:
    said, wanted = explain(name, source, capsys), expected_of(name)[source]
    assert [words for words in wanted["says"] if words not in said] == []
    assert [words for words in wanted["never"] if words in said] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_watch_beside_a_log_takes_nothing_from_what_that_says(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    said, wanted = explain(name, "both", capsys), expected_of(name)["log"]
    assert [words for words in wanted["says"] if words not in said] == []
    assert [words for words in wanted["never"] if words in said] == []
