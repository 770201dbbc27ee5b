"""Times: the canonical forms, Go's leniencies and refusals, and years that clients cannot read."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from webhook.api import micro_time
from webhook.api.go_time import TimeError, date_from_days, days_from_date

MIDNIGHT = 1_795_219_200_000_000
DAY = 86_400_000_000

any_instant = st.integers(micro_time.FIRST_READABLE, micro_time.AFTER_LAST_READABLE - 1)


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        pytest.param("2026-11-21T00:00:00.000000Z", MIDNIGHT, id="canonical"),
        pytest.param("2026-11-20T23:13:17.737576Z", MIDNIGHT - 2_802_262_424, id="canonical with a fraction"),
        pytest.param("2026-11-21T01:00:00.000000+01:00", MIDNIGHT, id="an offset"),
        pytest.param("2026-11-20T22:30:00.000000-01:30", MIDNIGHT, id="an offset west of Greenwich"),
        pytest.param("2026-11-22T01:00:00.000000+24:60", MIDNIGHT, id="the largest offset"),
        pytest.param("2026-11-21T0:00:00.000000Z", MIDNIGHT, id="an hour of one digit"),
        pytest.param("2026-11-21T00:00:00,000001Z", MIDNIGHT + 1, id="a comma before the fraction"),
        pytest.param("2026-11-21T00:00:00.+00001Z", MIDNIGHT + 1, id="a plus sign in the fraction"),
        pytest.param("2026-11-21T00:00:00.-00000Z", MIDNIGHT, id="a minus sign before nothing"),
        pytest.param("1970-01-01T00:00:00.000000Z", 0, id="the epoch"),
        pytest.param("2024-02-29T00:00:00.000000Z", 1_709_164_800_000_000, id="a leap day"),
        pytest.param("0001-01-01T00:00:00.000000Z", micro_time.ZERO, id="the zero time"),
        pytest.param("0000-01-01T00:00:00.000000Z", micro_time.FIRST_READABLE, id="year 0"),
        pytest.param("9999-12-31T23:59:59.999999Z", micro_time.AFTER_LAST_READABLE - 1, id="the last of year 9999"),
        pytest.param("9999-12-31T23:00:00.000000-01:00", micro_time.AFTER_LAST_READABLE, id="an offset into 10000"),
        pytest.param("0000-01-01T00:00:00.000000+01:00", micro_time.FIRST_READABLE - DAY // 24, id="before year 0"),
    ],
)
def test_a_micro_time_is_read_as_go_reads_it(text: str, micros: int) -> None:
    assert micro_time.parse(text) == micros


def refused(text: str, element: str, rest: str) -> tuple[str, str]:
    return text, f'parsing time "{text}" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "{rest}" as "{element}"'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param(*refused("", "2006", ""), id="nothing"),
        pytest.param(*refused("202", "2006", "202"), id="a short year"),
        pytest.param(*refused("2026/11-21", "-", "/11-21"), id="another separator"),
        pytest.param(*refused("2026-1-21", "01", "1-21"), id="a month of one digit"),
        pytest.param(*refused("2026-11-21 00:00", "T", " 00:00"), id="a blank instead of T"),
        pytest.param(*refused("2026-11-21Tx", "15", "x"), id="no hour"),
        pytest.param(*refused("2026-11-21T", "15", ""), id="the end instead of an hour"),
        pytest.param(*refused("2026-11-21T00:00:00Z", ".000000", "Z"), id="no fraction"),
        pytest.param(*refused("2026-11-21T00:00:00.12345Z", ".000000", ".12345Z"), id="five digits of fraction"),
        pytest.param(*refused("2026-11-21T00:00:00.1234567Z", "Z07:00", "7Z"), id="seven digits of fraction"),
        pytest.param(*refused("2026-11-21T00:00:00.000000", "Z07:00", ""), id="no zone"),
        pytest.param(*refused("2026-11-21T00:00:00.000000z", "Z07:00", "z"), id="a small z"),
        pytest.param(*refused("2026-11-21T00:00:00.00000aZ", ".000000", ".00000aZ"), id="a letter in the fraction"),
        pytest.param(*refused("2026-11-21T00:00:00:000000Z", ".000000", ":000000Z"), id="a colon before the fraction"),
        pytest.param(*refused("2026-11-21T00:00:00.000000+0000", "Z07:00", "+0000"), id="an offset without colon"),
        pytest.param(*refused("2026-11-21T00:00:00.000000 00:00", "Z07:00", " 00:00"), id="an offset without sign"),
        pytest.param(*refused("2026-11-21T00:00:00.000000+x0:00", "Z07:00", "+x0:00"), id="an offset without hours"),
        pytest.param(*refused("2026-11-21T00:00:00.000000+00:x0", "Z07:00", "+00:x0"), id="an offset without minutes"),
        pytest.param(
            "2026-11-21T00:00:00.000000Z\n",
            'parsing time "2026-11-21T00:00:00.000000Z\\x0a": extra text: "\\x0a"',
            id="more after the zone",
        ),
        pytest.param(
            '2026-11-21T00:00:00.000000Z"\\',
            'parsing time "2026-11-21T00:00:00.000000Z\\"\\\\": extra text: "\\"\\\\"',
            id="quotes and backslashes in the reason",
        ),
        pytest.param(
            "2026-11-21T00:00:1\N{ARABIC-INDIC DIGIT TWO}.000000Z",
            'parsing time "2026-11-21T00:00:1\\xd9\\xa2.000000Z" as "2006-01-02T15:04:05.000000Z07:00": '
            'cannot parse "1\\xd9\\xa2.000000Z" as "05"',
            id="a digit that is not ASCII",
        ),
    ],
)
def test_a_text_that_is_no_micro_time_is_refused_in_the_words_of_go(text: str, reason: str) -> None:
    with pytest.raises(TimeError) as caught:
        micro_time.parse(text)
    assert str(caught.value) == reason


@pytest.mark.parametrize(
    ("text", "part"),
    [
        pytest.param("2026-00-21T00:00:00.000000Z", "month", id="month 0"),
        pytest.param("2026-13-21T00:00:00.000000Z", "month", id="month 13"),
        pytest.param("2026-11-31T00:00:00.000000Z", "day", id="November 31"),
        pytest.param("2026-11-00T00:00:00.000000Z", "day", id="day 0"),
        pytest.param("2023-02-29T00:00:00.000000Z", "day", id="February 29 of no leap year"),
        pytest.param("1900-02-29T00:00:00.000000Z", "day", id="February 29 of 1900"),
        pytest.param("2026-11-21T24:00:00.000000Z", "hour", id="hour 24"),
        pytest.param("2026-11-21T00:60:00.000000Z", "minute", id="minute 60"),
        pytest.param("2026-11-21T00:00:60.000000Z", "second", id="a leap second"),
        pytest.param("2026-11-21T00:00:00.-00001Z", "fractional second", id="a negative fraction"),
        pytest.param("2026-11-21T00:00:00.000000+25:00", "time zone offset hour", id="an offset of 25 hours"),
        pytest.param("2026-11-21T00:00:00.000000+24:61", "time zone offset minute", id="an offset of 61 minutes"),
    ],
)
def test_a_number_outside_its_range_is_named(text: str, part: str) -> None:
    with pytest.raises(TimeError) as caught:
        micro_time.parse(text)
    assert str(caught.value) == f'parsing time "{text}": {part} out of range'


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        pytest.param("2026-11-21T00:00:00Z", MIDNIGHT, id="canonical"),
        pytest.param("2026-11-21T00:00:59Z", MIDNIGHT + 59_000_000, id="the last second of a minute"),
        pytest.param("2026-11-21T01:00:00+01:00", MIDNIGHT, id="an offset"),
        pytest.param("2026-11-21T00:00:00.5Z", MIDNIGHT + 500_000, id="a fraction"),
        pytest.param("2026-11-21T00:00:00,123456789012Z", MIDNIGHT + 123_456, id="a fraction of many digits"),
        pytest.param("2026-11-21T0:00:00.1Z", MIDNIGHT + 100_000, id="an hour of one digit"),
        pytest.param("2026-11-21T0:00:00+0", None, id="twenty characters, but no Z"),
        pytest.param("2026-11-21T00:00:60Z", None, id="second 60"),
        pytest.param("2026-11-21T00:00:00z", None, id="a small z"),
        pytest.param("2026-11-21T00:00:0xZ", None, id="a letter in the seconds"),
        pytest.param("2026-02-30T00:00:00Z", None, id="February 30"),
        pytest.param("2026-13-01T00:00:00Z", None, id="month 13"),
        pytest.param("2026-11-21T00:00:00.Z", None, id="a mark without digits"),
        pytest.param("2026-11-21T00:00:00", None, id="no zone"),
    ],
)
def test_a_time_of_whole_seconds_is_read_as_go_reads_it(text: str, micros: int | None) -> None:
    if micros is None:
        with pytest.raises(TimeError, match="parsing time"):
            micro_time.parse_seconds(text)
    else:
        assert micro_time.parse_seconds(text) == micros


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        pytest.param("10000-01-01T00:59:59.999999Z", micro_time.AFTER_LAST_READABLE + 3_599_999_999, id="year 10000"),
        pytest.param("10000-01-01T00:00:00Z", micro_time.AFTER_LAST_READABLE, id="year 10000 in whole seconds"),
        pytest.param("-0001-12-31T23:00:00.000000Z", micro_time.FIRST_READABLE - DAY // 24, id="year -1"),
        pytest.param("2026-11-21T00:00:00.000000Z", None, id="a readable time"),
        pytest.param("10000-13-01T00:00:00Z", None, id="month 13"),
        pytest.param("10000-02-30T00:00:00Z", None, id="February 30"),
        pytest.param("soon", None, id="noise"),
    ],
)
def test_years_that_go_prints_but_cannot_read_are_not_noise(text: str, micros: int | None) -> None:
    assert micro_time.parse_unreadable(text) == micros
    if micros is not None:
        with pytest.raises(TimeError):
            micro_time.parse(text)


@given(any_instant)
@example(micro_time.FIRST_READABLE)
@example(micro_time.AFTER_LAST_READABLE - 1)
def test_what_is_printed_reads_back_as_itself(micros: int) -> None:
    assert micro_time.parse(micro_time.canonical(micros)) == micros
    assert micro_time.parse_seconds(micro_time.canonical_seconds(micros)) == micros // 1_000_000 * 1_000_000


@given(st.integers(1, 25 * 3_600_000_000))
def test_what_is_printed_outside_four_digits_reads_back_as_unreadable(distance: int) -> None:
    for micros in (micro_time.FIRST_READABLE - distance, micro_time.AFTER_LAST_READABLE - 1 + distance):
        assert micro_time.parse_unreadable(micro_time.canonical(micros)) == micros


@given(any_instant, any_instant)
def test_printed_times_sort_as_their_instants(one: int, other: int) -> None:
    assert (one < other) == (micro_time.canonical(one) < micro_time.canonical(other))


@given(st.integers(-5_000_000, 5_000_000))
def test_every_day_has_one_date(day: int) -> None:
    assert days_from_date(*date_from_days(day)) == day


@given(st.text(max_size=40))
def test_any_text_is_a_time_or_refused(text: str) -> None:
    for read in (micro_time.parse, micro_time.parse_seconds):
        try:
            assert isinstance(read(text), int)
        except TimeError:
            continue
