"""What was seen of one object, in order, each write once."""

import heapq
from collections.abc import Sequence

from webhook.analysis.history.merge.dated import DatedItem, by_time, is_hidden_write
from webhook.analysis.history.merge.estimates import order_times, place_unrenewed
from webhook.analysis.history.merge.joins import join_requests
from webhook.analysis.history.merge.lifetimes import place_early_creations, place_early_deletions, place_late_deletions
from webhook.analysis.history.merge.outcomes import mark_absences, note_outcomes, resolve_contradictions
from webhook.analysis.history.merge.same_state import identify, join_records
from webhook.analysis.history.merge.writes import mark_unsure_order, place_by_revision, place_late_writes


def order_records(items: Sequence[DatedItem]) -> list[DatedItem]:
    """Return what was seen of one object, in order, each write once."""
    if len(items) == 1:
        return list(items)
    groups: dict[tuple[int, bool], list[DatedItem]] = {}
    others: dict[object, DatedItem] = {}
    for item in items:
        if item.revision:
            groups.setdefault((item.revision, item.is_deletion), []).append(item)
        else:
            others.setdefault(identify(item.item), item)
    states = []
    for _, group in sorted(groups.items(), key=lambda pair: pair[0]):
        first, *repeated = join_records(group)
        states.append(first)
        others.update((identify(one.item), one) for one in repeated)
    order_times(states)
    rest = sorted(others.values(), key=by_time)
    rest = join_requests(states, rest)
    place_unrenewed(states)
    chain, rest = place_by_revision(states, rest)
    merged = list(heapq.merge(chain, rest, key=by_time))
    if any(map(is_hidden_write, rest)):
        merged = mark_unsure_order(place_late_writes(merged))
    placed = place_early_deletions(place_late_deletions(place_early_creations(merged)))
    return note_outcomes(mark_absences(resolve_contradictions(placed)))
