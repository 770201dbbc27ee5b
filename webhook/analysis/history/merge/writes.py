"""Where a write comes of which a log does not show the state that it made: by what it replaced, or by its time."""

from collections import deque
from collections.abc import Sequence
from operator import itemgetter

from msgspec.structs import replace

from webhook.analysis.history.merge.dated import TOLERANCE, DatedItem, is_hidden_write
from webhook.analysis.inputs.items import Act, InputKind, parse_number
from webhook.analysis.inputs.patches import find_stored_changes, leaves_election


def place_by_revision(
    states: Sequence[DatedItem], rest: Sequence[DatedItem]
) -> tuple[list[DatedItem], list[DatedItem]]:
    """Return the states with the requests of which a log shows what state they found, and what has no such place."""
    places = [(one.revision, 0, 0, one) for one in states]
    without = []
    for number, state in enumerate(rest):
        unchanged = parse_number(state.observation.resource_version) if state.is_stored_write else 0
        replaced = parse_number(state.observation.replaces) if state.is_stored_write else 0
        if unchanged:
            # It made no state of its own, and was answered with the one that it found before another one replaced that.
            places.append((unchanged, 1, number, state))
        elif replaced:
            places.append((replaced, 2, number, state))
        else:
            without.append(state)
    return [one for *_, one in sorted(places, key=itemgetter(0, 1, 2))], without


def place_late_writes(items: Sequence[DatedItem]) -> list[DatedItem]:
    """Place a write of which a log shows neither what it replaced nor what it made where it may have been stored.

    Clocks of API servers differ: between a state and the one that replaced it, as the request of that says, nothing was
    stored. Such a write came later, unless it changed nothing.
    """
    placed: list[DatedItem] = []
    since = before = 0
    for item in items:
        if not item.is_stored_write or is_hidden_write(item):
            placed.append(item)
            continue
        later: list[DatedItem] = []
        if 0 < before == parse_number(item.observation.replaces):
            between = placed[since:]
            del placed[since:]
            for write in between:
                is_later = is_hidden_write(write) and item.time <= write.time + TOLERANCE
                (later if is_later else placed).append(write)
        placed.append(item)
        since, before = len(placed), item.revision or parse_number(item.observation.resource_version)
        placed += later
    return placed


def mark_unsure_order(items: list[DatedItem]) -> list[DatedItem]:
    """Mark each update before which a write may have been stored that the clock of another API server places after it.

    A log without answers does not show that the state which an update replaced is the one before it. What left the
    holder as it was raises no such doubt.
    """
    hidden = deque(one.time for one in items if _may_replace_holder(one))
    before: DatedItem | None = None
    for item in items:
        if not item.is_stored_write:
            continue
        if _may_replace_holder(item):
            hidden.popleft()
        elif not is_hidden_write(item) and hidden and hidden[0] <= item.time + TOLERANCE and not _follows(item, before):
            item.item = replace(item.observation, is_order_unsure=True)
        before = item
    return items


def _may_replace_holder(seen: DatedItem) -> bool:
    return is_hidden_write(seen) and not leaves_election(find_stored_changes(seen.observation.asked_changes))


def _follows(seen: DatedItem, before: DatedItem | None) -> bool:
    """Return whether a write is known to follow the one before: a watch shows each, or its request names that state."""
    item = seen.observation
    if item.act is not Act.UPDATED or item.is_watched or item.input_kind is not InputKind.AUDIT_LOG:
        return True
    known = before.revision or parse_number(before.observation.resource_version) if before else 0
    return 0 < known == parse_number(item.replaces)
