"""What the order shows of single requests: that nothing was deleted, or stored, or that there was no object."""

from msgspec.structs import replace

from webhook.analysis.history.audit_log.failed_writes import find_outcomes
from webhook.analysis.history.merge.dated import TOLERANCE, DatedItem
from webhook.analysis.inputs.items import LISTINGS, Act, Answer, Observation


def resolve_contradictions(items: list[DatedItem]) -> list[DatedItem]:
    """Treat a deletion as a dry run if the same object was updated afterwards: nothing was deleted.

    If a log does not show whether it was one, it is enough that the object was read: but what was read just before
    another object was created, by clocks that may differ, may be that one.
    """
    uid, is_updated, read_at = "", False, -1
    created: int | None = None
    for dated in reversed(items):
        item = dated.item
        if not isinstance(item, Observation) or not item.is_stored:
            continue
        if item.verb in LISTINGS:
            continue
        if item.act is Act.READ:
            if created is None or dated.time <= created - TOLERANCE:
                read_at = max(read_at, dated.time - item.took)
            continue
        if item.act is Act.CREATED:
            read_at, created = -1, dated.time
        if item.act is Act.DELETED and not item.is_surely_not_dry_run and read_at > dated.time + TOLERANCE:
            dated.item = replace(item, is_dry_run=True)
            continue
        if item.act is not Act.DELETED:
            answer = item.answer or Answer(0)
            uid, is_updated = item.uid, item.act is Act.UPDATED and answer.code == 200
        elif not dated.revision and (is_updated if not item.uid or not uid else item.uid == uid):
            dated.item = replace(item, is_dry_run=True)
        else:
            uid, is_updated = "", False
    return items


def mark_absences(items: list[DatedItem]) -> list[DatedItem]:
    """Mark requests that did not find the object, unless something shows that it was there until it was created.

    Clocks of API servers differ, and a read may be answered from what one of them knew before.
    """
    is_there = False
    for dated in reversed(items):
        item = dated.item
        if not isinstance(item, Observation) or item.verb in LISTINGS:
            continue
        if item.is_stored:
            is_there = item.act is not Act.CREATED
        elif item.has_not_found and not is_there:
            dated.item = replace(item, shows_absence=True)
    return items


def note_outcomes(items: list[DatedItem]) -> list[DatedItem]:
    """Note of each write that failed whether it was stored all the same, and of the state that it made who wrote it."""
    order = [one.item for one in items if isinstance(one.item, Observation)]
    noted: dict[int, Observation] = {}
    for request, was_stored, state in find_outcomes(order):
        noted[id(request)] = replace(request, was_stored=was_stored)
        if state is not None:
            noted[id(state)] = _note_maker(state, request)
    for item in items if noted else ():
        item.item = noted.get(id(item.item), item.item)
    return items


def _note_maker(state: Observation, request: Observation) -> Observation:
    """Return a state with the write that made it; of one that a read shows, it is known then what it replaced."""
    assert request.at is not None
    made = replace(state, writer=request.writer, requested_at=request.at - request.took)
    return made if state.read_at is None else replace(made, act=Act.UPDATED, replaces=request.replaces)
