"""metav1.MicroTime and metav1.Time as integers: microseconds since 1970-01-01T00:00:00Z, of any year.

`datetime` cannot hold what the API server stores: year 0000, the years 10000 and -0001 that an offset makes of 9999 and
0000, and by protobuf any year. The Gregorian calendar repeats itself every 400 years, so its dates serve after a shift.
Source: kubernetes/apimachinery `pkg/apis/meta/v1/micro_time.go` and `time.go`, and Go's `time.Parse`, which takes an
hour of one digit, a comma before the fraction, a sign in a fraction of fixed length, and offsets up to 24:60.
"""

import re
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Final

from webhook.text.quoting import cached_if_short

SECOND: Final = 1_000_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR

ZERO: Final = -62_135_596_800 * SECOND
"""0001-01-01T00:00:00Z, Go's zero time: it is written back as null, so it means absent."""

FIRST_READABLE: Final = -62_167_219_200 * SECOND
"""0000-01-01T00:00:00Z; an earlier time prints as year -0001, which no client can read."""

AFTER_LAST_READABLE: Final = 253_402_300_800 * SECOND
"""10000-01-01T00:00:00Z, the first instant that prints with five digits of year."""

_HOURS_OF_A_CENTURY: Final = 876_582
MAX_HOURS_EAST: Final = 14
"""The zone that is furthest ahead of UTC is that of Kiritimati."""

_EPOCH: Final = date(1970, 1, 1).toordinal()
_EPOCH_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DIGITS_AS_ZEROS: Final = bytes.maketrans(b"123456789", b"000000000")
_CYCLE_YEARS: Final = 400
_CYCLE_DAYS: Final = 146_097

_REST: Final = r"-(\d\d)-(\d\d)T([01]\d|2[0-3]|\d):([0-5]\d):([0-5]\d)"
_ZONE: Final = r"(?:Z|([+-])([01]\d|2[0-4]):([0-5]\d|60))"
_MICRO_TIME: Final = re.compile(rf"(\d{{4}}){_REST}[.,](\d{{6}}|\+\d{{5}}|-0{{5}}){_ZONE}", re.ASCII)
_TIME: Final = re.compile(rf"(\d{{4}}){_REST}(?:[.,](\d+))?{_ZONE}", re.ASCII)


# One review repeats its times, an old time was the new time of the renewal before, and many leases share one second.
_cached: Final = cached_if_short(max_entries=4096, max_length=40)


def parse(text: str) -> int:
    """Return the instant of a metav1.MicroTime in microseconds since 1970 (zero time: ZERO), or raise ValueError."""
    return _parse_usual(text, b"0000-00-00T00:00:00.000000Z") or _parse_instant(_MICRO_TIME, text)


def parse_seconds(text: str) -> int:
    """Return the instant of a metav1.Time, as in managedFields, in microseconds since 1970, or raise ValueError."""
    return _parse_usual(text, b"0000-00-00T00:00:00Z") or _parse_instant(_TIME, text)


def _parse_usual(text: str, form: bytes) -> int:
    """Return the instant of a text in the form in which API servers write it, in a third of the time; 0 for others.

    `fromisoformat` takes more than Go does, some of it only in later versions, and no year 0000.
    """
    try:
        if text.encode().translate(_DIGITS_AS_ZEROS) != form or text[11:13] > "23":
            return 0
        since = datetime.fromisoformat(text) - _EPOCH_TIME
    except ValueError:
        return 0
    return (since.days * 86_400 + since.seconds) * SECOND + since.microseconds


def _parse_instant(form: re.Pattern[str], text: str) -> int:
    match = form.fullmatch(text)
    if match is None:
        raise ValueError("not a time")
    year, month, day, hour, minute, second, fraction, sign, east_hours, east_minutes = match.groups()
    cycles, shifted = divmod(int(year) - 1, _CYCLE_YEARS)
    days = date(shifted + 1, int(month), int(day)).toordinal() - _EPOCH + cycles * _CYCLE_DAYS
    seconds = ((days * 24 + int(hour)) * 60 + int(minute)) * 60 + int(second)
    if sign:
        offset = (int(east_hours) * 60 + int(east_minutes)) * 60
        seconds += offset if sign == "-" else -offset
    return seconds * SECOND + int(fraction[:6].ljust(6, "0") if fraction else 0)


def is_readable(text: str) -> bool:
    """Return True if clients can decode a metav1.Time: it is one of the years 0000 to 9999 in UTC."""
    try:
        return FIRST_READABLE <= parse_seconds(text) < AFTER_LAST_READABLE
    except ValueError:
        return False


def format_micro_time(microseconds: int) -> str:
    """Return the text that the API server prints for a MicroTime: UTC, six digits, `Z`; for ZERO it prints null."""
    seconds, fraction = divmod(microseconds, SECOND)
    return f"{_format(seconds)}.{fraction:06d}Z"


def format_time(microseconds: int) -> str:
    """Return the text that the API server prints for a metav1.Time: UTC, whole seconds, `Z`."""
    return f"{_format(microseconds // SECOND)}Z"


# A list shows thousands of leases that were renewed in the same few seconds.
@lru_cache(256)
def _format(seconds: int) -> str:
    days, second_of_day = divmod(seconds, 86_400)
    cycles, day_of_cycle = divmod(days + _EPOCH - 1, _CYCLE_DAYS)
    on = date.fromordinal(day_of_cycle + 1)
    year = on.year + cycles * _CYCLE_YEARS
    minutes, second = divmod(second_of_day, 60)
    # The sign of year -0001 takes a place of its own.
    shown = f"{year:04d}" if year >= 0 else f"{year:05d}"
    return f"{shown}-{on.month:02d}-{on.day:02d}T{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}"


@_cached
def normalize(time: str | None) -> int | str | None:
    """Return a time so that equal values are equal: an instant; None for absent, null and zero; other text unchanged.

    Text that does not parse is what the API server prints for years that no client can read.
    """
    if time is None:
        return None
    try:
        at = parse(time)
    except ValueError:
        return time
    return None if at == ZERO else at


@_cached
def parse_stamp(time: str | None) -> int | None:
    """Return a time of whole seconds in microseconds since 1970; None if it is absent, zero or unreadable."""
    if time is None:
        return None
    try:
        stamp = parse_seconds(time)
    except ValueError:
        return None
    return None if stamp == ZERO else stamp


def get_instant(time: int | str | None) -> int | None:
    """Return the instant of a normalized time; None if there is none."""
    return time if isinstance(time, int) else None


def get_readable_instant(time: int | str | None) -> int | None:
    """Return the instant of a normalized time that every client can read, years 0000 to 9999; else None."""
    return time if isinstance(time, int) and FIRST_READABLE <= time < AFTER_LAST_READABLE else None


def get_instant_or_latest(time: int | str | None) -> int | None:
    """Return the instant of a normalized time; one that no client can read is unknown, so it is after all others."""
    at = get_readable_instant(time)
    return AFTER_LAST_READABLE if at is None and time is not None else at


def format_length(microseconds: int) -> str:
    """Return a length of time as `format_span` does, a short one to a tenth of a second."""
    if microseconds < 0:
        return f"-{format_length(-microseconds)}"
    tenths = (microseconds + SECOND // 20) // (SECOND // 10)
    if tenths >= 600:
        return format_span(max(microseconds, 60 * SECOND))
    return f"{tenths / 10:.1f} s" if tenths % 10 else f"{tenths // 10} s"


def format_span(microseconds: int) -> str:
    """Return a length in its two largest units, `2 min 5 s`, `9 h 0 min`, `3650 d 0 h`; from 20 years on in years."""
    seconds = microseconds // SECOND
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    minutes = (seconds + 30) // 60
    if minutes < 24 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    hours = (seconds + 1800) // 3600
    if (years := hours * 100 // _HOURS_OF_A_CENTURY) >= 20:
        return f"{years:,} years"
    return f"{hours // 24} d {hours % 24} h"


def is_time_zone(off: int) -> bool:
    """True if a clock is wrong by whole hours, as many as a time zone can have, to within a minute."""
    hours, beside = divmod(off + MINUTE, HOUR)
    return 1 <= hours <= MAX_HOURS_EAST and beside <= 2 * MINUTE
