"""Names and comments as YAML that every reader takes as the same text: YAML 1.1 of kubectl and our own."""

import json
import re
from collections.abc import Iterable
from typing import Final

from webhook.api.text import cut, escape

LONGEST_COMMENT: Final = 400

_PLAIN: Final = re.compile(r"[A-Za-z](?:[A-Za-z0-9./-]*[A-Za-z0-9])?")
_WORDS: Final = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null"})
"""What YAML 1.1 does not read as text."""


def scalar(text: str) -> str:
    """One text as a scalar, in double quotes unless it is a plain name; the text has no control characters."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return json.dumps(text, ensure_ascii=False)


def flow(texts: Iterable[str]) -> str:
    """Texts as a list on one line."""
    return f"[{', '.join(map(scalar, texts))}]"


def comment(text: str) -> str:
    """A text as a comment of one line, whatever it contains."""
    return f"# {escape(cut(text, LONGEST_COMMENT))}"
