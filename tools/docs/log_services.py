"""The table of docs/why.md: the log services and collectors whose deliveries are read."""

from collections.abc import Iterator
from typing import Final

from tools.docs.pages import DOCS
from webhook.analysis.inputs.envelopes import SERVICES

PAGE: Final = DOCS / "why.md"
_BEGIN: Final = "<!-- written by make docs from webhook/analysis/inputs/envelopes.py -->\n"
_END: Final = "<!-- end of what make docs writes -->\n"


def make_page() -> str:
    """Return the page with the current table."""
    before, _, rest = PAGE.read_text().partition(_BEGIN)
    return "".join((before, _BEGIN, "\n".join([*_make_rows(), _END]), rest.partition(_END)[2]))


def _make_rows() -> Iterator[str]:
    yield "| service | how to get a file | what of it is read |"
    yield "|---|---|---|"
    for service in SERVICES:
        paths = [f"`{path}`" for path in service.shown_paths]
        yield f"| {service.name} | {service.how_to_get} | {', '.join(paths) or service.remark} |"
