"""One lease as a picture: self-contained SVG, readable in light and dark, with its content as text for screen readers.

From top to bottom: the name, numbers of marks, the bar of holders, renewals, candidates, the axis, what the colors
mean, and what happened, number by number.
"""

import textwrap
from collections.abc import Iterator, Sequence
from functools import reduce
from html import escape
from itertools import groupby
from typing import Final

from msgspec import Struct

from webhook.api.times import DAY, HOUR, MINUTE, SECOND, canonical_seconds
from webhook.explanation.words import count, length
from webhook.timeline.model import Lane, Mark, Span, SpanKind, Timeline
from webhook.timeline.summary import Gap, gaps, span_texts, summary

MAX_MARKS: Final = 60
"""Marks with a number and a line of text; the others are counted."""
_MAX_RUN: Final = 3
"""Marks of one kind that are drawn one by one if no other mark is among them."""
_MAX_SPANS: Final = 40
_MAX_LABELS: Final = 9
_MAX_LINES: Final = 6
_MAX_HOLDER: Final = 60
_WIDTH: Final = 960
"""Pixels, as all that follow."""
_LEFT: Final = 16
_BAR: Final = 34
_THIN: Final = 14
_LINE: Final = 17
_NUMBER: Final = 20
_CHARACTER: Final = 7.0
"""The width of a letter at most on average; a label that might not fit is left out."""
_LEVELS: Final = 3
_COLUMNS: Final = 132
"""Letters that fit beside the number and the time."""
_STEPS: Final = (
    *(SECOND * step for step in (1, 2, 5, 10, 15, 30)),
    *(MINUTE * step for step in (1, 2, 5, 10, 15, 30)),
    *(HOUR * step for step in (1, 2, 3, 6, 12)),
    *(DAY * step for step in (1, 2, 7, 30, 90, 365, 3650)),
)
_STYLE: Final = """
.lease-timeline {
  --ink: #1f2328; --faint: #59636e; --paper: #ffffff; --line: #d1d9e0; --alarm: #cf222e;
  --c0: #9ecbff; --c1: #ffd8a8; --c2: #b7e4c7; --c3: #e2c6ff; --c4: #ffc9d6; --c5: #d8d3b0;
  font: 12px system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif;
}
@media (prefers-color-scheme: dark) {
  .lease-timeline {
    --ink: #e6edf3; --faint: #9198a1; --paper: #0d1117; --line: #3d444d; --alarm: #ff7b72;
    --c0: #1f4b80; --c1: #7a4a12; --c2: #245c3a; --c3: #573a80; --c4: #80304a; --c5: #57522b;
  }
}
.lease-timeline text { fill: var(--ink); }
.lease-timeline text.faint { fill: var(--faint); }
.lease-timeline text.name { font-size: 15px; font-weight: 600; }
.lease-timeline text.number { fill: var(--paper); font-size: 11px; font-weight: 600; text-anchor: middle; }
.lease-timeline text.axis { text-anchor: middle; }
.lease-timeline text.alarm { fill: var(--alarm); font-weight: 600; }
.lease-timeline .paper { fill: var(--paper); }
.lease-timeline .c0 { fill: var(--c0); }
.lease-timeline .c1 { fill: var(--c1); }
.lease-timeline .c2 { fill: var(--c2); }
.lease-timeline .c3 { fill: var(--c3); }
.lease-timeline .c4 { fill: var(--c4); }
.lease-timeline .c5 { fill: var(--c5); }
.lease-timeline .none { fill: var(--paper); stroke: var(--alarm); stroke-dasharray: 4 3; }
.lease-timeline .several, .lease-timeline .offered { fill: var(--line); }
.lease-timeline .hatch { stroke: var(--alarm); stroke-width: 2; stroke-opacity: 0.55; }
.lease-timeline .gap { fill: var(--alarm); }
.lease-timeline .rule { stroke: var(--line); }
.lease-timeline .tick { stroke: var(--faint); }
.lease-timeline .stem { stroke: var(--ink); }
.lease-timeline .dot { fill: var(--ink); }
"""
_HATCH: Final = """\
<defs><pattern id="lt-late" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
<line x1="1" y1="0" x2="1" y2="8" class="hatch"/></pattern></defs>"""
_LATE: Final = ' fill="url(#lt-late)"'


class _Axis(Struct, frozen=True):
    """From `begins` to `ends` in microseconds since 1970, at least one second, with margins on both sides."""

    begins: int
    ends: int

    def x(self, at: int) -> float:
        """Return where an instant is drawn; one outside the axis is drawn at its edge."""
        share = (min(max(at, self.begins), self.ends) - self.begins) / (self.ends - self.begins)
        return _LEFT + share * (_WIDTH - 2 * _LEFT)

    def between(self, begins: int, ends: int | None) -> tuple[float, float]:
        """Return the left edge and the width of a stretch of time; without an end, up to the end of the axis."""
        x = self.x(begins)
        return x, self.x(self.ends if ends is None else ends) - x

    def labels(self) -> Iterator[tuple[int, str]]:
        """Yield instants that are round, and their texts: the time of day, or the date."""
        span = self.ends - self.begins
        step = next((step for step in _STEPS if span // step <= _MAX_LABELS), span)
        for at in range(-(-self.begins // step) * step, self.ends + 1, step):
            text = canonical_seconds(at)
            yield at, text[:10] if step >= DAY else text[11:16] if step >= MINUTE else text[11:19]


class _Canvas(Struct):
    """Elements so far, and how far down they reach."""

    parts: list[str]
    y: float = 0

    def text(self, x: float, y: float, text: str, style: str = "") -> None:
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}"{_class(style)}>{escape(text)}</text>')

    def line(self, x: float, y: float, to: tuple[float, float], style: str) -> None:
        self.parts.append(f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to[0]:.1f}" y2="{to[1]:.1f}"{_class(style)}/>')

    def box(self, x: float, y: float, width: float, height: float, style: str) -> None:
        size = f'width="{max(1.0, width):.1f}" height="{height:.1f}"'
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" {size}{style}/>')

    def lines(self, x: float, text: str, columns: int, style: str = "") -> None:
        """Write a text in lines that fit, each below the one before."""
        for line in _wrapped(text, columns):
            self.text(x, self.y + 12, line, style)
            self.y += _LINE


def svg(timeline: Timeline) -> str:
    """Return the picture of the only lane of a timeline, as a document with a line break at its end."""
    (lane,) = timeline.lanes
    axis = _Axis(timeline.begins, max(timeline.ends, timeline.begins + SECOND))
    # A color for each holder, in the order in which they came; after six they repeat.
    holders = dict.fromkeys(span.holder for span in lane.spans if span.kind in {SpanKind.HELD, SpanKind.OVERDUE})
    colors = {holder: f"c{number % 6}" for number, holder in enumerate(holders)}
    begins, ends = canonical_seconds(timeline.begins), canonical_seconds(timeline.ends)
    duration = "" if lane.duration_seconds is None else f", lease duration {lane.duration_seconds} s"
    canvas = _Canvas([], 49)
    canvas.text(_LEFT, 26, f"Lease {lane.namespace}/{lane.name}", "name")
    canvas.text(_LEFT, 44, f"{begins} to {ends}{duration}", "faint")
    canvas.lines(_LEFT, summary(lane, timeline.ends), 138)
    canvas.y += 7
    runs = (list(same) for _, same in groupby(lane.marks, key=lambda mark: mark.kind))
    marks = [one for run in runs for one in (run if len(run) <= _MAX_RUN else [reduce(Mark.joined, run)])]
    found = gaps(lane, timeline.ends)
    texts = span_texts(lane, found, timeline.ends)
    labels = [_label(span, text) for span, text in zip(lane.spans, texts, strict=True)]
    _marks(canvas, axis, marks[:MAX_MARKS])
    _bar(canvas, axis, lane, colors, labels)
    _gaps(canvas, axis, found, timeline.ends)
    _candidates(canvas, axis, lane.candidates)
    _axis(canvas, axis)
    _legend(canvas, lane, colors)
    _list(canvas, timeline, marks)
    size = f'width="{_WIDTH}" height="{canvas.y + 12:.0f}"'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="lease-timeline" {size} '
        f'viewBox="0 0 {_WIDTH} {canvas.y + 12:.0f}" role="img" aria-labelledby="lt-title lt-desc">'
    )
    title = f'<title id="lt-title">{escape(f"Timeline of lease {lane.namespace}/{lane.name}")}</title>'
    text = f'<desc id="lt-desc">{escape(_description(lane, labels, begins, ends))}</desc>'
    paper = f'<rect class="paper" {size}/>'
    return "\n".join([head, title, text, f"<style>{_STYLE}</style>", _HATCH, paper, *canvas.parts, "</svg>\n"])


def _class(style: str) -> str:
    return f' class="{style}"' if style else ""


def _wrapped(text: str, columns: int) -> list[str]:
    return textwrap.wrap(text, columns, max_lines=_MAX_LINES, placeholder=" ...", break_on_hyphens=False)


def _marks(canvas: _Canvas, axis: _Axis, marks: Sequence[Mark]) -> None:
    """Draw numbers above the bar, one above the other if they would touch."""
    places: list[tuple[float, int]] = []
    free = [float("-inf")] * _LEVELS
    for mark in marks:
        x = axis.x(mark.at)
        level = next((level for level in range(_LEVELS) if free[level] <= x), _LEVELS - 1)
        free[level] = x + _NUMBER
        places.append((x, level))
    bottom = canvas.y + _NUMBER * max((level + 1 for _, level in places), default=0)
    for x, level in places:
        canvas.line(x, bottom - level * _NUMBER - 8, (x, bottom + _BAR + 4), "stem")
    for number, (x, level) in enumerate(places, 1):
        y = bottom - level * _NUMBER - 8
        canvas.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="8.5" class="dot"/>')
        canvas.text(x, y + 4, str(number), "number")
    canvas.y = bottom + 4


def _bar(canvas: _Canvas, axis: _Axis, lane: Lane, colors: dict[str, str], labels: Sequence[str]) -> None:
    y = canvas.y
    bars: list[str] = []
    for span, label in zip(lane.spans, labels, strict=True):
        x, width = axis.between(span.begins, span.ends)
        size = f'x="{x:.1f}" y="{y:.1f}" width="{max(1.0, width):.1f}" height="{_BAR}"'
        title = f"<title>{escape(label)}</title>"
        style = colors.get(span.holder, span.kind.value) if span.kind is not SpanKind.LEADERLESS else "none"
        bars.append(f'<rect {size} class="{style}">{title}</rect>')
        if span.kind is SpanKind.OVERDUE:
            bars.append(f"<rect {size}{_LATE}>{title}</rect>")
        words = span.holder if span.kind is SpanKind.HELD else span.kind.words
        if len(words) * _CHARACTER + 12 <= width:
            alarm = _class("alarm" if span.kind in {SpanKind.LEADERLESS, SpanKind.OVERDUE} else "")
            bars.append(f'<text x="{x + 6:.1f}" y="{y + _BAR / 2 + 4:.1f}"{alarm}>{escape(words)}</text>')
    # Stems of marks stand in front of the bar, labels too.
    canvas.parts[:0] = bars
    y += _BAR
    for at in sorted({round(axis.x(at)) for at in lane.ticks.moments}):
        canvas.line(at, y + 3, (at, y + 10), "tick")
    for bucket in lane.ticks.buckets:
        x, width = axis.between(bucket.begins, bucket.ends)
        canvas.box(x, y + 3, width, 7, _class("several"))
    canvas.y = y + _THIN


def _gaps(canvas: _Canvas, axis: _Axis, found: Sequence[Gap], until: int) -> None:
    """Draw times without a leader, from the last renewal on, with their lengths where these fit."""
    free = float("-inf")
    for gap in found:
        x, width = axis.between(gap.begins, gap.ends)
        canvas.box(x, canvas.y + 2, max(2.0, width), 4, _class("gap"))
        label = gap.text(until)
        size = len(label) * _CHARACTER
        left = max(_LEFT, min(x, _WIDTH - _LEFT - size))
        if left >= free:
            canvas.text(left, canvas.y + 19, label, "alarm")
            free = left + size
    canvas.y += 24 if found else 0


def _candidates(canvas: _Canvas, axis: _Axis, candidates: Sequence[Lane]) -> None:
    for lane in candidates:
        canvas.text(_LEFT, canvas.y + 13, f"candidate {lane.name}", "faint")
        canvas.y += 18
        for span in lane.spans:
            x, width = axis.between(span.begins, span.ends)
            canvas.box(x, canvas.y, width, _THIN, _class("offered"))
        for mark in lane.marks:
            title = escape(f"{canonical_seconds(mark.at)} {mark.kind.words}: {mark.text}")
            place = f'cx="{axis.x(mark.at):.1f}" cy="{canvas.y + _THIN / 2:.1f}"'
            canvas.parts.append(f'<circle {place} r="3" class="dot"><title>{title}</title></circle>')
        canvas.y += _THIN + 4


def _axis(canvas: _Canvas, axis: _Axis) -> None:
    canvas.y += 4
    canvas.line(_LEFT, canvas.y, (_WIDTH - _LEFT, canvas.y), "rule")
    for at, text in axis.labels():
        x = axis.x(at)
        canvas.line(x, canvas.y, (x, canvas.y + 5), "tick")
        canvas.text(min(max(x, _LEFT + 24), _WIDTH - _LEFT - 24), canvas.y + 18, text, "axis faint")
    canvas.y += 26


def _legend(canvas: _Canvas, lane: Lane, colors: dict[str, str]) -> None:
    """Draw what everything in the bar means."""
    shown = [(color, f"{one[:_MAX_HOLDER]}{'...' * (len(one) > _MAX_HOLDER)}") for one, color in colors.items()]
    kinds = {span.kind for span in lane.spans}
    styles = {SpanKind.OVERDUE: "late", SpanKind.LEADERLESS: "none", SpanKind.SEVERAL: "several"}
    shown += [(style, kind.words) for kind, style in styles.items() if kind in kinds]
    x = float(_LEFT)
    for style, text in shown:
        width = 26 + len(text) * _CHARACTER + 12
        if x > _LEFT and x + width > _WIDTH - _LEFT:
            x, canvas.y = _LEFT, canvas.y + _LINE + 2
        canvas.box(x, canvas.y, 18, 12, _class("none" if style == "late" else style))
        if style == "late":
            canvas.box(x, canvas.y, 18, 12, _LATE)
        canvas.text(x + 24, canvas.y + 10, text)
        x += width
    canvas.y += _LINE + 8


def _list(canvas: _Canvas, timeline: Timeline, marks: Sequence[Mark]) -> None:
    for number, mark in enumerate(marks[:MAX_MARKS], 1):
        times = f" ({mark.count} times, the first)" if mark.count > 1 else ""
        canvas.text(_LEFT, canvas.y + 12, f"{number}", "faint")
        canvas.text(_LEFT + 24, canvas.y + 12, canonical_seconds(mark.at)[11:], "faint")
        canvas.lines(_LEFT + 90, f"{mark.kind.words}{times}: {mark.text}", _COLUMNS)
    more = sum(mark.count for mark in marks[MAX_MARKS:])
    rest = [f"{more} more marks are not listed: choose a shorter time"] if more else []
    for text in (*rest, *timeline.thinned):
        canvas.lines(_LEFT + 90, text, _COLUMNS, "faint")


def _label(span: Span, text: str) -> str:
    """Return a span in words."""
    since = canonical_seconds(span.begins)
    if span.ends is None:
        return f"{text}, from {since} on"
    return f"{text}, from {since} to {canonical_seconds(span.ends)}, {length(span.ends - span.begins)}"


def _description(lane: Lane, labels: Sequence[str], begins: str, ends: str) -> str:
    """Return the whole picture for those who do not see it."""
    more = len(labels) - _MAX_SPANS
    parts = [*labels[:_MAX_SPANS], *([f"and {more} more spans"] if more > 0 else [])]
    marks = count(sum(mark.count for mark in lane.marks), "mark")
    renewals = count(lane.ticks.count, "renewal")
    return f"From {begins} to {ends}: {'; '.join(parts) or 'nothing is known'}. {renewals}, {marks}."
