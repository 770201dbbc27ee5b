"""Each finding of `audit` has an example; that it is found in it shows tests/cli/test_audit_checks.py."""

from pathlib import Path

from tests.audit.examples import EXAMPLES
from webhook.analysis.audit.leases import STORED_RULES
from webhook.analysis.claims.registry import PROBLEMS


def test_every_finding_has_an_example() -> None:
    missing = PROBLEMS.keys() - STORED_RULES.keys() - EXAMPLES.keys()
    assert sorted(missing) == [], (
        "add it to EXAMPLES in tests/audit/examples.py: a dump, a watch, or the log of an incident"
    )


def test_every_example_is_of_a_finding() -> None:
    assert EXAMPLES.keys() <= PROBLEMS.keys() | STORED_RULES.keys()


def test_a_module_that_is_said_to_test_a_finding_names_it() -> None:
    modules = {check: one.tested_in for check, one in EXAMPLES.items() if one.tested_in}
    assert [check for check, path in modules.items() if f'"{check}"' not in Path(path).read_text()] == []
