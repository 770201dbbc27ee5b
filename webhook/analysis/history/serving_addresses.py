"""From which addresses API servers renew an identity lease: two whose hosts have one name renew the same lease.

An API server names its lease after the name of its host, writes its own address into an annotation of it, and renews
what it finds under any holder. Source: kubernetes `pkg/controlplane/apiserver/server.go`.
"""

from typing import Final

from msgspec import Struct, field

ADDRESS: Final = "kubernetes.io/peer-advertise-address"
_MAX_ADDRESSES: Final = 8


class ServingAddresses(Struct):
    """When each address was written first and last, in microseconds since 1970, and how often another one came."""

    seen: dict[str, tuple[int, int]] = field(default_factory=dict)
    turns: int = 0
    _latest: str = ""

    def note(self, address: str, at: int) -> None:
        """Remember the address of a write; too many different ones are left out."""
        if address not in self.seen and len(self.seen) >= _MAX_ADDRESSES:
            return
        first, last = self.seen.get(address, (at, at))
        self.seen[address] = first, max(last, at)
        self.turns += 1 if self._latest not in {"", address} else 0
        self._latest = address
