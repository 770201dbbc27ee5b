"""Text that people read: values quoted, truncated and made harmless before they reach a terminal, a log or a header."""

import json
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable
from typing import Final, Generic, TypeVar

MAX_VALUE: Final = 128
"""Characters of a bad value that are shown; kubectl prints messages raw, and a value may hold megabytes."""

_BEGINNING: Final = 200
_END: Final = 160
_CUT: Final = "..."

LazyText = str | Callable[[], str]
"""A text, or what makes it: many findings are counted and few are read."""

_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})
"""Categories of Unicode whose characters draw nothing, or a space: of those, only the ASCII one is shown as itself."""

_BLANK_LETTERS: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Letters, marks and symbols of other categories that draw nothing: Unicode's Default_Ignorable_Code_Point, and the
empty braille pattern. Two holders that differ in one of them look equal."""

_LETTERS: Final = re.compile(r"[^\W\d_]+")
_LOOKALIKES: Final = ("CYRILLIC ", "GREEK ", "ARMENIAN ", "CHEROKEE ", "COPTIC ", "FULLWIDTH ", "MATHEMATICAL ")
"""How Unicode's names of letters begin that may look like ASCII: a holder `payroll` may have a Cyrillic a."""


_Key = TypeVar("_Key", bound=str | bytes | None)
_Value = TypeVar("_Value")


class _Memo(dict[_Key, _Value], Generic[_Key, _Value]):
    """Results by text. Clients control the texts, so long ones are never cached, and a full cache is emptied."""

    def __init__(self, compute: Callable[[_Key], _Value], max_entries: int, max_length: int) -> None:
        super().__init__()
        self._compute, self._max_entries, self._max_length = compute, max_entries, max_length

    def __missing__(self, text: _Key) -> _Value:
        value = self._compute(text)
        if text is None or len(text) <= self._max_length:
            if len(self) >= self._max_entries:
                self.clear()
            self[text] = value
        return value


def cached_if_short(
    max_entries: int, max_length: int
) -> Callable[[Callable[[_Key], _Value]], Callable[[_Key], _Value]]:
    """Return a decorator that keeps the results for short texts: a client may send one as long as a request.

    What is known is found without a call of Python code, for a third of what `functools.lru_cache` and a wrapper cost.
    """
    return lambda compute: _Memo(compute, max_entries, max_length).__getitem__


def render(text: LazyText) -> str:
    """Return a text, computed now if it was deferred."""
    return text if isinstance(text, str) else text()


def escape(text: str) -> str:
    """Show control, invisible and unpaired characters as escapes, so that one line stays one honest line.

    In a word with ASCII letters, letters that look like ASCII are escaped, too.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _LETTERS.sub(_escape_lookalikes, text)
    return "".join(c.encode("unicode_escape").decode() if _is_hidden(c) else c for c in text)


def _escape_lookalikes(word: re.Match[str]) -> str:
    letters = word[0]
    if letters.isascii() or not any(map(str.isascii, letters)):
        return letters
    return "".join(c.encode("unicode_escape").decode() if _is_lookalike(c) else c for c in letters)


def _is_lookalike(letter: str) -> bool:
    return unicodedata.name(letter, "").startswith(_LOOKALIKES)


def truncate(text: str, max_length: int = MAX_VALUE) -> str:
    """Return the text, or its first `max_length` characters and an ellipsis."""
    return text if len(text) <= max_length else text[:max_length] + "..."


def truncate_middle(text: str) -> str:
    """Return the text; of a long one its beginning and its end: an error says first what failed, and last why."""
    if len(text) <= _BEGINNING + len(_CUT) + _END:
        return text
    return f"{text[:_BEGINNING]}{_CUT}{text[-_END:]}"


def quote(value: object) -> str:
    """Return a bad value as the API server prints one: strings in quotes, numbers bare, all truncated and escaped."""
    if value is None:
        return "null"
    if isinstance(value, str):
        shown = truncate(value).replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escape(shown)}"'
    if isinstance(value, int) and not isinstance(value, bool):
        return truncate(str(value))
    return escape(truncate(json.dumps(value, ensure_ascii=False, default=str)))


def quote_within(text: str, max_length: int) -> str:
    """Return the text in quotes, truncated to at most `max_length` characters in all, if quotes and ellipsis fit."""
    shown = quote(text)
    if len(shown) <= max_length:
        return shown
    # The more is kept the longer it gets, and of many names each is quoted, so the number is not counted down.
    some = range(1, min(max_length, MAX_VALUE))
    kept = bisect_right(some, max_length, key=lambda number: len(quote(f"{text[:number]}...")))
    return quote(f"{text[:kept]}...")


def _is_hidden(character: str) -> bool:
    if character == " ":
        return False
    return unicodedata.category(character) in _HIDDEN or _BLANK_LETTERS.match(character) is not None
