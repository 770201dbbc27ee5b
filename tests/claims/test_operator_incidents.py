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
LOGS, WATCH = ("audit.log.gz", "audit-2.log.gz", "audit-3.log.gz"), "watch.json.gz"
"""Some incidents have the logs of two or three API servers."""
FILES: Final = {"log": LOGS, "watch": (WATCH,), "both": (*LOGS, WATCH)}


@cache
def expected_of(name: str) -> Document:
    document: Document = json.loads((FOLDER / name / "expected.json").read_text())
    return document


NAMES: Final = sorted(path.name for path in FOLDER.iterdir())


def list_wanted(name: str) -> list[Document]:
    """Return what must be said of the lease of an incident, and of the `others` that it concerns."""
    wanted = expected_of(name)
    return [wanted, *wanted.get("others", ())]


def explain(name: str, lease: str, source: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what `why` prints of a lease of an incident, with single blanks."""
    paths = [FOLDER / name / file for file in FILES[source]]
    files = [word for path in paths if path.exists() for word in ("--input", str(path))]
    main(["why", lease, *files, "--now", expected_of(name)["now"], "--verbose"])
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "source"),
    [(name, source) for name in NAMES for source in ("log", "watch") if source in expected_of(name)],
)
def test_the_text_about_an_incident_has_what_it_must_and_nothing_false(
    name: str, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for one in list_wanted(name):
        output, wanted = explain(name, one["lease"], source, capsys), one[source]
        assert [words for words in wanted["says"] if words not in output] == []
        assert [words for words in wanted["never"] if words in output] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if "both" in expected_of(name) else pytest.mark.deep) for name in NAMES]
)
def test_a_log_and_a_watch_together_show_what_either_shows(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The log decides what must be printed; where it hides what was written, the watch does, or both together."""
    for one in list_wanted(name):
        wanted = next(one[source] for source in ("both", "log", "watch") if source in one)
        output = explain(name, one["lease"], "both", capsys)
        assert [words for words in wanted["says"] if words not in output] == []
        assert [words for words in wanted["never"] if words in output] == []


ALIKE: Final = frozenset({"check", "severity", "message", "fix"})
"""The fields of a finding that `why` and `audit` share."""


def list_findings(command: str, files: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, list[Document]]:
    """Return the findings of a command about each lease, in their order."""
    options = ["--severity", "info"] if command == "audit" else []
    main([command, *files, *options, "--format", "json"])
    found: dict[str, list[Document]] = {}
    for line in map(json.loads, capsys.readouterr().out.splitlines()):
        findings = [line] if command == "audit" else line["findings"]
        for finding in findings:
            one = {name: finding[name] for name in ALIKE}
            found.setdefault(f"{line['namespace']}/{line['name']}", []).append(one)
    return found


@pytest.mark.parametrize("source", FILES)
@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=() if at % 24 == 0 else pytest.mark.deep) for at, one in enumerate(NAMES)]
)
def test_an_audit_finds_of_each_lease_what_why_finds(
    name: str, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [FOLDER / name / file for file in FILES[source]]
    files = [word for path in paths if path.exists() for word in ("--input", str(path))]
    files += ["--now", expected_of(name)["now"]]
    found = list_findings("audit", files, capsys)
    assert found == list_findings("why", files, capsys)
