"""Several inputs as one stream: how many are open at once, and how often each is read."""

from collections.abc import Iterator
from functools import partial

import pytest

from tests.history.fake_server import FakeServer
from tests.history.observing import input_of, merge_inputs
from tests.inputs.reading import read
from webhook.analysis.history.merge import streams
from webhook.analysis.history.merge.merged import Merged
from webhook.analysis.inputs.items import STANDARD_INPUT, Input, Item, LogEnd, Observation, Place, Unreadable


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
    monkeypatch.setattr(streams, "MAX_OPEN", 3)
    files = Files()
    inputs = [Input(str(number), partial(files.read, items)) for number in range(10)]
    assert {*map(str, Merged(inputs, 10))} == {*map(str, items)} - {str(LogEnd(5))}, "only the last end counts"
    assert files.open == 0
    assert files.most <= 3 + 1  # and the one that is looked into


def test_inputs_without_items_are_passed_over() -> None:
    assert list(merge_inputs([], [])) == []
    assert list(merge_inputs([], [LogEnd(5)])) == [LogEnd(5)]


def test_standard_input_is_read_once_beside_a_file() -> None:
    server = FakeServer()
    server.elector("a", "shop/db").lead(10)
    inputs = [input_of(read("watch", [server.watch()]), STANDARD_INPUT), input_of(read("log", [server.audit_log()]))]
    states = [one for one in Merged(inputs, 2**62) if isinstance(one, Observation)]
    assert len(states) == 6
    assert all(one.writer for one in states)
