"""Histories that once broke a law, found by `make evidence` and reduced: they may not break it again."""

from pathlib import Path

import pytest

from tests.evidence.cases import FOLDER, complaint

FILES = sorted(FOLDER.glob("*.jsonl"))


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_history_breaks_its_law_no_more(file: Path) -> None:
    assert complaint(file) == ""


def test_there_are_histories() -> None:
    assert len(FILES) >= 8
