"""The states of a connection in docs/architecture.md: the diagram that their table draws, and their meanings."""

from typing import Final

from tools.docs.pages import DOCS
from webhook.server.http.state import TABLE, diagram

PAGE: Final = DOCS / "architecture.md"
_BEGIN: Final = "<!-- written by make docs: the states of a connection -->\n"
_END: Final = "<!-- end of what make docs writes -->"


def make_page() -> str:
    """Return the page with the current diagram."""
    before, _, rest = PAGE.read_text().partition(_BEGIN)
    rows = "".join(f"| {state} | {state.meaning} |\n" for state in TABLE)
    drawn = f"```mermaid\n{diagram()}\n```\n\n| state | meaning |\n|---|---|\n{rows}"
    return f"{before}{_BEGIN}{drawn}{_END}{rest.partition(_END)[2]}"
