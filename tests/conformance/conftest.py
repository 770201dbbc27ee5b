"""The counts of the comparison stand at the end of the test run, one line for each rule that spoke."""

from collections import Counter

import pytest

_COUNTS = pytest.StashKey[dict[str, Counter[str]]]()


def report(config: pytest.Config, corpus: str, count: Counter[str]) -> None:
    """Have the counts of one corpus printed when the run ends."""
    config.stash.setdefault(_COUNTS, {})[corpus] = count


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for corpus, count in config.stash.get(_COUNTS, {}).items():
        terminalreporter.section(f"conformance with {corpus}")
        for name, times in sorted(count.items()):
            terminalreporter.line(f"{times:5d}  {name}")
