"""What really happened in an incident, from what the test did and what the electors reported. No I/O."""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

_MICRO: Final = 1_000_000
SHORTEST: Final = _MICRO // 20
"""A gap or an overlap below this is the time that a process takes to report."""


class Deed(Struct, frozen=True):
    """Something that the test did; `at` in microseconds since 1970."""

    at: int
    what: str


class Led(Struct, frozen=True):
    """A process worked as the leader, in microseconds since 1970; `ended` says why it stopped, "" if it did not."""

    holder: str
    begins: int
    ends: int | None = None
    ended: str = ""

    def until(self, end: int) -> int:
        """Its end, or that of the recording."""
        return end if self.ends is None else self.ends


class Report(Struct, frozen=True):
    """A line of an elector: `started` or `stopped`, in microseconds since 1970; `ended` is why."""

    at: int
    event: str
    ended: str = ""


def stretches(holder: str, reports: Iterable[Report]) -> Iterator[Led]:
    """Yield when a process led, from its reports and from what was done to it, in order of time."""
    begins: int | None = None
    for report in sorted(reports, key=lambda one: one.at):
        if report.event == "started" and begins is None:
            begins = report.at
        elif report.event == "stopped" and begins is not None:
            yield Led(holder, begins, report.at, report.ended)
            begins = None
    if begins is not None:
        yield Led(holder, begins)


def leaderless(led: Sequence[Led], end: int) -> Iterator[tuple[int, int]]:
    """The times without a leader, from the first leader on to the end of the recording."""
    reached: int | None = None
    for one in sorted(led, key=lambda one: one.begins):
        if reached is not None and one.begins - reached > SHORTEST:
            yield reached, one.begins
        reached = max(reached or 0, one.until(end))
    if reached is not None and end - reached > SHORTEST:
        yield reached, end


def led_twice(led: Sequence[Led], end: int) -> Iterator[tuple[int, int]]:
    """The times in which two led at once."""
    ordered = sorted(led, key=lambda one: one.begins)
    for place, one in enumerate(ordered):
        for other in ordered[place + 1 :]:
            begins, ends = other.begins, min(one.until(end), other.until(end))
            if ends - begins > SHORTEST:
                yield begins, ends


def as_json(title: str, cause: str, led: Sequence[Led], deeds: Sequence[Deed], begin: int, end: int) -> dict[str, Any]:
    """The truth as a JSON object; times are RFC 3339.

    Args:
        title: what happened, in one sentence.
        cause: one word that a test compares.
        led: who worked as the leader.
        deeds: what the test did.
        begin: of the recording, in microseconds since 1970.
        end: of the recording.

    """
    gaps, overlaps = list(leaderless(led, end)), list(led_twice(led, end))
    return {
        "title": title,
        "cause": cause,
        "begins": time_text(begin),
        "ends": time_text(end),
        "done": [{"at": time_text(one.at), "what": one.what} for one in sorted(deeds, key=lambda one: one.at)],
        "led": [
            {
                "holder": one.holder,
                "from": time_text(one.begins),
                "until": None if one.ends is None else time_text(one.ends),
                "ended": one.ended,
            }
            for one in sorted(led, key=lambda one: one.begins)
        ],
        "leaderless": [_stretch(*one) for one in gaps],
        "two_led": [_stretch(*one) for one in overlaps],
    }


def _stretch(begins: int, ends: int) -> dict[str, Any]:
    return {"from": time_text(begins), "until": time_text(ends), "seconds": round((ends - begins) / _MICRO, 3)}


def time_text(at: int) -> str:
    """RFC 3339, from microseconds since 1970."""
    moment = dt.datetime.fromtimestamp(at // _MICRO, dt.UTC).replace(microsecond=at % _MICRO)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
