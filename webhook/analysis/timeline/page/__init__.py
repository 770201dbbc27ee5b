"""A timeline as one HTML page that needs nothing else: no network, no other file.

Everything that comes from a cluster travels in one JSON block, which no browser executes, and is shown as text. The
Content-Security-Policy of the page names both scripts and the style by hash, so nothing else runs, even if some text
reached the markup.
"""

from base64 import b64encode
from functools import cache
from hashlib import sha256
from html import escape as html_escape
from importlib import resources
from itertools import pairwise
from string import Template
from typing import Any, Final

import msgspec

from webhook.analysis.timeline.model import Lane, Mark, MarkKind, Span, SpanKind, Timeline
from webhook.text.quoting import escape

SCRIPTS: Final = ("data.js", "drawing.js", "chart.js", "panels.js", "picture.js", "main.js")
"""Parts of one script, in the order in which they run."""

_FOR_HTML: Final = ((b"<", b"\\u003c"), (b">", b"\\u003e"), (b"&", b"\\u0026"))
"""Characters that could end or open an element occur in texts only, never in the notation of JSON."""

_KINDS: Final = (*SpanKind, *MarkKind)
_NUMBERS: Final = {kind: number for number, kind in enumerate(_KINDS)}


def render(timeline: Timeline, *, events: str = "") -> str:
    """Return the page as HTML; `events` is the path of server-sent events with more lanes, "" for a file."""
    library, style, script = _read_parts()
    return Template(_read_text("page.html")).substitute(
        policy=html_escape(make_content_security_policy(events=events)),
        events=html_escape(events),
        style=style,
        library=library,
        library_notice=html_escape(_read_text("vendor/LICENSE")),
        script=script,
        data=encode_page_data(timeline).decode(),
    )


@cache
def make_content_security_policy(*, events: str = "") -> str:
    """Return the policy that the page contains; a server may also send it as a header."""
    library, style, script = map(_hash_source, _read_parts())
    server = "'self'" if events else "'none'"
    own = f"script-src {library} {script}; style-src {style}; connect-src {server}"
    return f"default-src 'none'; {own}; base-uri 'none'; form-action 'none'"


def _hash_source(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


@cache
def _read_parts() -> tuple[str, str, str]:
    """Return the library, the style and the script of the page."""
    return (
        _read_text("vendor/d3.min.js"),
        _read_text("page.css"),
        "\n".join(_read_text(f"scripts/{name}") for name in SCRIPTS),
    )


def _read_text(path: str) -> str:
    return resources.files(__name__).joinpath(path).read_text(encoding="utf-8")


def encode_page_data(timeline: Timeline, **more: str | bool) -> bytes:
    """Return the timeline as JSON in UTF-8 that may be put into a script element unchanged.

    Short JSON, each text once, times as differences:

    {"begins": µs, "ends": µs, "readAt": µs or null, "leftOut": leases, "sources": [text], "thinned": [text],
    "strings": ["", text, ...], "kinds": [["held", words], ...], "lanes": [lane]}, and what a live page needs as `more`

    A lane has `id` (`NAMESPACE/NAME`), `duration` in seconds or null, the number of `handovers`, `isMoment`,
    `isClaimed` (a part of its times is by its writers' clocks), the `problem` by which it cannot be drawn or "", and

    - `spans`, `doubts` and `marks`: lists of kind, begins, ends or null, count, text, and holder, writer, manager
      as far as there are any;
    - `gaps`: lists of the last renewal, the expiry, and the end or null of a time without a leader;
    - `ticks`: the first moment, then the difference from the one before;
    - `buckets`: begins, ends, count.

    Kinds are indexes of `kinds`, texts are indexes of `strings`, moments are microseconds since `begins` of the
    timeline, which may be negative. Characters that no one would see, such as those that change the direction of text,
    and lone surrogates, which JSON in UTF-8 cannot carry, are escaped in every text.
    """
    strings = {"": 0}
    lanes = [_encode_safely(lane, timeline.begins, timeline.ends, strings) for lane in timeline.lanes]
    data = msgspec.json.encode(
        {
            "begins": timeline.begins,
            "ends": timeline.ends,
            "readAt": timeline.read_at,
            "leftOut": timeline.left_out,
            "sources": [escape(one) for one in timeline.sources],
            "thinned": [escape(one) for one in timeline.thinned],
            "strings": [escape(text) for text in strings],
            "kinds": [[kind.value, kind.words] for kind in _KINDS],
            "lanes": lanes,
            **more,
        }
    )
    for character, written in _FOR_HTML:
        data = data.replace(character, written)
    return data


def _get_offset(at: int, begins: int) -> int:
    """Return a moment counted from the beginning; one that is not known is that."""
    return at - begins if at > 0 else 0


def _encode_safely(lane: Lane, begins: int, ends: int, strings: dict[str, int]) -> dict[str, Any]:
    """Return a lane of a timeline, without anything in it if this fails: the others are drawn."""
    try:
        return _encode_lane(lane, begins, ends, strings)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with one lane, the others are drawn
        problem = f"this is a bug: {type(error).__name__}: {error}"
        return _encode_lane(Lane(lane.namespace, lane.name, problem=problem), begins, ends, strings)


def _encode_lane(lane: Lane, begins: int, ends: int, strings: dict[str, int]) -> dict[str, Any]:
    """Return a lane of a timeline; a text that `strings` lacks gets the next number."""

    def item(drawn: Span | Mark, text: str, *more: str) -> list[int | None]:
        until = None if drawn.ends is None else drawn.ends - begins
        texts = [strings.setdefault(each, len(strings)) for each in (text, drawn.holder, drawn.writer, *more)]
        return [_NUMBERS[drawn.kind], _get_offset(drawn.begins, begins), until, drawn.count, *texts]

    found = lane.list_gaps(ends)
    return {
        "id": escape(f"{lane.namespace}/{lane.name}"),
        "namespace": escape(lane.namespace),
        "name": escape(lane.name),
        "duration": lane.duration_seconds,
        "isMoment": lane.is_list_only,
        "isClaimed": lane.is_claimed,
        "handovers": lane.handovers,
        "problem": escape(lane.problem),
        "spans": [item(one, one.describe(found, ends), one.manager) for one in lane.spans],
        "doubts": [item(one, text) for one, text in lane.list_doubts(found, ends)],
        "marks": [item(one, one.text) for one in lane.marks],
        "gaps": [
            [
                _get_offset(one.begins, begins),
                _get_offset(one.expires, begins),
                None if one.is_open else one.ends - begins,
            ]
            for one in found
        ],
        "ticks": [at - before for before, at in pairwise((begins, *lane.ticks.moments))],
        "buckets": [[one.begins - begins, one.ends - begins, one.count] for one in lane.ticks.buckets],
    }
