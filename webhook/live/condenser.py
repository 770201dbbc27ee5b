"""What a recorder keeps of the changes of leases: all of them but ordinary renewals, which it counts.

A record is an event of a watch, so whatever reads a watch reads it. The last state before anything else than an
ordinary renewal, and before a silence, has the key `renewals`: see `webhook.inputs.items.Stretch`.
"""

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from webhook.api.objects import Lease, ObjectMeta
from webhook.api.times import SECOND
from webhook.history.status import written_at
from webhook.history.stored import Key
from webhook.history.writes import dates_renewal_again
from webhook.inputs.items import MAX_BINS, MAX_LATEST, MILLISECOND, Act, Observation, Stretch

_FINE: Final = 200
"""Intervals that differ by a smaller part of their length are one in a histogram."""
_MIN_INTERVALS: Final = 3
_EVERY: Final = 16
"""Renewals after which the usual interval is computed again."""
_CHANGES: Final = {Act.STORED: "ADDED", Act.UPDATED: "MODIFIED", Act.DELETED: "DELETED"}

_Key = tuple[str, str, str]


class _State(Struct, gc=False):
    """The latest state of an object, and the renewals since the one that was recorded."""

    seen: Observation
    at: int | None = None
    is_new_holder: bool = False
    usual: int | None = None
    count: int = 0
    latest: list[int] = field(default_factory=list)
    histogram: dict[int, int] = field(default_factory=dict)

    @property
    def record(self) -> bytes:
        """The state, with the renewals that led to it."""
        if not self.latest:
            return _record("ADDED", self.seen)
        return _record("MODIFIED", self.seen, Stretch(self.latest, self.histogram))

    def is_silence(self, gap: int) -> bool:
        """True if a reader may call a time without a renewal a silence, so that it must see both ends of it."""
        return self.usual is not None and gap > self.usual * 7 // 5 + SECOND * 4 // 5

    def renew(self, gap: int) -> None:
        """Count one renewal."""
        self.count += 1
        self.latest.append(gap)
        if len(self.latest) > MAX_LATEST:
            length = round(self.latest.pop(0) / MILLISECOND)
            fine = max(1, length // _FINE)
            length = round(length / fine) * fine
            self.histogram[length] = self.histogram.get(length, 0) + 1
        if len(self.latest) >= _MIN_INTERVALS and (self.usual is None or self.count % _EVERY == 0):
            self.usual = sorted(self.latest)[len(self.latest) // 2]


class Condenser:
    """The leases and candidates of a cluster: the latest state of each, and what is not recorded yet."""

    def __init__(self) -> None:
        self._states: dict[_Key, _State] = {}
        self._latest = 0
        self._renewed_last: _Key = ("", "", "")

    def names(self, kind: str) -> set[Key]:
        """Return the namespace and name of every object of a kind."""
        return {key[1:] for key in self._states if key[0] == kind}

    def take(self, seen: Observation) -> Iterator[bytes]:
        """Yield what is to be recorded of one event of a watch."""
        key = (seen.kind, seen.namespace, seen.name)
        before, lease = self._states.get(key), seen.object
        if seen.act is Act.DELETED:
            # A watch does not date a deletion: it counts as made after whatever was renewed last.
            yield from _counted(self._states.get(self._renewed_last))
            yield from _counted(self._states.pop(key, None))
            # Of what a list lacks, the state before is what is known.
            seen = seen if seen.text or before is None else replace(before.seen, act=Act.DELETED)
        elif before is not None and before.seen.resource_version == seen.resource_version:
            return
        else:
            state = _State(seen)
            self._states[key] = state
            if isinstance(lease, Lease):
                state.at = written_at(lease.spec, seen.entries)
            if before is not None and isinstance(before.seen.object, Lease) and isinstance(lease, Lease):
                state.usual = before.usual
                state.is_new_holder = before.seen.object.spec.holder_identity != lease.spec.holder_identity
                if seen.act is Act.UPDATED and _is_renewal(before.seen, seen) and self._is_counted(key, before, state):
                    return
            yield from _counted(before)
        yield _record(_CHANGES[seen.act], seen)

    def snapshot(self) -> Iterator[bytes]:
        """Return the state of every object, with what was counted."""
        return (state.record for state in self._states.values())

    def _is_counted(self, key: _Key, before: _State, state: _State) -> bool:
        """Count a renewal, unless it is to be recorded; then the state before it is, too."""
        if before.at is None or state.at is None:
            return False
        state.at = max(state.at, before.at)
        if state.at >= self._latest:
            self._latest, self._renewed_last = state.at, key
        gap = state.at - before.at
        if before.is_new_holder or before.is_silence(gap) or len(before.histogram) >= MAX_BINS:
            return False
        state.count, state.latest, state.histogram = before.count, before.latest, before.histogram
        state.renew(gap)
        return True


def _counted(state: _State | None) -> Iterator[bytes]:
    """Yield a state with the renewals that were counted, if there were some, and begin to count again."""
    if state is not None and state.latest:
        yield state.record
        state.latest, state.histogram = [], {}


def _record(change: str, seen: Observation, stretch: Stretch | None = None) -> bytes:
    renewals = b"" if stretch is None else b'"renewals":' + msgspec.json.encode(stretch) + b","
    text = msgspec.json.format(seen.text, indent=-1) if b"\n" in seen.text else seen.text
    return b'{"type":"%s",%s"object":%s}\n' % (change.encode(), renewals, text)


def _is_renewal(old: Observation, new: Observation) -> bool:
    """True if a state is the one before, renewed in the ordinary way and nothing else."""
    assert isinstance(old.object, Lease)
    assert isinstance(new.object, Lease)
    before, after = old.object.spec, new.object.spec
    return (
        bool(before.holder_identity)
        and after.renew_time not in {None, before.renew_time}
        and after == replace(before, renew_time=after.renew_time)
        and _fixed(old.object.metadata) == _fixed(new.object.metadata)
        and (new.entries == old.entries or dates_renewal_again(new.entries, old.entries))
    )


def _fixed(metadata: ObjectMeta) -> tuple[object, ...]:
    """Return what no renewal changes."""
    owners, deletion = metadata.owner_references, metadata.deletion_timestamp
    return metadata.uid, metadata.labels, metadata.annotations, owners, metadata.finalizers, deletion
