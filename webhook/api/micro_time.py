"""metav1.MicroTime and metav1.Time as integers: microseconds since 1970-01-01T00:00:00Z, of any year.

`datetime` cannot hold what the API server stores: year 0000, and the years 10000 and -0001 that an offset makes of
9999 and 0000. Every renewal has two times, nearly always canonical: one pattern reads these, and they are remembered.
Source: kubernetes/apimachinery `pkg/apis/meta/v1/micro_time.go` and `time.go`.
"""

import re
from functools import lru_cache
from typing import Final

from webhook.api import go_time
from webhook.api.go_time import MICROS_PER_DAY, MICROS_PER_SECOND

ZERO: Final = -62_135_596_800 * MICROS_PER_SECOND
"""0001-01-01T00:00:00Z, Go's zero time: it is written back as null, so it means absent."""

FIRST_READABLE: Final = -62_167_219_200 * MICROS_PER_SECOND
"""0000-01-01T00:00:00Z; an earlier time prints as year -0001, which no client can read."""

AFTER_LAST_READABLE: Final = 253_402_300_800 * MICROS_PER_SECOND
"""10000-01-01T00:00:00Z, the first instant that prints with five digits of year."""

_LONGEST_KEPT: Final = 40
_REST: Final = r"-(\d\d)-(\d\d)T([01]\d|2[0-3]):([0-5]\d):([0-5]\d)"
_SECOND_FORM: Final = re.compile(rf"(\d{{4}}){_REST}", re.ASCII)
_PRINTED_OUTSIDE: Final = re.compile(rf"(-0001|10000){_REST}(?:\.(\d{{6}}))?Z", re.ASCII)


def parse(text: str) -> int:
    """The instant of a metav1.MicroTime in microseconds since 1970; the zero time gives ZERO.

    Raises:
        go_time.TimeError: a ValueError with Go's own words; years 10000 and -0001 are refused as well.

    """
    # Only a text of about the canonical length is remembered: a fraction may be as long as a request.
    return _micro_time(text) if len(text) <= _LONGEST_KEPT else go_time.parse(go_time.MICROSECONDS, text)


def parse_seconds(text: str) -> int:
    """The instant of a metav1.Time (creationTimestamp, managedFields) in microseconds since 1970, fractions cut.

    Raises:
        go_time.TimeError: a ValueError with Go's own words; years 10000 and -0001 are refused as well.

    """
    # Only a text of canonical length is remembered: a fraction here may be as long as a request.
    return _time(text) if len(text) == 20 else go_time.parse(go_time.SECONDS, text)


def parse_unreadable(text: str) -> int | None:
    """The instant of a text that the API server prints for years -0001 and 10000, else None.

    Go itself cannot parse such a text, so `parse` refuses it; here it is distinguished from invalid text.
    """
    match = _PRINTED_OUTSIDE.fullmatch(text)
    second = _instant(match) if match else None
    return second + int(match[7] or 0) if match and second is not None else None


def canonical(micros: int) -> str:
    """The text that the API server prints for a MicroTime: UTC, six digits, `Z`; for ZERO it would print null."""
    seconds, fraction = divmod(micros, MICROS_PER_SECOND)
    return f"{_printed(seconds)}.{fraction:06d}Z"


def canonical_seconds(micros: int) -> str:
    """The text that the API server prints for a metav1.Time: UTC, whole seconds, `Z`."""
    return f"{_printed(micros // MICROS_PER_SECOND)}Z"


def _printed(seconds: int) -> str:
    days, second_of_day = divmod(seconds, 86_400)
    year, month, day = go_time.date_from_days(days)
    minutes, second = divmod(second_of_day, 60)
    hour, minute = divmod(minutes, 60)
    shown_year = f"{year:04d}" if year >= 0 else f"-{-year:04d}"
    return f"{shown_year}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}"


# An old time was the new time of the previous renewal, and many leases share one second, so both are found again.
@lru_cache(maxsize=4096)
def _micro_time(text: str) -> int:
    if len(text) == 27 and text[19] == "." and text[26] == "Z":
        second, fraction = _second(text[:19]), text[20:26]
        if second is not None and fraction.isdecimal() and fraction.isascii():
            return second + int(fraction)
    return go_time.parse(go_time.MICROSECONDS, text)


@lru_cache(maxsize=4096)
def _time(text: str) -> int:
    second = _second(text[:19])
    return second if second is not None and text[19] == "Z" else go_time.parse(go_time.SECONDS, text)


@lru_cache(maxsize=4096)
def _second(text: str) -> int | None:
    """The instant of `2026-11-20T23:13:17`, or None if the text is not of that form."""
    match = _SECOND_FORM.fullmatch(text)
    return _instant(match) if match else None


def _instant(match: re.Match[str]) -> int | None:
    """The instant of six matched numbers, or None if the month has no such day."""
    year, month, day, hour, minute, second = (int(group) for group in match.groups()[:6])
    if not 1 <= month <= 12 or not 1 <= day <= go_time.days_in(month, year):
        return None
    seconds = (hour * 60 + minute) * 60 + second
    return go_time.days_from_date(year, month, day) * MICROS_PER_DAY + seconds * MICROS_PER_SECOND
