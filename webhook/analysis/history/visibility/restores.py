"""Where an input shows that the store of an API server was put back to an earlier state.

Then resourceVersions go back to an earlier value, so that they no longer say what came first. A log can show the
same if the clocks of API servers differ. It proves a restore only if each write that it shows replaced the one before.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from webhook.analysis.history.visibility.dating import date_by_itself
from webhook.analysis.inputs.items import Act, InputKind, Item, Observation, StoreRestored, parse_number
from webhook.analysis.inputs.stamp_reader import StampReader
from webhook.kubernetes.times import SECOND

_LATER: Final = 2 * SECOND
_ORDERED: Final = frozenset({InputKind.WATCH, InputKind.AUDIT_LOG})
_REASON: Final = (
    "resourceVersions went back to an earlier value: etcd was put back to an earlier state, "
    "or these are several clusters"
)

_Key = tuple[str, str, str]


class _Latest(Struct):
    """The latest state of an object by resourceVersions; all of its writes between `linked` and that one were seen."""

    state: Observation
    revision: int
    linked: int


def mark_restores(items: Iterable[Item], stamps: StampReader) -> Iterator[Item]:
    """Yield every item, and a StoreRestored before the first one that was written after the store had been put back.

    `stamps` dates states where stamps are believed.
    """
    known: dict[_Key, _Latest] = {}
    for item in items:
        if isinstance(item, Observation) and item.input_kind in _ORDERED and item.resource_version and _is_write(item):
            key, revision = (item.kind, item.namespace, item.name), parse_number(item.resource_version)
            latest = known.get(key)
            is_other = latest is not None and item.uid != latest.state.uid
            if latest is None or (is_other and (item.act is not Act.CREATED or revision > latest.revision)):
                known[key] = _Latest(item, revision, parse_number(item.replaces) or revision)
            elif revision > latest.revision:
                _follow(latest, item, revision)
            elif revision < latest.revision and _is_put_back(latest, item, revision, stamps):
                at = _bound_storing(item, stamps)[0]
                yield StoreRestored(_find_latest_before(known, at, stamps), at, _REASON)
                known = {key: _Latest(item, revision, parse_number(item.replaces) or revision)}
        yield item


def _is_write(item: Observation) -> bool:
    return item.act not in {Act.READ, Act.COLLECTION} and item.is_stored


def _follow(latest: _Latest, state: Observation, revision: int) -> None:
    replaced = parse_number(state.replaces)
    latest.linked = latest.linked if replaced == latest.revision else replaced or revision
    latest.state, latest.revision = state, revision


def _is_put_back(latest: _Latest, state: Observation, revision: int, stamps: StampReader) -> bool:
    """Return whether nothing else explains a lower resourceVersion than that of the latest state."""
    if _bound_storing(state, stamps)[0] <= _bound_storing(latest.state, stamps)[1] + _LATER:
        return False
    if state.input_kind is not latest.state.input_kind:
        return False  # another input shows the same write later
    if state.input_kind is InputKind.WATCH:
        return state.place.path == latest.state.place.path  # a watch has the changes of an object in order
    return latest.linked < revision


def _bound_storing(seen: Observation, stamps: StampReader) -> tuple[int, int]:
    """Return between which moments something was stored, as far as it says: 0 if nothing does."""
    if seen.at is not None:
        return seen.at - seen.took, seen.at
    at = date_by_itself(seen, stamps) or 0
    return at, at


def _find_latest_before(known: dict[_Key, _Latest], at: int, stamps: StampReader) -> int:
    """Return when the latest of all states was stored that was seen before a moment."""
    ends = (_bound_storing(one.state, stamps)[1] for one in known.values())
    return max((end for end in ends if end <= at), default=at)
