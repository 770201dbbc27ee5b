"""docs/proof.md names what the specification names; `make spec` checks what it says."""

import re
from pathlib import Path

import pytest

from lab.spec.__main__ import HERE, list_defects, list_designs, list_limits

ROOT = Path(__file__).parents[2]
PROOF = (ROOT / "docs" / "proof.md").read_text(encoding="utf-8")
LIMITS = (ROOT / "docs" / "fence-limits.md").read_text(encoding="utf-8")


def list_clauses(module: str) -> list[str]:
    """Return the clauses of a module that can be left out."""
    text = (HERE / f"{module}.tla").read_text(encoding="utf-8")
    return sorted(set(re.findall(r'Defect [=#] "([^"]+)"', text)))


def list_tried(*modules: str) -> list[str]:
    checks = (*list_defects(), *list_limits())
    return sorted(check.defect for check in checks if check.module in modules and check.defect)


@pytest.mark.parametrize("module", ["Takeover", "Stamp", "Fence", "Storm"])
def test_every_clause_that_can_be_left_out_is_left_out_once(module: str) -> None:
    assert list_tried(module) == list_clauses(module)


def test_a_clause_that_two_modules_share_is_left_out_in_one_of_them() -> None:
    tried = list_tried("Metadata", "Stamp")
    assert [clause for clause in list_clauses("Metadata") if tried.count(clause) != 1] == []


def test_the_page_has_each_design_and_each_defect() -> None:
    for check in list_designs():
        assert f"| {check.module} | {check.title} |" in PROOF
    for check in list_defects():
        assert f"| {check.module} | {check.defect} |" in PROOF


def test_the_pages_have_a_trace_of_each_limit() -> None:
    for check in list_limits():
        assert re.search(f"<!-- spec: {check.title} -->\n\n1[.] ", PROOF + LIMITS), check.title


def test_what_would_notice_the_end_of_an_assumption_exists() -> None:
    rows = re.findall(r"^\| (.+) \| (.+) \|$", PROOF.partition("| assumed |")[2], re.MULTILINE)
    targets = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert {name for _, by in rows for name in re.findall(r"`make ([a-z-]+)`", by)} <= targets
    findings = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "webhook/api_server/doctor").glob("*.py"))
    named = {name for _, by in rows for name in re.findall(r"\(`([a-z-]+)`\)", by)}
    assert named == {name for name in named if f'"{name}"' in findings}
    assert len(rows) >= 10
