"""tests/data/README.md has one line for each row of the wire contract, with the answers of its cases."""

import json
from pathlib import Path
from typing import Any

import pytest

from tools.docs.pages import ROOT, find_table_lines

DATA = ROOT / "tests" / "data"
FILES = sorted([*(DATA / "transport").glob("*.json"), *(DATA / "reviews").glob("*.json")])
LINES = {
    cells[1].strip(): cells[3].strip()
    for cells in (line.split("|") for line in find_table_lines((DATA / "README.md").read_text()))
    if cells[1].strip().isdecimal()
}


def answers(case: dict[str, Any]) -> set[str]:
    """The words of the page for what a case expects; none where it expects a sequence of answers."""
    expect = case["expect"]
    if "exit" in expect:
        return {f"exit {expect['exit']}"}
    if "status" in expect:
        return {str(expect["status"])}
    if "answer" in expect:
        listed = expect["answer"] if isinstance(expect["answer"], list) else [expect["answer"]]
        return {str(answer) for answer in listed}
    if "allowed" in expect:
        return {"allowed" if expect["allowed"] else f"denied {expect['code']}"}
    return set()


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_a_row_names_what_its_cases_expect(file: Path) -> None:
    row = json.loads(file.read_text())
    for case in row["cases"]:
        for answer in answers(case):
            assert answer in LINES[str(row["row"])], case["id"]


def test_no_row_is_without_a_file() -> None:
    assert set(LINES) == {str(json.loads(file.read_text())["row"]) for file in FILES}
