"""What an admitted write did and what may follow: the sentence of a warning, with names that can be truncated."""

from typing import Final

from msgspec import Struct

from webhook.api.text import quote, quote_within

ELLIPSIS: Final = "..."


class Statement(Struct, frozen=True, gc=False):
    """A sentence about a write that has been admitted.

    `text` is a template of `str.format`: `{0}`, `{1}` stand for `names`, which clients choose and which are quoted, and
    `{page}` for the place that explains the rule.
    """

    text: str
    names: tuple[str, ...] = ()

    def within(self, longest: int, page: str = "") -> str:
        """The sentence in at most `longest` characters: the longest names are cut first, and alike."""
        names = [quote(name) for name in self.names]
        whole = self.text.format(*names, page=page)
        if len(whole) <= longest:
            return whole
        lengths = [len(name) for name in names]
        space = longest - len(whole) + sum(lengths)
        level = next((level for level in range(space, 0, -1) if sum(min(one, level) for one in lengths) <= space), 0)
        shorter = self.text.format(*(quote_within(name, level) for name in self.names), page=page)
        return shorter if len(shorter) <= longest else shorter[: longest - len(ELLIPSIS)] + ELLIPSIS


def literal(text: str) -> str:
    """Text that stands in a template as it is, braces included."""
    return text.replace("{", "{{").replace("}", "}}")
