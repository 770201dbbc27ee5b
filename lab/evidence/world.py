"""One Lease, the clocks of one to three API servers, the webhook's clock, and the truth about who renewed when.

True time and all clocks are microseconds since 1970.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from lab.evidence.field_manager import FieldManager
from tests.evidence.conditions import METADATA, is_sent, owns_renew_time
from tests.evidence.records import SECOND, Elector, Record, Write, body_of
from tests.evidence.reviews import ATTACKER, Outcome
from tests.evidence.stamping import WRITER, WRITTEN, annotations_of, stamped
from tests.evidence.stored_lease import Lease

Evaluate = Callable[..., Outcome]
"""A review's bytes and the webhook's clock make an outcome."""


class Clocks(Struct, frozen=True):
    """The lead of each API server's clock and of the webhook's over true time."""

    servers: tuple[int, ...]
    webhook: int

    def find_spread(self, *, with_webhook: bool) -> int:
        """Return how far they differ at most."""
        clocks = (*self.servers, self.webhook) if with_webhook else self.servers
        return max(clocks) - min(clocks)


class World(Struct):
    """The state of one history, and the records of its writes.

    `replaced`: the namespace was labeled and is no longer, and no renewal was recorded since.
    """

    manager: FieldManager
    evaluate: Evaluate
    at: int
    clocks: Clocks
    electors: tuple[Elector, ...]
    lease: Lease | None = None
    renewed_by_holder: int = 0
    moved: int = 0
    stamped: bool = False
    serial: int = 0
    probing: bool = False
    attacker: Mapping[str, Any] = field(default_factory=lambda: ATTACKER)
    stamps: bool = False
    listed: bool = False
    replaced: bool = False
    records: list[Record] = field(default_factory=list)

    @property
    def holder(self) -> Elector | None:
        """Elector that holds the lease, if an honest one does."""
        held_by = "" if self.lease is None else self.lease.holder
        return next((one for one in self.electors if one.identity == held_by), None)

    @property
    def duration(self) -> int:
        """Stored duration in seconds; 15 without one."""
        return (self.lease.duration if self.lease else 0) or 15

    def wait(self, random: Random, least: float, most: float) -> None:
        """Let true time pass, in seconds."""
        self.at += max(1, int(random.uniform(least, most) * SECOND))

    def draw_server_time(self, random: Random) -> int:
        """Return the clock of some API server, in whole seconds."""
        return (self.at + random.choice(self.clocks.servers)) // SECOND

    def draw_number(self) -> int:
        """Return a number that no write of this history had before."""
        self.serial += 1
        return self.serial

    def send(
        self,
        new: Lease | None,
        *,
        honest: bool,
        kind: str,
        manager: str,
        user: Mapping[str, Any],
        mutations: tuple[str, ...] = (),
        final_try: bool = False,
    ) -> bool:
        """Have a write reviewed if the conditions let it through, and store it unless it is denied."""
        if self.stamps and new is not None:
            new = stamped(self.lease, new, user)
        write = Write(
            honest=honest,
            kind=kind,
            manager=manager,
            mutations=mutations,
            at=self.at,
            now=self.at + self.clocks.webhook,
            user=user,
            old=self.lease,
            new=new,
            renewed_by_holder=self.renewed_by_holder,
            moved=self.moved,
            clocks_differ=self.clocks.find_spread(with_webhook=self._is_dated_by_webhook(new)),
            stamped=self.stamped,
            final_try=final_try,
            listed=self.stamps and self.listed,
        )
        sent = is_sent(self.lease, new)
        outcome = self.evaluate(body_of(write), write.now, listed=self.listed) if sent else Outcome(200, allowed=True)
        record = Record(write, sent, outcome, self.probing)
        self.records.append(record)
        if record.allowed and not self.probing:
            self._store(new, honest=honest)
        return record.allowed

    def _is_dated_by_webhook(self, new: Lease | None) -> bool:
        if not (self.stamps and self.listed):
            return _is_dated_by_webhook(self.lease, new)
        before, after = annotations_of(self.lease), annotations_of(new)
        # The stamp of another writer is of this write; that of the same one, or of nobody, may be of an earlier one.
        return not after.get(WRITTEN) or after.get(WRITER) == before.get(WRITER) or not before.get(WRITTEN)

    def _store(self, new: Lease | None, *, honest: bool) -> None:
        old, self.lease = self.lease, new
        if new is None:
            return
        if self.stamps:
            self.stamped = self.listed and bool(annotations_of(new).get(WRITTEN))
            self._keep_version(old, new, honest=honest)
            return
        was_stamped = self.stamped and old is not None
        self.replaced = self.replaced and not any(owns_renew_time(entry) and entry.time for entry in new.entries or ())
        self.stamped = was_stamped or (
            bool(new.entries) and not self.replaced and (honest or _is_stamped_by_server(old, new))
        )
        self._keep_version(old, new, honest=honest)

    def _keep_version(self, old: Lease | None, new: Lease, *, honest: bool) -> None:
        if old is None or old.renew_time != new.renew_time:
            self.moved = self.at
            if honest:
                self.renewed_by_holder = self.at
        elif _list_owners(new) - _list_owners(old):
            self.moved = self.at
        version = str(int(new.object["metadata"].get("resourceVersion", "100")) + 1)
        self.lease = replace(
            new, object={**new.object, "metadata": {**new.object["metadata"], "resourceVersion": version}}
        )


def _list_owners(lease: Lease) -> set[tuple[str, str, str | None]]:
    return {(entry.manager, entry.operation, entry.time) for entry in lease.entries or () if owns_renew_time(entry)}


def _is_stamped_by_server(old: Lease | None, new: Lease) -> bool:
    """Return whether an API server stamped something in a write; a list that is sent alone is the client's."""
    if old is None or old.spec != new.spec:
        return True
    return any(old.object["metadata"].get(name) != new.object["metadata"].get(name) for name in METADATA)


def _is_dated_by_webhook(old: Lease | None, new: Lease | None) -> bool:
    """Return whether no API server's clock dates a write: a delete, a release, no stamps, or a writer folded away."""
    if new is None or not new.holder or (old is not None and not old.entries):
        return True
    owners = [entry for entry in new.entries or () if '"f:holderIdentity":{}' in entry.fields]
    return any(entry.manager == "ancient-changes" for entry in owners) or not owners


def format_micro_time(at: int) -> str:
    """Return a MicroTime as the API server prints it."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def format_time(seconds: int) -> str:
    """Return an entry time as the API server prints it."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
