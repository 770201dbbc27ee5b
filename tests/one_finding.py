"""`make test FINDING=lease-stolen`: the tests of one finding, in a minute; more arguments are pytest's.

Its example, what commands print of it, its rows of the tables and of the JSON Schema, when it is true, and the modules
of tests/claims and tests/audit that name it. A finding of a rule: `make test RULE=`.
"""

import sys
from pathlib import Path
from typing import Final

import pytest

from webhook.admission.policy.schema import suggest_nearest
from webhook.analysis.audit.registry import FINDINGS
from webhook.analysis.claims.registry import KINDS

TESTS: Final = Path(__file__).parent
EACH_FINDING: Final = (
    "audit/test_examples.py",
    "cli/test_audit_checks.py",
    "cli/test_json_output.py",
    "claims/test_registry.py",
    "docs/test_tables_of_rules.py",
    "truth/test_claims.py",
)
"""Tests of every finding; a case of another one is left out."""


class OneFinding:
    """A plugin for pytest, which leaves out the cases of other findings."""

    def __init__(self, finding: str) -> None:
        self._finding = finding
        self._others = (FINDINGS.keys() | KINDS.keys()) - {finding}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep what is about the finding, or about all of them."""
        others = [item for item in items if self._is_about_another(item)]
        items[:] = [item for item in items if not self._is_about_another(item)]
        config.hook.pytest_deselected(items=others)

    def _is_about_another(self, item: pytest.Item) -> bool:
        return item.name.partition("[")[2].removesuffix("]") in self._others


def find_modules(finding: str) -> list[Path]:
    """Return the modules of tests that name a finding."""
    folders = (TESTS / "claims", TESTS / "audit")
    modules = sorted(path for folder in folders for path in folder.glob("test_*.py"))
    return [path for path in modules if f'"{finding}"' in path.read_text(encoding="utf-8")]


def main(arguments: list[str]) -> int:
    """Run them; the exit code is pytest's."""
    finding, *others = arguments
    if finding not in FINDINGS and finding not in KINDS:
        print(f"{finding} is not a finding{suggest_nearest(finding, sorted({*FINDINGS, *KINDS}))}", file=sys.stderr)
        return 2
    files = dict.fromkeys([*find_modules(finding), *(TESTS / name for name in EACH_FINDING)])
    return pytest.main(["-q", *map(str, files), *others], plugins=[OneFinding(finding)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
