"""One write with all that several inputs know of the state that it made."""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from webhook.analysis.history.merge.dated import DatedItem, by_time
from webhook.analysis.inputs.items import Act, FenceReport, InputKind, Observation, parse_number


def join_records(group: Sequence[DatedItem]) -> list[DatedItem]:
    """Return one write with what all inputs know of it, then the requests that changed nothing after it."""
    logged = sorted((one for one in group if one.is_exact), key=by_time)
    # A change says more than a state, and a watch more than a dump.
    shown = min(
        (one for one in group if not one.is_exact),
        key=lambda one: (one.observation.act is Act.STORED, one.observation.input_kind is InputKind.DUMP),
        default=None,
    )
    if shown is not None:
        others = {one.observation.place.path for one in group if one is not shown and _is_of_watch(one)}
        if others:
            shown.item = replace(shown.observation, shown_by=tuple(sorted(others)))
    if not logged:
        assert shown is not None
        return [shown]
    requests = list({identify(one.item): one for one in logged}.values())
    maker = _find_maker(requests)
    rest = [one for one in requests if one is not maker]
    for item in rest:
        item.revision = 0
    if any(_may_be_the_maker(one, maker) for one in rest):
        maker.item = replace(maker.observation, writer=None)
    return [maker if shown is None else maker.join_with(shown), *rest]


def _is_of_watch(seen: DatedItem) -> bool:
    return isinstance(seen.item, Observation) and seen.item.input_kind is InputKind.WATCH


def identify(item: Observation | FenceReport) -> object:
    """Return what is equal for two records of one thing, wherever they stand."""
    if isinstance(item, FenceReport):
        return (item.at, item.fence, item.writer, item.target, item.is_refused)
    code = item.answer.code if item.answer else 0
    if item.at is None:
        return id(item) if item.object is None else (item.input_kind, item.act, msgspec.json.encode(item.object))
    return (item.input_kind, item.act, item.at, item.verb, item.writer, code, item.is_dry_run)


def _find_maker(requests: Sequence[DatedItem]) -> DatedItem:
    """Return which request, of those that were answered with one state, made it: one that replaced another state.

    A request that changes nothing is answered with the state as it is. Without such a request it is the first one.
    """
    return next((one for one in requests if _is_change(one)), requests[0])


def _is_change(seen: DatedItem) -> bool:
    """Return whether a request is known to have made the state that it was answered with."""
    replaced = parse_number(seen.observation.replaces)
    return 0 < replaced < seen.revision or seen.observation.act in {Act.CREATED, Act.DELETED}


def _may_be_the_maker(other: DatedItem, maker: DatedItem) -> bool:
    """Return whether a state may as well be that of another writer's request, which came before it was answered."""
    if _is_change(maker) or other.observation.act is Act.READ or other.observation.writer == maker.observation.writer:
        return False
    took = other.observation.took
    return not other.observation.replaces and other.time - took <= maker.time
