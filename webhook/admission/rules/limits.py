"""The numbers that a policy may change: each rule that has some has a type of them beside its check.

Its defaults are those of the rule, and the page of the rule has its descriptions. A name that begins with `deny_`
belongs to the rule's mode, one that begins with `warn_` only ever warns; a ratio has neither name. A policy that puts
`warn_X` above `deny_X` is refused: both are upper bounds. A lower bound is one number, without such a pair. No other
two numbers are compared, so a check must accept any combination of those. Each may be anything from 0 to 2^63-1: a
check says what 0 means, and CEL subtracts rather than adds, and multiplies in `double`, as it errs on overflow.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, TypeVar

from msgspec import Meta, Struct, inspect

Limits = Mapping[type[Struct], Any]
"""The numbers of rules by their type, for those rules of which a policy sets one; the others have their defaults."""
DEFAULT_LIMITS: Final[Limits] = MappingProxyType({})
FindLimits = Callable[[str, str], Limits]
"""Returns the numbers for a lease and its candidates, by the namespace and the name of the lease."""
_Numbers = TypeVar("_Numbers", bound=Struct)


def describe_numbers(numbers: type[Struct]) -> Mapping[str, str]:
    """Return each number with its default, `warn_jump_above: 1000`, and its meaning; ValueError if one has none."""
    found = {}
    info = inspect.type_info(numbers)
    assert isinstance(info, inspect.StructType)
    for field in info.fields:
        described = field.type.extra_json_schema if isinstance(field.type, inspect.Metadata) else None
        if not described or "description" not in described:
            name = f"{numbers.__name__}.{field.name}"
            raise ValueError(f"{name} has no meaning: declare it as Annotated[int, Meta(description=...)]")
        found[f"{field.name}: {field.default}"] = str(described["description"])
    return found


def find_default_limits(_: str, __: str) -> Limits:
    """Return the defaults, which apply to every lease without a policy file."""
    return DEFAULT_LIMITS


def find_numbers(limits: Limits, numbers: type[_Numbers]) -> _Numbers:
    """Return the numbers of one rule, by their type."""
    found: _Numbers | None = limits.get(numbers)
    return numbers() if found is None else found


SecondsAheadToWarn = Annotated[
    int,
    Meta(description="warns of a time more than so many seconds ahead of the API server's clock and of the old value"),
]
SecondsAheadToDeny = Annotated[int, Meta(description="the mode applies to a time more than so many seconds ahead")]
SecondsOfShift = Annotated[int, Meta(description="the mode applies to a move by more than so many seconds")]


class FutureLimits(Struct, frozen=True):
    """How far a time may lie ahead of the API server's clock."""

    warn_above_seconds: SecondsAheadToWarn = 60
    deny_above_seconds: SecondsAheadToDeny = 86_400


class ShiftLimits(Struct, frozen=True):
    """How far a time may move: some clients keep milliseconds only."""

    above_seconds: SecondsOfShift = 3600
