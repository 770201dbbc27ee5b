"""The clauses of an expression in CEL, and the expression without each of them."""

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

_TOKEN: Final = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|&&|\|\||\[\?|\.\?|[()\[\]{},?:]|[^'"&|()\[\]{},?:.]+|."""
)
_OPENING: Final = ("(", "[", "[?", "{")
_CLOSING: Final = (")", "]", "}")
_AND, _OR = "&&", "||"


class _Operand(Struct):
    """The span of an operand, and the operators on both sides; None at an end of its expression."""

    start: int
    end: int
    before: str | None
    after: str | None


def drop_each_clause(expression: str) -> Iterator[tuple[str, str]]:
    """Yield each operand of `&&` and `||`, at any depth, and the expression without it."""
    for operand in _find_operands(expression):
        start, end = operand.start, operand.end
        clause = expression[start:end].strip()
        # `a || b && c` without b is `a || c`: what binds closer goes with the operand.
        if operand.after and not (operand.after == _OR and operand.before == _AND):
            yield clause, f"{expression[:start]} {expression[end + 2 :]}"
        elif operand.before:
            yield clause, f"{expression[: start - 2]} {expression[end:]}"


def _find_operands(expression: str) -> list[_Operand]:
    found: list[_Operand] = []
    open_ones = [_Operand(0, 0, None, None)]
    for token in _TOKEN.finditer(expression):
        text = token[0]
        if text in _OPENING:
            open_ones.append(_Operand(token.end(), 0, None, None))
        elif text in _CLOSING:
            found.append(_close(open_ones.pop(), token.start(), None))
        elif text in (_AND, _OR):
            found.append(_close(open_ones.pop(), token.start(), text))
            open_ones.append(_Operand(token.end(), 0, text, None))
        elif text in (",", "?", ":"):
            found.append(_close(open_ones.pop(), token.start(), None))
            open_ones.append(_Operand(token.end(), 0, None, None))
    return [*found, _close(open_ones.pop(), len(expression), None)]


def _close(operand: _Operand, end: int, after: str | None) -> _Operand:
    operand.end, operand.after = end, after
    return operand
