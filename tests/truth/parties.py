"""Everybody who makes requests: what the API server knows of each, and what each does in truth."""

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from tests.factories import Document
from tests.model.api_server import Lease, User, Write
from tests.truth.plans import Role
from tests.truth.records import END, Process, Refusal, Span, State, subtract_spans
from tests.truth.stage import SECOND, Actor, Agenda

PATIENCE: Final = 5 * SECOND
"""How long a client waits for an answer: half of client-go's deadline."""


class Call(Struct, frozen=True, kw_only=True):
    """A request: `write` says what is to be stored, given what is (None: nothing).

    `guard` is the resourceVersion that it insists on. `candidate` is the spec of a LeaseCandidate. `planted` are
    annotations that it sends along.
    """

    verb: str
    kind: str = "Lease"
    namespace: str
    name: str
    write: Callable[[Lease | None], Write | None] | None = None
    candidate: Document | None = None
    guard: int | None = None
    patience: int = PATIENCE
    planted: tuple[tuple[str, str], ...] = ()
    is_dry_run: bool = False
    is_invalid: bool = False
    has_wrong_token: bool = False


class Answer(Struct, frozen=True):
    """What a client gets: `state` is what is stored now, None if the object does not exist."""

    code: int
    state: State | None = None
    refused: Refusal | None = None

    @property
    def is_good(self) -> bool:
        """Whether it was done."""
        return 200 <= self.code < 300


class Party(Actor):
    """A process with its record."""

    def __init__(
        self,
        agenda: Agenda,
        ask: Callable[[Any, Any, Callable[[Any], None]], None],
        *,
        name: str,
        role: Role,
        user: User,
        pod: str = "",
        uid: str = "",
        lease: str = "",
        manager: str,
        address: str,
        agent: str,
        server: int = 0,
    ) -> None:
        super().__init__(agenda, ask)
        self.name = name
        self.role = role
        self.user = user
        self.pod = pod
        self.uid = uid
        self.identity = ""
        self.lease = lease
        self.manager = manager
        self.address = address
        self.agent = agent
        self.server = server
        self.skew = 0
        self.is_cut = False
        self.is_sending_invalid = False
        self.has_bad_token = False
        self.lacks_delete = role is Role.ATTACKER
        self.children: list[Actor] = []
        self._born = agenda.now
        self._died = END
        self._spans: dict[str, list[Span]] = {"paused": [], "blocked": [], "works": []}
        self._since: dict[str, int] = {}

    def clock(self) -> int:
        """Return what its own clock shows."""
        return self.agenda.now + self.skew

    def starts(self, what: str) -> None:
        """Begin to be paused, to be blocked or to work."""
        self._since.setdefault(what, self.agenda.now)

    def ends(self, what: str) -> None:
        """End to be so."""
        if what in self._since:
            self._spans[what].append(Span(self._since.pop(what), self.agenda.now))

    @property
    def is_working(self) -> bool:
        """Whether it believes that it leads."""
        return "works" in self._since

    def kill(self) -> None:
        """End it at once."""
        if self.is_alive:
            self._died = self.agenda.now
            for what in tuple(self._since):
                self.ends(what)
        super().kill()
        for child in self.children:
            child.kill()

    def pause(self) -> None:
        """Stop it; it does no work meanwhile."""
        self.starts("paused")
        super().pause()
        for child in self.children:
            child.pause()

    def resume(self) -> None:
        """Let it go on."""
        self.ends("paused")
        super().resume()
        for child in self.children:
            child.resume()

    def block(self) -> None:
        """Have its loop blocked by its work."""
        self.starts("blocked")
        super().pause()

    def unblock(self) -> None:
        """Let its loop go on."""
        self.ends("blocked")
        super().resume()

    def record(self) -> Process:
        """Return what is known of it in the end."""
        spans = {
            what: (*found, Span(self._since[what], END)) if what in self._since else tuple(found)
            for what, found in self._spans.items()
        }
        return Process(
            name=self.name,
            role=self.role,
            user=self.user,
            pod=self.pod,
            uid=self.uid,
            identity=self.identity,
            lease=self.lease,
            manager=self.manager,
            address=self.address,
            agent=self.agent,
            alive=(Span(self._born, self._died),),
            paused=spans["paused"],
            blocked=spans["blocked"],
            works=subtract_spans(spans["works"], spans["paused"]),
        )
