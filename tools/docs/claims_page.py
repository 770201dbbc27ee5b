"""The tables of docs/claims.md: every kind of claim, and every cause."""

from collections.abc import Iterator
from typing import Final

from tools.docs.pages import DOCS, replace_generated
from webhook.analysis.claims.registry import CAUSES, SUBJECTS

PAGE: Final = DOCS / "claims.md"
_BEGIN: Final = "<!-- written by make docs from webhook/analysis/claims/registry.py -->\n"


def make_page() -> str:
    """Return the page with the current claims."""
    return replace_generated(PAGE, _BEGIN, make_tables())


def make_tables() -> Iterator[str]:
    """Yield the lines of one table for each subject."""
    for subject, kinds in SUBJECTS.items():
        yield f"### {subject}\n"
        yield "| claim | is true if | may be made from | arguments |"
        yield "|---|---|---|---|"
        for kind in kinds:
            arguments = ", ".join(f"`{name}`" for name in kind.arguments)
            yield f"| `{kind.id}` | {kind.means} | {kind.evidence} | {arguments} |"
        yield ""
    yield "### The causes\n"
    yield "| cause | means |"
    yield "|---|---|"
    for cause, means in CAUSES.items():
        yield f"| `{cause}` | {means} |"
    yield ""
