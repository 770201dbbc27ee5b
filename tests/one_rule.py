"""`make test RULE=takeover-before-expiry`: the tests of one rule, in a minute; more arguments are pytest's.

The modules of tests/rules that name it, its page, its explanation, the attacks and recorded reviews that it denies,
what its CEL says, and what it finds in stored objects.
"""

import sys
from pathlib import Path
from typing import Final

import pytest

from webhook.admission.policy.schema import suggest_nearest
from webhook.admission.rules.registry import RULES

TESTS: Final = Path(__file__).parent
ATTACKS: Final = ("attacks/test_in_model.py",)
"""Test modules that play attacks, which take long: only those that name the rule."""
EACH_RULE: Final = (
    "cli/test_audit_checks.py",
    "cli/test_rules.py",
    "docs/test_fields.py",
    "docs/test_rules.py",
    "docs/test_policies_only.py",
    "docs/test_tables_of_rules.py",
    "rule_policies/test_each_rule.py",
    "rule_policies/test_limits.py",
    "rules/test_registry.py",
    "rules/test_wording.py",
)
"""Tests of every rule, one case each."""
WHOLE: Final = ("attacks/test_recorded.py", "rule_policies/test_equal.py", "test_recordings.py")
"""Tests of recorded reviews, each of which any rule may deny."""


def modules(rule: str) -> list[Path]:
    """Return the modules of tests/rules that name a rule."""
    names = (f'"{rule}"', rule.replace("-", "_"))
    return [
        path for path in sorted(TESTS.glob("rules/**/test_*.py")) if any(name in path.read_text() for name in names)
    ]


class OneRule:
    """A plugin for pytest, which leaves out the cases of other rules."""

    def __init__(self, rule: str) -> None:
        self._rule = rule
        attacks = (TESTS / "attacks" / "known").glob("*.yaml")
        self._attacks = {path.stem for path in attacks if rule in path.read_text()}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep what is about the rule."""
        others = [item for item in items if not self._is_about(item)]
        items[:] = [item for item in items if self._is_about(item)]
        config.hook.pytest_deselected(items=others)

    def _is_about(self, item: pytest.Item) -> bool:
        path = item.path.relative_to(TESTS).as_posix()
        case = item.name.partition("[")[2]
        if path in ATTACKS:
            # An id is the name of the file, that of its variant, and what the test adds.
            return any(case.startswith((f"{attack}.", f"{attack}-", f"{attack}]")) for attack in self._attacks)
        return path not in EACH_RULE or not case or self._rule in case


def main(arguments: list[str]) -> int:
    """Run them; the exit code is pytest's."""
    rule, *others = arguments
    if rule not in RULES:
        print(f"{rule} is not a rule{suggest_nearest(rule, [*RULES])}", file=sys.stderr)
        return 2
    files = [*modules(rule), *(TESTS / name for name in (*ATTACKS, *EACH_RULE, *WHOLE))]
    return pytest.main(["-q", "-m", "not deep", *map(str, files), *others], plugins=[OneRule(rule)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
