"""Times of a spec as instants: microseconds since 1970, of any year the API server can store."""

from functools import lru_cache
from typing import Final

from webhook.api import micro_time

SECOND: Final = 1_000_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR


def normalized(time: str | None) -> int | str | None:
    """A time so that equal values are equal: an instant; None for absent, null and zero; other text unchanged.

    Years -0001 and 10000, which the API server stores and no client can read, are instants before and after all others.
    """
    if time is None:
        return None
    return _remembered(time) if len(time) <= _LONGEST_REMEMBERED else _normalized(time)


def _normalized(time: str) -> int | str | None:
    try:
        at = micro_time.parse(time)
    except ValueError:
        unreadable = micro_time.parse_unreadable(time)
        return time if unreadable is None else unreadable
    return None if at == micro_time.ZERO else at


_LONGEST_REMEMBERED: Final = 40
# An old time was the new time of the renewal before. A fraction may be as long as a request, and is not kept.
_remembered: Final = lru_cache(maxsize=4096)(_normalized)


def span(micros: int) -> str:
    """A length of time in its two largest units: `2 min 5 s`, `9 h 0 min`, `3650 d 0 h`."""
    seconds = micros // SECOND
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    minutes = (seconds + 30) // 60
    if minutes < 24 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    hours = (seconds + 1800) // 3600
    return f"{hours // 24} d {hours % 24} h"


def instant(folded: int | str | None) -> int | None:
    """The instant of a normalized time; None if there is none."""
    return folded if isinstance(folded, int) else None


def readable(folded: int | str | None) -> int | None:
    """The instant of a normalized time that every client can read, years 0000 to 9999; else None."""
    if not isinstance(folded, int):
        return None
    return folded if micro_time.FIRST_READABLE <= folded < micro_time.AFTER_LAST_READABLE else None
