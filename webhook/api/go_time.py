"""Go's `time.Parse` for the two layouts of the API server, leniencies and error texts included.

Source: Go 1.26 `src/time/format.go` (`parse`, `getnum`, `parseNanoseconds`, `ParseError.Error`). This is the slow and
complete way; `webhook.api.micro_time` takes the canonical forms without it.
"""

from typing import Final, NoReturn

MICROSECONDS: Final = "2006-01-02T15:04:05.000000Z07:00"
"""The layout of metav1.MicroTime: exactly six characters of fraction."""

SECONDS: Final = "2006-01-02T15:04:05Z07:00"
"""The layout of metav1.Time: a fraction may follow the seconds."""

LONGEST_SHOWN: Final = 128
"""Bytes of a text that an error message repeats."""

MICROS_PER_SECOND: Final = 1_000_000
MICROS_PER_DAY: Final = 86_400 * MICROS_PER_SECOND

_DIGITS: Final = frozenset(b"0123456789")
_FRACTION: Final = ".000000"
_ZONE: Final = "Z07:00"


class TimeError(ValueError):
    """A text is not a time; the message is that of Go."""


def parse(layout: str, text: str) -> int:
    """Microseconds since 1970 of a text in one of the two layouts, fractions cut.

    Raises:
        TimeError: Go refuses the text.

    """
    scanner = _Scanner(layout, text)
    year = scanner.year()
    scanner.skip("-")
    month = scanner.number("01", "month", 1, 12)
    scanner.skip("-")
    day = scanner.number("02", "day", 0, 99)
    scanner.skip("T")
    hour = scanner.number("15", "hour", 0, 23, fixed=False)
    scanner.skip(":")
    minute = scanner.number("04", "minute", 0, 59)
    scanner.skip(":")
    second = scanner.number("05", "second", 0, 59)
    micros = scanner.fraction() if layout == MICROSECONDS else scanner.optional_fraction()
    offset = scanner.zone()
    scanner.end()
    if not 1 <= day <= days_in(month, year):
        scanner.out_of_range("day")
    seconds = (hour * 60 + minute) * 60 + second - offset
    return days_from_date(year, month, day) * MICROS_PER_DAY + seconds * MICROS_PER_SECOND + micros


def days_in(month: int, year: int) -> int:
    """The number of days of a month, in the Gregorian calendar of any year."""
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in {4, 6, 9, 11} else 31


def days_from_date(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the proleptic Gregorian calendar; the year may be 0, negative or beyond 9999."""
    # Years begin in March here, so that the leap day is the last one; 146 097 days are 400 years.
    shifted = year - (month <= 2)
    era, year_of_era = divmod(shifted, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


def date_from_days(days: int) -> tuple[int, int, int]:
    """(year, month, day) of a number of days since 1970-01-01; the inverse of `days_from_date`."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    month = (shifted_month + 2) % 12 + 1
    return era * 400 + year_of_era + (month <= 2), month, day_of_year - (153 * shifted_month + 2) // 5 + 1


class _Scanner:
    """Reads one text from left to right, in bytes as Go does."""

    def __init__(self, layout: str, text: str) -> None:
        self._layout = layout
        self._whole = text.encode(errors="replace")
        self._rest = self._whole

    def year(self) -> int:
        """Four characters, the first of them a digit; Go's atoi refuses the rest unless all are."""
        taken = self._rest[:4]
        if len(taken) < 4 or not _DIGITS.issuperset(taken):
            self._refuse("2006")
        self._rest = self._rest[4:]
        return int(taken)

    def skip(self, separator: str) -> None:
        """One literal character."""
        if self._rest[:1] != separator.encode():
            self._refuse(separator)
        self._rest = self._rest[1:]

    def number(self, element: str, name: str, lowest: int, highest: int, *, fixed: bool = True) -> int:
        """Two digits, or one if the layout does not fix the width."""
        width = 2 if fixed or _DIGITS.issuperset(self._rest[1:2] or b"-") else 1
        value = _digits(self._rest[:width], width)
        if value is None:
            self._refuse(element)
        if not lowest <= value <= highest:
            self.out_of_range(name)
        self._rest = self._rest[width:]
        return value

    def fraction(self) -> int:
        """A mark and six characters, of which the first may be a sign: `parseNanoseconds` calls atoi."""
        mark, sign, digits = self._rest[:1], self._rest[1:2], self._rest[1:7]
        if sign in {b"+", b"-"}:
            digits = digits[1:]
        if len(self._rest) < 7 or mark not in {b".", b","} or not _DIGITS.issuperset(digits):
            self._refuse(_FRACTION)
        if sign == b"-" and int(digits) > 0:
            self.out_of_range("fractional second")
        self._rest = self._rest[7:]
        return int(digits)

    def optional_fraction(self) -> int:
        """Any number of digits after a mark, if the layout has no fraction."""
        if self._rest[:1] not in {b".", b","}:
            return 0
        after = self._rest[1:]
        rest = after.lstrip(bytes(_DIGITS))
        digits = after[: len(after) - len(rest)]
        if not digits:
            return 0
        self._rest = rest
        return int(digits[:6].ljust(6, b"0"))

    def zone(self) -> int:
        """`Z` or an offset up to +-24:60, in seconds east of Greenwich."""
        if self._rest[:1] == b"Z":
            self._rest = self._rest[1:]
            return 0
        taken = self._rest[:6]
        if len(taken) < 6 or taken[3:4] != b":":
            self._refuse(_ZONE)
        hours, minutes = _digits(taken[1:3], 2), _digits(taken[4:6], 2)
        # Go reports ranges before what it could not parse, and only the minute if both are wrong.
        if hours is not None and (minutes or 0) > 60:
            self.out_of_range("time zone offset minute")
        if (hours or 0) > 24:
            self.out_of_range("time zone offset hour")
        if hours is None or minutes is None or taken[:1] not in {b"+", b"-"}:
            self._refuse(_ZONE)
        self._rest = self._rest[6:]
        seconds = (hours * 60 + minutes) * 60
        return -seconds if taken[:1] == b"-" else seconds

    def end(self) -> None:
        """Nothing may follow."""
        if self._rest:
            raise TimeError(f"parsing time {_quote(self._whole)}: extra text: {_quote(self._rest)}")

    def out_of_range(self, name: str) -> NoReturn:
        """A number was read that is none of a date."""
        raise TimeError(f"parsing time {_quote(self._whole)}: {name} out of range")

    def _refuse(self, element: str) -> NoReturn:
        raise TimeError(
            f'parsing time {_quote(self._whole)} as "{self._layout}": cannot parse {_quote(self._rest)} as "{element}"'
        )


def _digits(taken: bytes, width: int) -> int | None:
    return int(taken) if len(taken) == width and _DIGITS.issuperset(taken) else None


def _quote(text: bytes) -> str:
    # Go shows the whole text; a megabyte is of no use, and several rules parse the same time.
    shown = "".join(_quoted_byte(byte) for byte in text[:LONGEST_SHOWN])
    return f'"{shown}"' if len(text) <= LONGEST_SHOWN else f'"{shown}..."'


def _quoted_byte(byte: int) -> str:
    if byte < 0x20 or byte >= 0x80:
        return f"\\x{byte:02x}"
    return f"\\{chr(byte)}" if byte in b'"\\' else chr(byte)
