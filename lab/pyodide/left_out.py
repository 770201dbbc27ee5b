"""A plugin of pytest that leaves out single tests that need what Pyodide does not have."""

from typing import Final

import pytest

NAMES: Final = {
    "the depth at which the C stack ends": (
        "nested too deep", "nested as deep", "nested beyond", "nests_too_deeply", "depth in another form",
    ),
    "the words of libyaml": ("[syntax]", "[a tab]"),
}  # fmt: skip
"""Parts of the names of tests, by what they ask for."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect them."""
    names = [name for some in NAMES.values() for name in some]
    out = [item for item in items if any(name in item.name for name in names)]
    config.hook.pytest_deselected(items=out)
    items[:] = [item for item in items if item not in out]
