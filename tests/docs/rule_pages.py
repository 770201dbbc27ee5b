"""The pages of docs/rules, made from the rules."""

from typing import Final

from tests.docs.pages import DOCS
from webhook.cli.rules import markdown

FOLDER: Final = DOCS / "rules"


def rule_pages() -> dict[str, str]:
    """Text by file name."""
    return {"README.md": index()}


def index() -> str:
    """The table of all rules."""
    table = "\n".join(markdown())
    return f"""<!-- Written by `make docs`. Do not edit. -->
# Rules

{table}
"""
