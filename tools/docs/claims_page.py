"""The tables of docs/claims.md: every argument, every kind of claim, and every cause."""

from collections.abc import Iterator
from typing import Final

from tools.docs.pages import DOCS, replace_generated, replace_lines
from webhook.analysis.claims.claim import ARGUMENTS
from webhook.analysis.claims.registry import CAUSES, SUBJECTS

PAGE: Final = DOCS / "claims.md"
_BEGIN: Final = "<!-- written by make docs from webhook/analysis/claims/registry.py -->\n"
_BEGIN_ARGUMENTS: Final = "<!-- written by make docs from webhook/analysis/claims/claim.py -->\n"


def make_page() -> str:
    """Return the page with the current claims."""
    return replace_lines(replace_generated(PAGE, _BEGIN, make_tables()), _BEGIN_ARGUMENTS, make_arguments())


def make_arguments() -> Iterator[str]:
    """Yield the lines of the table of the arguments, but for `by`, which the page explains."""
    yield "| argument | meaning |"
    yield "|---|---|"
    for name, argument in ARGUMENTS.items():
        if argument.means:
            yield f"| `{name}` | {argument.means} |"
    yield ""


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
