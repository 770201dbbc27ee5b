"""From which addresses a pod renews a lease, and whether a write with its token came from another one.

An address is that of the peer of the API server, which no client chooses; a proxy or NAT in between hides that of the
client. So only an address that no other process has tells anything, and only of a pod that has no more than one.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from webhook.analysis.history.visibility.bounds import MAX_LISTED
from webhook.analysis.inputs.items import Observation, Writer, name_program
from webhook.kubernetes.objects import Lease

_MIN_RENEWALS: Final = 3
"""After fewer writes, a pod may well have several addresses."""


class Elsewhere(Struct, frozen=True):
    """A write with the token of a pod came from `address`; all renewals of that pod came from `own`."""

    address: str
    own: str


class SourceRun(Struct, frozen=True):
    """The latest writes of a user, which came from one address, in microseconds since 1970; `program` is that of all.

    `before` is the program, and the address, of its writes until then, the last one at `left`. Programs are what user
    agents name, which clients choose; "" of several.
    """

    address: str
    program: str
    first: int
    last: int
    count: int = 1
    before: tuple[str, str] = ("", "")
    left: int = 0

    def follow(self, address: str, program: str, at: int) -> "SourceRun":
        """Return the run after another write, which may begin one from another address."""
        if address != self.address:
            return SourceRun(address, program, at, at, before=(self.program, self.address), left=self.last)
        return replace(self, program=self.program if program == self.program else "", last=at, count=self.count + 1)


class AddressesOfWriter(Struct):
    """From which addresses the writes of one process or user came: how often, since when, and how often in turn.

    `conflicts` of the writes were answered with 409; `run` are the latest of them, from one address.
    """

    counts: dict[str, int] = field(default_factory=dict)
    first: dict[str, int] = field(default_factory=dict)
    turns: int = 0
    conflicts: int = 0
    run: SourceRun | None = None
    _latest: str = ""

    def add(self, source: str, at: int, *, is_conflict: bool) -> None:
        """Count a write, from an address and by a program."""
        address, _, agent = source.partition(" ")
        program = name_program(agent)
        self.run = SourceRun(address, program, at, at) if self.run is None else self.run.follow(address, program, at)
        if address not in self.counts and len(self.counts) >= MAX_LISTED:
            return
        self.turns += 1 if self._latest not in {"", address} else 0
        self.counts[address] = self.counts.get(address, 0) + 1
        self.first.setdefault(address, at)
        self.conflicts += 1 if is_conflict else 0
        self._latest = address


class WriteAddresses(Struct):
    """The address from which the writes of each pod that left a holder came, "" for several, and their number."""

    renewals: dict[Writer, tuple[str, int]] = field(default_factory=dict)

    by_writer: dict[Writer, AddressesOfWriter] = field(default_factory=dict)
    """The addresses of updates that were stored or conflicted, by process, or by user whose token names no pod."""

    def note_update(self, seen: Observation, *, is_conflict: bool) -> None:
        """Count an update that was stored, or that conflicted."""
        who = seen.writer.process if seen.writer else Writer()
        if not seen.source or not who.user:
            return
        if who in self.by_writer or len(self.by_writer) < MAX_LISTED:
            of_writer = self.by_writer.setdefault(who, AddressesOfWriter())
            of_writer.add(seen.source, seen.at or 0, is_conflict=is_conflict)

    def take(self, seen: Observation) -> None:
        """Count a write that was stored, if its token names a pod, and it left a holder."""
        who = _get_pod(seen)
        if who is None or not isinstance(seen.object, Lease) or not seen.object.spec.holder_identity:
            return
        if who in self.renewals or len(self.renewals) < MAX_LISTED:
            address = get_address(seen.source)
            own, count = self.renewals.get(who, (address, 0))
            self.renewals[who] = (own if own == address else "", count + 1)

    def find_elsewhere(self, seen: Observation, sources: Mapping[str, Sequence[Writer]]) -> Elsewhere | None:
        """Return from where a write came, if not from where its pod renews; None if that cannot be known.

        `sources` are the processes by address and program of all requests.
        """
        who, address = _get_pod(seen), get_address(seen.source)
        own, count = self.renewals.get(who, ("", 0)) if who else ("", 0)
        if who is None or not own or count < _MIN_RENEWALS or len(sources) >= MAX_LISTED:
            return None
        # A pod may have an address of each family.
        if own == address or (":" in own) is not (":" in address):
            return None
        users = [one for source, known in sources.items() if get_address(source) in {own, address} for one in known]
        return Elsewhere(address, own) if all(map(who.is_same, users)) else None


def get_address(source: str) -> str:
    """Return the address of an address and program."""
    return source.partition(" ")[0]


def _get_pod(seen: Observation) -> Writer | None:
    """Return the pod whose token a request had, if a log shows that and from where it came; else None."""
    who = seen.writer.process if seen.writer else Writer()
    return who if who.uid and who.pod and not who.impersonator and seen.source else None
