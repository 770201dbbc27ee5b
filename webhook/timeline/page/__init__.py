"""A timeline as one HTML page that needs nothing else: no network, no other file.

Everything that comes from a cluster travels in one JSON block, which no browser executes, and is shown as text. The
Content-Security-Policy of the page names each script and the style by hash, so nothing else runs, even if some text
reached the markup.
"""

from base64 import b64encode
from functools import cache
from hashlib import sha256
from html import escape as html_escape
from importlib import resources
from string import Template
from typing import Any, Final

import msgspec

from webhook.api.text import escape
from webhook.history.timing import deadline_of, goes_on_for
from webhook.timeline.model import Lane, MarkKind, SpanKind, Timeline
from webhook.timeline.summary import summary

SCRIPTS: Final = (
    *("words.js", "data.js", "state.js", "marks.js", "drawing.js"),
    *("lanes.js", "axis.js", "panels.js", "filters.js", "main.js"),
)
"""In the order in which they run; each may call what is above it, and everything once the page has loaded."""
VERSION: Final = 1

_FOR_HTML: Final = ((b"<", b"\\u003c"), (b">", b"\\u003e"), (b"&", b"\\u0026"))
"""Characters that could end or open an element occur in texts only, never in the notation of JSON."""

_SPAN_KINDS: Final = {kind: number for number, kind in enumerate(SpanKind)}
_MARK_KINDS: Final = {kind: number for number, kind in enumerate(MarkKind)}


def render(timeline: Timeline, *, events: str = "") -> str:
    """Return the page as HTML.

    Args:
        timeline: what to show.
        events: the path, on the server that serves the page, of server-sent events with more lanes; "" for a file.

    """
    library, style, scripts = _parts()
    origin = msgspec.json.decode(_text("vendor/d3.json"), type=dict[str, str])
    return Template(_text("page.html")).substitute(
        policy=html_escape(content_security_policy(events=events)),
        events=html_escape(events),
        style=style,
        library=library,
        library_name=html_escape("{name} {version}".format_map(origin)),
        library_license=html_escape(origin["license"]),
        library_notice=html_escape(_text("vendor/LICENSE")),
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
        data=page_data(timeline).decode(),
    )


@cache
def content_security_policy(*, events: str = "") -> str:
    """Return the policy that the page contains; a server may send it as a header, too."""
    library, style, scripts = _parts()
    hashes = " ".join(_source(script) for script in (library, *scripts))
    server = "'self'" if events else "'none'"
    own = f"script-src {hashes}; style-src {_source(style)}; connect-src {server}"
    return f"default-src 'none'; {own}; base-uri 'none'; form-action 'none'"


def _source(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


@cache
def _parts() -> tuple[str, str, tuple[str, ...]]:
    """Return the library, the style and the scripts."""
    return _text("vendor/d3.min.js"), _text("page.css"), tuple(_text(f"scripts/{name}") for name in SCRIPTS)


@cache
def _text(path: str) -> str:
    return resources.files(__package__).joinpath(path).read_text(encoding="utf-8")


def page_data(timeline: Timeline) -> bytes:
    """Return the timeline as JSON in UTF-8 that may be put into a script element unchanged.

    Short JSON, each text once, times as differences:

    {"version": 1, "begins": µs, "ends": µs, "readAt": µs or null, "sources": [text], "thinned": [text],
    "strings": ["", text, ...], "spanKinds": ["held", ...], "markKinds": ["created", ...], "lanes": [lane]}

    A lane has `id` (`Lease/NAMESPACE/NAME`), `duration` in seconds or null, `deadline` and `leadsFor`: microseconds
    after a last renewal before which no client stops leading, and after which most lead no longer. Its lists are flat:

    - `spans`: kind, begins, ends or null, holder, writer, manager, count: seven numbers for each span;
    - `ticks`: the first moment, then the difference from the one before;
    - `buckets`: begins, ends, count: three numbers for each;
    - `marks`: kind, at, text, holder, writer, count, ends or null: seven numbers for each.

    Kinds are indexes of `spanKinds` and `markKinds`, texts are indexes of `strings`, moments are microseconds since
    `begins` of the timeline, which may be negative. Characters that no one would see, such as those that change the
    direction of text, and lone surrogates, which JSON in UTF-8 cannot carry, are escaped in every text.
    """
    strings = {"": 0}
    lanes = [_lane(lane, timeline, strings) for lane in timeline.lanes]
    data = msgspec.json.encode(
        {
            "version": VERSION,
            "begins": timeline.begins,
            "ends": timeline.ends,
            "readAt": timeline.read_at,
            "sources": [escape(one) for one in timeline.sources],
            "thinned": [escape(one) for one in timeline.thinned],
            "strings": [escape(text) for text in strings],
            "spanKinds": [kind.value for kind in SpanKind],
            "markKinds": [kind.value for kind in MarkKind],
            "lanes": lanes,
        }
    )
    for character, written in _FOR_HTML:
        data = data.replace(character, written)
    return data


def _lane(lane: Lane, timeline: Timeline, strings: dict[str, int]) -> dict[str, Any]:
    since = timeline.begins
    spans: list[int | None] = []
    for span in lane.spans:
        ends = None if span.ends is None else span.ends - since
        texts = (strings.setdefault(text, len(strings)) for text in (span.holder, span.writer, span.manager))
        spans += [_SPAN_KINDS[span.kind], span.begins - since, ends, *texts, span.count]
    marks: list[int | None] = []
    for mark in lane.marks:
        ends = None if mark.ends is None else mark.ends - since
        texts = (strings.setdefault(text, len(strings)) for text in (mark.text, mark.holder, mark.writer))
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
