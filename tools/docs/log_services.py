"""The table of docs/why.md: the log services and collectors whose deliveries are read."""

from collections.abc import Iterator
from typing import Final

from tools.docs.pages import DOCS, replace_generated
from webhook.analysis.inputs.envelopes import SERVICES

PAGE: Final = DOCS / "why.md"
_BEGIN: Final = "<!-- written by make docs from webhook/analysis/inputs/envelopes.py -->\n"


def make_page() -> str:
    """Return the page with the current table."""
    return replace_generated(PAGE, _BEGIN, _make_rows())


def _make_rows() -> Iterator[str]:
    yield "| service | how to get a file | what of it is read |"
    yield "|---|---|---|"
    for service in SERVICES:
        paths = [f"`{path}`" for path in service.shown_paths]
        yield f"| {service.name} | {service.how_to_get} | {', '.join(paths) or service.remark} |"
