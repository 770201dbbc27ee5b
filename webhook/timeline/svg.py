"""One lease as a picture: self-contained SVG, readable in light and dark, with its content as text for screen readers.

From top to bottom: the name, numbers of marks, the bar of holders, renewals, candidates, the axis, what the colors
mean, and what happened, number by number.
"""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from msgspec import Struct

from webhook.api.micro_time import canonical_seconds
from webhook.timeline.marks import runs
from webhook.timeline.model import Lane, Mark, Span, SpanKind, Timeline
from webhook.timeline.summary import gaps, summary
from webhook.timeline.svg_axis import WIDTH, Axis
from webhook.timeline.svg_style import HATCH, STYLE
from webhook.timeline.svg_texts import description, label_of, legend, words_of, wrapped

MOST_MARKS: Final = 60
"""Marks with a number and a line of text; the others are counted."""
_LEFT: Final = 16
_BAR: Final = 34
_THIN: Final = 14
_LINE: Final = 17
_LEVELS: Final = 3
_NUMBER: Final = 20
_CHARACTER: Final = 7.0
"""Pixels that a letter takes at most on average; a label that might not fit is left out."""


class _Canvas(Struct):
    """Elements so far, and how far down they reach, in pixels."""

    parts: list[str]
    y: float = 0

    def text(self, x: float, y: float, text: str, style: str = "") -> None:
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}"{_class(style)}>{escape(text)}</text>')

    def line(self, x: float, y: float, to: tuple[float, float], style: str) -> None:
        self.parts.append(f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to[0]:.1f}" y2="{to[1]:.1f}"{_class(style)}/>')

    def box(self, x: float, y: float, width: float, height: float, style: str) -> None:
        size = f'width="{max(1.0, width):.1f}" height="{height:.1f}"'
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" {size}{style}/>')


def svg(timeline: Timeline) -> str:
    """The picture of the only lane of a timeline, as a document with a line break at its end."""
    (lane,) = timeline.lanes
    axis = Axis.of(timeline.begins, timeline.ends, _LEFT)
    colors = _colors(lane)
    canvas = _Canvas([])
    canvas.text(_LEFT, 26, f"Lease {lane.namespace}/{lane.name}", "name")
    duration = "" if lane.duration_seconds is None else f", lease duration {lane.duration_seconds} s"
    canvas.text(
        _LEFT, 44, f"{canonical_seconds(timeline.begins)} to {canonical_seconds(timeline.ends)}{duration}", "faint"
    )
    canvas.y = 44
    for line in wrapped(summary(lane, timeline.ends), 138):
        canvas.y += _LINE
        canvas.text(_LEFT, canvas.y, line)
    canvas.y += 12
    marks = runs(lane.marks)
    shown = marks[:MOST_MARKS]
    _marks(canvas, axis, shown)
    _bar(canvas, axis, lane, colors)
    _candidates(canvas, axis, lane.candidates)
    _axis(canvas, axis)
    _legend(canvas, lane, colors)
    _list(canvas, timeline, marks, shown)
    height = canvas.y + 12
    size = f'width="{WIDTH}" height="{height:.0f}"'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="lease-timeline" {size} viewBox="0 0 {WIDTH} {height:.0f}" '
        'role="img" aria-labelledby="lt-title lt-desc">'
    )
    title = f'<title id="lt-title">{escape(f"Timeline of lease {lane.namespace}/{lane.name}")}</title>'
    text = f'<desc id="lt-desc">{escape(description(timeline, lane))}</desc>'
    paper = f'<rect class="paper" {size}/>'
    return "\n".join([head, title, text, f"<style>{STYLE}</style>", HATCH, paper, *canvas.parts, "</svg>\n"])


def _class(style: str) -> str:
    return f' class="{style}"' if style else ""


def _colors(lane: Lane) -> dict[str, str]:
    """A color for each holder, in the order in which they came; after six they repeat."""
    holders = dict.fromkeys(span.holder for span in lane.spans if span.kind in {SpanKind.HELD, SpanKind.OVERDUE})
    return {holder: f"c{number % 6}" for number, holder in enumerate(holders)}


def _marks(canvas: _Canvas, axis: Axis, marks: Sequence[Mark]) -> None:
    """Numbers above the bar, one above the other if they would touch."""
    places = list(_places(axis, marks))
    bottom = canvas.y + _NUMBER * max((level + 1 for _, level in places), default=0)
    for x, level in places:
        canvas.line(x, bottom - level * _NUMBER - 8, (x, bottom + _BAR + 4), "stem")
    for number, (x, level) in enumerate(places, 1):
        y = bottom - level * _NUMBER - 8
        canvas.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="8.5" class="dot"/>')
        canvas.text(x, y + 4, str(number), "number")
    canvas.y = bottom + 4


def _places(axis: Axis, marks: Sequence[Mark]) -> Iterator[tuple[float, int]]:
    free = [float("-inf")] * _LEVELS
    for mark in marks:
        x = axis.x(mark.at)
        level = next((level for level in range(_LEVELS) if free[level] <= x), _LEVELS - 1)
        free[level] = x + _NUMBER
        yield x, level


def _bar(canvas: _Canvas, axis: Axis, lane: Lane, colors: dict[str, str]) -> None:
    y = canvas.y
    bars: list[str] = []
    for span in lane.spans:
        x, width = axis.between(span.begins, span.ends)
        size = f'x="{x:.1f}" y="{y:.1f}" width="{max(1.0, width):.1f}" height="{_BAR}"'
        text = escape(label_of(span))
        style = colors.get(span.holder, span.kind.value) if span.kind is not SpanKind.LEADERLESS else "none"
        bars.append(f'<rect {size} class="{style}"><title>{text}</title></rect>')
        if span.kind is SpanKind.OVERDUE:
            bars.append(f'<rect {size} fill="url(#lt-late)"><title>{text}</title></rect>')
        bars += _bar_label(span, x, y, width)
    # Stems of marks stand in front of the bar, labels too.
    canvas.parts[:0] = bars
    y += _BAR
    drawn = {round(axis.x(at)) for at in lane.ticks.moments}
    for x in sorted(drawn):
        canvas.line(x, y + 3, (x, y + 10), "tick")
    for bucket in lane.ticks.buckets:
        x, width = axis.between(bucket.begins, bucket.ends)
        canvas.box(x, y + 3, width, 7, _class("several"))
    canvas.y = y + _THIN
    _gaps(canvas, axis, lane, axis.ends)


def _gaps(canvas: _Canvas, axis: Axis, lane: Lane, until: int) -> None:
    """Times without a leader, from the last renewal on, with their lengths where these fit."""
    free = float("-inf")
    found = gaps(lane, until)
    for gap in found:
        x, width = axis.between(gap.begins, gap.ends)
        canvas.box(x, canvas.y + 2, max(2.0, width), 4, _class("gap"))
        label = f"no leader for {gap.in_words}"
        size = len(label) * _CHARACTER
        left = max(_LEFT, min(x, WIDTH - _LEFT - size))
        if left >= free:
            canvas.text(left, canvas.y + 19, label, "alarm")
            free = left + size
    canvas.y += 24 if found else 0


def _bar_label(span: Span, x: float, y: float, width: float) -> Iterator[str]:
    label = {SpanKind.LEADERLESS: "no one", SpanKind.OVERDUE: "overdue", SpanKind.SEVERAL: "several"}.get(
        span.kind, span.holder
    )
    if len(label) * _CHARACTER + 12 <= width:
        style = "alarm" if span.kind in {SpanKind.LEADERLESS, SpanKind.OVERDUE} else ""
        yield f'<text x="{x + 6:.1f}" y="{y + _BAR / 2 + 4:.1f}"{_class(style)}>{escape(label)}</text>'


def _candidates(canvas: _Canvas, axis: Axis, candidates: Sequence[Lane]) -> None:
    for lane in candidates:
        canvas.text(_LEFT, canvas.y + 13, f"candidate {lane.name}", "faint")
        canvas.y += 18
        for span in lane.spans:
            x, width = axis.between(span.begins, span.ends)
            canvas.box(x, canvas.y, width, _THIN, _class("offered"))
        for mark in lane.marks:
            x = axis.x(mark.at)
            title = escape(f"{canonical_seconds(mark.at)} {words_of(mark.kind)}: {mark.text}")
            y = canvas.y + _THIN / 2
            canvas.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" class="dot"><title>{title}</title></circle>')
        canvas.y += _THIN + 4


def _axis(canvas: _Canvas, axis: Axis) -> None:
    canvas.y += 4
    canvas.line(_LEFT, canvas.y, (WIDTH - _LEFT, canvas.y), "rule")
    for at, text in axis.labels():
        x = axis.x(at)
        canvas.line(x, canvas.y, (x, canvas.y + 5), "tick")
        canvas.text(min(max(x, _LEFT + 24), WIDTH - _LEFT - 24), canvas.y + 18, text, "axis faint")
    canvas.y += 26


def _legend(canvas: _Canvas, lane: Lane, colors: dict[str, str]) -> None:
    x = float(_LEFT)
    for style, text in legend(lane, colors):
        width = 26 + len(text) * _CHARACTER + 12
        if x > _LEFT and x + width > WIDTH - _LEFT:
            x, canvas.y = _LEFT, canvas.y + _LINE + 2
        canvas.box(x, canvas.y, 18, 12, _class("none" if style == "late" else style))
        if style == "late":
            canvas.box(x, canvas.y, 18, 12, ' fill="url(#lt-late)"')
        canvas.text(x + 24, canvas.y + 10, text)
        x += width
    canvas.y += _LINE + 8


def _list(canvas: _Canvas, timeline: Timeline, marks: Sequence[Mark], shown: Sequence[Mark]) -> None:
    for number, mark in enumerate(shown, 1):
        times = f" ({mark.count} times, the first)" if mark.count > 1 else ""
        clock = canonical_seconds(mark.at)[11:]
        for row, line in enumerate(wrapped(f"{words_of(mark.kind)}{times}: {mark.text}")):
            if row == 0:
                canvas.text(_LEFT, canvas.y + 12, f"{number}", "faint")
                canvas.text(_LEFT + 24, canvas.y + 12, clock, "faint")
            canvas.text(_LEFT + 90, canvas.y + 12, line)
            canvas.y += _LINE
    more = sum(mark.count for mark in marks[len(shown) :])
    rest = [f"{more} more marks are not listed: choose a shorter time"] if more else []
    for text in (*rest, *timeline.thinned):
        for line in wrapped(text):
            canvas.text(_LEFT + 90, canvas.y + 12, line, "faint")
            canvas.y += _LINE
