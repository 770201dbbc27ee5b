"""Histories with us and without: the modes that are in force break no law, and planted defects do."""

from pathlib import Path
from typing import Final

import msgspec
import pytest
import yaml

from tests.law import history as histories
from tests.law.__main__ import played
from tests.law.admission import Policy
from tests.law.history import drawn, outcomes_without_us, play, shrunk
from tests.law.modes import MODES, Mode

BY_NAME: Final = {mode.name: mode for mode in MODES}
EACH_MODE: Final = [
    pytest.param(mode, id=mode.name)
    for mode in MODES
    if mode.name in ("webhook in standard", "policies only, standard")
]
PLANTED: Final = yaml.safe_load((Path(__file__).parent / "planted.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("mode", EACH_MODE)
def test_no_mode_breaks_a_law(mode: Mode) -> None:
    result = played(range(40), [mode])
    assert [(seed, one.text) for seed, one in result.broken] == []
    assert all(result.counts[mode.name][f"{kind} stored"] for kind in ("create", "renewal", "takeover", "release"))


def _planted(text: str) -> Policy:
    matched = {"resourceRules": [{"resources": ["leases"], "operations": ["CREATE", "UPDATE"]}]}
    spec = {"matchConstraints": matched, "validations": [{"expression": text}]}
    return Policy({"kind": "ValidatingAdmissionPolicy", "metadata": {"name": "planted"}, "spec": spec})


@pytest.mark.parametrize("defect", [pytest.param(one, id=one["name"]) for one in PLANTED])
def test_a_planted_defect_breaks_the_law(defect: dict[str, str]) -> None:
    """The first history that shows it stays broken when it is made small."""
    mode, planted = BY_NAME["policies only, standard"], [_planted(defect["expression"])]

    def is_broken(history: histories.History) -> bool:
        return any(one.law == defect["law"] for one in play(history, mode, planted=planted).broken)

    found = next((history for history in map(drawn, range(200)) if is_broken(history)), None)
    assert found is not None
    small = shrunk(found, is_broken)
    assert is_broken(small)
    assert len(small.steps) <= 8


def test_a_history_is_the_same_for_the_same_seed() -> None:
    assert drawn(7) == drawn(7)
    assert outcomes_without_us(drawn(7)) == outcomes_without_us(drawn(7))


def test_a_history_is_read_as_it_was_written() -> None:
    history = drawn(11)
    assert msgspec.json.decode(msgspec.json.encode(history), type=histories.History) == history
