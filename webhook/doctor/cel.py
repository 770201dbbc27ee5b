"""The part of CEL that is needed to compare an expression with a verified one: its `||` terms in a normal form.

`[a, b].exists(x, p(x) || q(x))` has the terms p(a), q(a), p(b), q(b): CEL's macros are defined by these expansions.
Nothing is evaluated. Two terms with the same normal form mean the same; the reverse need not hold.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

LONGEST: Final = 16 * 1024
"""Characters of an expression that is parsed; the verified one has about 1,600."""
MOST_TOKENS: Final = 100_000
"""Tokens that are processed, expansions of lists included; the verified expression needs fewer than 4,000."""

_TOKEN: Final = re.compile(
    r"""(?P<blank>\s+|//[^\n]*)|(?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')"""
    r"""|(?P<other>&&|\|\||[=!<>]=|[A-Za-z_]\w*|\d[\w.]*|.)""",
    re.DOTALL,
)
_OPEN: Final = frozenset("([{")
_CLOSE: Final = frozenset(")]}")
_OPTIONAL: Final = frozenset({".", "[", "{", ","})
"""The token before a `?` that is not a ternary: `.?field`, `[?key]`."""
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_QUOTED_NAME: Final = re.compile(r'"([A-Za-z_]\w*)"')
_VALUE: Final = re.compile(r'[\w.?"\'].*', re.DOTALL)
"""Tokens outside brackets of an expression that binds as tightly as a name."""
_ENDS_VALUE: Final = re.compile(r"\w+|[)\]]")
"""The token before an index; without one, the bracket opens a list."""
_BINDERS: Final = frozenset({"all", "exists", "exists_one", "existsOne", "filter", "map"})
"""Macros whose first argument is a new name."""

Tokens = Sequence[str]


def terms(expression: str) -> frozenset[str]:
    """The normal forms of the terms that `||` joins, regardless of order and nesting.

    An expression that is too long, also after expansion, is one term: its text.
    """
    if len(expression) > LONGEST:
        return frozenset({expression})
    found: set[str] = set()
    waiting: list[Tokens] = [list(_tokens(expression))]
    budget = MOST_TOKENS
    while waiting:
        budget -= len(waiting[-1])
        tokens = _without_outer_brackets(waiting.pop())
        parts = [tokens] if _has_ternary(tokens) else _split(tokens, "||")
        macro = _exists_in_list(tokens) if len(parts) == 1 else None
        if budget < 0 or (macro and macro.size > budget):
            return frozenset({expression})
        if macro:
            waiting.extend(macro.expansions())
        elif len(parts) > 1:
            waiting.extend(parts)
        elif tokens:
            found.add(_normal(tokens))
    return frozenset(found)


class _Exists(Struct, frozen=True):
    """`[elements].exists(name, body)`."""

    elements: tuple[Tokens, ...]
    name: str
    body: Tokens

    @property
    def size(self) -> int:
        """How many tokens the expansions have at most."""
        uses = self.body.count(self.name)
        return sum(len(self.body) + uses * (len(element) + 2) for element in self.elements)

    def expansions(self) -> Iterator[Tokens]:
        """The body for each element."""
        for element in self.elements:
            yield [token for part in self._replaced(element) for token in part]

    def _replaced(self, element: Tokens) -> Iterator[Tokens]:
        value = element if _binds_tightly(element) else ["(", *element, ")"]
        for position, token in enumerate(self.body):
            yield value if token == self.name and not _is_field(self.body, position) else [token]


def _exists_in_list(tokens: Tokens) -> _Exists | None:
    """The macro that all the tokens form, unless the expansion would change the meaning of a name."""
    closing = _closing_brackets(tokens)
    end = closing.get(0)
    if not tokens or tokens[0] != "[" or end is None or tokens[end + 1 : end + 4] != [".", "exists", "("]:
        return None
    if closing.get(end + 3) != len(tokens) - 1:
        return None
    elements = _split(tokens[1:end], ",")
    name, *bodies = _split(tokens[end + 4 : -1], ",")
    if len(bodies) != 1 or len(name) != 1 or not _NAME.fullmatch(name[0]):
        return None
    if not all(element and element[0] != "?" for element in elements):
        return None
    (body,) = bodies
    called = any(pair == (name[0], "(") for pair in pairwise(body))
    if called or _bound(body) & {name[0], *(token for element in elements for token in element)}:
        return None
    return _Exists(tuple(elements), name[0], body)


def _bound(tokens: Tokens) -> set[str]:
    """The names that macros inside the tokens bind."""
    return {tokens[at + 2] for at in range(len(tokens) - 2) if tokens[at] in _BINDERS and tokens[at + 1] == "("}


def _is_field(tokens: Tokens, position: int) -> bool:
    before = tokens[max(0, position - 2) : position]
    return before[-1:] == ["."] or before == [".", "?"]


def _binds_tightly(tokens: Tokens) -> bool:
    """Whether the tokens are a value with fields, indexes and calls, without an operator outside brackets."""
    depth = 0
    for token in tokens:
        depth -= token in _CLOSE
        if depth == 0 and token not in _OPEN | _CLOSE and (token == "in" or not _VALUE.fullmatch(token)):  # noqa: S105 - a keyword of CEL
            return False
        depth += token in _OPEN
    return not _has_ternary(tokens)


def _tokens(expression: str) -> Iterator[str]:
    for match in _TOKEN.finditer(expression):
        if match["string"] is not None:
            inside = match["string"][1:-1]
            yield f'"{inside}"' if '"' not in inside else match["string"]
        elif match["other"] is not None:
            yield match["other"]


def _normal(tokens: Tokens) -> str:
    """`&&` in any order, `==` and `!=` either way round, `>` as `<`."""
    tokens = _with_dots(tokens)
    if _has_ternary(tokens):
        return " ".join(tokens)
    return " && ".join(sorted(_comparison(_without_outer_brackets(part)) for part in _split(tokens, "&&")))


def _with_dots(tokens: Tokens) -> Tokens:
    """`a[?"b"]` is `a.?b`."""
    found: list[str] = []
    position = 0
    while position < len(tokens):
        here = tokens[position : position + 4]
        quoted = len(here) == 4 and here[0] == "[" and here[1] == "?" and here[3] == "]"
        name = _QUOTED_NAME.fullmatch(here[2]) if quoted and found and _ENDS_VALUE.fullmatch(found[-1]) else None
        found += [".", "?", name[1]] if name else here[:1]
        position += 4 if name else 1
    return found


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
    """The parts between separators outside of all brackets."""
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
    """The position of the closing bracket of each opening one."""
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
