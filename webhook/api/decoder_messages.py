"""The messages of msgspec, parsed and reworded for people: values of a wrong type, and where JSON ends.

msgspec reports the first problem of a document as a text and offers nothing more structured. All code that
depends on its wording is here, tests pin each form, and pyproject.toml allows only releases that were tested.
"""

import re
from typing import Final

import msgspec

_AT: Final = " - at `$"
WRONG_TYPE: Final = re.compile(r"Expected `([^`]+)`, got `(\w+)`")
UNKNOWN_FIELD: Final = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
MISSING_FIELD: Final = re.compile(r"Object missing required field `(.*)`")
UNKNOWN_VALUE: Final = re.compile(r"Invalid enum value (.*)")
_BOUND: Final = re.compile(r"Expected `int` (>=|<=) (-?\d+)")
_LENGTH: Final = re.compile(r"Expected `array` of length (>=|<=) (\d+)")
TRUNCATED: Final = "Input data was truncated"
TRAILING: Final = re.compile(r"trailing characters \(byte (\d+)\)")
"""Something follows the value; the number is that of its first byte, from 1."""
PLACE: Final = re.compile(r"\(byte (\d+)\)")
"""Where malformed JSON stops being JSON."""
_BAD_DATE: Final = "Invalid RFC3339 encoded date"
OVERSIZED_NUMBERS: Final = frozenset({"Number out of range", "Integer value out of range"})
"""A number that does not fit into a float, and an integer of more than 4300 digits."""

NAMES: Final = {
    "str": "a string",
    "int": "an integer",
    "float": "a floating-point number",
    "bool": "a boolean",
    "array": "a list",
    "object": "an object",
    "null": "null",
    "date": "a date such as 2027-01-31",
}
"""Types as msgspec names them, in the words of the Kubernetes API."""


def located(error: msgspec.ValidationError) -> tuple[str, str]:
    """(problem, path) of an error, the problem in msgspec's words; the path is "" for the whole document."""
    # The last mark counts: a wrong value, quoted before it, may contain the same characters.
    problem, mark, path = str(error).rpartition(_AT)
    return (problem, path.removesuffix("`").removeprefix(".")) if mark else (path, "")


def reworded(problem: str) -> str:
    """What is required instead: `must be an integer, not a string`; "" for a problem of another form."""
    if wrong_type := WRONG_TYPE.fullmatch(problem):
        return f"must be {expected(wrong_type[1])}, not {NAMES[wrong_type[2]]}"
    if bound := _BOUND.fullmatch(problem):
        return f"must be {_limit(bound[1])} {bound[2]}"
    if length := _LENGTH.fullmatch(problem):
        return f"must have {_limit(length[1])} {length[2]} {'entry' if length[2] == '1' else 'entries'}"
    return f"must be {NAMES['date']}" if problem == _BAD_DATE else ""


def expected(types: str) -> str:
    """`int | null` is "an integer": null means the same as absent."""
    names = [name for name in types.split(" | ") if name != "null"] or ["null"]
    return " or ".join(NAMES[name] for name in names)


def _limit(operator: str) -> str:
    return "at least" if operator == ">=" else "at most"
