"""The tests of one recorded incident run one after another, so that a process analyzes it once and then forgets it."""

from pathlib import Path

import pytest

MODULES = frozenset({"test_advice.py", "test_both.py", "test_measured_incidents.py", "test_registry.py"})
"""Modules that share the analyses of `test_measured_incidents.explain_source` and `test_both.found_in`."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort tests of incidents by incident, in the places that they have among all tests; none depends on another."""
    names = {at: name for at, item in enumerate(items) if (name := _find_incident(item))}
    in_order = [items[at] for at in sorted(names, key=lambda at: names[at])]
    for at, item in zip(names, in_order, strict=True):
        items[at] = item


def _find_incident(item: pytest.Item) -> str:
    """Return the name of the incident that a test is about, or nothing."""
    case = getattr(item, "callspec", None)
    if case is None or item.path.parent != Path(__file__).parent or item.path.name not in MODULES:
        return ""
    return Path(str(case.params.get("name", ""))).name
