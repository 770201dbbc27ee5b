"""Histories with us and without: no mode breaks a law, and each planted defect does."""

import copy
from pathlib import Path
from typing import Final

import msgspec
import pytest
import yaml

from tests.factories import Document
from tests.law.__main__ import DATA, Kept, played
from tests.law.admission import Policy, policies
from tests.law.history import HARMLESS, History, drawn, outcomes_without_us, play, shrunk
from tests.law.modes import MODES, Mode, shipped_stamps

BY_NAME: Final = {mode.name: mode for mode in MODES}
EACH_MODE: Final = [pytest.param(mode, id=mode.name) for mode in MODES]
KEPT: Final = {file.stem: msgspec.json.decode(file.read_bytes(), type=Kept) for file in sorted(DATA.glob("*.json"))}
PLANTED: Final = yaml.safe_load((Path(__file__).parent / "planted.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("mode", EACH_MODE)
def test_no_mode_breaks_a_law(mode: Mode) -> None:
    result = played(range(20), [mode])
    assert [(seed, one.text) for seed, one in result.broken] == []
    assert all(result.counts[mode.name][f"{kind} stored"] for kind in ("create", "renewal", "takeover", "release"))


@pytest.mark.parametrize("kept", [pytest.param(kept, id=name) for name, kept in KEPT.items()])
def test_what_once_broke_a_law_breaks_none(kept: Kept) -> None:
    assert play(kept.history, BY_NAME[kept.mode]).broken == ()


def _with(defect: Document, mode: Mode) -> list[Policy]:
    """The policies of a mode with a defect."""
    if "expression" in defect:
        matched = {"resourceRules": [{"resources": ["leases"], "operations": ["CREATE", "UPDATE"]}]}
        spec = {"matchConstraints": matched, "validations": [{"expression": defect["expression"]}]}
        one_more = {"kind": "ValidatingAdmissionPolicy", "metadata": {"name": "planted"}, "spec": spec}
        return [*mode.policies(), Policy(one_more)]
    documents = copy.deepcopy(shipped_stamps())
    (policy,) = [
        one for one in documents if one["metadata"]["name"] == defect["policy"] and not one["kind"].endswith("Binding")
    ]
    if "variable" in defect:
        changed = [one for one in policy["spec"]["variables"] if one["name"] == defect["variable"]]
    else:
        changed = [one for one in policy["spec"]["validations"] if defect["validation"] in one["expression"]]
    assert changed
    for validation in changed:
        validation["expression"] = defect["instead"]
    return list(policies(documents))


@pytest.mark.parametrize("defect", [pytest.param(one, id=one["name"]) for one in PLANTED])
def test_a_planted_defect_breaks_the_law(defect: Document) -> None:
    """Each has a history that is kept for it."""
    mode = BY_NAME[defect["mode"]]
    (kept,) = [one for one in KEPT.values() if one.defect == defect["name"]]
    planted = _with(defect, mode)
    assert kept.mode == mode.name
    assert {one.law for one in play(kept.history, mode, policies=planted).broken} == {defect.get("law", HARMLESS)}


def test_a_defect_is_found_and_its_history_made_small() -> None:
    (defect,) = [one for one in PLANTED if one["name"] == "an owner may not be put back"]
    mode = BY_NAME[defect["mode"]]
    planted = _with(defect, mode)

    def is_broken(history: History) -> bool:
        return any(one.law == HARMLESS for one in play(history, mode, policies=planted).broken)

    example = next(filter(is_broken, map(drawn, range(60))))
    assert len(shrunk(example, is_broken).steps) <= 6


def test_a_history_is_the_same_for_the_same_seed() -> None:
    assert drawn(7) == drawn(7)
    assert outcomes_without_us(drawn(7)) == outcomes_without_us(drawn(7))


def test_a_history_is_read_as_it_was_written() -> None:
    history = drawn(11)
    assert msgspec.json.decode(msgspec.json.encode(history), type=History) == history
