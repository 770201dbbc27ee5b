"""Marks that have a cause, and marks that stand for several moments and have none of their own."""

import pytest

from webhook.timeline.causes import Causes, with_causes
from webhook.timeline.model import Mark, MarkKind

NOON = 1_790_000_000_000_000
CAUSES = Causes(lost={NOON: "its client was away."}, late={NOON: "a did not renew for 14 s."})


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        pytest.param(MarkKind.TAKEOVER_BY_EXPIRY, "b took over. its client was away", id="a takeover by expiry"),
        pytest.param(MarkKind.LATE, "a did not renew for 14 s", id="a late renewal"),
        pytest.param(MarkKind.TAKEOVER_BY_RELEASE, "b took over", id="a takeover by release has none"),
    ],
)
def test_a_mark_says_its_cause(kind: MarkKind, text: str) -> None:
    (mark,) = with_causes([Mark(kind, NOON, "b took over", "b")], CAUSES)
    assert mark.text.removesuffix(".") == text


def test_a_mark_of_another_moment_keeps_its_text() -> None:
    (mark,) = with_causes([Mark(MarkKind.LATE, NOON + 1, "b was late", "b")], CAUSES)
    assert mark.text == "b was late"


def test_a_mark_that_stands_for_several_keeps_its_text() -> None:
    (mark,) = with_causes([Mark(MarkKind.LATE, NOON, "3 late renewals", "b", count=3, ends=NOON + 9)], CAUSES)
    assert mark.text == "3 late renewals"
