"""Several inputs as one stream: how many are open at once."""

from collections.abc import Iterator
from functools import partial

import pytest

from tests.history.observing import merged
from webhook.analysis.history import merge
from webhook.analysis.inputs.items import Input, Item, LogEnd, Place, Unreadable


class Files:
    """Inputs that count how many of them are read at the same time."""

    def __init__(self) -> None:
        self.open = 0
        self.most = 0

    def read(self, items: list[Item]) -> Iterator[Item]:
        self.open += 1
        self.most = max(self.most, self.open)
        try:
            yield from items
        finally:
            self.open -= 1


@pytest.mark.parametrize(
    "items",
    [
        pytest.param([LogEnd(5), LogEnd(9)], id="all of one hour"),
        pytest.param([Unreadable(Place("in", 1), "not JSON"), LogEnd(9)], id="that begin with something unreadable"),
        pytest.param([Unreadable(Place("in", 1), "not JSON")] * 2, id="without a time"),
    ],
)
def test_only_so_many_inputs_are_open_at_once(items: list[Item], monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory may hold more dumps than a process may have open files."""
    monkeypatch.setattr(merge, "MAX_OPEN", 3)
    files = Files()
    inputs = [Input(str(number), partial(files.read, items)) for number in range(10)]
    assert {*map(str, merge.Merged(inputs, 10))} == {*map(str, items)} - {str(LogEnd(5))}, "only the last end counts"
    assert files.open == 0
    assert files.most <= 3 + 1  # and the one that is looked into


def test_inputs_without_items_are_passed_over() -> None:
    assert list(merged([], [])) == []
    assert list(merged([], [LogEnd(5)])) == [LogEnd(5)]
