"""Whether candidates of a coordinated election answer: an API server writes pingTime, and they write renewTime then.

In: states of LeaseCandidates, one after another. Out: the pings after which no renewTime was stored. Clocks of a
candidate and of an API server differ, so what counts is what was written after the ping, and not its time.
"""

from msgspec import Struct, field

from webhook.analysis.history.holders.tenure import API_SERVER
from webhook.analysis.inputs.items import Act, Observation, Writer
from webhook.kubernetes.objects import LeaseCandidate
from webhook.kubernetes.times import get_instant, normalize

_Key = tuple[str, str]


class Ping(Struct, frozen=True):
    """The first ping that a candidate left unanswered; `at` is in microseconds since 1970.

    `source` is the path of the input that shows it.
    """

    candidate: str
    lease: str
    at: int
    source: str
    is_by_server: bool = False
    """A log shows that an API server wrote it."""


class Answer(Struct, frozen=True):
    """The answer to a ping, stored at `at`, whose renewTime is not later than the ping: it does not count.

    By a log, the clock of its writer is `behind` by so many microseconds.
    """

    candidate: str
    lease: str
    at: int
    behind: int
    writer: Writer


class Pings(Struct):
    """The pings that no candidate has answered, and the answers that do not count, by its namespace and name."""

    unanswered: dict[_Key, Ping] = field(default_factory=dict)
    vain: dict[_Key, Answer] = field(default_factory=dict)

    def take(self, seen: Observation, before: LeaseCandidate | None, at: int | None) -> None:
        """Add a stored state. `before` is the state before it and `at` the time of the write, each None if unknown."""
        key, now = (seen.namespace, seen.name), seen.object
        if seen.act is Act.DELETED:
            self.unanswered.pop(key, None)
            self.vain.pop(key, None)
        if seen.act is Act.DELETED or not isinstance(now, LeaseCandidate):
            return
        if before is not None and now.spec.renew_time != before.spec.renew_time:
            self.unanswered.pop(key, None)
            self._note_answer(key, seen, now)
        elif seen.act is Act.UPDATED and at is not None and _is_ping(seen, before, now):
            is_by_server = seen.writer is not None
            ping = Ping(seen.name, now.spec.lease_name or "", at, seen.place.path, is_by_server)
            self.unanswered.setdefault(key, ping)

    def _note_answer(self, key: _Key, seen: Observation, now: LeaseCandidate) -> None:
        """Keep an answer that does not count, until another one does."""
        pinged, renewed = (get_instant(normalize(one)) for one in (now.spec.ping_time, now.spec.renew_time))
        if pinged is None or renewed is None or renewed > pinged:
            self.vain.pop(key, None)
        elif seen.at is not None and seen.writer is not None:
            behind = seen.at - seen.took - renewed
            self.vain[key] = Answer(seen.name, now.spec.lease_name or "", seen.at, behind, seen.writer)

    def list_vain_answers(self, namespace: str, lease: str) -> tuple[Answer, ...]:
        """Return the answers of the candidates of a lease that do not count, the latest one last."""
        found = (one for (place, _), one in self.vain.items() if place == namespace and one.lease == lease)
        return tuple(sorted(found, key=lambda one: one.at))

    def list_for_lease(self, namespace: str, lease: str) -> tuple[Ping, ...]:
        """Return the unanswered pings of the candidates of a lease, the oldest first."""
        found = (one for (place, _), one in self.unanswered.items() if place == namespace and one.lease == lease)
        return tuple(sorted(found, key=lambda one: one.at))


def _is_ping(seen: Observation, before: LeaseCandidate | None, now: LeaseCandidate) -> bool:
    """Return whether a write is a ping: by an API server, if a log shows by whom, else by what it changed."""
    if now.spec.ping_time is None or (before is not None and now.spec.ping_time == before.spec.ping_time):
        return False
    return before is not None if seen.writer is None else seen.writer.user == API_SERVER
