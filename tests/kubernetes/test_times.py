"""Times: the canonical forms, Go's leniencies and refusals, and years that clients cannot read."""

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from webhook.kubernetes import times

MIDNIGHT = 1_795_219_200_000_000
DAY = 86_400_000_000

any_instant = st.integers(times.FIRST_READABLE, times.AFTER_LAST_READABLE - 1)


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
        pytest.param("0001-01-01T00:00:00.000000Z", times.ZERO, id="the zero time"),
        pytest.param("0000-01-01T00:00:00.000000Z", times.FIRST_READABLE, id="year 0"),
        pytest.param("9999-12-31T23:59:59.999999Z", times.AFTER_LAST_READABLE - 1, id="the last of year 9999"),
        pytest.param("9999-12-31T23:00:00.000000-01:00", times.AFTER_LAST_READABLE, id="an offset into 10000"),
        pytest.param("0000-01-01T00:00:00.000000+01:00", times.FIRST_READABLE - DAY // 24, id="before year 0"),
    ],
)
def test_a_micro_time_is_read_as_go_reads_it(text: str, micros: int) -> None:
    assert times.parse(text) == micros


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("202", id="a short year"),
        pytest.param("2026/11-21", id="another separator"),
        pytest.param("2026-1-21T00:00:00.000000Z", id="a month of one digit"),
        pytest.param("2026-11-21 00:00:00.000000Z", id="a blank instead of T"),
        pytest.param("2026-11-21T00:00:00Z", id="no fraction"),
        pytest.param("2026-11-21T00:00:00.12345Z", id="five digits of fraction"),
        pytest.param("2026-11-21T00:00:00.1234567Z", id="seven digits of fraction"),
        pytest.param("2026-11-21T00:00:00.000000", id="no zone"),
        pytest.param("2026-11-21T00:00:00.000000z", id="a small z"),
        pytest.param("2026-11-21T00:00:00:000000Z", id="a colon before the fraction"),
        pytest.param("2026-11-21T00:00:00.000000+0000", id="an offset without colon"),
        pytest.param("2026-11-21T00:00:00.000000 00:00", id="an offset without sign"),
        pytest.param("2026-11-21T00:00:00.000000Z\n", id="more after the zone"),
        pytest.param("2026-11-21T00:00:1\N{ARABIC-INDIC DIGIT TWO}.000000Z", id="a digit that is not ASCII"),
        pytest.param("2026-00-21T00:00:00.000000Z", id="month 0"),
        pytest.param("2026-13-21T00:00:00.000000Z", id="month 13"),
        pytest.param("2026-11-31T00:00:00.000000Z", id="November 31"),
        pytest.param("2026-11-00T00:00:00.000000Z", id="day 0"),
        pytest.param("2023-02-29T00:00:00.000000Z", id="February 29 of no leap year"),
        pytest.param("1900-02-29T00:00:00.000000Z", id="February 29 of 1900"),
        pytest.param("2026-11-21T24:00:00.000000Z", id="hour 24"),
        pytest.param("2026-11-21T00:60:00.000000Z", id="minute 60"),
        pytest.param("2026-11-21T00:00:60.000000Z", id="a leap second"),
        pytest.param("2026-11-21T00:00:00.-00001Z", id="a negative fraction"),
        pytest.param("2026-11-21T00:00:00.000000+25:00", id="an offset of 25 hours"),
        pytest.param("2026-11-21T00:00:00.000000+24:61", id="an offset of 61 minutes"),
    ],
)
def test_a_text_that_is_no_micro_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a time|day is out of range|day \d+ must be in range|month must be in"):
        times.parse(text)


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
        with pytest.raises(ValueError, match=r"not a time|out of range|must be in"):
            times.parse_seconds(text)
    else:
        assert times.parse_seconds(text) == micros


@pytest.mark.parametrize(
    "text",
    ["10000-01-01T00:59:59.999999Z", "-0001-12-31T23:00:00.000000Z", "20000-01-01T00:00:00Z", "-0400-01-01T00:00:00Z"],
)
def test_years_that_go_prints_but_cannot_read_are_refused(text: str) -> None:
    for parse in (times.parse, times.parse_seconds):
        with pytest.raises(ValueError, match="not a time"):
            parse(text)


@given(any_instant)
@example(times.FIRST_READABLE)
@example(times.AFTER_LAST_READABLE - 1)
def test_what_is_printed_reads_back_as_itself(micros: int) -> None:
    assert times.parse(times.format_micro_time(micros)) == micros
    assert times.parse_seconds(times.format_time(micros)) == micros // 1_000_000 * 1_000_000


@given(st.integers(0, 1 << 84))
@example(0)
def test_what_is_printed_outside_four_digits_does_not_parse(distance: int) -> None:
    for micros in (times.FIRST_READABLE - 1 - distance, times.AFTER_LAST_READABLE + distance):
        with pytest.raises(ValueError, match="not a time"):
            times.parse(times.format_micro_time(micros))


@given(any_instant, any_instant)
def test_printed_times_sort_as_their_instants(one: int, other: int) -> None:
    assert (one < other) == (times.format_micro_time(one) < times.format_micro_time(other))


NEARLY = ["2026-11-21T00:00:00.000000Z", "2026-11-21T00:00:00Z", "2026-02-29T24:60:60Z"]


def instant_or_none(read: Callable[[str], int], text: str) -> int | None:
    try:
        return read(text)
    except ValueError:
        return None


@given(st.text(max_size=40) | st.sampled_from(NEARLY), st.integers(0, 26), st.sampled_from("0239:.,-+ TZz٣"))
@example("2026-11-21T00:00:00.000000Z", 19, ":")
def test_a_time_in_the_usual_form_is_read_as_any_other(text: str, place: int, character: str) -> None:
    changed = f"{text[:place]}{character}{text[place + 1 :]}"
    for read, form in ((times.parse, times._MICRO_TIME), (times.parse_seconds, times._TIME)):
        assert instant_or_none(read, changed) == instant_or_none(partial(times._parse_instant, form), changed)
