"""A renewTime that lies ahead of the API server's clock."""

from collections.abc import Iterable
from typing import Final, TypeGuard

from webhook.api import times
from webhook.api.field import invalid
from webhook.api.times import HOUR, MINUTE, SECOND, readable, span
from webhook.rules.limits import SecondsAhead
from webhook.rules.rule import NO_FINDINGS, Finding, Mode, Statement

_FIELD: Final = "spec.renewTime"
MAX_HOURS_EAST: Final = 14
"""The zone that is furthest ahead of UTC is that of Kiritimati."""


def is_ahead(new: int | str | None, now: int, limits: SecondsAhead) -> TypeGuard[int]:
    """True if a renewTime is readable and so far ahead of our own clock that the stamps must be compared."""
    if not isinstance(new, int) or new - now <= min(limits.warn_above_seconds, limits.deny_above_seconds) * SECOND:
        return False
    return readable(new) is not None


def ahead(
    new: int,
    old: int | None,
    clock: int,
    limits: SecondsAhead,
    *,
    value: object,
    without_warnings: bool = False,
    strongest: Mode = Mode.DENY,
) -> Iterable[Finding]:
    """The finding about a renewTime that lies ahead of `clock` and of its old value, if there is one."""
    reference = clock if old is None else max(clock, old)
    step = new - reference
    if step > limits.deny_above_seconds * SECOND:
        return (_too_far(value, new, clock, limits.deny_above_seconds, strongest),)
    if step > limits.warn_above_seconds * SECOND and not without_warnings:
        return (_too_far(value, new, clock, limits.warn_above_seconds, Mode.WARN),)
    return NO_FINDINGS


def _too_far(value: object, new: int, clock: int, limit: int, tier: Mode) -> Finding:
    """The text says how far ahead it is, because a writer believes that it wrote the current time."""
    ahead_by = new - clock
    server = f"the API server ({times.canonical_seconds(clock)[11:]})"
    is_zone = is_time_zone(ahead_by)
    repair = "the client writes local time as UTC" if is_zone else "set the client's clock"
    detail = (
        f"must not be more than {limit} s ahead of {server}, is {span(ahead_by)} ahead; "
        f"{'whole hours: ' if is_zone else 'write the current time, or '}{repair}"
    )
    happened = Statement(f"renewTime is {span(ahead_by)} ahead of {server}: {repair}")
    return Finding(invalid(_FIELD, value, detail), tier=tier, happened=happened)


def is_time_zone(off: int) -> bool:
    """True if a clock is wrong by whole hours, as many as a time zone can have, to within a minute."""
    hours, beside = divmod(off + MINUTE, HOUR)
    return 1 <= hours <= MAX_HOURS_EAST and beside <= 2 * MINUTE
