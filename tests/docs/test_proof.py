"""docs/proof.md names what the specification names; `make spec` checks what it says."""

import re
from pathlib import Path

import pytest

from tests.lab.spec.__main__ import HERE, defects, designs, limits

ROOT = Path(__file__).parents[2]
PROOF = (ROOT / "docs" / "proof.md").read_text(encoding="utf-8")
LIMITS = (ROOT / "docs" / "fence-limits.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("module", ["Takeover", "Stamp", "Fence"])
def test_every_clause_that_can_be_left_out_is_left_out_once(module: str) -> None:
    text = (HERE / f"{module}.tla").read_text(encoding="utf-8")
    tried = [check.defect for check in (*defects(), *limits()) if check.module == module and check.defect]
    assert sorted(tried) == sorted(set(re.findall(r'Defect [=#] "([^"]+)"', text)))


def test_the_page_has_each_design_and_each_defect() -> None:
    for check in designs():
        assert f"| {check.module} | {check.title} |" in PROOF
    for check in defects():
        assert f"| {check.module} | {check.defect} |" in PROOF


def test_the_pages_have_a_trace_of_each_limit() -> None:
    for check in limits():
        assert re.search(f"<!-- spec: {check.title} -->\n\n1[.] ", PROOF + LIMITS), check.title


@pytest.mark.parametrize("module", ["Takeover", "Stamp", "Fence"])
def test_a_module_is_short_enough_to_be_read(module: str) -> None:
    assert len((HERE / f"{module}.tla").read_text(encoding="utf-8").splitlines()) <= 150
