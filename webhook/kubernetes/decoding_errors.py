"""Three questions about what the decoder refuses: where it is, what is required instead, and where a JSON value ends.

msgspec answers them only in the texts of its errors, which this module alone reads. A release with other texts costs
words, not answers: a problem of unknown wording is shown as it is, and the end of a value is then asked of `json`.
"""

import json
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
_LIMITS: Final = {">=": "at least", "<=": "at most"}
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


def split_path(error: msgspec.ValidationError) -> tuple[str, str]:
    """Return (problem, path) of an error, the problem in msgspec's words; the path is "" for the whole document."""
    # The last mark counts: a wrong value, quoted before it, may contain the same characters.
    problem, mark, path = str(error).rpartition(_AT)
    return (problem, path.removesuffix("`").removeprefix(".")) if mark else (path, "")


def explain_problem(problem: str) -> str:
    """Return what is required instead: `must be an integer, not a string`; "" for a problem of another form."""
    if wrong_type := WRONG_TYPE.fullmatch(problem):
        return f"must be {describe_type(wrong_type[1])}, not {NAMES.get(wrong_type[2], wrong_type[2])}"
    if bound := _BOUND.fullmatch(problem):
        return f"must be {_LIMITS[bound[1]]} {bound[2]}"
    if length := _LENGTH.fullmatch(problem):
        return f"must have {_LIMITS[length[1]]} {length[2]} {'entry' if length[2] == '1' else 'entries'}"
    return f"must be {NAMES['date']}" if problem == _BAD_DATE else ""


def describe_type(types: str) -> str:
    """Return a type in words; `int | null` is "an integer": null means the same as absent."""
    names = [name for name in types.split(" | ") if name != "null"] or ["null"]
    return " or ".join(NAMES.get(name, name) for name in names)


_raw: Final = msgspec.json.Decoder(msgspec.Raw)
_scanner: Final = json.JSONDecoder()
NESTED: Final = "nested too deeply"


def find_error(text: memoryview) -> str:
    """Return the error about a text, "" if it is one JSON value: NESTED, TRUNCATED, or with TRAILING or PLACE."""
    try:
        _raw.decode(text)
    except RecursionError:
        return NESTED
    except msgspec.DecodeError as error:
        problem = str(error)
        is_known = problem == TRUNCATED or PLACE.search(problem)
        return problem if is_known else _rephrase_error(text, problem)
    return ""


def _rephrase_error(text: memoryview, problem: str) -> str:
    """Return an error of unknown wording in the form of known ones."""
    # In latin-1 a character is a byte. What is not UTF-8 can be inside of strings only, which `json` accepts then.
    characters = bytes(text).decode("latin-1")
    start = len(characters) - len(characters.lstrip(" \t\r\n"))
    try:
        _, end = _scanner.raw_decode(characters, start)
    except json.JSONDecodeError as error:
        is_cut = error.pos >= len(characters) or error.msg.startswith("Unterminated string")
        return TRUNCATED if is_cut else f"JSON is malformed: {error.msg} (byte {error.pos})"
    except (RecursionError, ValueError):
        return problem
    rest = characters[end:].lstrip(" \t\r\n")
    return f"JSON is malformed: trailing characters (byte {len(characters) - len(rest) + 1})" if rest else problem
