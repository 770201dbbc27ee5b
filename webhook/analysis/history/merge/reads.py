"""What the answers to reads show of leases: a state of which the input has no write, if it is later than all that have.

In: the reads of audit logs. Out: of each lease, the state that the latest one shows, as a list would show it.
"""

import re
from collections.abc import Collection
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from webhook.analysis.inputs.items import Act, InputKind, Observation, parse_number
from webhook.analysis.inputs.our_objects import decode_our_object
from webhook.kubernetes.managed_fields import list_entries
from webhook.kubernetes.objects import Lease
from webhook.kubernetes.times import SECOND, get_readable_instant, normalize

MAX_READ: Final = 10_000
"""Leases whose reads are kept."""
_MAX_BETWEEN: Final = 16
"""States of one object, between writes that the input has, that are kept."""
_VERSION: Final = re.compile(rb'"resourceVersion":\s*+"([0-9]{1,20})"')
"""The first one in an object is its own: in a text of a client, quotes are escaped."""

_Key = tuple[str, str, str]


class LatestReads(Struct):
    """The read of each object with the highest resourceVersion; of several, the last one: it still was so then.

    An API server may answer from its memory, with what is older: a higher version is later in any case.
    """

    _reads: dict[_Key, tuple[int, Observation]] = field(default_factory=dict)
    _others: dict[_Key, dict[int, Observation]] = field(default_factory=dict)
    """By resourceVersion, the first read of each state that no write before it had made, of each object the latest."""

    def take(self, key: _Key, seen: Observation, written: Collection[int]) -> Observation:
        """Keep what the answer to a read shows, and return the read without that.

        It is kept if it is the latest of its object, or none of the latest states that were `written`.
        """
        found = _VERSION.search(seen.answered_object)
        version, (known, _) = parse_number(found[1].decode()) if found else 0, self._reads.get(key, (0, seen))
        is_later = version > known or (version == known and not seen.is_from_cache)
        if version and is_later and (key in self._reads or len(self._reads) < MAX_READ):
            self._reads[key] = version, seen
        if version and version not in written and (key in self._others or len(self._others) < MAX_READ):
            others = self._others.setdefault(key, {})
            others.setdefault(version, seen)
            if len(others) > _MAX_BETWEEN:
                del others[min(others)]
        return replace(seen, answered_object=b"")

    def clear(self) -> None:
        """Forget all of them."""
        self._reads.clear()
        self._others.clear()

    def take_states_between(self, key: _Key, revisions: Collection[int]) -> list[Observation]:
        """Return the states that reads show and no write made, between the first and the last of some; forget them."""
        others = self._others.get(key)
        if not others or not revisions:
            return []
        first, last = min(revisions), max(revisions)
        states = [_make_state(seen) for version, seen in others.items() if first < version < last]
        self._others[key] = {version: seen for version, seen in others.items() if version > last}
        return [one for one in states if one is not None and parse_number(one.resource_version) not in revisions]

    def find_unchanged(self, key: _Key, revision: int) -> int | None:
        """Return when a read was last answered, by etcd, with a state that the input has; None if none was."""
        version, seen = self._reads.get(key, (0, None))
        return seen.at if seen is not None and version == revision and not seen.is_from_cache else None

    def find_state(self, key: _Key) -> Observation | None:
        """Return the state that the latest read of an object shows, as a list shows it that was taken then."""
        _, seen = self._reads.get(key, (0, None))
        state = _make_state(seen, is_last=False) if seen is not None else None
        return replace(state, read_at=None, is_from_cache=False, is_deleted_later=True) if state is not None else None

    def list_states(self) -> list[tuple[_Key, Observation]]:
        """Return the state that is left of each object, as a list shows it."""
        found = ((key, _make_state(seen)) for key, (_, seen) in self._reads.items())
        return [(key, state) for key, state in found if state is not None]


def _make_state(seen: Observation, *, is_last: bool = True) -> Observation | None:
    """Return the state that a read shows; None if that cannot be decoded, or nothing dates what is to be the last."""
    try:
        shown, metadata, _ = decode_our_object(seen.kind, seen.version, seen.answered_object)
    except (ValueError, RecursionError):
        return None
    if not isinstance(shown, Lease) or (metadata.namespace, metadata.name) != (seen.namespace, seen.name):
        return None
    is_never_renewed = not is_last and shown.spec.renew_time is None
    if not (is_never_renewed or _is_dated_plausibly(shown, seen.at or 0)):
        return None
    return Observation(
        place=seen.place,
        input_kind=InputKind.DUMP,
        act=Act.STORED,
        kind=seen.kind,
        namespace=seen.namespace,
        name=seen.name,
        object=shown,
        uid=metadata.uid or "",
        resource_version=metadata.resource_version or "",
        is_from_cache=seen.is_from_cache,
        read_at=seen.at,
    )


def _is_dated_plausibly(lease: Lease, read_at: int) -> bool:
    """Return whether stamps and renewTime agree, and come before the read: else a client may have invented either."""
    claimed = get_readable_instant(normalize(lease.spec.renew_time))
    stamps = [one.stamp for one in list_entries(lease.metadata.managed_fields)]
    if claimed is None or claimed > read_at + SECOND:
        return False
    return not stamps or (len(stamps) == 1 and stamps[0] is not None and abs(stamps[0] - claimed) <= 2 * SECOND)
