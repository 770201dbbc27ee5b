"""Pods that wrote a lease one after another, by a log without objects: it shows neither holders nor releases."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from msgspec import Struct

from webhook.analysis.claims.handovers import FREQUENT_WITHIN
from webhook.analysis.claims.words import describe_writer, format_clock, format_name
from webhook.analysis.history.holders.rival import Turns
from webhook.analysis.history.holders.tenure import Tenure

_MIN_CHANGES: Final = 2
"""The last change alone is told as what happened last."""


class WritersInTurn(Struct, frozen=True):
    """How often another pod came to write a lease recently, and since when, in microseconds since 1970.

    `ended` are the tenures of those that others followed.
    """

    count: int
    since: int
    ended: tuple[Tenure, ...]


def find_writers_in_turn(tenures: Iterable[Tenure], now: int) -> WritersInTurn | None:
    """Return the latest changes of the pod that writes a lease, if they are several.

    That a container was started again, and wrote after itself, such a log does not show: its holder may have changed
    more often.
    """
    of_pods = [one for one in tenures if one.is_stand_in and one.processes.own is not None and one.processes.own.pod]
    changes = [
        (before, after)
        for before, after in pairwise(of_pods)
        if now - after.since <= FREQUENT_WITHIN and not _is_same_pod(before, after)
    ]
    if len(changes) < _MIN_CHANGES:
        return None
    return WritersInTurn(len(changes), changes[0][1].since, tuple(before for before, _ in changes))


def _is_same_pod(before: Tenure, after: Tenure) -> bool:
    own, next_own = before.processes.own, after.processes.own
    return own is not None and next_own is not None and own.is_same(next_own)


def describe_turns(turns: Turns, now: int) -> str:
    """Say that two pods of one account wrote a lease in turn, as a clause."""
    who = f"{describe_writer(turns.first)} and pod {format_name(turns.second.pod)}"
    changed = f"the writer changed {turns.count} times until {format_clock(turns.until, now)}"
    led = "both may lead" if turns.is_ongoing(now) else "both may have led"
    return f"{who} wrote it in turn, {changed}; {led}: the log does not show what was stored"
