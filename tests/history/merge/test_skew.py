"""By how much the clocks of API servers differ."""

import json

import pytest

from tests.factories import Document
from tests.history.fake_server import SECOND, FakeServer, together
from tests.history.observing import input_of
from tests.inputs.reading import read
from webhook.analysis.history.merge.merged import Merged
from webhook.kubernetes.times import format_micro_time, parse


@pytest.mark.parametrize("skew", [-8, -1, 0, 1, 8])
def test_clocks_of_api_servers_that_differ(skew: int) -> None:
    """Check that what was stored in one order is not answered in another one."""
    server = FakeServer()
    a, b = server.elector("a", "shop/db"), server.elector("b", "shop/mail")
    together(20, a, b)
    logs: tuple[list[Document], list[Document]] = ([], [])
    for event in server.log:
        is_ahead = "mail" in event["requestURI"]
        later = {
            key: format_micro_time(parse(event[key]) + is_ahead * skew * SECOND)
            for key in ("requestReceivedTimestamp", "stageTimestamp")
        }
        logs[is_ahead].append({**event, **later})
    texts = ["\n".join(json.dumps(one, separators=(",", ":")) for one in log).encode() for log in logs]
    merged = Merged([input_of(list(read(f"{number}.log", [text]))) for number, text in enumerate(texts)], 2**62)
    list(merged)
    assert (merged.skew > 2 * SECOND) is (abs(skew) > 2)
    assert merged.skew <= abs(skew) * SECOND
