"""The picture of the path of a write, for the README: an SVG file in the colors of either scheme."""

from collections.abc import Iterator
from typing import Final, Literal
from xml.sax.saxutils import escape

from msgspec import Struct

from tools.docs.pages import DOCS

FILE: Final = DOCS / "images" / "path.svg"
_WIDTH: Final = 960
_HEIGHT: Final = 370
_LIGHT: Final = {
    "card": "#ffffff",
    "box": "#f6f8fa",
    "edge": "#57606a",
    "rule": "#8c959f",
    "text": "#1f2328",
    "note": "#57606a",
    "green": "#1a7f37",
    "red": "#cf222e",
}
_DARK: Final = {
    "card": "#0d1117",
    "box": "#161b22",
    "edge": "#9da7b3",
    "rule": "#6e7681",
    "text": "#e6edf3",
    "note": "#9da7b3",
    "green": "#56d364",
    "red": "#ff7b72",
}
_FONTS: Final = "-apple-system, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif"
_STYLE: Final = """\
    .card, .step { fill: var(--card); } .box { fill: var(--box); stroke: var(--edge); stroke-width: 1.4; }
    .step { stroke: var(--rule); }
    text, .text { fill: var(--text); } .note { fill: var(--note); font-size: 12px; } .bold { font-weight: 600; }
    text.green, .green { fill: var(--green); } text.red, .red { fill: var(--red); }
    path { fill: none; stroke-width: 1.8; }
    marker path { stroke: none; }
    .line { stroke: var(--text); } .denial { stroke: var(--red); }
    .renewal { stroke: var(--green); stroke-width: 2.2; stroke-dasharray: 7 5; }
"""


class _Box(Struct, frozen=True):
    """A box with centered lines of text; `texts` are their heights, words and styles."""

    x: int
    y: int
    width: int
    height: int
    style: Literal["box", "step"]
    texts: tuple[tuple[int, str, str], ...]


class _Arrow(Struct, frozen=True):
    """An arrow along a path of SVG, with lines of text beside it, each with its place, the words and the style."""

    path: str
    style: Literal["line", "renewal", "denial"]
    texts: tuple[tuple[int, int, str, str], ...] = ()
    anchor: Literal["middle", "start"] = "middle"


_BOXES: Final = (
    _Box(
        *(20, 100, 130, 186),
        style="box",
        texts=((180, "elector", "bold"), (202, "client-go, kubectl,", "note"), (218, "a node, anyone", "note")),
    ),
    _Box(*(240, 40, 270, 306), style="box", texts=((66, "API server", "bold"),)),
    _Box(
        *(265, 100, 220, 56),
        style="step",
        texts=((123, "matchConditions", ""), (143, "a plain renewal of a Lease?", "note")),
    ),
    _Box(*(265, 282, 220, 44), style="step", texts=((309, "etcd: the write is stored", ""),)),
    _Box(
        *(710, 40, 230, 306),
        style="box",
        texts=(
            (66, "lease-webhook", "bold"),
            (84, "Flask service under gunicorn", "note"),
            (337, "no state, no rights, no API access", "note"),
        ),
    ),
    _Box(*(737, 111, 176, 34), style="step", texts=((133, "decode the review", ""),)),
    _Box(*(737, 167, 176, 34), style="step", texts=((189, "evaluate the rules", ""),)),
    _Box(*(737, 223, 176, 34), style="step", texts=((245, "apply the policy", ""),)),
    _Box(*(737, 279, 176, 40), style="step", texts=((304, "verdict", "bold"),)),
)
_ARROWS: Final = (
    _Arrow("M825 145v21", "line"),
    _Arrow("M825 201v21", "line"),
    _Arrow("M825 257v21", "line"),
    _Arrow("M150 128h113", "line", ((195, 119, "write", ""),)),
    _Arrow("M485 128h250", "line", ((610, 119, "every other write", ""),)),
    _Arrow(
        "M290 156v124",
        "renewal",
        ((302, 184, "plain renewal:", "green bold"), (302, 203, "never sent to the webhook", "green")),
        anchor="start",
    ),
    _Arrow("M737 304h-250", "line", ((610, 322, "allowed, with or", ""), (610, 340, "without warnings", ""))),
    _Arrow(
        "M737 291h-70v-50h-515",
        "denial",
        ((604, 232, "denied: 400, 403 or 422", "red bold"), (195, 232, "denied", "red bold")),
    ),
)
_HEADS: Final = {"line": "text", "renewal": "green", "denial": "red"}
"""By the style of an arrow, the color of its head."""


def draw_picture() -> str:
    """Return the text of the file."""
    return "\n".join(_list_lines()) + "\n"


def _list_lines() -> Iterator[str]:
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" '
        f'height="{_HEIGHT}" role="img" aria-labelledby="title" font-family="{_FONTS}" font-size="14">'
    )
    yield '  <title id="title">The path of a write to a Lease</title>'
    yield "  <style>"
    yield f"    svg {{ {_format_variables(_LIGHT)} }}"
    yield f"    @media (prefers-color-scheme: dark) {{ svg {{ {_format_variables(_DARK)} }} }}"
    yield f"{_STYLE}  </style>"
    yield "  <defs>"
    for style, color in _HEADS.items():
        yield (
            f'    <marker id="{style}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
            f'orient="auto"><path class="{color}" d="M0 0 10 5 0 10z"/></marker>'
        )
    yield "  </defs>"
    yield f'  <rect class="card" width="{_WIDTH}" height="{_HEIGHT}" rx="10"/>'
    for box in _BOXES:
        rounded = 8 if box.style == "box" else 6
        yield (
            f'  <rect class="{box.style}" x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" '
            f'rx="{rounded}"/>'
        )
        for height, words, style in box.texts:
            yield _format_text(box.x + box.width // 2, height, words, style)
    for arrow in _ARROWS:
        yield f'  <path class="{arrow.style}" d="{arrow.path}" marker-end="url(#{arrow.style})"/>'
        for x, y, words, style in arrow.texts:
            yield _format_text(x, y, words, style, arrow.anchor)
    yield "</svg>"


def _format_variables(colors: dict[str, str]) -> str:
    return " ".join(f"--{name}: {color};" for name, color in colors.items())


def _format_text(x: int, y: int, words: str, style: str, anchor: str = "middle") -> str:
    of_style = f'class="{style}" ' if style else ""
    return f'  <text {of_style}x="{x}" y="{y}" text-anchor="{anchor}">{escape(words)}</text>'
