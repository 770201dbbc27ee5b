"""What waits until it can be passed on, and what comes too late for that."""

import pytest

from tests.history.fake_server import FakeServer
from tests.history.observing import input_of
from tests.inputs.reading import read
from webhook.analysis.history.merge import merged
from webhook.analysis.history.merge.merged import Merged
from webhook.analysis.inputs.items import Observation, Unreadable


def test_what_is_too_old_to_be_placed_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merged, "MAX_PENDING", 8)
    server = FakeServer()
    server.elector("a", "shop/db").lead(40)
    items = list(read("watch", [server.watch()]))
    late = [*items[5:], *items[:5]]
    ordered = list(Merged([input_of(late)], 2**62))
    assert [one.error for one in ordered if isinstance(one, Unreadable)] == [
        "5 records are older than what was read before them, and left out: sort the input"
    ]
    revisions = [int(one.resource_version) for one in ordered if isinstance(one, Observation)]
    assert revisions == sorted(revisions)
