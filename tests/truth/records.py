"""What really happened: processes, requests, states, faults. Instants are true time in microseconds since 1970.

An instant that is called `clock` is what an API server's clock showed.
"""

import json
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Final

from msgspec import Struct

from tests.factories import Document
from tests.model.api_server import Lease, User
from tests.truth.plans import Fault, Plan, Role

END: Final = 2**62
"""The end of what did not end."""


class Span(Struct, frozen=True):
    """A time; one that did not end has END."""

    begin: int
    end: int

    def holds(self, at: int) -> bool:
        """Return whether an instant lies in it."""
        return self.begin <= at < self.end

    def meets(self, begin: int, end: int) -> bool:
        """Return whether it has an instant in common with another time."""
        return self.begin <= end and begin < self.end


class Process(Struct, frozen=True, kw_only=True):
    """One process. Two of one pod have the same `uid`; a pod that replaces another under its name has a new one.

    `works`: it acts as the leader, whatever the lease says.
    """

    name: str
    role: Role
    user: User
    pod: str = ""
    uid: str = ""
    identity: str = ""
    lease: str = ""
    manager: str = ""
    address: str = ""
    agent: str = ""
    alive: tuple[Span, ...] = ()
    paused: tuple[Span, ...] = ()
    blocked: tuple[Span, ...] = ()
    works: tuple[Span, ...] = ()

    @property
    def writer(self) -> tuple[str, str]:
        """What the API server knows of it: user and pod uid."""
        return self.user.name, self.uid


class State(Struct, frozen=True, dict=True):
    """A stored object. `text` is the object as JSON; `lease` is None for a LeaseCandidate."""

    key: tuple[str, str, str]
    uid: str
    revision: int
    text: bytes
    lease: Lease | None = None
    term: str = ""
    annotations: tuple[tuple[str, str], ...] = ()

    @cached_property
    def candidate(self) -> Document:
        """The spec of a LeaseCandidate."""
        spec: Document = json.loads(self.text)["spec"]
        return spec


class Refusal(Struct, frozen=True):
    """Why a request was not stored: the code, what refused it, and what it said."""

    code: int
    by: str
    message: str
    reason: str = ""


class Request(Struct, frozen=True, kw_only=True):
    """A request that an API server received. `user` is None where it was not authenticated.

    `stored_at` is when etcd had it; None where nothing was stored. `stamp_clock` is the time that was stamped.
    """

    number: int
    process: str
    server: int
    verb: str
    kind: str
    namespace: str
    name: str
    received: int
    answered: int
    received_clock: int
    answered_clock: int
    stamp_clock: int = 0
    user: User | None
    pod: str
    uid: str
    address: str
    agent: str
    code: int
    refused: Refusal | None = None
    body: Document | None = None
    replaces: str = ""
    before: State | None = None
    after: State | None = None
    stored_at: int | None = None
    is_dry_run: bool = False
    pod_uid: str = ""
    """The uid of the pod that a request deletes or evicts."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Kind, namespace and name."""
        return self.kind, self.namespace, self.name


class History(Struct, frozen=True, dict=True, kw_only=True):
    """Everything that happened in a plan that was played."""

    plan: Plan
    begin: int
    end: int
    processes: tuple[Process, ...]
    requests: tuple[Request, ...]
    """In the order in which they were answered."""

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What was made to fail."""
        return self.plan.faults

    @cached_property
    def by_name(self) -> dict[str, Process]:
        """Every process by its name."""
        return {one.name: one for one in self.processes}

    @cached_property
    def called(self) -> dict[str, set[str]]:
        """By process, its identity, and what a webhook stored in place of that."""
        identities = {one.name: {one.identity} for one in self.processes}
        for request in self.stores:
            # A patch need not have a spec.
            asked = (
                request.body.get("spec", {}).get("holderIdentity") if request.body and request.kind == "Lease" else None
            )
            stored = request.after.lease.spec.holder if request.after and request.after.lease else None
            if asked and stored and asked in identities[request.process]:
                identities[request.process].add(stored)
        return identities

    @cached_property
    def stores(self) -> tuple[Request, ...]:
        """Requests that changed something, in the order in which etcd had them."""
        changed = (one for one in self.requests if one.stored_at is not None)
        return tuple(sorted(changed, key=_revision))

    @property
    def pod_deletions(self) -> Iterator[Request]:
        """Requests by which pods were deleted or evicted."""
        return (one for one in self.requests if one.kind == "Pod" and not one.refused and not one.is_dry_run)

    def writes(self, key: tuple[str, str]) -> tuple[Request, ...]:
        """Return the requests that changed one lease, in the order in which etcd had them."""
        return self._writes.get(("Lease", *key), ())

    @cached_property
    def _writes(self) -> dict[tuple[str, str, str], tuple[Request, ...]]:
        requests: dict[tuple[str, str, str], list[Request]] = {}
        for stored in self.stores:
            requests.setdefault(stored.key, []).append(stored)
        return {key: tuple(writes) for key, writes in requests.items()}

    @property
    def leases(self) -> tuple[tuple[str, str], ...]:
        """Namespace and name of every lease that ever was."""
        return tuple(key[1:] for key in self._writes if key[0] == "Lease")

    def state(self, key: tuple[str, str, str], at: int) -> State | None:
        """Return what was stored at an instant."""
        last = None
        for write in self._writes.get(key, ()):
            if (write.stored_at or 0) > at:
                break
            last = write
        return last.after if last else None

    def leaders(self, lease: str, at: int) -> tuple[Process, ...]:
        """Return the processes that act as the leader of a lease at an instant."""
        electors = (one for one in self.processes if one.lease == lease)
        return tuple(one for one in electors if any(span.holds(at) for span in one.works))

    def overlaps(self, lease: str) -> Iterator[tuple[Span, Process, Process]]:
        """Yield every time in which two processes acted as the leader of a lease."""
        electors = [one for one in self.processes if one.lease == lease and one.works]
        for number, some in enumerate(electors):
            for other in electors[number + 1 :]:
                yield from ((span, some, other) for span in common(some.works, other.works))


def common(some: Iterable[Span], others: Iterable[Span]) -> Iterator[Span]:
    """Yield the times that lie in both."""
    others = tuple(others)
    for span in some:
        for other in others:
            begin, end = max(span.begin, other.begin), min(span.end, other.end)
            if begin < end:
                yield Span(begin, end)


def subtract_spans(spans: Iterable[Span], cut: Iterable[Span]) -> tuple[Span, ...]:
    """Return the times without those that are cut out of them."""
    left = list(spans)
    for hole in cut:
        pieces = []
        for span in left:
            pieces += [Span(span.begin, min(span.end, hole.begin)), Span(max(span.begin, hole.end), span.end)]
        left = [one for one in pieces if one.begin < one.end]
    return tuple(left)


def _revision(request: Request) -> int:
    state = request.after or request.before
    assert request.stored_at is not None
    return request.stored_at * 10_000 + (state.revision % 10_000 if state else 0)
