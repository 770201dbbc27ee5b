"""Times of what no API server dates, by the order of what is stored."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from operator import attrgetter
from typing import Final

from webhook.analysis.history.merge.dated import DatedItem
from webhook.analysis.history.merge.makers import is_renewal
from webhook.analysis.inputs.stamp_reader import StampReader

_revision: Final = attrgetter("revision")


def is_claimed(seen: DatedItem, stamps: StampReader) -> bool:
    """Return whether a state is dated by the clock of its writer alone: no stamp of an API server is known."""
    if not seen.revision or seen.is_exact:
        return False
    return seen.observation.latest_stamp is None and stamps.date(seen.observation) is None


def order_times(states: Sequence[DatedItem]) -> None:
    """Make times follow the order of what is stored: an estimate is neither before nor after what is exact."""
    latest = -1
    for state in states:
        if state.is_exact:
            latest = max(latest, state.time)
        else:
            state.time = max(state.time, latest)
    for before, after in zip(reversed(states[:-1]), reversed(states[1:]), strict=True):
        before.time = min(before.time, after.time) if after.time >= 0 else before.time


def place_unrenewed(states: Sequence[DatedItem]) -> None:
    """Place each state that only its writer's clock dates, and that nobody renewed, where the one before it is.

    Its renewTime says when that one was renewed, and nothing of when this one was stored.
    """
    for number, state in enumerate(states[1:], start=1):
        if state.is_claimed and not state.is_exact and not is_renewal(states, number):
            state.time = min(state.time, states[number - 1].time)


def place_undated(states: Sequence[DatedItem]) -> None:
    """Place what no API server dates by its resourceVersion, among what they date, in whatever object.

    The clocks of writers may be hours off, and an undated deletion counts from everything that came before it: what a
    client claims of its own lease must not move that of another one. A state comes among those of its watch, as
    resourceVersions of several clusters do not compare.
    """
    undated = [one for one in states if one.is_undated]
    if not undated:
        return
    ordered = sorted(states, key=_revision)
    by_watch: dict[str, list[DatedItem]] = {}
    for item in ordered:
        if not item.is_undated:
            by_watch.setdefault(item.observation.place.path, []).append(item)
    for path, dated in by_watch.items():
        _move_between(dated, [one for one in undated if one.observation.place.path == path and not one.is_deletion])
    deletions = [one for one in undated if one.is_deletion]
    dated = [one for one in ordered if not one.is_undated]
    _move_between(dated or [one for one in ordered if not one.is_deletion], deletions)


def _move_between(dated: Sequence[DatedItem], undated: Sequence[DatedItem]) -> None:
    """Move each that is undated after all that are dated and came before it, and no further than before the others."""
    revisions = [one.revision for one in dated]
    latest = list(accumulate((one.time for one in dated), max))
    earliest = list(accumulate((one.time for one in reversed(dated)), min))
    for item in undated:
        before = bisect_left(revisions, item.revision)
        later = len(dated) - bisect_right(revisions, item.revision)
        item.time = max(item.time, latest[before - 1]) if before else item.time
        item.time = min(item.time, earliest[later - 1]) if later else item.time
