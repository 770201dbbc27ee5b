"""Assembles the page: markup, style, scripts, the library that draws, and the data.

Everything that comes from a cluster travels in one JSON block, which no browser executes, and is shown as text. The
Content-Security-Policy of the page names each script and the style by hash, so nothing else runs, even if some text
reached the markup.
"""

from base64 import b64encode
from functools import cache
from hashlib import sha256
from html import escape
from importlib import resources
from string import Template
from typing import Final

import msgspec

from webhook.timeline.model import Timeline
from webhook.timeline.page_data import page_data

SCRIPTS: Final = (
    "words.js",
    "data.js",
    "states.js",
    "state.js",
    "shapes.js",
    "spans.js",
    "marks.js",
    "lanes.js",
    "axis.js",
    "cursor.js",
    "details.js",
    "filters.js",
    "table.js",
    "keyboard.js",
    "live.js",
    "main.js",
)
"""In the order in which they run; each may call what is above it, and everything once the page has loaded."""


def render(timeline: Timeline, *, events: str = "") -> str:
    """The page as HTML.

    Args:
        timeline: what to show.
        events: the path, on the server that serves the page, of server-sent events with more lanes; "" for a file.

    """
    library, style, scripts = _parts()
    return _template().substitute(
        policy=escape(content_security_policy(events=events)),
        events=escape(events),
        style=style,
        library=library,
        library_name=escape("{name} {version}".format_map(_origin())),
        library_license=escape(_origin()["license"]),
        library_notice=escape(_text("vendor/LICENSE")),
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
        data=page_data(timeline).decode(),
    )


@cache
def content_security_policy(*, events: str = "") -> str:
    """The policy that the page contains; a server may send it as a header, too."""
    library, style, scripts = _parts()
    hashes = " ".join(_source(script) for script in (library, *scripts))
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {hashes}",
            f"style-src {_source(style)}",
            "connect-src 'self'" if events else "connect-src 'none'",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _source(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


@cache
def _parts() -> tuple[str, str, tuple[str, ...]]:
    """The library, the style and the scripts."""
    return _text("vendor/d3.min.js"), _text("page.css"), tuple(_text(f"scripts/{name}") for name in SCRIPTS)


@cache
def _origin() -> dict[str, str]:
    """What is known of the library: its name, version and license, and where its file comes from."""
    return msgspec.json.decode(_text("vendor/d3.json"), type=dict[str, str])


@cache
def _template() -> Template:
    return Template(_text("page.html"))


def _text(path: str) -> str:
    return resources.files(__package__).joinpath(path).read_text(encoding="utf-8")
