"""Just enough of CEL to compare an expression with one that was verified: its `||` terms, each in one normal form.

Nothing is evaluated. Two terms with the same normal form mean the same; the reverse need not hold.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

LONGEST: Final = 16 * 1024
"""Characters of an expression that is worth reading; the verified one has about 1,500."""

_TOKEN: Final = re.compile(
    r"""(?P<blank>\s+|//[^\n]*)|(?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')"""
    r"""|(?P<other>&&|\|\||[=!<>]=|[A-Za-z_]\w*|\d[\w.]*|.)""",
    re.DOTALL,
)
_OPEN: Final = frozenset("([{")
_CLOSE: Final = frozenset(")]}")
_OPTIONAL: Final = frozenset({".", "[", "{", ","})
"""What stands before a `?` that is no ternary: `.?field`, `[?key]`."""

Tokens = Sequence[str]


def terms(expression: str) -> frozenset[str]:
    """The normal forms of the terms that `||` joins, in whatever order and nesting they stand."""
    found: set[str] = set()
    waiting: list[Tokens] = [list(_tokens(expression[: LONGEST + 1]))]
    if len(expression) > LONGEST:
        return frozenset({expression})
    while waiting:
        tokens = _without_outer_brackets(waiting.pop())
        parts = [tokens] if _has_ternary(tokens) else _split(tokens, "||")
        if len(parts) > 1:
            waiting.extend(parts)
        elif tokens:
            found.add(_normal(tokens))
    return frozenset(found)


def _tokens(expression: str) -> Iterator[str]:
    for match in _TOKEN.finditer(expression):
        if match["string"] is not None:
            inside = match["string"][1:-1]
            yield f'"{inside}"' if '"' not in inside else match["string"]
        elif match["other"] is not None:
            yield match["other"]


def _normal(tokens: Tokens) -> str:
    """`&&` in any order, `==` and `!=` either way round, `>` as `<`."""
    if _has_ternary(tokens):
        return " ".join(tokens)
    return " && ".join(sorted(_comparison(_without_outer_brackets(part)) for part in _split(tokens, "&&")))


def _comparison(tokens: Tokens) -> str:
    for operator in ("==", "!="):
        sides = _split(tokens, operator)
        if len(sides) == 2:
            return f" {operator} ".join(sorted(" ".join(_without_outer_brackets(side)) for side in sides))
    for operator, mirrored in ((">", "<"), (">=", "<=")):
        sides = _split(tokens, operator)
        if len(sides) == 2:
            return f"{' '.join(sides[1])} {mirrored} {' '.join(sides[0])}"
    return " ".join(tokens)


def _split(tokens: Tokens, separator: str) -> list[Tokens]:
    """The parts between separators that stand outside every bracket."""
    parts: list[Tokens] = []
    depth = start = 0
    for position, token in enumerate(tokens):
        depth += (token in _OPEN) - (token in _CLOSE)
        if token == separator and depth == 0:
            parts.append(tokens[start:position])
            start = position + 1
    return [*parts, tokens[start:]]


def _without_outer_brackets(tokens: Tokens) -> Tokens:
    """`((a || b))` is `a || b`; `(a) || (b)` stays."""
    closing = _closing_brackets(tokens)
    start, end = 0, len(tokens)
    while end - start > 1 and tokens[start] == "(" and closing.get(start) == end - 1:
        start, end = start + 1, end - 1
    return tokens[start:end]


def _closing_brackets(tokens: Tokens) -> dict[int, int]:
    """Where each opening bracket is closed."""
    stack: list[int] = []
    closing: dict[int, int] = {}
    for position, token in enumerate(tokens):
        if token in _OPEN:
            stack.append(position)
        elif token in _CLOSE and stack:
            closing[stack.pop()] = position
    return closing


def _has_ternary(tokens: Tokens) -> bool:
    depth = 0
    for before, here in pairwise(("", *tokens)):
        depth += (here in _OPEN) - (here in _CLOSE)
        if here == "?" and depth == 0 and before not in _OPTIONAL:
            return True
    return False
