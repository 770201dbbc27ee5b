"""What a picture says in words: its description, the labels of spans, what the colors mean, lines that fit."""

import textwrap
from collections.abc import Iterator
from typing import Final

from webhook.api.micro_time import canonical_seconds
from webhook.explanation.words import count, length
from webhook.timeline.model import Lane, MarkKind, Span, SpanKind, Timeline

COLUMNS: Final = 132
"""Letters that fit beside the number and the time."""
MOST_LINES: Final = 6
MOST_SPANS: Final = 40
_LONGEST_HOLDER: Final = 60

_WORDS: Final = {
    SpanKind.LEADERLESS: "no one held it",
    SpanKind.OFFERED: "it was offered",
    SpanKind.SEVERAL: "several short spans",
}


def words_of(kind: MarkKind) -> str:
    """What a kind of mark is called in sentences: `takeover after release`."""
    return kind.value.replace("-by-", "-after-").replace("-", " ")


def label_of(span: Span) -> str:
    """A span in words."""
    if span.kind is SpanKind.HELD:
        what = f"held by {span.holder}"
    elif span.kind is SpanKind.OVERDUE:
        what = f"held by {span.holder}, who did not renew it in time"
    else:
        what = _WORDS[span.kind]
    since = canonical_seconds(span.begins)
    if span.ends is None:
        return f"{what} from {since} on"
    return f"{what} from {since} to {canonical_seconds(span.ends)}, {length(span.ends - span.begins)}"


def description(timeline: Timeline, lane: Lane) -> str:
    """The whole picture for those who do not see it."""
    spans = [label_of(span) for span in lane.spans[:MOST_SPANS]]
    more = len(lane.spans) - len(spans)
    marks = count(sum(mark.count for mark in lane.marks), "mark")
    renewals = count(lane.ticks.count, "renewal")
    parts = [*spans, *([f"and {more} more spans"] if more > 0 else [])]
    begins, ends = canonical_seconds(timeline.begins), canonical_seconds(timeline.ends)
    return f"From {begins} to {ends}: {'; '.join(parts) or 'nothing is known'}. {renewals}, {marks}."


def legend(lane: Lane, colors: dict[str, str]) -> Iterator[tuple[str, str]]:
    """(style, text) of everything that the bar shows."""
    for holder, color in colors.items():
        yield color, holder if len(holder) <= _LONGEST_HOLDER else f"{holder[:_LONGEST_HOLDER]}..."
    kinds = {span.kind for span in lane.spans}
    if SpanKind.OVERDUE in kinds:
        yield "late", "not renewed in time"
    if SpanKind.LEADERLESS in kinds:
        yield "none", "no one holds it"
    if SpanKind.SEVERAL in kinds:
        yield "several", "several holders"


def wrapped(text: str, columns: int = COLUMNS) -> list[str]:
    """A text in lines that fit."""
    return textwrap.wrap(text, columns, max_lines=MOST_LINES, placeholder=" ...", break_on_hyphens=False)
