"""Property tests look for wrong answers; how long one takes on a busy machine is not an answer.

They draw the same examples each time: a change is refused for what it broke, not for what a new draw finds. With `DRAW`
set, as `make draw` does, each run draws new ones. A command wraps its text at the width of the terminal, and what runs
the tests may have any. Coverage is measured by examples alone, so it does not depend on what is drawn.
"""

import gc
import importlib
import os
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

settings.register_profile(
    "project",
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="DRAW" not in os.environ,
)
settings.load_profile("project")
os.environ["COLUMNS"] = "100"

UNCOUNTED: Final = {
    "attacks",
    "conformance",
    "evidence",
    "fuzz",
    "law",
    "model",
    "server",
    "test_any_bytes.py",
    "test_match_condition.py",
    "test_recordings.py",
    "test_review_rows.py",
    "truth",
}
"""Folders and modules that `make coverage` leaves out: what runs the same lines for many inputs, and what asks a server
in another process. Tracing makes a test up to five times slower."""


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Collect without the garbage collector, which would go again and again through all that is collected and kept."""
    gc.disable()
    try:
        if session.config.args_source is pytest.Config.ArgsSource.TESTPATHS:
            _compile_a_share()
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def _compile_a_share() -> None:
    """Import some test modules before all, in each worker others: in a new clone, they compile for each other.

    Rewriting the assertions of all modules takes as long as collecting them.
    """
    number = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
    if not number:
        return
    folder = Path(__file__).parent
    modules = sorted(path.relative_to(folder.parent).with_suffix("") for path in folder.rglob("test_*.py"))
    for module in modules[int(number) :: int(os.environ["PYTEST_XDIST_WORKER_COUNT"])]:
        # What cannot be imported is reported when it is collected.
        with suppress(Exception):
            importlib.import_module(".".join(module.parts))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is left out of coverage, property tests as well."""
    for item in items:
        folder = item.path.relative_to(item.config.rootpath).parts[1]
        if folder in UNCOUNTED or is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker(pytest.mark.uncounted)
