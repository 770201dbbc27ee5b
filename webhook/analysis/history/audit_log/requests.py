"""What an audit log shows of a lease besides what was written: who reads it, what was refused, from where it came.

In: each observation of the log. Out: what a reader may count; it changes nothing of who holds the lease.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from webhook.analysis.history.audit_log.accepted_updates import AcceptedUpdates
from webhook.analysis.history.audit_log.addresses import Elsewhere, WriteAddresses, get_address
from webhook.analysis.history.audit_log.asking_addresses import AskingAddresses
from webhook.analysis.history.audit_log.grants import Grants
from webhook.analysis.history.audit_log.heard import Heard
from webhook.analysis.history.audit_log.kept_refusals import MAX_REFUSALS, KeptRefusals
from webhook.analysis.history.audit_log.log_spans import LogChanges
from webhook.analysis.history.audit_log.read_runs import ReadRuns
from webhook.analysis.history.audit_log.refusal import NOT_FOUND, SLOW, UNKNOWN_RESOURCE, Refusal, RefusedBy
from webhook.analysis.history.audit_log.rewritten import RewrittenFields
from webhook.analysis.history.audit_log.waiting import Waiting
from webhook.analysis.history.holders.rival import UNKNOWN_PATIENCE
from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.history.renewals import Renewals
from webhook.analysis.history.visibility.bounds import MAX_LISTED, NEVER
from webhook.analysis.inputs.items import FenceReport, InputKind, Observation, Writer
from webhook.kubernetes.objects import Lease
from webhook.kubernetes.times import get_instant, normalize

_TRUNCATED: Final = "audit.k8s.io/truncated"
"""An annotation that only API servers write: `plugin/pkg/audit/truncate/truncate.go`."""
_MAX_ANSWERS: Final = 1000


class AnsweredRead(Struct, frozen=True):
    """A read that an API server answered at an instant, in microseconds since 1970."""

    at: int
    reader: Writer
    is_from_cache: bool = False


class Requests(Struct):
    """Requests for one lease; the number of those that are kept is limited."""

    readers: dict[str, tuple[int, int]] = field(default_factory=dict)
    """How often pods, or users without one, read the lease, and when last."""
    read_runs: ReadRuns = field(default_factory=ReadRuns)
    sources: dict[str, list[Writer]] = field(default_factory=dict)
    """The processes that made requests, by address and program."""
    authenticating: dict[str, set[str]] = field(default_factory=dict)
    """The paths of the logs whose API server accepted credentials, by address and program of the requests."""
    users: set[str] = field(default_factory=set)
    """Users that read it: an audit policy may leave out the reads of others."""
    is_watched: bool = False
    """Someone watched it, and so learned what was stored without another request."""
    accounts: dict[str, set[str]] = field(default_factory=dict)
    """The pods that read it, by user."""
    absent: tuple[int, int, int] | None = None
    """How many requests were answered that it does not exist, since anything was stored; when the first and last."""
    answered: deque[AnsweredRead] = field(default_factory=partial(deque, (), _MAX_ANSWERS))
    """The reads that were answered without delay while it was not renewed."""
    _refusals: KeptRefusals = field(default_factory=KeptRefusals)
    _conflicts: KeptRefusals = field(default_factory=KeptRefusals)
    """Kept apart: who shares an identity conflicts every few seconds, and that must not displace what was refused."""
    _reads: dict[str, KeptRefusals] = field(default_factory=dict)
    """Reads that were refused or failed, by user that never held it; under "" of users without a name, and of more.

    Anyone may ask: who has no right to must not displace what holders were refused.
    """
    fenced: deque[FenceReport] = field(default_factory=partial(deque, (), MAX_REFUSALS))
    """Writes that a fence refused."""
    accepted: deque[tuple[int, Writer]] = field(default_factory=partial(deque, (), MAX_REFUSALS))
    """Writes by others than the holder, as far as is known, of which a log does not show what they changed."""
    hidden: deque[int] = field(default_factory=partial(deque, (), MAX_REFUSALS))
    """When writes were stored, whosever, of which a log does not show what they changed."""
    is_logged: bool = False
    """An audit log has some of them."""
    logs: set[str] = field(default_factory=set)
    """The paths of the logs that have some of them."""
    written_in: LogChanges = field(default_factory=LogChanges)
    waiting: Waiting = field(default_factory=Waiting)
    heard: Heard = field(default_factory=Heard)
    grants: Grants = field(default_factory=Grants)
    updates: AcceptedUpdates = field(default_factory=AcceptedUpdates)
    is_cut_off: bool = False
    """The API server cut off the objects of the last stored write in its log, as its event was too long."""
    rewritten: RewrittenFields = field(default_factory=RewrittenFields)
    """What was stored differently than requested."""
    addresses: WriteAddresses = field(default_factory=WriteAddresses)
    asking_addresses: AskingAddresses = field(default_factory=AskingAddresses)

    @property
    def refusals(self) -> list[Refusal]:
        """Requests that were refused or failed, or were answered late: the latest, and first ones, in order."""
        kept = (self._refusals, self._conflicts, *self._reads.values())
        return sorted(chain.from_iterable(kept), key=attrgetter("at"))

    def list_held_up_writes(self) -> Iterator[Refusal]:
        """Yield the writes that failed, or were stored late, the latest."""
        return (one for one in self._refusals if not one.is_read and (one.has_failed or one.code < 300))

    def has_forgotten_since(self, at: int, *users: str) -> bool:
        """Return whether some that came after an instant, in microseconds since 1970, are remembered no longer.

        Reads by users that never held it count only if they are by one of `users`; "" for those without a name.
        """
        found = (self._refusals, self._conflicts, *map(self._find_reads_of, users))
        return any(one.has_forgotten_between(at, NEVER) for one in found)

    def has_forgotten_of(self, who: Writer, start: int = 0, end: int = NEVER) -> bool:
        """Return whether some of a process, or of unknown users, between two instants are remembered no longer."""
        found = (self._refusals, self._conflicts, self._find_reads_of(who.user), self._find_reads_of(""))
        return any(one.has_forgotten_between(start, end, who) for one in found)

    def count_forgotten_reads(self, who: Writer, by: RefusedBy) -> int | None:
        """Return how many denied reads by a process are remembered no longer; None if that is not known."""
        found = [one.count_forgotten_reads(who, by) for one in (self._refusals, self._find_reads_of(who.user))]
        return None if None in found else sum(one or 0 for one in found)

    def _find_reads_of(self, user: str) -> KeptRefusals:
        return self._reads.get(user) or self._reads.get("") or KeptRefusals()

    @property
    def may_have_forgotten_fenced(self) -> bool:
        """Whether fences may have refused more writes than are remembered."""
        return len(self.fenced) == MAX_REFUSALS

    def remember(self, refusal: Refusal) -> None:
        """Remember a request that was refused or failed, or was answered late."""
        (self._conflicts if refusal.is_of_other_state else self._refusals).append(refusal)

    def note_request(self, seen: Observation) -> None:
        """Record a request of any kind, and where its process made it from."""
        self.is_logged = True
        if len(self.logs) < MAX_LISTED:
            self.logs.add(seen.log_path)
        self.waiting.note_request(seen)
        self.heard.note_request(seen)
        self.grants.note_request(seen)
        self.asking_addresses.note_request(seen)
        who = seen.writer.process if seen.writer else Writer()
        if seen.source and who.user and len(self.sources) < MAX_LISTED:
            known = self.sources.setdefault(seen.source, [])
            if len(known) < MAX_LISTED and who not in known:
                known.append(who)
            if seen.log_path in self.logs:
                self.authenticating.setdefault(seen.source, set()).add(seen.log_path)

    def take_write(self, seen: Observation) -> None:
        """Remember a write, if it was refused, or answered late."""
        if refusal := Refusal.from_observation(seen):
            is_repeat = refusal.has_conflicted and self.updates.has_accepted(seen)
            refusal = replace(refusal, is_repeat=True) if is_repeat else refusal
            self.remember(refusal)
            if refusal.code == NOT_FOUND and not refusal.is_creation:
                self._note_absence(refusal.at)
        if seen.is_stored or (refusal is not None and refusal.is_of_other_state):
            self.addresses.note_update(seen, is_conflict=not seen.is_stored)
        if seen.is_stored:
            if seen.at is not None and seen.input_kind is InputKind.AUDIT_LOG:
                self.written_in.note(seen.log_path, seen.at)
            self.absent = None
            self.updates.note_accepted(seen)
            self.is_cut_off = seen.answer is not None and seen.answer.annotations.get(_TRUNCATED) == "true"
            self.rewritten.take(seen)
            self.addresses.take(seen)

    def _remember_read(self, refusal: Refusal) -> None:
        """Remember a read that was refused or failed, of a user that never held it."""
        user = refusal.writer.user
        key = user if user in self._reads or len(self._reads) < MAX_LISTED else ""
        self._reads.setdefault(key, KeptRefusals()).append(refusal)

    def take_read(self, seen: Observation, renewals: Renewals, tenures: Iterable[Tenure]) -> None:
        """Remember a read; a client that reads before it writes has its refusals and failures there.

        `tenures` are those of its holders so far.
        """
        self._note_reader(seen)
        if seen.answer and seen.answer.is_stored and seen.answer.took <= SLOW and _is_overdue(renewals, seen.at or 0):
            reader = seen.writer.process if seen.writer else Writer()
            self.answered.append(AnsweredRead(seen.at or 0, reader, seen.is_from_cache))
        refusal = Refusal.from_observation(seen)
        if refusal is None or refusal.code < 400:
            return
        if refusal.code != NOT_FOUND:
            is_of_holder = _has_held(refusal.writer.user, tenures)
            (self.remember if is_of_holder else self._remember_read)(refusal)
            return
        self._note_absence(refusal.at)

    def _note_absence(self, at: int) -> None:
        number, first, _ = self.absent or (0, at, at)
        self.absent = number + 1, first, at

    def _note_reader(self, seen: Observation) -> None:
        if seen.answer is not None and seen.answer.message == UNKNOWN_RESOURCE:
            return  # by a version that is not served, it reads no lease
        who = (seen.writer.pod or seen.writer.name) if seen.writer else ""
        self.is_watched = self.is_watched or seen.verb == "watch"
        if seen.writer and len(self.users) < MAX_LISTED:
            self.users.add(seen.writer.user)
        if seen.writer and seen.writer.pod:
            pods = self.accounts.setdefault(seen.writer.user, set()) if len(self.accounts) < MAX_LISTED else set()
            pods.update({seen.writer.pod} if len(pods) < MAX_LISTED else ())
        if _is_turned_away(seen):
            return  # who is refused, or asks an API server that does not serve leases, does not wait for this one
        self.read_runs.note_read(seen.writer.process if seen.writer else Writer(), seen.at or 0)
        if who and (who in self.readers or len(self.readers) < MAX_LISTED):
            self.readers[who] = (self.readers.get(who, (0, 0))[0] + 1, seen.at or 0)

    def drop_accepted(self, writer: Writer, since: int) -> None:
        """Drop writes of what turns out to be the next holder."""
        others = [one for one in self.accepted if one[0] < since or one[1] != writer]
        self.accepted = deque(others, MAX_REFUSALS)

    def find_sources(self, tenure: Tenure | None) -> set[str]:
        """Return the addresses and programs of the requests of a holder's process."""
        own = tenure.processes.own if tenure and tenure.processes.is_process_known else None
        return {source for source, known in self.sources.items() if own and any(one.is_same(own) for one in known)}

    def find_logs_of(self, tenure: Tenure | None) -> set[str]:
        """Return the paths of the logs that have requests from where a holder's process made its own; none if unknown.

        Another process may have its address and program, so more logs may be returned than have requests of it.
        """
        kept = (self.sources, self.logs, *self.sources.values())
        is_whole = all(len(one) < MAX_LISTED for one in kept)
        found = self.find_sources(tenure) if is_whole else set()
        return {path for source in found for path in self.authenticating.get(source, ())}

    def find_addresses(self, who: Writer | None) -> list[str]:
        """Return the addresses from which requests of a pod came, as far as the API server saw them."""
        if who is None or not who.uid:
            return []
        found = (get_address(source) for source, known in self.sources.items() if any(map(who.is_same, known)))
        return sorted(set(found))

    def find_log_that_authenticates_none(self, code: int) -> str:
        """Return the path of the only log with answers of `code`, 401; "" unless another one knew such a client.

        No request from the same addresses and programs had a name in that log: its API server may know none of them.
        """
        refused = [one for one in self.refusals if one.code == code and not one.writer.user]
        logs, sources = {one.log for one in refused}, {one.source for one in refused}
        accepting = {path for source in sources for path in self.authenticating.get(source, ())}
        return next(iter(logs)) if len(logs) == 1 and accepting and not logs & accepting else ""

    def find_elsewhere(self, seen: Observation) -> Elsewhere | None:
        """Return from where a write came, if that is not where its pod renews; None if that cannot be known."""
        return self.addresses.find_elsewhere(seen, self.sources)

    def is_only_source_of(self, tenure: Tenure | None, source: str) -> bool:
        """Return whether no other process was heard from there."""
        own = tenure.processes.own if tenure else None
        return own is not None and all(one.is_same(own) for one in self.sources.get(source, ()))


def _has_held(user: str, tenures: Iterable[Tenure]) -> bool:
    """Return whether a process of a user held the lease."""
    return any(one.processes.own is not None and one.processes.own.user == user for one in tenures)


def _is_turned_away(seen: Observation) -> bool:
    """Return whether a read got no answer about the lease: it was refused, or nothing is served at that path."""
    refusal = Refusal.from_observation(replace(seen, at=seen.at or 0))  # whenever that was
    return refusal is not None and (refusal.is_denied or refusal.is_unserved)


def _is_overdue(renewals: Renewals, at: int) -> bool:
    """Return whether a renewal was due by then, or missed."""
    return renewals.last is not None and at - renewals.last > (renewals.usual or UNKNOWN_PATIENCE)


def note_request_of_holder(seen: Observation, holder: Tenure | None, lost: Tenure | None) -> None:
    """Have the holder remember a request of its pods, or the one that lost the lease to it one of its own."""
    who = seen.writer.process if seen.writer else Writer()
    if not who.pod or seen.at is None or holder is None:
        return
    received, own = seen.at - seen.took, holder.processes.own
    is_after_loss = lost is not None and received > holder.since
    if lost is not None and is_after_loss and lost.processes.own is not None and lost.processes.own.is_same(who):
        refusal = Refusal.from_observation(seen)
        if refusal is not None and refusal.is_of_unexpected_state:
            lost.processes.note_conflict_after_loss(received)
    if own is not None and own.is_same(who):
        holder.processes.requests.append(received)
    elif _is_request_after_loss(lost, who, is_after_loss=is_after_loss) and not _was_made_before(seen, holder.since):
        assert lost is not None
        lost.processes.note_request_after_loss(received)


def _is_request_after_loss(lost: Tenure | None, who: Writer, *, is_after_loss: bool) -> bool:
    """Return whether a request after the loss is of the process that surely had the lease before."""
    if lost is None or not is_after_loss or not lost.processes.is_process_known:
        return False
    return lost.processes.own is not None and lost.processes.own.is_same(who)


def _was_made_before(seen: Observation, at: int) -> bool:
    """Return whether a write that was not stored was made before an instant, as its renewTime says.

    It hung in an API server that stood still, or on its way: it says nothing of what its process does now.
    """
    if seen.is_stored or not isinstance(seen.asked, Lease):
        return False
    renewed = get_instant(normalize(seen.asked.spec.renew_time))
    return renewed is not None and renewed < at
