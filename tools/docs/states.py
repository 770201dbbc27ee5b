"""The states of a connection in docs/architecture.md: the diagram that their table draws, and their meanings."""

from typing import Final

from tools.docs.pages import DOCS, replace_generated
from webhook.server.http.state import TABLE, draw_diagram

PAGE: Final = DOCS / "architecture.md"
_BEGIN: Final = "<!-- written by make docs: the states of a connection -->\n"


def make_page() -> str:
    """Return the page with the current diagram."""
    drawn = f"```mermaid\n{draw_diagram()}\n```\n\n| state | meaning |\n|---|---|"
    return replace_generated(PAGE, _BEGIN, [drawn, *(f"| {state} | {state.meaning} |" for state in TABLE)])
