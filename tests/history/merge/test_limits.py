"""Observations that wait to be merged are limited in number and in the size of their documents."""

import json

import pytest

from tests.factories import make_lease, put
from tests.inputs.events import make_event
from tests.inputs.reading import read
from webhook.analysis.history.merge import merged
from webhook.analysis.history.merge.merged import Merged
from webhook.analysis.inputs import audit_log
from webhook.analysis.inputs.items import Input, Item, Observation


def watched(number: int, padding: str) -> bytes:
    lease = make_lease(put("metadata.resourceVersion", str(number)), put("metadata.annotations", {"x": padding}))
    return json.dumps({"type": "MODIFIED", "object": lease}).encode() + b"\n"


@pytest.mark.parametrize(("padding", "is_limited"), [("x" * 10_000, True), ("", False)], ids=["large", "small"])
def test_large_objects_wait_for_fewer_others(padding: str, is_limited: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merged, "MAX_PENDING_SIZE", 100_000)
    left: list[Item] = [*read("in", [watched(number, padding) for number in range(1, 41)])]
    expected = [one.resource_version for one in left if isinstance(one, Observation)]
    total = len(left)
    waiting = Merged([Input("in", lambda: (left.pop(0) for _ in range(total)))], latest=2**60)
    given = iter(waiting)
    first = next(given)
    assert (len(left) > 0) is is_limited
    assert [one.resource_version for one in (first, *given) if isinstance(one, Observation)] == expected


def test_of_a_long_message_the_beginning_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_log, "_MAX_MESSAGE", 10)
    event = make_event(put("responseStatus", {"code": 403, "message": "forbidden: no" * 100}))
    seen, _ = read("in", [json.dumps(event).encode()])
    assert isinstance(seen, Observation)
    assert seen.answer is not None
    assert seen.answer.message == "forbidden:"
    assert seen.size == len(json.dumps(event))
