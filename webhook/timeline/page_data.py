"""A timeline as the page reads it: short JSON, each text once, times as differences.

    {"version": 1, "begins": µs, "ends": µs, "readAt": µs or null, "sources": [text], "thinned": [text],
     "strings": ["", text, ...], "spanKinds": ["held", ...], "markKinds": ["created", ...], "lanes": [lane]}

A lane is `{"id", "kind", "namespace", "name", "duration", "deadline", "leadsFor", "summary", "spans", "ticks",
"buckets", "marks", "candidates"}`. `id` is `Lease/NAMESPACE/NAME`, `kind` and so on are texts, `duration` is in seconds
or null; `deadline` and `leadsFor` are microseconds after a last renewal before which no client stops leading, and after
which most clients lead no longer. The lists are flat:

- `spans`: kind, begins, ends or null, holder, writer, manager, count: seven numbers for each span;
- `ticks`: the first moment, then the difference from the one before;
- `buckets`: begins, ends, count: three numbers for each;
- `marks`: kind, at, text, holder, writer, count, ends or null: seven numbers for each.

Kinds are indexes of `spanKinds` and `markKinds`, texts are indexes of `strings`, moments are microseconds since
`begins` of the timeline, which may be negative. Characters that no one would see, such as those that change the
direction of text, and lone surrogates, which JSON in UTF-8 cannot carry, are escaped in every text.
"""

from typing import Any, Final

import msgspec

from webhook.api.text import escape
from webhook.explanation.leader_time import deadline_of, goes_on_for
from webhook.timeline.model import Lane, MarkKind, SpanKind, Timeline
from webhook.timeline.summary import summary

VERSION: Final = 1

_FOR_HTML: Final = ((b"<", b"\\u003c"), (b">", b"\\u003e"), (b"&", b"\\u0026"))
"""Characters that could end or open an element occur in texts only, never in the notation of JSON."""

_SPAN_KINDS: Final = {kind: number for number, kind in enumerate(SpanKind)}
_MARK_KINDS: Final = {kind: number for number, kind in enumerate(MarkKind)}


def page_data(timeline: Timeline) -> bytes:
    """The whole timeline as JSON in UTF-8, which may be put into a script element unchanged."""
    strings = _Strings()
    lanes = [_lane(lane, timeline, strings) for lane in timeline.lanes]
    data = msgspec.json.encode(
        {
            "version": VERSION,
            "begins": timeline.begins,
            "ends": timeline.ends,
            "readAt": timeline.read_at,
            "sources": [escape(one) for one in timeline.sources],
            "thinned": [escape(one) for one in timeline.thinned],
            "strings": strings.texts,
            "spanKinds": [kind.value for kind in SpanKind],
            "markKinds": [kind.value for kind in MarkKind],
            "lanes": lanes,
        }
    )
    for character, written in _FOR_HTML:
        data = data.replace(character, written)
    return data


class _Strings:
    """The table of texts; the first one is ""."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {"": 0}

    def number(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))

    @property
    def texts(self) -> list[str]:
        return [escape(text) for text in self._numbers]


def _lane(lane: Lane, timeline: Timeline, strings: _Strings) -> dict[str, Any]:
    since = timeline.begins
    spans: list[int | None] = []
    for span in lane.spans:
        ends = None if span.ends is None else span.ends - since
        texts = (strings.number(text) for text in (span.holder, span.writer, span.manager))
        spans += [_SPAN_KINDS[span.kind], span.begins - since, ends, *texts, span.count]
    marks: list[int | None] = []
    for mark in lane.marks:
        ends = None if mark.ends is None else mark.ends - since
        texts = (strings.number(text) for text in (mark.text, mark.holder, mark.writer))
        marks += [_MARK_KINDS[mark.kind], mark.at - since, *texts, mark.count, ends]
    moments = lane.ticks.moments
    buckets = [part for one in lane.ticks.buckets for part in (one.begins - since, one.ends - since, one.count)]
    return {
        "id": escape(f"{lane.kind}/{lane.namespace}/{lane.name}"),
        "kind": lane.kind,
        "namespace": escape(lane.namespace),
        "name": escape(lane.name),
        "duration": lane.duration_seconds,
        "deadline": deadline_of(lane.duration_seconds),
        "leadsFor": goes_on_for(lane.duration_seconds),
        "summary": escape(summary(lane, timeline.ends)),
        "spans": spans,
        "ticks": [at - before for at, before in zip(moments, (since, *moments), strict=False)],
        "buckets": buckets,
        "marks": marks,
        "candidates": [_lane(one, timeline, strings) for one in lane.candidates],
    }
