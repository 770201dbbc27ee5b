"""The clauses of an expression in CEL, the alternatives of its regular expressions, and it without each of them."""

import re
from collections.abc import Iterator, Sequence
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


_MATCHES: Final = re.compile(r"""\.matches\((['"])(?P<regex>(?:\\.|(?!\1).)*)\1""")
_IN_REGEX: Final = re.compile(r"\[(?:\\+.|[^\]\\])*\]|\\+.|[()|]")
_IN_CLASS: Final = re.compile(r"\\+[pPx]\{[^}]*\}|\\+[dDsSwW]")


def drop_each_alternative(expression: str) -> Iterator[tuple[str, str]]:
    """Yield each alternative, and each class in brackets, of the regular expressions, and the whole without it."""
    for found in _MATCHES.finditer(expression):
        regex, begin = found["regex"], found.start("regex")
        for start, end in _find_alternatives(regex):
            yield regex[start:end].strip("|"), f"{expression[: begin + start]}{expression[begin + end :]}"


def _find_alternatives(regex: str) -> Iterator[tuple[int, int]]:
    """Yield where each alternative stands, with a bar beside it, and each class that is one of several in brackets."""
    open_ones: list[list[int]] = [[0]]
    for token in _IN_REGEX.finditer(regex):
        text = token[0]
        if text.startswith("["):
            classes = [*_IN_CLASS.finditer(text)]
            for one in classes if len(classes) > 1 else ():
                yield token.start() + one.start(), token.start() + one.end()
        elif text == "(":
            open_ones.append([token.end()])
        elif text == "|":
            open_ones[-1].append(token.end())
        elif text == ")":
            yield from _pair_alternatives(open_ones.pop(), token.start())
    yield from _pair_alternatives(open_ones.pop(), len(regex))


def _pair_alternatives(starts: Sequence[int], end: int) -> Iterator[tuple[int, int]]:
    for number, start in enumerate(starts if len(starts) > 1 else ()):
        is_last = number == len(starts) - 1
        yield (start - 1, end) if is_last else (start, starts[number + 1])
