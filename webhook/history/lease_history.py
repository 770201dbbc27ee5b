"""The history of one lease, built observation by observation in bounded memory."""

from collections import deque
from collections.abc import Sequence
from typing import Final

from msgspec import Struct, field

from webhook.api.managed_fields import Entry
from webhook.api.objects import Lease, LeaseSpec
from webhook.history.moments import acquired_at, renewed_at, was_live, written_at
from webhook.history.refusal import Refusal, refusal_of
from webhook.history.renewals import Renewals
from webhook.history.requests import Readers, hear
from webhook.history.standing import RELEASED_DURATION, Standing, ahead, manager_of, standing_of
from webhook.history.tenure import FIRST, Handover, Tenure
from webhook.observations.observation import Act, Fenced, Observation, Origin, Writer, entries_of_object
from webhook.rules.expiry import seen_at
from webhook.rules.times import normalized, readable

MOST_TENURES: Final = 200
MOST_REFUSALS: Final = 100


class LeaseHistory(Struct):
    """What is known about one lease. `at` is the latest moment at which it was observed."""

    namespace: str
    name: str
    lease: Lease | None = None
    entries: Sequence[Entry] = ()
    at: int | None = None
    origin: Origin = Origin.DUMP
    is_deleted: bool = False
    tenures: deque[Tenure] = field(default_factory=lambda: deque(maxlen=MOST_TENURES))
    handovers: dict[Handover, int] = field(default_factory=dict)
    leaderless: int = 0
    renewals: Renewals = field(default_factory=Renewals)
    refusals: deque[Refusal] = field(default_factory=lambda: deque(maxlen=MOST_REFUSALS))
    fenced: deque[Fenced] = field(default_factory=lambda: deque(maxlen=MOST_REFUSALS))
    readers: Readers = field(default_factory=Readers)
    _revision: int = 0
    _object_origin: Origin | None = None
    _released_at: int | None = None
    _ended_how: Handover | None = None
    _lost: Tenure | None = None

    def standing(self, now: int) -> Standing | None:
        """How the lease stands; None if its object was never seen, or is gone."""
        return None if self.lease is None or self.is_deleted else standing_of(self.lease, self.entries, now)

    @property
    def changes(self) -> int:
        """How often the holder changed to another replica, as far as was seen."""
        return sum(number for how, number in self.handovers.items() if how not in FIRST)

    @property
    def tenure(self) -> Tenure | None:
        """The latest holder."""
        return self.tenures[-1] if self.tenures else None

    def observe(self, seen: Observation) -> None:
        """Take in one observation; those of one lease come in order."""
        self.origin = seen.origin
        if seen.origin is Origin.AUDIT_LOG:
            hear(seen, self.tenure, self._lost)
        if seen.act is Act.READ:
            self.readers.add(seen)
            return
        refusal = refusal_of(seen)
        if refusal is not None:
            self.refusals.append(refusal)
        if not seen.is_stored:
            return
        if isinstance(seen.old, Lease) and not self._is_older(seen.old):
            self._changed(seen.old, entries_of_object(seen.old), None, None, Act.STORED)
        self._stored(seen)

    def _stored(self, seen: Observation) -> None:
        if seen.act is Act.DELETED:
            if not self.is_deleted and not (isinstance(seen.object, Lease) and self._is_older(seen.object)):
                self._deleted(seen)
        elif isinstance(seen.object, Lease):
            if self._object_origin is Origin.WATCH and seen.origin is Origin.AUDIT_LOG:
                self._writer_known(seen.object, seen.at, seen.writer)
            if not self._is_older(seen.object):
                self._object_origin = seen.origin
                self._changed(seen.object, seen.entries, seen.at, seen.writer, seen.act)
        elif seen.at is not None and not seen.problem:
            if self._object_origin is Origin.WATCH:
                self._watched_write(seen.at, seen.writer)
            else:
                self._written(seen.at, seen.writer, seen.act)

    def _is_older(self, lease: Lease) -> bool:
        """Whether a state is older than one that is known, as in logs whose lines are not quite in order."""
        text = lease.metadata.resource_version or ""
        revision = int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else 0
        if 0 < revision < self._revision or (self.is_deleted and 0 < revision == self._revision):
            return True
        self._revision = revision or self._revision
        return False

    def _deleted(self, seen: Observation) -> None:
        at = self.at if seen.at is None else seen.at
        if self.tenure is not None and self.tenure.until is None:
            self.tenure.is_deleted, self.tenure.deleted_by = True, seen.writer
        self._ended(at or 0, Handover.DELETED)
        self.is_deleted = True
        self._passed(at)

    def _changed(self, lease: Lease, entries: Sequence[Entry], at: int | None, writer: Writer | None, act: Act) -> None:
        """A state of the lease after the one that is known."""
        before, known = self.lease, self.entries
        self.lease, self.entries = lease, entries
        old, new = before.spec if before else LeaseSpec(), lease.spec
        holder = new.holder_identity or ""
        is_new = before is None or self.is_deleted
        self.is_deleted = False
        moment = written_at(new, self.entries) if at is None else at
        if is_new:
            if holder:
                self._begun(holder, moment, writer, act, new)
        elif holder != (old.holder_identity or ""):
            self._handed_over(old, known, holder, moment or 0, writer)
        elif normalized(new.renew_time) != normalized(old.renew_time) and holder:
            self._renewed(old, new, moment or 0, writer)
        self._passed(moment)

    def _begun(self, holder: str, moment: int | None, writer: Writer | None, act: Act, spec: LeaseSpec) -> None:
        """A lease that did not exist before, or was not known."""
        renewed = renewed_at(spec, self.entries)
        tenure = self.tenure
        if tenure and tenure.is_writer and tenure.until is None and tenure.holder and holder.startswith(tenure.holder):
            # A log without objects showed who writes; now a watch shows the holder identity.
            tenure.holder, tenure.is_writer = holder, False
            return
        if self._ended_how is not Handover.DELETED and act is not Act.CREATED:
            since = next((at for at in (acquired_at(spec, self.entries), renewed, moment) if at is not None), 0)
            self._add(holder, since, Handover.SEEN, writer, seen=renewed)
        else:
            how = Handover.DELETED if self._ended_how is Handover.DELETED else Handover.CREATED
            self._add(holder, moment or renewed or 0, how, writer)

    def _handed_over(self, old: LeaseSpec, known: Sequence[Entry], holder: str, at: int, writer: Writer | None) -> None:
        if self.tenure:
            stamp = seen_at(known)
            self.tenure.ahead = ahead(stamp, readable(normalized(old.renew_time)))
            self.tenure.manager = manager_of(known, stamp)
        if not holder:
            self._ended(at, Handover.RELEASED)
            return
        if self._ended_how is Handover.RELEASED:
            how = Handover.RELEASED
        elif not old.holder_identity:
            how = Handover.CLAIMED
        else:
            last = self.tenure.last_renewal if self.tenure else None
            last = renewed_at(old, known) if last is None else last
            how = Handover.STOLEN if was_live(last, old.lease_duration_seconds, at) else Handover.EXPIRED
            self._ended(at if how is Handover.STOLEN or last is None else last, how)
        self._add(holder, at, how, writer)

    def _renewed(self, old: LeaseSpec, new: LeaseSpec, at: int, writer: Writer | None) -> None:
        tenure = self.tenure
        if tenure is None or tenure.until is not None:
            # The holder that had released it takes it again under the same name.
            self._add(new.holder_identity or "", at, Handover.UNKNOWN, writer)
            return
        tenure.written_by(writer, at)
        tenure.last_renewal = at
        if self.origin is not Origin.REVIEW:
            self.renewals.add(at, tenure)
        if (
            new.lease_duration_seconds == RELEASED_DURATION
            and (old.lease_duration_seconds or 0) > RELEASED_DURATION
            and new.renew_time == new.acquire_time
        ):
            self._ended(at, Handover.RELEASED)

    def _written(self, at: int, writer: Writer | None, act: Act) -> None:
        """A write whose object the log does not show: who wrote it led, as far as can be known."""
        who = (writer.pod or writer.name) if writer else ""
        tenure = self.tenure
        if tenure is not None and tenure.holder == who and tenure.is_writer and tenure.until is None:
            tenure.written_by(writer, at)
            tenure.last_renewal = at
            self.renewals.add(at, tenure)
        else:
            how = Handover.CREATED if act is Act.CREATED else Handover.SEEN if tenure is None else Handover.UNKNOWN
            if tenure is not None and tenure.until is None:
                self._ended(at if tenure.last_renewal is None else tenure.last_renewal, Handover.UNKNOWN)
            self._add(who, at, how, writer).is_writer = True
        self._passed(at)

    def _writer_known(self, lease: Lease, at: int | None, writer: Writer | None) -> None:
        """The log adds who wrote, also of a state that a watch has shown before."""
        tenure = self.tenure
        if at is not None and tenure and at >= tenure.since and lease.spec.holder_identity == tenure.holder:
            tenure.written_by(writer, at)

    def _watched_write(self, at: int, writer: Writer | None) -> None:
        """A write whose object a watch shows: the log adds who wrote it, if that is the pod that the holder names."""
        tenure = self.tenure
        if tenure and tenure.until is None and writer and writer.pod and tenure.holder.startswith(writer.pod):
            tenure.written_by(writer, at)
        self._passed(at)

    def _add(self, holder: str, since: int, how: Handover, writer: Writer | None, *, seen: int | None = None) -> Tenure:
        """A new holder; `seen` is its last renewal if it had the lease already when the input begins."""
        leaderless = None
        if self._released_at is not None and how is not Handover.SEEN:
            leaderless = max(0, since - self._released_at)
            # Who held a lease that was deleted may have gone on as the leader.
            self.leaderless += leaderless if how is not Handover.DELETED else 0
        self.handovers[how] = self.handovers.get(how, 0) + 1
        previous = self.tenures[-1].holder if self.tenures else ""
        self._lost = self.tenure
        tenure = Tenure(holder, since, how, previous, leaderless, last_renewal=since if seen is None else seen)
        tenure.is_cut = how is Handover.SEEN
        tenure.written_by(writer, since)
        self.tenures.append(tenure)
        self.renewals.restart(since if seen is None else seen)
        self.renewals.latest.clear()
        self._released_at = self._ended_how = None
        return tenure

    def _ended(self, at: int, how: Handover) -> None:
        if self.tenure and self.tenure.until is None:
            self.tenure.until = at
        self._released_at, self._ended_how = at, how

    def _passed(self, at: int | None) -> None:
        if at is not None:
            self.at = at if self.at is None else max(self.at, at)
