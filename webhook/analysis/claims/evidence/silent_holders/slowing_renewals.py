"""Renewals that came late until they stopped: as of a process that has too little of a processor, or is paused."""

from typing import Final

from webhook.analysis.claims.words import format_clock
from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.renewals import Silence
from webhook.kubernetes.times import SECOND, format_length

_MIN_LATE: Final = 3
_NEAR: Final = SECOND
"""Of two instants of one renewal, one may have the fraction of its writer's clock."""


def describe_slowing(history: LeaseHistory, tenure: Tenure, last: int, now: int) -> str:
    """Say, as a sentence, since when the renewals of a holder until its last one came late; "" if few did in a row."""
    late: list[Silence] = []
    until = last
    for silence in reversed(history.renewals.silences):
        if silence.end > until + _NEAR:
            continue  # of a later holder
        if silence.end < until - _NEAR or silence.start < tenure.since or silence.is_claimed:
            break
        late.append(silence)
        until = silence.start
    usual = history.renewals.usual
    # One that renewed so from the beginning has another rhythm.
    if len(late) < _MIN_LATE or usual is None or until - tenure.since < _MIN_LATE * usual:
        return ""
    longest = format_length(max(one.length for one in late))
    since = format_clock(until, now)
    return (
        f" Its renewals had slowed before, from {since} on: up to {longest} apart, and usually {format_length(usual)}."
    )
