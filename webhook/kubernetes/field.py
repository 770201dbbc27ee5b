"""Field errors as Kubernetes prints them: a type, a path, the bad value and a detail.

The words and the printed form follow kubernetes/apimachinery `pkg/util/validation/field/errors.go`.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import partial
from typing import Final

from msgspec import Struct

from webhook.text.quoting import LazyText, escape, quote, render, truncate


class ErrorType(StrEnum):
    """Why a value is wrong; the values are the reasons in `status.details.causes`."""

    REQUIRED = "FieldValueRequired"
    INVALID = "FieldValueInvalid"
    NOT_SUPPORTED = "FieldValueNotSupported"
    FORBIDDEN = "FieldValueForbidden"
    TOO_LONG = "FieldValueTooLong"
    TYPE_INVALID = "FieldValueTypeInvalid"


_TEXTS: Final = {
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
    text: LazyText = ""
    value: object = None

    @property
    def detail(self) -> str:
        """The text that says what is allowed."""
        return render(self.text)

    @property
    def body(self) -> str:
        """The error without its path: `Invalid value: 0: must be greater than 0`."""
        text = _TEXTS[self.type]
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
