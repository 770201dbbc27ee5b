"""Histories that once broke a law, found by `make evidence` and reduced: they may not break it again."""

import json
from pathlib import Path

import pytest

from tests.evidence import cases
from tests.evidence.cases import FOLDER, complaint
from tests.evidence.laws import CALLED_TAMPERED, MUST, NO_VERDICT, REPLACED, WEAKENED
from tests.evidence.reviews import TAMPERED, WITHOUT_STAMPS, Outcome

FILES = sorted(FOLDER.glob("*.jsonl"))
ALLOWED = Outcome(200, allowed=True)
BREAKS = {
    REPLACED: ALLOWED,
    CALLED_TAMPERED: Outcome(200, allowed=True, warned_by=frozenset({TAMPERED})),
    WEAKENED: Outcome(200, allowed=True, warned_by=frozenset({WITHOUT_STAMPS})),
    NO_VERDICT: Outcome(400, allowed=True, trouble="malformed"),
}
"""For the laws that an allowed write can break: an outcome that breaks them."""


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_history_breaks_its_law_no_more(file: Path) -> None:
    assert complaint(file) == ""


def law_of(file: Path) -> str:
    law: str = json.loads(file.read_text().partition("\n")[0])["law"]
    return law


@pytest.mark.parametrize("law", BREAKS)
def test_replay_notices_a_broken_law(law: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file complains if every write is answered in the way that breaks its law."""
    files = [file for file in FILES if law_of(file) == law]
    monkeypatch.setattr(cases, "evaluate", lambda *_, **__: BREAKS[law])
    assert files
    assert all(MUST[law] in complaint(file) for file in files)


def test_history_ends_at_the_first_write_that_is_denied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "evaluate", lambda *_, **__: Outcome(200, allowed=False))
    assert [complaint(file) for file in FILES] == [""] * len(FILES)
