"""Creations and deletions of which a log does not show what state they follow, placed by the writes to each object."""

from collections.abc import Sequence

from webhook.analysis.history.merge.dated import TOLERANCE, DatedItem
from webhook.analysis.inputs.items import Act, Observation


def place_early_creations(items: list[DatedItem]) -> list[DatedItem]:
    """Place a creation of which a log does not show the state before the first writes to what it created."""
    for number, item in enumerate(items):
        if item.is_creation and not item.revision:
            place = _find_place_of_creation(items, number)
            items[place : number + 1] = [item, *items[place:number]]
    return items


def _find_place_of_creation(items: Sequence[DatedItem], number: int) -> int:
    """Return the number of the first write to what a creation that stands at a number has created."""
    place, creation = number, items[number]
    later = (one.observation for one in items[number + 1 :] if one.is_stored_write)
    known = next((one.uid for one in later if one.uid), "")
    for earlier in range(number - 1, -1, -1):
        before = items[earlier]
        if not before.is_stored_write:
            continue
        uid = before.observation.uid
        is_near = before.time > creation.time - TOLERANCE
        if before.is_deletion or before.is_creation or (known and uid and uid != known):
            return place
        if not (is_near or (known and uid == known)):
            return number  # it had existed for long: its deletion is not shown
        known, place = known or uid, earlier
    return place


def place_late_deletions(items: list[DatedItem]) -> list[DatedItem]:
    """Place a deletion after the last writes of what it deleted, where clocks of API servers differ by as much.

    Then another object was created. A log does not say which state a deletion follows.
    """
    for number, item in enumerate(items):
        if item.is_deletion and not item.revision and item.observation.is_stored:
            place = _find_place_of_deletion(items, number)
            items[number : place + 1] = [*items[number + 1 : place + 1], item]
    return items


def _find_place_of_deletion(items: Sequence[DatedItem], number: int) -> int:
    """Return the number of the last write before a deletion that stands at a number."""
    place, deletion = number, items[number]
    known = deletion.observation.uid
    for later in range(number + 1, len(items)):
        item = items[later].item
        if not isinstance(item, Observation) or not item.is_stored or item.act is Act.READ:
            continue
        if item.act is Act.CREATED:
            return place  # another object, whose uid a log without objects does not show
        known = known or item.uid
        if item.act is Act.DELETED or not item.uid:
            return number
        if item.uid != known:
            return place
        if items[later].time > deletion.time + TOLERANCE:
            return number
        place = later
    return number


def place_early_deletions(items: list[DatedItem]) -> list[DatedItem]:
    """Place a deletion that names what it deleted before the first writes of the object that was created after it."""
    for number, item in enumerate(items):
        if item.is_deletion and not item.revision and item.observation.is_stored and item.observation.uid:
            place = _find_first_write_of_another(items, number)
            items[place : number + 1] = [item, *items[place:number]]
    return items


def _find_first_write_of_another(items: Sequence[DatedItem], number: int) -> int:
    """Return the number of the first write, just before a deletion at a number, to another object than it deleted."""
    place, deletion = number, items[number]
    for earlier in range(number - 1, -1, -1):
        before = items[earlier]
        if not before.is_stored_write:
            continue
        is_near = before.time > deletion.time - TOLERANCE
        if not (is_near and before.observation.uid and before.observation.uid != deletion.observation.uid):
            return place
        place = earlier
    return place
