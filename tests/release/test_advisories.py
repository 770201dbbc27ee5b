"""What pip-audit reports, and what comes of it."""

import pytest

from tools.release.advisories import Audit, find_outcome, read

CLEAN = {"name": "flask", "version": "3.1.3", "vulns": []}
UNKNOWN = {"name": "click", "skip_reason": "Dependency not found on PyPI and could not be audited: click (8.5.1)"}
KNOWN = {"name": "pyyaml", "version": "5.3", "vulns": [{"id": "PYSEC-2021-142", "fix_versions": ["5.4"]}]}
WITHOUT_FIX = {"name": "a", "version": "1", "vulns": [{"id": "PYSEC-1", "fix_versions": []}]}


@pytest.mark.parametrize(
    ("dependencies", "audit"),
    [
        pytest.param([CLEAN], Audit(1, (), ()), id="clean"),
        pytest.param([CLEAN, UNKNOWN], Audit(1, (), ("click",)), id="not checked"),
        pytest.param([KNOWN], Audit(1, ("pyyaml 5.3: PYSEC-2021-142, fixed in 5.4",), ()), id="vulnerable"),
        pytest.param([WITHOUT_FIX], Audit(1, ("a 1: PYSEC-1, fixed in no version",), ()), id="without a fix"),
    ],
)
def test_a_report_is_read(dependencies: list[dict[str, object]], audit: Audit) -> None:
    assert read({"dependencies": dependencies}) == audit


@pytest.mark.parametrize(
    ("audit", "required", "status", "words"),
    [
        pytest.param(Audit(2, (), ()), False, 0, "2 locked packages, no known vulnerability", id="clean"),
        pytest.param(Audit(2, ("a 1: X",), ()), False, 1, "FAILED: a 1: X", id="vulnerable"),
        pytest.param(Audit(1, (), ("click",)), False, 1, "FAILED: not checked: click", id="some not checked"),
        pytest.param(Audit(0, (), ("click",)), False, 0, "SKIPPED, nothing was checked", id="no service"),
        pytest.param(Audit(0, (), ("click",)), True, 1, "FAILED: not checked: click", id="no service, but required"),
    ],
)
def test_what_comes_of_it(audit: Audit, required: bool, status: int, words: str) -> None:
    code, text = find_outcome(audit, required=required)
    assert code == status
    assert words in text
