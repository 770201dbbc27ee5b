"""Follows one lease through its observations: each write is classified once, and gives events; memory is bounded.

The observations come in order, each of them once: `webhook.analysis.history.merge` sees to that.
"""

import re
from collections import deque
from collections.abc import Sequence
from functools import partial
from itertools import islice, takewhile
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from webhook.admission.rules.expiry import BOUND, MAX_TOLERANCE, date_last_renewal
from webhook.admission.rules.stamps import is_constant
from webhook.analysis.history.bounds import MAX_LISTED, Bounds
from webhook.analysis.history.dating import Known, date_state_before, date_write
from webhook.analysis.history.events import (
    API_SERVER,
    MAX_HEARD_AGAIN,
    EventKind,
    Handover,
    LeaseEvent,
    Refusal,
    Tenure,
    edit_of,
)
from webhook.analysis.history.renewals import Renewals, Silence, deadline_of
from webhook.analysis.history.requests import Requests
from webhook.analysis.history.status import (
    RELEASED_DURATION,
    LeaseState,
    LeaseStatus,
    ahead_of,
    held_since,
    is_acquired_by_holder,
    is_release,
    is_renewal_dated,
    is_renewed_by_holder,
    is_set_back,
    manager_of,
    manager_of_write,
    renewed_at,
    stamp_between,
    status_of,
    written_at,
)
from webhook.analysis.history.taking import classify_taking
from webhook.analysis.history.write import Dating, Write
from webhook.analysis.history.writes import find_forged_stamps
from webhook.analysis.inputs.items import (
    Act,
    CountedRenewals,
    FenceReport,
    InputKind,
    Observation,
    RecordingGap,
    Writer,
    parse_number,
)
from webhook.kubernetes.managed_fields import Entry, entries_of
from webhook.kubernetes.objects import Lease, LeaseSpec
from webhook.kubernetes.times import SECOND, normalized, readable, stamp_of

MAX_TENURES: Final = 200
MAX_REFUSALS: Final = 100
MAX_OTHERS: Final = 1000
UNKNOWN_PATIENCE: Final = 10 * SECOND
"""How long a holder must not have written to be followed by another writer, if its usual interval is not known."""
_RECORDED: Final = re.compile(r"(?:leases-\d{15}|latest)\.jsonl(?:\.gz)?")
"""The files that a recorder writes."""


_FIRST: Final = frozenset({Handover.SEEN, Handover.CREATED, Handover.REPLACED})
"""Ways in which a holder is first seen without a change of holders."""


class LeaseHistory(Struct):
    """Everything that is known about one lease. `at` is the latest moment at which it was observed."""

    namespace: str
    name: str
    lease: Lease | None = None
    entries: Sequence[Entry] = ()
    at: int | None = None
    kind: InputKind = InputKind.DUMP
    """That of the latest observation."""
    is_moment: bool = True
    """Only lists have shown it: nothing is known of what happened before."""
    moment: int = 0
    """The time of the latest observation."""
    stamped: int = 0
    """The stamp of the latest write, 0 if a client may have invented it."""
    is_deleted: bool = False
    _marked_by: Writer | None = None
    """The writer whose deletion waits for finalizers; None if there is none."""
    deleted_at: int = 0
    """The time of its last deletion, in microseconds since 1970."""
    is_seen_created: bool = False
    """The input shows how it was created."""
    is_mixed: bool = False
    """Two leases of this name were written in turns: the input is of several clusters, so nothing is known."""
    hidden_since: int | None = None
    """Since when an audit log may lack what was written to it; None once a write follows the one that is known."""
    is_partial: bool = False
    """Writes may have been missed: a record has gaps, or a watch began again after renewals that it did not see."""
    tenures: deque[Tenure] = field(default_factory=partial(deque, (), MAX_TENURES))
    handovers: dict[Handover, int] = field(default_factory=dict)
    leaderless: int = 0
    renewals: Renewals = field(default_factory=Renewals)
    refusals: deque[Refusal] = field(default_factory=partial(deque, (), MAX_REFUSALS))
    fenced: deque[FenceReport] = field(default_factory=partial(deque, (), MAX_REFUSALS))
    others: deque[tuple[int, str]] = field(default_factory=partial(deque, (), MAX_OTHERS))
    """Writes that changed neither the holder nor renewed, by user or field manager."""
    edits: deque[LeaseEvent] = field(default_factory=partial(deque, (), MAX_REFUSALS))
    accepted: deque[tuple[int, Writer]] = field(default_factory=partial(deque, (), MAX_REFUSALS))
    """Writes by others than the holder, as far as is known, of which a log does not show what they changed."""
    requests: Requests = field(default_factory=Requests)
    _is_after_gap: bool = False
    """A recorder did not see a part of the time between the latest observation and the one before."""
    _known_gaps: tuple[RecordingGap, ...] = ()
    """Those after which a state was seen: what followed that is recorded."""
    _is_put_back: bool = False
    """The store was put back to an earlier state after the latest observation."""
    _hole: int | None = None
    """The beginning of the latest hole in the log."""
    _revision: int = 0
    _path: str = ""
    """The input that showed the latest state."""
    _version: str = ""
    """The resourceVersion of the latest state, "" if the input does not show it."""
    _kind_before: InputKind = InputKind.DUMP
    _logged: int | None = None
    """The last renewal by the log, if the latest state has no stamp of it."""
    _ahead: int | None = None
    """How far the holder's clock was ahead by its latest write alone."""
    _verb: str = ""
    """How the holder writes, in a log without objects."""
    _rival: deque[tuple[int, Writer | None]] = field(default_factory=partial(deque, (), MAX_LISTED))
    """Writes of one other writer since the last one of the holder, in a log without objects."""
    _released_at: int | None = None
    _ended_how: Handover | None = None
    write: Write = Write()
    """The latest one."""
    _write_known: Write = Write()
    """The one before."""
    _uid_before: str | None = None
    """The uid of the lease that was deleted before the latest one was created."""
    _lost: Tenure | None = None
    _status: tuple[int, LeaseStatus | None] | None = None
    """At the moment that was asked for last."""
    _shared: Tenure | None = None
    """The tenure already reported as shared by several processes."""
    _events: list[LeaseEvent] = field(default_factory=list)

    def status(self, now: int) -> LeaseStatus | None:
        """Return the status of the lease; None if its object was never seen, or is gone."""
        if self._status is None or self._status[0] != now:
            is_known = not (self.is_deleted or self.is_mixed or self.hidden_since)
            lease = self.lease if is_known else None
            status = None if lease is None else status_of(lease, self.entries, now, self._logged)
            known = self._known_renewal
            if lease and status and known is not None and (status.last_renewal or known) < known - MAX_TOLERANCE:
                status = status_of(lease, self.entries, now, known)  # whoever may write it can date it back
            if status and status.state is LeaseState.EXPIRED and is_constant(self.entries) and not status.from_stamps:
                status = replace(status, state=LeaseState.UNKNOWN)  # its holder's clock alone does not say that
            if status and not self.is_moment:
                # Of several processes that renew in turns, each has a clock of its own.
                is_one_clock = self.holder is not None and not self.holder.has_several_writers
                status = replace(status, ahead=self.holder.ahead if self.holder and is_one_clock else None)
            self._status = now, status
        return self._status[1]

    @property
    def _known_renewal(self) -> int | None:
        """The last renewal under its present holder that an API server dates; None if there is none."""
        holder = self.holder
        if holder is None or holder.renewed is None or not holder.renewed.is_dated_by_a_server:
            return None
        return holder.kept_until

    @property
    def duration(self) -> int | None:
        """Seconds, by the latest state."""
        return self.lease.spec.lease_duration_seconds if self.lease else None

    @property
    def is_as_sent(self) -> bool:
        """True if the latest state is what a client sent: a log shows it without what the API server added."""
        return self.lease is not None and self.kind is InputKind.AUDIT_LOG and not self._version

    @property
    def interval(self) -> float | None:
        """Seconds between renewals, as seen."""
        usual = self.renewals.usual
        return None if usual is None else usual / SECOND

    @property
    def late_silences(self) -> list[Silence]:
        """The latest silences after which most clients would have given up, oldest first; none after a release."""
        ended = [one for one in self.renewals.silences if (one.duration or 0) > RELEASED_DURATION]
        return [one for one in ended if one.length >= deadline_of(one.duration)]

    def tenure_of(self, silence: Silence) -> Tenure | None:
        """Return the tenure to which a silence belongs; None if that was dropped because there were too many."""
        number = silence.tenure_number - 1 - (self.renewals.tenures - len(self.tenures))
        return self.tenures[number] if number >= 0 else None

    def _since_at_most(self, last: int, since: int) -> int:
        """Return for how long, at most, there was nothing between the end of a tenure at `last` and the present write.

        Of two writes that a log dates it is the time between their answers. Stamps have whole seconds, a slow request
        is stored at some time before its answer, and clocks of API servers differ.
        """
        if not self.write.is_dated:
            return max(0, since - last)
        held, latest = self.tenure, self.write.latest
        if latest is None or self.write.at != since:
            latest = since if self.write.is_logged else (since // SECOND + 1) * SECOND
        known = (held.ended, held.renewed, held.kept, held.taken) if held else ()
        before = next((one for one in known if one is not None and one.at == last and one.is_dated_by_a_server), None)
        if before is not None and before.is_exact and self.write.is_exact:
            return max(0, since - last)
        # A log without objects has only times of answers.
        earliest = last if self.write.is_logged else last // SECOND * SECOND
        earliest = earliest if before is None else before.earliest
        if held is not None and held.renewed is None and held.claimed is not None:
            earliest = min(earliest, max(held.claimed, earliest - MAX_TOLERANCE))
        tolerance = MAX_TOLERANCE if self.write.skew else 0
        return max(0, latest - earliest, since - last + tolerance)

    def leaderless_until(self, now: int) -> int:
        """Return for how long no one led, at most, in all: also while a holder was late, and up to `now`."""
        held, status = self.holder, self.status(now)
        since = held.last_renewal if held and status and status.state is LeaseState.EXPIRED else None
        since = self._released_at if held is None else since
        ongoing = 0 if since is None else max(0, now - since)
        return self.leaderless + sum(one.longest for one in self.late_silences) + ongoing

    @property
    def changes(self) -> int:
        """How often the holder changed to another replica, as far as was seen."""
        return sum(number for how, number in self.handovers.items() if how not in _FIRST)

    @property
    def tenure(self) -> Tenure | None:
        """The latest holder."""
        return self.tenures[-1] if self.tenures else None

    @property
    def holder(self) -> Tenure | None:
        """The present holder."""
        return self.tenure if self.tenure and self.tenure.until is None else None

    def may_lack_writes(self, since: int, now: int) -> bool:
        """Return whether there were writes, of the last duration before `now`, that the input may lack since then."""
        recent = now - (self.duration or 0) * SECOND
        return self.hidden_since is not None or any(one.end > max(since, recent) for one in self.renewals.unseen)

    @property
    def _known_state(self) -> Known:
        lease = None if self.is_deleted else self.lease
        return Known(lease, self.entries, self.at, self.write, self._path, self.holder is not None)

    @property
    def is_end_seen(self) -> bool:
        """Whether the input shows everything since the latest tenure ended."""
        ended = self.tenure.ended if self.tenure else None
        return ended is not None and all(one.end <= ended.at for one in self.renewals.unseen)

    def node_at(self, at: int) -> str:
        """Return the node of the pod that held it, "" if that is not known."""
        return next((one.node for one in reversed(self.tenures) if one.since <= at), "")

    def feed(self, seen: Observation, bounds: Bounds) -> list[LeaseEvent]:
        """Take in one observation; those of one lease come in order."""
        self._kind_before = self.kind
        self._write_known = self.write
        self._events, self.kind, self.write = [], seen.input_kind, date_write(seen, self._known_state, bounds)
        self.moment = self.write.at
        before = self._write_known.at
        # What nothing dates came after a gap, or in it.
        end = self.moment if self.write.is_dated and seen.act is not Act.DELETED else bounds.latest
        gaps = [gap for gap in bounds.unrecorded if gap not in self._known_gaps]
        self._is_after_gap = any(gap.start <= end and before <= gap.end for gap in gaps)
        self._status = None
        self.is_partial = self.is_partial or bool(bounds.unrecorded)
        self.is_moment = self.is_moment and seen.input_kind is InputKind.DUMP
        if seen.input_kind is InputKind.AUDIT_LOG:
            self._hear(seen)
            self._bridge(seen)
        if seen.act is Act.READ:
            last, patience = self.renewals.last, self.renewals.longest_usual or UNKNOWN_PATIENCE
            is_missed = last is not None and (seen.at or 0) - last > patience
            refused = self.requests.take_read(seen, is_missed=is_missed)
            self.refusals.extend([refused] if refused else [])
            return []
        if refusal := Refusal.of(seen):
            self.refusals.append(refusal)
        if not seen.is_stored:
            return []
        self.requests.absent = None
        if isinstance(seen.old, Lease) and not self._is_older(seen.old):
            write = self.write
            self._changed(seen, seen.old, entries_of(seen.old.metadata.managed_fields), Act.STORED)
            self.write = write
        self._stored(seen)
        if not self.is_deleted and self.write.is_dated:
            # What was written in a gap was seen after it.
            self._known_gaps = tuple(gap for gap in bounds.unrecorded if gap.start <= self.write.earliest)
        self.hidden_since, self._is_put_back = seen.at if self._is_unknown(seen) else None, False
        tenure = self.tenure
        if tenure and tenure is not self._shared and tenure.has_several_writers and len(tenure.writers) > 1:
            self._shared = tenure
            self._happened(EventKind.SHARED, self.at or 0)
        return self._events

    def lose_sight(self, since: int) -> None:
        """Remember that an audit log may lack requests since then."""
        if self.hidden_since is None:
            self.hidden_since = self._hole = since

    def put_back(self, since: int) -> None:
        """Remember that the store was put back to an earlier state after that: the lease may be another one since."""
        self.hidden_since = since if self.hidden_since is None else self.hidden_since
        self._hole = None  # who waited for an answer throughout it says nothing of another state
        self._revision, self._version, self._uid_before, self._is_put_back = 0, "", None, True

    def _bridge(self, seen: Observation) -> None:
        """Forget a hole in the log if the holder waited for an answer throughout: it made no other request then.

        If anything else was written, the next write to the lease replaces a state that is not known.
        """
        holder, last = self.holder, self.renewals.last
        if self._hole is None or self.hidden_since != self._hole or seen.at is None or holder is None or last is None:
            return
        received, usual = seen.at - seen.took, self.renewals.usual or 0
        if received <= last + usual + usual // 2 and holder.is_by(seen.writer):
            self.hidden_since = None

    def _is_unknown(self, seen: Observation) -> bool:
        """True if a log does not show what a write changed, nor a watch beside it, and it need not be a renewal."""
        if seen.object is not None or self.lease is None or self.is_deleted or self._path != seen.place.path:
            return False
        is_own = self.holder is not None and self.holder.is_by(seen.writer) is True
        return not (is_own and seen.verb == "update")

    def _hear(self, seen: Observation) -> None:
        """Remember a request of the holder's pods, or the first one of the holder that lost the lease to it."""
        who, holder, lost = seen.writer.process if seen.writer else Writer(), self.tenure, self._lost
        self.requests.hear(seen)
        if not who.pod or seen.at is None or holder is None:
            return
        received = seen.at - seen.took
        own, former = holder.process, lost.process if lost else None
        if own is not None and own.is_same(who):
            holder.requests.append(received)
            return
        is_former = lost is not None and lost.is_sure and former is not None and former.is_same(who)
        if lost and is_former and received > holder.since and len(lost.heard_again) < MAX_HEARD_AGAIN:
            lost.heard_again.append(received)

    def _happened(
        self, kind: EventKind, at: int, writer: Writer | None = None, text: str = "", *, silence: int | None = None
    ) -> None:
        is_dated = self.write.is_dated or kind is EventKind.EXPIRED
        self._events.append(LeaseEvent(kind, at, self.tenure, writer, text, silence, is_dated))

    def _stored(self, seen: Observation) -> None:
        if seen.is_deletion:
            if self.holder and (self.hidden_since is not None or self._is_after_gap):
                # Another one may have held it by then.
                self._ended(self.hidden_since or self.moment, Handover.UNKNOWN)
            if not self.is_deleted and not (isinstance(seen.object, Lease) and self._is_older(seen.object)):
                self._deleted(seen, self.moment)
        elif isinstance(seen.object, Lease):
            if seen.act is Act.DELETED:
                self._marked_by = seen.writer
            if not self._is_older(seen.object):
                self._changed(seen, seen.object, seen.entries, seen.act)
        elif seen.at is not None and not seen.problem:
            if self.lease is not None:
                self._unseen_write(seen.at, seen.writer)
            else:
                self._written(seen, seen.at)

    def _is_older(self, lease: Lease) -> bool:
        """True for a state that is older than one that is known, as in logs whose lines are not quite in order."""
        revision = parse_number(lease.metadata.resource_version)
        if 0 < revision < self._revision or (self.is_deleted and 0 < revision == self._revision):
            return True
        self._revision = revision or self._revision
        return False

    def _deleted(self, seen: Observation, at: int) -> None:
        holder = self.holder
        if holder is not None:
            # Who removes the last finalizer does not delete the lease: another one has before.
            by = seen.writer if seen.act is Act.DELETED else self._marked_by
            holder.is_deleted, holder.deleted_by, holder.is_end_dated = True, by, seen.at is not None
        self._events.append(LeaseEvent(EventKind.DELETED, at, holder, seen.writer, is_dated=seen.at is not None))
        if holder is not None or self.lease is None:
            self._ended(at, Handover.DELETED)
        self.is_deleted, self.deleted_at = True, at
        self._passed(at)

    def _changed(self, seen: Observation, lease: Lease, entries: Sequence[Entry], act: Act) -> None:
        """Take in the next state of the lease; `seen` shows it, or shows it as the state before."""
        is_old_state, is_same_path = lease is seen.old, self._path == seen.place.path
        is_other = self._has_other_uid(lease)
        is_gap = self._is_gap(seen, lease, act, is_other=is_other, is_same_path=is_same_path)
        # A review of a creation comes before it is known whether the lease exists.
        if not is_gap and (is_other or (act is Act.CREATED and self.kind is not InputKind.REVIEW)):
            self._created_again(seen)
        was_deleted = self.is_deleted
        self.is_seen_created |= act is Act.CREATED and not self.tenures
        before, known = (None, ()) if was_deleted else (self.lease, self.entries)
        moment: int | None = self.moment
        if is_old_state:
            moment = None if self._known_state.shows_same(lease) else written_at(lease.spec, entries)
            self.write = date_state_before(moment, self.at or 0, self.write.skew)
        at, writer = moment or self.at or 0, None if is_old_state else seen.writer
        self.lease, self.entries, self.is_deleted, self._path = lease, entries, False, seen.place.path
        self._version = seen.resource_version
        old, new = before.spec if before else LeaseSpec(), lease.spec
        self._note_log(seen, before, lease, act)
        holder = new.holder_identity or ""
        self.stamped = stamp_between(old, new, known, entries) if before and seen.at is None else 0
        if before is None:
            if holder:
                self._begun(holder, moment, writer, new, is_new=was_deleted or act is Act.CREATED)
            self._first_state(lease, at, writer, act)
        elif is_gap:
            self._resumed(before, lease, at, writer)
        elif holder != (old.holder_identity or ""):
            self._handed_over(old, known, holder, at, writer)
        elif normalized(new.renew_time) not in {None, normalized(old.renew_time)} and holder:
            self._renewed(old, new, at, writer, act, seen.stretch)
        tenure = self.holder
        if tenure:
            has_term = not (is_old_state or seen.is_stamp_old)
            tenure.term = seen.term if has_term and seen.term is not None else tenure.term
            self._lasts(tenure, old, new, known, writer)
        self._note_asked(old, new, None if is_gap or act is Act.STORED else writer)
        if not is_gap:
            self._examine(seen, before, known, at, act, is_same_path=is_same_path)
        self._passed(moment or None)

    def _note_log(self, seen: Observation, before: Lease | None, lease: Lease, act: Act) -> None:
        """Note when a log shows the last renewal, if the new state has no stamp of it."""
        if before is not None and normalized(lease.spec.renew_time) == normalized(before.spec.renew_time):
            return
        is_logged = seen.input_kind is InputKind.AUDIT_LOG and (before is not None or act is Act.CREATED)
        self._logged = seen.at if is_logged and date_last_renewal(self.entries) is None else None

    def _is_gap(self, seen: Observation, lease: Lease, act: Act, *, is_other: bool, is_same_path: bool) -> bool:
        """True if what was written since the state before was not seen.

        A request names the state that it replaces. A watch, and a list, begins without what was written before.
        """
        if self.lease is None or self.is_deleted:
            return False
        old, new = self.lease.spec, lease.spec
        if self.hidden_since is not None and (not seen.replaces or seen.replaces != self._version):
            return True
        if seen.replaces and self._version:
            is_missed, last = seen.replaces != self._version, self.refusals[-1] if self.refusals else None
            if is_missed and last and last.code >= 500 and last.at >= (self.at or 0):
                is_doubtful = self.holder is not None and self.holder.is_by(last.writer) is True
                self.write = replace(self.write, is_doubtful=is_doubtful)
            return is_missed and not self.write.is_doubtful
        is_dump = seen.input_kind is InputKind.DUMP
        is_watch = seen.input_kind is InputKind.WATCH and self._kind_before in {InputKind.WATCH, InputKind.DUMP}
        if seen.at is not None or not (is_dump or is_watch):
            return False
        goes_on = is_watch and (is_same_path or _source(self._path) == _source(seen.place.path))
        is_changed = is_other or (new.holder_identity or "") != (old.holder_identity or "")
        if goes_on and (act is not Act.STORED or _is_retaken(old, new)):
            return _is_retaken(old, new) or (is_changed and self._is_after_gap)
        return (is_changed and not goes_on) or normalized(new.renew_time) != normalized(old.renew_time)

    def _created_again(self, seen: Observation) -> None:
        """Take in a deletion that the input does not show, which therefore has neither a time nor a writer."""
        if self.lease is None or self.is_deleted:
            return
        if self.holder:
            self.holder.is_end_dated = False
        self._deleted(replace(seen, at=None, writer=None), self.at or 0)

    def _has_other_uid(self, lease: Lease) -> bool:
        """True if the lease that was known is gone, and this one was created with its name."""
        known, uid = self.lease.metadata.uid if self.lease else None, lease.metadata.uid
        if not known or not uid or known == uid:
            return False
        self.is_mixed = self.is_mixed or uid == self._uid_before
        self._uid_before = known
        return True

    def _lasts(
        self, tenure: Tenure, old: LeaseSpec, new: LeaseSpec, known: Sequence[Entry], writer: Writer | None
    ) -> None:
        """Take over another duration, unless a writer other than the holder lowers it: the holder does not know."""
        is_renewed = normalized(new.renew_time) != normalized(old.renew_time)
        if is_renewed:
            tenure.shorter = None
        if tenure.duration == new.lease_duration_seconds:
            return
        managers = [manager_of(entries, date_last_renewal(entries)) for entries in (self.entries, known)]
        is_own = is_renewed and tenure.is_by(writer, *managers)
        if is_renewed and not is_own and tenure.may_be_renewed_by(writer):
            tenure.shorter = new.lease_duration_seconds
        if is_own or tenure.duration is None or (new.lease_duration_seconds or 0) > tenure.duration:
            tenure.duration = new.lease_duration_seconds

    def _resumed(self, before: Lease, lease: Lease, at: int, writer: Writer | None) -> None:
        """Go on after what was not seen: neither a silence nor how the holder changed is known."""
        tenure, old, new = self.holder, before.spec, lease.spec
        holder, is_same = new.holder_identity or "", before.metadata.uid == lease.metadata.uid
        self.is_partial = True
        if not self.write.is_logged:
            # The write that put the holder there may be the latest of those that were not seen.
            at = max(at, written_at(new, self.entries) or at)
        last = min(at, (tenure.last_renewal if tenure else self.at) or at)
        # Its holder writes acquireTime once; without one, another tenure of the same name looks the same.
        is_kept = tenure is not None and tenure.holder == holder and is_same
        is_kept = is_kept and old.acquire_time == new.acquire_time and new.acquire_time is not None
        # Within the time to the next renewal, or the expiry, a holder that goes on has missed nothing to speak of.
        if not is_kept or at - last > (self.renewals.longest_usual or (new.lease_duration_seconds or 0) * SECOND):
            self._happened(EventKind.MISSED, last)
            self.renewals.miss(last, at)
        if tenure and is_kept:
            # Nothing shows what the write changed: it need not have been a renewal.
            at, is_dated = self._last_renewal_of(new, at)
            tenure.last_renewal, tenure.renewed, tenure.has_unseen_renewals = at, None, not is_dated
            tenure.is_touched_last, tenure.kept = False, self.write
            self.renewals.restart(at)
            self._forget_undated(tenure)
            self._happened(EventKind.RENEWED, at, writer=writer)
            return
        if tenure:
            self._ended(last, Handover.UNKNOWN)
            if self._is_put_back:
                self._released_at = None
        elif not holder:
            # Another one may have held and released it.
            self._ended_how, self._released_at = Handover.UNKNOWN, None
        if holder:
            following = self._add(holder, at, Handover.UNKNOWN, writer)
            renewed, is_dated = self._last_renewal_of(new, at)
            following.last_renewal, following.has_unseen_renewals = renewed, not is_dated
            following.claimed = readable(normalized(new.renew_time))
            self._forget_undated(following)
            if tenure and tenure.holder == holder and not (writer and writer.user):
                following.manager = tenure.manager
                following.is_ambiguous = self._is_of_another_writer(following, new, new) or tenure.is_ambiguous
            following.is_unseen, following.previous = True, "" if following.previous == holder else following.previous

    def _forget_undated(self, tenure: Tenure) -> None:
        """Count no silence from a last renewal of which neither stamps nor a log show when it was made."""
        if tenure.has_unseen_renewals and not self.write.is_logged:
            self.renewals.forget()

    def _last_renewal_of(self, spec: LeaseSpec, at: int) -> tuple[int, bool]:
        """Return the last renewal by a state that was written by `at`, and whether the state dates it."""
        is_dated = is_renewal_dated(spec, self.entries) and is_renewed_by_holder(self.entries)
        return (min(at, renewed_at(spec, self.entries) or at), True) if is_dated else (at, False)

    def _examine(
        self, seen: Observation, before: Lease | None, known: Sequence[Entry], at: int, act: Act, *, is_same_path: bool
    ) -> None:
        """Find what a write did beside the holder and the renewal."""
        assert self.lease is not None
        lease, writer = self.lease, None if act is Act.STORED else seen.writer
        old, new = before.spec if before else LeaseSpec(), lease.spec
        if self.holder and not self._events and act is Act.UPDATED:
            self.others.append((at, writer.name if writer and writer.user else self._latest_manager(known)))
        version = lease.metadata.resource_version
        if act is Act.STORED or (before and version and before.metadata.resource_version == version):
            return
        if before is None or seen.old or is_same_path:
            problem = find_forged_stamps(seen, before, known, at)
            if problem:
                self._happened(EventKind.FORGED, at, writer=writer, text=problem)
        if before is not None and (edit := edit_of(old, new)):
            self._happened(EventKind.EDITED, at, writer=writer, text=edit)
            self.edits.append(self._events[-1])

    def _note_asked(self, old: LeaseSpec, new: LeaseSpec, writer: Writer | None) -> None:
        """Note whether the holder is asked to step down, and by whom."""
        if self.holder and not new.preferred_holder:
            self.holder.asked = None
        elif self.holder and (new.preferred_holder != old.preferred_holder or self.holder.asked is None):
            self.holder.asked, self.holder.asked_by = self.write, writer
            self.holder.asked_for = new.preferred_holder or ""

    def _latest_manager(self, known: Sequence[Entry]) -> str:
        """Return the field manager of a write that left the holder, "" if it is not known."""
        changed = [one.manager or "" for one in self.entries if one not in known]
        return changed[0] if len(changed) == 1 else ""

    def _first_state(self, lease: Lease, at: int, writer: Writer | None, act: Act) -> None:
        """Say when a lease came to exist; a watch and a dump show only when it was created."""
        if self.holder and (not self._events or self.holder.began is not Handover.SEEN):
            return
        created = stamp_of(lease.metadata.creation_timestamp)
        if act is Act.STORED and created is not None and created <= at + BOUND:
            self._happened(EventKind.CREATED, min(created, at), text="it was created, by its creationTimestamp")
        elif act is Act.CREATED:
            self._happened(EventKind.CREATED, at, writer=writer)

    def _begun(self, holder: str, moment: int | None, writer: Writer | None, spec: LeaseSpec, *, is_new: bool) -> None:
        """Begin with the holder of a lease that did not exist before, or was not known."""
        renewed = renewed_at(spec, self.entries)
        tenure = self.holder
        if tenure and tenure.is_writer and tenure.holder and holder.startswith(tenure.holder):
            # A log without objects showed who writes; now a watch shows the holder identity.
            tenure.holder, tenure.is_writer = holder, False
            return
        if self._ended_how is not Handover.DELETED and not is_new:
            since = next((at for at in (held_since(spec, self.entries), renewed, moment) if at is not None), 0)
            is_stamped = bool(self.entries) and not is_constant(self.entries) and self.kind is not InputKind.DUMP
            is_written_in = is_stamped and not is_renewed_by_holder(self.entries)
            is_dated = is_renewal_dated(spec, self.entries) and not is_written_in
            is_unseen = not is_dated and (self.write.is_logged or is_stamped)
            if is_unseen and (self.write.is_logged or is_written_in):
                # Who renewed it last, and when, is not known; only that it was written then.
                renewed = moment
            tenure = self._add(holder, since, Handover.SEEN, writer, seen=renewed)
            tenure.has_unseen_renewals, tenure.claimed = is_unseen, readable(normalized(spec.renew_time))
            self._forget_undated(tenure)
            tenure.is_since_own = is_acquired_by_holder(spec, self.entries) and not spec.strategy
        else:
            how = Handover.DELETED if self._ended_how is Handover.DELETED else Handover.CREATED
            is_unseen = self._ended_how is Handover.UNKNOWN
            # After a gap the first state need not be the one that was created.
            is_first = not self._is_after_gap or self.write.is_logged
            tenure = self._add(holder, moment or renewed or 0, how if is_first else Handover.UNKNOWN, writer)
            tenure.is_unseen = not is_first
            tenure.previous = "" if is_unseen or not is_first else tenure.previous

    def _handed_over(self, old: LeaseSpec, known: Sequence[Entry], holder: str, at: int, writer: Writer | None) -> None:
        if self.tenure:
            self.tenure.manager = manager_of(known, date_last_renewal(known))
        if not holder:
            self._released(known, at, writer)
            return
        if old.holder_identity and self._ended_how is not Handover.RELEASED:
            self._taken_from_holder(old, known, holder, at, writer)
            return
        claimed = Handover.UNKNOWN if self._ended_how is Handover.UNKNOWN else Handover.CLAIMED
        how = Handover.RELEASED if self._ended_how is Handover.RELEASED else claimed
        following = self._add(holder, at, how, writer)
        # Before the input showed it again without a holder, another one may have held it.
        following.previous = "" if claimed is Handover.UNKNOWN else following.previous

    def _taken_from_holder(
        self, old: LeaseSpec, known: Sequence[Entry], holder: str, at: int, writer: Writer | None
    ) -> None:
        """End the tenure of a holder that was still named when another one took the lease."""
        last = self.tenure.last_renewal if self.tenure else renewed_at(old, known)
        kept = self.tenure.kept_until if self.tenure else last
        duration = self.holder.duration if self.holder else old.lease_duration_seconds
        # A holder's own clock that dates its last renewal cannot be compared with the API server's.
        is_claimed = self.tenure is not None and (self.tenure.renewed or self.tenure.taken).is_claimed
        is_unseen = self.tenure is not None and self.tenure.has_unseen_renewals
        is_unseen = is_unseen or (is_claimed and self.write.is_dated_by_a_server)
        is_dated = self.write.is_dated_by_a_server and not is_unseen
        how = self._taking(self.tenure, kept, duration, is_dated=is_dated)
        if how is Handover.EXPIRED:
            self._expired(duration, kept, at)
            if self.holder and self.holder.asked is not None:
                how = Handover.PREFERRED
        is_close = how is Handover.UNKNOWN and self.write.is_dated and not (is_unseen or self.write.skew)
        is_end_known = how in {Handover.EXPIRED, Handover.PREFERRED} or is_close
        self._ended(last if is_end_known and last is not None else at, how)
        if self._released_at is not None and kept is not None:
            self._released_at = min(self._released_at, kept)  # who was written in need not have renewed it
        before, following = self.tenure, self._add(holder, at, how, writer)
        following.is_close = is_close
        spec = self.lease.spec if self.lease else LeaseSpec()
        is_renewal = normalized(spec.renew_time) != normalized(old.renew_time)
        is_same = (spec.acquire_time, spec.lease_transitions) == (old.acquire_time, old.lease_transitions)
        following.is_renaming = is_renewal and is_same and spec.acquire_time is not None
        if before is not None and not is_renewal:
            # Who wrote the holder in left the lease to expire as it would have.
            following.inherited, following.kept = before.kept_until, before.kept

    def _taking(
        self, tenure: Tenure | None, kept_until: int | None, duration: int | None, *, is_dated: bool
    ) -> Handover:
        """Classify the present write: both it and the renewal before were stored at some time in an interval."""
        write, at = self.write, kept_until or 0
        # The stamp of a renewal that only a state shows has whole seconds.
        first, last, skew = at // SECOND * SECOND, at // SECOND * SECOND + SECOND, 0
        if tenure is not None and tenure.kept.at == kept_until:
            first, last, skew = tenure.kept.earliest, tenure.kept.latest or at, tenure.kept.skew
        less = write.at - write.earliest + last - at - skew
        more = (write.latest or write.at) - write.at + at - first - skew
        less, more = max(0, less), max(0, more)
        how = classify_taking(kept_until, duration, write.at, less=less, more=more, is_dated=is_dated)
        if tenure is None or tenure.shorter is None:
            return how
        other = classify_taking(kept_until, tenure.shorter, write.at, less=less, more=more, is_dated=is_dated)
        return how if how is other else Handover.UNKNOWN

    def _released(self, known: Sequence[Entry], at: int, writer: Writer | None) -> None:
        """End a tenure whose holder was removed, by itself or by another writer: then it may go on as the leader."""
        if holder := self.holder:
            manager = manager_of_write(self.entries, known)
            holder.released_by, holder.released_manager = writer, manager
            is_own = holder.is_by(writer, manager, holder.manager)
            holder.is_own_release = None if is_own is False and holder.may_be_of(writer) else is_own
            holder.is_removed = self.lease is not None and self.lease.spec.holder_identity is None
            is_hint = (holder.is_by(writer) or not (writer and writer.user)) and holder.has_own_manager
            holder.is_released_as_other = is_hint and bool(holder.manager) and manager not in {"", holder.manager}
        self._ended(at, Handover.RELEASED, writer)
        if holder and holder.was_removed:
            self._released_at = holder.last_renewal  # it may have stopped long before

    def _renewed(
        self, old: LeaseSpec, new: LeaseSpec, at: int, writer: Writer | None, act: Act, stretch: CountedRenewals | None
    ) -> None:
        tenure = self.holder
        if tenure is None:
            # The holder that had released it takes it again under the same name.
            self._add(new.holder_identity or "", at, Handover.UNKNOWN, writer)
            return
        if stretch is not None:
            self.renewals.resume(stretch, at)
            tenure.last_renewal = at - stretch.latest[-1]
        is_taken_up = tenure.is_chosen and not tenure.renewals
        if act is not Act.STORED and self.kind is not InputKind.REVIEW and not is_taken_up:
            self._expired(tenure.duration, tenure.kept_until, at)
        is_former = self._is_of_former(tenure, writer)
        # If two renewed under one name, the one before goes on alone.
        is_back = is_former and at - tenure.last_renewal >= (tenure.duration or 0) * SECOND
        if tenure.is_replaced_by(writer) and (not is_former or is_back):
            self._replaced(tenure, at, writer)
            return
        tenure.kept = self.write
        within = None if self.write.is_claimed else (self.write.earliest, self.write.latest or at)
        is_known = writer is not None or self.kind is not InputKind.AUDIT_LOG
        if not is_known or not tenure.renewed_by(writer, at, within, is_set_back=is_set_back(old, new)):
            tenure.touched, tenure.is_touched_last = (at, writer or Writer()), True
            self._happened(EventKind.RENEWED, at, writer=writer)
            return
        self._measure(tenure)
        tenure.is_ambiguous |= not (writer and writer.user) and self._is_of_another_writer(tenure, old, new)
        tenure.has_unseen_renewals = tenure.is_touched_last = False
        is_first = tenure.is_chosen and tenure.renewals == 1
        if is_first and tenure.leaderless is not None:
            # The API server chose it; that it leads is known from its own first renewal.
            led_since = (self.write.latest or at) - (tenure.taken.latest or tenure.since)
            tenure.leaderless += max(0, led_since)
            self.leaderless += max(0, led_since)
        before, tenure.last_renewal, tenure.renewed = tenure.renewed or tenure.taken, at, self.write
        if is_first:
            self.renewals.restart(at)
        is_counted = self.kind is not InputKind.REVIEW and not is_first
        is_exact = before.is_exact and self.write.is_exact
        doubt = 0 if is_exact else max(0, (self.write.latest or at) - at) + max(0, before.at - before.earliest)
        silence = self.renewals.add(at, tenure.duration, doubt) if is_counted else None
        self._happened(EventKind.RENEWED, at, writer=writer, silence=silence)
        if is_release(new) and (old.lease_duration_seconds or 0) > RELEASED_DURATION:
            self._ended(at, Handover.RELEASED, writer)

    def _is_of_another_writer(self, tenure: Tenure, old: LeaseSpec, new: LeaseSpec) -> bool:
        """True if field managers or leaseTransitions hint that another one renewed it than before: a client may lie."""
        manager = manager_of(self.entries, date_last_renewal(self.entries))
        before, tenure.manager = tenure.manager, manager or tenure.manager
        is_counted = (new.lease_transitions or 0) != (old.lease_transitions or 0)
        return (is_counted and tenure.renewals > 1) or (before != "" and manager not in {"", before})

    def _is_of_former(self, tenure: Tenure, writer: Writer | None) -> bool:
        """True if a writer is the process of one of the latest tenures of the same identity, before the present one."""
        before = islice(reversed(self.tenures), 1, MAX_LISTED)
        same = takewhile(lambda one: one.holder == tenure.holder, before)
        return any(one.process is not None and one.process.is_same(writer) for one in same)

    def _replaced(self, tenure: Tenure, at: int, writer: Writer | None) -> None:
        """Begin the tenure of another pod that renews under the same identity: it may not know of the one before."""
        is_dated = self.write.is_dated_by_a_server
        how = self._taking(tenure, tenure.kept_until, tenure.duration, is_dated=is_dated)
        is_expired = how is Handover.EXPIRED
        self._ended(tenure.last_renewal if is_expired else at, Handover.EXPIRED if is_expired else Handover.REPLACED)
        following = self._add(tenure.holder, at, Handover.EXPIRED if is_expired else Handover.REPLACED, writer)
        following.is_sure, following.renewals, following.renewed = True, 1, self.write

    def _measure(self, tenure: Tenure) -> None:
        """Measure the holder's clock: one odd renewTime may be that of a late request, or another writer's."""
        before, self._ahead = self._ahead, ahead_of(self.lease.spec, self.entries) if self.lease else None
        is_odd = self._ahead is not None and abs(self._ahead) > MAX_TOLERANCE
        is_alone = before is not None and self._ahead is not None and abs(before - self._ahead) > SECOND
        is_server = self._ahead is not None and abs(self._ahead) <= self.write.skew + MAX_TOLERANCE
        tenure.ahead = None if is_odd and (is_alone or is_server) else self._ahead

    def _expired(self, duration: int | None, last: int | None, before: int) -> None:
        """Say when the lease expired, if that was before the write that is seen."""
        if last is not None and duration and duration > 0 and last + duration * SECOND < before:
            self._happened(EventKind.EXPIRED, last + duration * SECOND)

    def _written(self, seen: Observation, at: int) -> None:
        """Take in a write whose object the log does not show: who writes regularly leads, as far as can be known.

        Another writer follows once it has written for some time, as the holder did, while the holder did not.
        """
        writer = seen.writer or Writer()
        who = writer.pod or writer.name
        tenure = self.holder
        if tenure is None:
            self.is_deleted = False
            how = Handover.UNKNOWN if self.tenure else Handover.SEEN
            if seen.act is Act.CREATED:
                how = Handover.DELETED if self._ended_how is Handover.DELETED else Handover.CREATED
            self._add(who, at, how, writer).is_writer = True
            self._verb = seen.verb
        elif tenure.holder == who and writer.impersonator == tenure.impersonator and tenure.is_by(writer) is not False:
            self._rival.clear()
            self._verb = seen.verb
            self._renewed_unseen(tenure, at, writer)
        elif who == API_SERVER:
            # The API server writes into the lease of another writer only to ask that one to step down.
            self.accepted.append((at, writer))
        else:
            self.accepted.append((at, writer))
            if self._verb in {seen.verb, "create"} and writer.impersonator in {"", tenure.impersonator}:
                if self._rival and self._rival[0][1] != writer:
                    self._rival.clear()
                self._rival.append((at, writer))
                self._follow_rival(tenure, at, who, writer)
        self._passed(at)

    @property
    def _patience(self) -> int:
        usual = self.renewals.usual
        return UNKNOWN_PATIENCE if usual is None else 2 * usual

    def _follow_rival(self, tenure: Tenure, at: int, who: str, writer: Writer | None) -> None:
        since = self._rival[0][0]
        if len(self._rival) < 2 or at - since < self._patience:
            return
        self._ended(tenure.last_renewal, Handover.UNKNOWN)
        if tenure.holder == API_SERVER:
            self._released_at = None  # it may have named this writer, or another one that never led
        self._add(who, since, Handover.UNKNOWN, writer).is_writer = True
        following = self.tenures[-1]
        others = [one for one in self.accepted if one[0] < since or one[1] != writer]
        self.accepted = deque(others, MAX_REFUSALS)
        for renewed, _ in list(self._rival)[1:]:
            self._renewed_unseen(following, renewed, writer)
        self._rival.clear()

    def _unseen_write(self, at: int, writer: Writer | None) -> None:
        """Take in such a write to a lease that is known: a renewal, unless another input shows it."""
        tenure, self._version = self.holder, ""
        if tenure and tenure.is_by(writer):
            if at - tenure.last_renewal > self._patience:
                self._logged = at
                self._renewed_unseen(tenure, at, writer)
            else:
                tenure.renewed_by(writer, at)
        elif tenure and writer and tenure.is_by(writer) is False and writer.user not in {"", API_SERVER}:
            self.accepted.append((at, writer))
        self._passed(at)

    def _renewed_unseen(self, tenure: Tenure, at: int, writer: Writer | None) -> None:
        tenure.renewed_by(writer, at)
        tenure.last_renewal, tenure.is_touched_last = at, False
        self._happened(EventKind.RENEWED, at, writer=writer, silence=self.renewals.add(at, tenure.duration))

    def _add(self, holder: str, since: int, how: Handover, writer: Writer | None, *, seen: int | None = None) -> Tenure:
        """Add a holder; `seen` is its last renewal if it had the lease already when the input begins."""
        leaderless = None
        if self._released_at is not None and how is not Handover.SEEN:
            skew = self.write.skew
            since_last = self._since_at_most(self._released_at, since)
            leaderless = 0 if how in {Handover.STOLEN, Handover.REPLACED} else since_last
            # Who was robbed of the lease may have stopped before, or led on; so may one that no one renewed.
            last = self.tenure.last_renewal if self.tenure else self._released_at
            if not self.write.is_claimed:
                is_gone = how is Handover.DELETED
                self.leaderless += self._since_at_most(last, since) if is_gone else leaderless
            is_unclear = how is Handover.UNKNOWN and (skew or self._released_at == since)
            is_known = self.write.is_dated and not self.write.is_claimed and not is_unclear
            is_taken_live = how in {Handover.STOLEN, Handover.REPLACED}
            leaderless = None if is_taken_live or not is_known else leaderless
        self.handovers[how] = self.handovers.get(how, 0) + 1
        self._lost = self.tenure
        previous = self._lost.holder if self._lost else ""
        last = since if seen is None else seen
        tenure = Tenure(holder, since, how, last, previous, leaderless, namespace=self.namespace)
        tenure.is_dated = self.write.is_dated or how is Handover.SEEN
        tenure.taken = tenure.kept = self.write
        is_coordinated = self.lease is not None and bool(self.lease.spec.strategy)
        tenure.is_exact = self.write.is_exact
        tenure.is_coordinated = is_coordinated
        manager = "" if is_constant(self.entries) else manager_of_write(self.entries, ())
        if how is Handover.SEEN:
            tenure.seen_written_by(writer, manager)
        else:
            tenure.begun_by(writer, manager, None if how is Handover.REPLACED else self._process_of(holder, writer))
        self._ahead = None
        self._measure(tenure)
        self.tenures.append(tenure)
        self.renewals.taken(tenure.last_renewal, has_expired=how is Handover.EXPIRED)
        if self.write.is_claimed:
            self.renewals.set_back(tenure.last_renewal)
        self.renewals.latest.clear()
        self._released_at = self._ended_how = None
        self._happened(EventKind.ACQUIRED, since, writer=writer)
        return tenure

    def _process_of(self, holder: str, writer: Writer | None) -> Writer | None:
        """Return the process that is known to have held it under this name; None if none is, or a pod replaced it."""
        same = [one for one in reversed(self.tenures) if one.holder == holder]
        known = next((one for one in same if one.is_sure), None)
        if known and not known.names_its_pod and any(one.others for one in same):
            return None  # it may have written a text that is another's
        if known is None or known.process is None or known.is_replaced_by(writer):
            return None
        return known.process

    def _ended(self, at: int, how: Handover, writer: Writer | None = None) -> None:
        if holder := self.holder:
            holder.until, holder.ended = at, self.write
            if how is Handover.DELETED and not holder.is_end_dated:
                earliest = 0 if self._write_known.is_claimed else self._write_known.earliest
                holder.ended = replace(self.write, earliest=earliest, latest=None, dating=Dating.ORDER)
            if how is Handover.RELEASED:
                holder.is_end_dated = self.write.is_dated
                self._happened(EventKind.RELEASED, at, writer=writer)
        self._released_at, self._ended_how = at, how

    def _passed(self, at: int | None) -> None:
        if at is not None:
            self.at = at if self.at is None else max(self.at, at)


def _source(path: str) -> str:
    """Return what a file is a part of: each file of a recorder goes on where the one before ended."""
    folder, _, name = path.rpartition("/")
    return folder if _RECORDED.fullmatch(name) else path


def _is_retaken(old: LeaseSpec, new: LeaseSpec) -> bool:
    """True if a holder took a lease that it held before: others had it meanwhile."""
    return (
        new.holder_identity == old.holder_identity
        and new.acquire_time != old.acquire_time
        and (new.lease_transitions or 0) > (old.lease_transitions or 0)
    )
