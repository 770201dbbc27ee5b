"""The leases of a list, which may have 100,000 of them: each as compressed text until it is asked for."""

import zlib
from array import array
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from msgspec import Struct, field

from webhook.analysis.history.comparison import is_renewed_since_creation
from webhook.analysis.history.status import date_renewal
from webhook.analysis.inputs.documents import Document
from webhook.analysis.inputs.items import Observation, Place
from webhook.analysis.inputs.kinds import interpret_for_history
from webhook.kubernetes.objects import Lease
from webhook.kubernetes.times import SECOND

Key = tuple[str, str]
"""The namespace and the name of a lease."""

_IN_BLOCK: Final = 64
"""Leases that are compressed together: alone they would take three times as much."""
_SEPARATOR: Final = b"\0"
"""A byte that JSON does not contain."""
_NEVER: Final = -1


class StoredLeases(Struct):
    """Each lease that only lists have shown."""

    numbers: dict[Key, int] = field(default_factory=dict)
    """The position of each lease in the blocks."""
    _blocks: list[tuple[str, bytes]] = field(default_factory=list)
    """The inputs that showed them, and their texts."""
    _path: str = ""
    _texts: list[bytes] = field(default_factory=list)
    """The texts of the block that is not full."""
    _renewed: "array[int]" = field(default_factory=lambda: array("q"))
    """The last renewal of each, and half of its duration in microseconds; _NEVER if it is not compared."""

    def add(self, key: Key, seen: Observation) -> bool:
        """Keep a lease; False if that is not possible, because it is known or has no text."""
        if key in self.numbers or not seen.text or not isinstance(seen.object, Lease):
            return False
        if self._texts and (self._path != seen.place.path or len(self._texts) == _IN_BLOCK):
            self._blocks.append((self._path, zlib.compress(_SEPARATOR.join(self._texts), 1)))
            # Numbers count full blocks.
            self._renewed.extend([_NEVER, 0] * (_IN_BLOCK - len(self._texts)))
            self._texts = []
        self._path = seen.place.path
        self.numbers[key] = len(self._blocks) * _IN_BLOCK + len(self._texts)
        self._texts.append(seen.text)
        spec, duration = seen.object.spec, seen.object.spec.lease_duration_seconds
        at = date_renewal(spec, seen.entries) if spec.holder_identity and duration is not None else None
        if at is not None and not is_renewed_since_creation(seen.object, at):
            at = None
        self._renewed.extend((_NEVER, 0) if at is None else (at, max(0, duration or 0) * SECOND // 2))
        return True

    def forget(self, key: Key) -> None:
        """Keep a lease no longer."""
        self._renewed[2 * self.numbers.pop(key)] = _NEVER

    def get(self, key: Key) -> Observation | None:
        """Return what the list showed of a lease; None if it is not known."""
        number = self.numbers.get(key)
        if number is None:
            return None
        block, place = divmod(number, _IN_BLOCK)
        path, texts = self._path, self._texts
        if block < len(self._blocks):
            path, packed = self._blocks[block]
            texts = _unpack(packed)
        found = Document(place=Place(path), kind="Lease", api_version="coordination.k8s.io/v1", text=texts[place])
        seen = interpret_for_history(found)
        assert isinstance(seen, Observation)
        return seen

    def list_last_renewals(self) -> Iterator[tuple[int, int]]:
        """Yield when each that is compared was last renewed, and half of its duration."""
        pairs = zip(self._renewed[::2], self._renewed[1::2], strict=True)
        return (pair for pair in pairs if pair[0] != _NEVER)


@lru_cache(8)
def _unpack(packed: bytes) -> list[bytes]:
    # Names that follow each other may be in several blocks.
    return zlib.decompress(packed).split(_SEPARATOR)
