"""Leases of a list, of which a cluster may have 100,000: kept as compressed text until one is asked for."""

import zlib
from array import array
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from msgspec import Struct, field

from webhook.api.objects import Lease
from webhook.api.times import SECOND
from webhook.history.status import renewed_at
from webhook.inputs.documents import Document
from webhook.inputs.items import Observation, Place
from webhook.inputs.kinds import observed

Key = tuple[str, str]

_IN_BLOCK: Final = 64
"""Leases that are compressed together: alone they would take three times as much."""
_SEPARATOR: Final = b"\0"
"""A byte that JSON does not contain."""
_NEVER: Final = -1


class StoredLeases(Struct):
    """Each lease as one list showed it."""

    _numbers: dict[Key, int] = field(default_factory=dict)
    _blocks: list[tuple[str, bytes]] = field(default_factory=list)
    """The inputs that showed them, and their texts."""
    _path: str = ""
    _texts: list[bytes] = field(default_factory=list)
    """Of the block that is not full."""
    _renewed: "array[int]" = field(default_factory=lambda: array("q"))
    """Of each, when it was last renewed and half of its duration in microseconds; _NEVER if it is not held."""

    @property
    def is_used(self) -> bool:
        """True if any lease is kept."""
        return bool(self._numbers)

    def keys(self) -> Iterator[Key]:
        """Yield the names."""
        return iter(self._numbers)

    def add(self, key: Key, seen: Observation) -> bool:
        """Keep a lease; False if that is not possible, because it is known or has no text."""
        if key in self._numbers or not seen.text or not isinstance(seen.object, Lease):
            return False
        if self._path != seen.place.path or len(self._texts) == _IN_BLOCK:
            self._close()
            self._path = seen.place.path
        self._numbers[key] = len(self._blocks) * _IN_BLOCK + len(self._texts)
        self._texts.append(seen.text)
        spec, duration = seen.object.spec, seen.object.spec.lease_duration_seconds
        at = renewed_at(spec, seen.entries) if spec.holder_identity and duration is not None else None
        self._renewed.extend((_NEVER, 0) if at is None else (at, max(0, duration or 0) * SECOND // 2))
        return True

    def take(self, key: Key) -> Observation | None:
        """Return what the list showed of a lease, and keep it no longer."""
        seen = self.get(key)
        if seen is not None:
            self._renewed[2 * self._numbers.pop(key)] = _NEVER
        return seen

    def get(self, key: Key) -> Observation | None:
        """Return what the list showed of a lease; None if it is not known."""
        number = self._numbers.get(key)
        if number is None:
            return None
        block, place = divmod(number, _IN_BLOCK)
        path, texts = self._path, self._texts
        if block < len(self._blocks):
            path, packed = self._blocks[block]
            texts = _unpacked(packed)
        found = Document(place=Place(path), kind="Lease", api_version="coordination.k8s.io/v1", text=texts[place])
        seen = observed(found)
        assert isinstance(seen, Observation)
        return seen

    def last_renewals(self) -> Iterator[tuple[int, int]]:
        """Yield when each that is held was last renewed, and half of its duration."""
        pairs = zip(self._renewed[::2], self._renewed[1::2], strict=True)
        return (pair for pair in pairs if pair[0] != _NEVER)

    def _close(self) -> None:
        if self._texts:
            self._blocks.append((self._path, zlib.compress(_SEPARATOR.join(self._texts), 1)))
            # Numbers count full blocks.
            self._renewed.extend([_NEVER, 0] * (_IN_BLOCK - len(self._texts)))
            self._texts = []


@lru_cache(8)
def _unpacked(packed: bytes) -> list[bytes]:
    # Names that follow each other may be in several blocks.
    return zlib.decompress(packed).split(_SEPARATOR)
