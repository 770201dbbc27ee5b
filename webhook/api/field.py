"""Field errors as Kubernetes prints them: a type, a path, the bad value and a detail; and msgspec's errors as such.

The words and the printed form follow kubernetes/apimachinery `pkg/util/validation/field/errors.go`. msgspec reports the
first problem of a document as a text and offers nothing more structured. All code that depends on its wording is here,
tests pin each form, and pyproject.toml allows only releases that were tested.
"""

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import partial
from typing import Final

import msgspec
from msgspec import Struct

from webhook.api.text import Text, escape, made, quote, truncate


class ErrorType(StrEnum):
    """Why a value is wrong; the values are the reasons in `status.details.causes`."""

    REQUIRED = "FieldValueRequired"
    INVALID = "FieldValueInvalid"
    NOT_SUPPORTED = "FieldValueNotSupported"
    FORBIDDEN = "FieldValueForbidden"
    TOO_LONG = "FieldValueTooLong"
    TYPE_INVALID = "FieldValueTypeInvalid"


_PRINTED: Final = {
    ErrorType.REQUIRED: "Required value",
    ErrorType.INVALID: "Invalid value",
    ErrorType.NOT_SUPPORTED: "Unsupported value",
    ErrorType.FORBIDDEN: "Forbidden",
    ErrorType.TOO_LONG: "Too long",
    ErrorType.TYPE_INVALID: "Invalid type",
}
_WITH_VALUE: Final = frozenset({ErrorType.INVALID, ErrorType.NOT_SUPPORTED})

MAX_DETAIL: Final = 2000
"""Characters of a detail that are shown; the API server's own details repeat names, which may have megabytes."""


class FieldError(Struct, frozen=True, gc=False):
    """One wrong field. `field` is a path in JSON names; `value` is the wrong value; `text` says what is allowed."""

    type: ErrorType
    field: str
    text: Text = ""
    value: object = None

    @property
    def detail(self) -> str:
        """What is allowed."""
        return made(self.text)

    @property
    def body(self) -> str:
        """The error without its path: `Invalid value: 0: must be greater than 0`."""
        text = _PRINTED[self.type]
        if self.type in _WITH_VALUE:
            text = f"{text}: {quote(self.value)}"
        detail = self._shown
        return f"{text}: {detail}" if detail else text

    @property
    def in_warning(self) -> str:
        """The error in the words of a warning, which forbids nothing, so that word is left out."""
        return f"{self.field}: {self._shown}" if self.type is ErrorType.FORBIDDEN else str(self)

    @property
    def _shown(self) -> str:
        return escape(truncate(self.detail, MAX_DETAIL))

    def __str__(self) -> str:
        return f"{self.field}: {self.body}"


required: Final = partial(FieldError, ErrorType.REQUIRED)
forbidden: Final = partial(FieldError, ErrorType.FORBIDDEN)
"""The value is well-formed but not permitted now, or not by this writer."""
too_long: Final = partial(FieldError, ErrorType.TOO_LONG)
"""The value has more bytes than the API server keeps."""
type_invalid: Final = partial(FieldError, ErrorType.TYPE_INVALID)
"""The value has another JSON type than in the API."""


def invalid(field: str, value: object, detail: str) -> FieldError:
    """Return the error that a value is malformed or out of bounds."""
    return FieldError(ErrorType.INVALID, field, detail, value)


def each_invalid(field: str, value: object, details: Iterable[str]) -> Iterator[FieldError]:
    """Return one error for each thing that is wrong with a value."""
    return (invalid(field, value, detail) for detail in details)


def immutable(field: str, value: object) -> FieldError:
    """Return the error that a value may not change after creation."""
    return invalid(field, value, "field is immutable")


def not_supported(field: str, value: str, supported: tuple[str, ...]) -> FieldError:
    """Return the error that a value is none of the known ones."""
    known = ", ".join(quote(name) for name in supported)
    return FieldError(ErrorType.NOT_SUPPORTED, field, f"supported values: {known}", value)


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


def located(error: msgspec.ValidationError) -> tuple[str, str]:
    """Return (problem, path) of an error, the problem in msgspec's words; the path is "" for the whole document."""
    # The last mark counts: a wrong value, quoted before it, may contain the same characters.
    problem, mark, path = str(error).rpartition(_AT)
    return (problem, path.removesuffix("`").removeprefix(".")) if mark else (path, "")


def reworded(problem: str) -> str:
    """Return what is required instead: `must be an integer, not a string`; "" for a problem of another form."""
    if wrong_type := WRONG_TYPE.fullmatch(problem):
        return f"must be {expected(wrong_type[1])}, not {NAMES[wrong_type[2]]}"
    if bound := _BOUND.fullmatch(problem):
        return f"must be {_LIMITS[bound[1]]} {bound[2]}"
    if length := _LENGTH.fullmatch(problem):
        return f"must have {_LIMITS[length[1]]} {length[2]} {'entry' if length[2] == '1' else 'entries'}"
    return f"must be {NAMES['date']}" if problem == _BAD_DATE else ""


def expected(types: str) -> str:
    """Return a type in words; `int | null` is "an integer": null means the same as absent."""
    names = [name for name in types.split(" | ") if name != "null"] or ["null"]
    return " or ".join(NAMES[name] for name in names)
