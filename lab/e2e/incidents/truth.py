"""The truth about an incident, from the actions of the test and the reports of the electors. No I/O."""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

_MICRO: Final = 1_000_000
SHORTEST: Final = _MICRO // 20
"""A gap or an overlap below this is the time that a process takes to report."""


class Action(Struct, frozen=True):
    """An action of the test; `at` in microseconds since 1970."""

    at: int
    what: str


class Leadership(Struct, frozen=True):
    """A period in which a process worked as the leader, in microseconds since 1970.

    `ended` is the reason of its end, "" if it did not end.
    """

    holder: str
    begins: int
    ends: int | None = None
    ended: str = ""

    def find_end(self, end: int) -> int:
        """Return its end, or that of the recording."""
        return end if self.ends is None else self.ends


class Report(Struct, frozen=True):
    """A line of an elector: `started` or `stopped`, in microseconds since 1970; `ended` is why."""

    at: int
    event: str
    ended: str = ""


def find_leaderships(holder: str, reports: Iterable[Report]) -> Iterator[Leadership]:
    """Yield when a process led, from its reports and from the actions against it, in order of time."""
    begins: int | None = None
    for report in sorted(reports, key=lambda one: one.at):
        if report.event == "started" and begins is None:
            begins = report.at
        elif report.event == "stopped" and begins is not None:
            yield Leadership(holder, begins, report.at, report.ended)
            begins = None
    if begins is not None:
        yield Leadership(holder, begins)


def find_leaderless(leaderships: Sequence[Leadership], end: int) -> Iterator[tuple[int, int]]:
    """Yield the times without a leader, from the first leader on to the end of the recording."""
    until: int | None = None
    for period in sorted(leaderships, key=lambda one: one.begins):
        if until is not None and period.begins - until > SHORTEST:
            yield until, period.begins
        until = max(until or 0, period.find_end(end))
    if until is not None and end - until > SHORTEST:
        yield until, end


def find_double_leadership(leaderships: Sequence[Leadership], end: int) -> Iterator[tuple[int, int]]:
    """Yield the times in which two led at once."""
    periods = sorted(leaderships, key=lambda one: one.begins)
    for place, period in enumerate(periods):
        for other in periods[place + 1 :]:
            begins, ends = other.begins, min(period.find_end(end), other.find_end(end))
            if ends - begins > SHORTEST:
                yield begins, ends


def format_truth(
    title: str, cause: str, leaderships: Sequence[Leadership], deeds: Sequence[Action], begin: int, end: int
) -> dict[str, Any]:
    """Return the truth as a JSON object; times are RFC 3339.

    Args:
        title: what happened, in one sentence.
        cause: one word that a test compares.
        leaderships: who worked as the leader.
        deeds: the actions of the test.
        begin: of the recording, in microseconds since 1970.
        end: of the recording.

    """
    gaps, overlaps = list(find_leaderless(leaderships, end)), list(find_double_leadership(leaderships, end))
    return {
        "title": title,
        "cause": cause,
        "begins": format_time(begin),
        "ends": format_time(end),
        "done": [{"at": format_time(one.at), "what": one.what} for one in sorted(deeds, key=lambda one: one.at)],
        "led": [
            {
                "holder": one.holder,
                "from": format_time(one.begins),
                "until": None if one.ends is None else format_time(one.ends),
                "ended": one.ended,
            }
            for one in sorted(leaderships, key=lambda one: one.begins)
        ],
        "leaderless": [_format_period(*one) for one in gaps],
        "two_led": [_format_period(*one) for one in overlaps],
    }


def _format_period(begins: int, ends: int) -> dict[str, Any]:
    return {"from": format_time(begins), "until": format_time(ends), "seconds": round((ends - begins) / _MICRO, 3)}


def format_time(at: int) -> str:
    """Return a time in RFC 3339, from microseconds since 1970."""
    moment = dt.datetime.fromtimestamp(at // _MICRO, dt.UTC).replace(microsecond=at % _MICRO)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
