"""The numbers that a policy may change: each rule that has some declares them beside its check.

The numbers of a rule are a type of their own, whose defaults are those of the rule. A name that begins with `deny_`
belongs to the rule's mode, one that begins with `warn_` only ever warns. A policy that puts `warn_X` above `deny_X` is
refused; no other two numbers are compared, so a check must accept any combination of those.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar

from msgspec import Struct

Limits = Mapping[type[Struct], Any]
"""The numbers of all rules, by their type."""
_AnyCheck = TypeVar("_AnyCheck", bound=Callable[..., Any])

_DEFAULTS: Final[dict[type[Struct], Struct]] = {}
DEFAULT_LIMITS: Final[Limits] = MappingProxyType(_DEFAULTS)
_TYPES: Final[dict[str, type[Struct]]] = {}
FindLimits = Callable[[str, str], Limits]
"""Returns the numbers for a lease or a candidate, by its namespace and name."""


def find_default_limits(_: str, __: str) -> Limits:
    """Return the defaults, which apply to every lease without a policy file."""
    return DEFAULT_LIMITS


def has_limits(numbers: type[Struct]) -> Callable[[_AnyCheck], _AnyCheck]:
    """Return a decorator of a check whose rule has numbers of this type, all of which have a default.

    Raises ValueError if another rule has the same type.
    """

    def decorate(check: _AnyCheck) -> _AnyCheck:
        if numbers in _DEFAULTS:
            raise ValueError(f"two rules have the numbers {numbers.__name__}")
        _DEFAULTS[numbers] = numbers()
        _TYPES[check.__name__] = numbers
        return check

    return decorate


def find_type(check: Callable[..., Any]) -> type[Struct] | None:
    """Return the type of the numbers of a check's rule; None if it has none."""
    return _TYPES.get(check.__name__)


class FutureLimits(Struct, frozen=True):
    """How far a time may lie ahead of the API server's clock, in seconds."""

    warn_above_seconds: int = 60
    deny_above_seconds: int = 86_400


class ShiftLimits(Struct, frozen=True):
    """How far a time may move, in seconds: some clients keep milliseconds only."""

    above_seconds: int = 3600
