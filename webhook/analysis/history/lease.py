"""Follows one lease through its observations: each write is classified once, and gives events; memory is bounded.

The observations come in order, each of them once: `webhook.analysis.history.merge` sees to that. Here the parts come
together: what links the states (`continuity`), whether the lease exists (`existence`), what the next state does to the
holder (`transition`), one holder after another (`succession`), how the lease was taken (`taking`), logs without objects
(`hidden_write`, `rival`), and what an audit log shows beside (`requests`).
"""

from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from webhook.admission.rules.expiry import BOUND, MAX_TOLERANCE, date_last_renewal, round_up_to_seconds
from webhook.admission.rules.stamps import is_constant
from webhook.analysis.heartbeats import is_heartbeat, is_named_for_heartbeats
from webhook.analysis.history.bounds import Bounds
from webhook.analysis.history.continuity import Change, Continuity, Sight
from webhook.analysis.history.dating import Known, date_state_before, date_write
from webhook.analysis.history.events import EventKind, LeaseEvent, describe_changed_fields
from webhook.analysis.history.existence import Existence, is_other_uid
from webhook.analysis.history.first_state import read_first_state
from webhook.analysis.history.forged_stamps import find_forged_stamps
from webhook.analysis.history.hidden_write import (
    HiddenWrite,
    classify_write_to_known,
    classify_write_to_unknown,
    name_writer,
)
from webhook.analysis.history.known_status import date_known_renewal, find_status
from webhook.analysis.history.processes import HolderProcesses
from webhook.analysis.history.renewals import Renewals, Silence, estimate_deadline
from webhook.analysis.history.requests import MAX_REFUSALS, Requests, hear
from webhook.analysis.history.resumption import date_resumed_renewal, may_renew_with, read_resumption
from webhook.analysis.history.rival import Rival
from webhook.analysis.history.status import (
    RELEASED_DURATION,
    LeaseState,
    LeaseStatus,
    date_duration_by_another,
    date_naming,
    date_renewal,
    date_state,
    find_manager,
    find_manager_of_write,
    find_stamp_between,
    is_duration_by_another,
    is_release,
    is_renewal_logged,
    is_set_back,
    measure_ahead,
)
from webhook.analysis.history.succession import Succession
from webhook.analysis.history.taking import classify_write, find_taking
from webhook.analysis.history.tenure import API_SERVER, Handover, Tenure
from webhook.analysis.history.transition import NextState, Transition
from webhook.analysis.history.vacancy import Vacancy
from webhook.analysis.history.write import Dating, Write
from webhook.analysis.inputs.items import Act, InputKind, Observation, Writer
from webhook.kubernetes.managed_fields import Entry, list_entries
from webhook.kubernetes.objects import Lease, LeaseSpec
from webhook.kubernetes.times import SECOND, get_readable_instant, normalize, stamp_of

MAX_OTHERS: Final = 1000
_READS_OF_NONE: Final = 2

_KEPT_AFTER_VACANCY: Final = frozenset({Handover.RELEASED, Handover.UNKNOWN})
"""How a tenure ended if the next holder of a lease that names none took it so, too; else it was claimed."""


class Gap(Struct, frozen=True):
    """What is missing between the state that is known and the next one.

    `is_gap`: what was written between the two was not seen. `is_skip`: the next one follows another one, which is
    hidden, or not known. `is_doubtful`: a write of the holder is missing that was answered as failed, so it was stored.
    """

    is_gap: bool = False
    is_skip: bool = False
    is_doubtful: bool = False


_NOTHING_MISSING: Final = Gap()


class LeaseHistory(Struct):
    """Everything that is known about one lease. `at` is the latest moment at which it was observed."""

    namespace: str
    name: str
    lease: Lease | None = None
    entries: Sequence[Entry] = ()
    at: int | None = None
    is_moment: bool = True
    """Only lists have shown it: nothing is known of what happened before."""
    stamped: int = 0
    """The stamp of the latest write, 0 if a client may have invented it."""
    is_resumed: bool = False
    """The latest state follows what was not seen."""
    moment: int = 0
    """Estimated time of the latest write, in microseconds since 1970; unlike `at`, it may go back."""
    write: Write = Write()
    """The latest one."""
    existence: Existence = field(default_factory=Existence)
    continuity: Continuity = field(default_factory=Continuity)
    succession: Succession = field(default_factory=Succession)
    renewals: Renewals = field(default_factory=Renewals)
    requests: Requests = field(default_factory=Requests)
    others: deque[tuple[int, str]] = field(default_factory=partial(deque, (), MAX_OTHERS))
    """Writes that changed neither the holder nor renewed, by user or field manager."""
    edits: deque[LeaseEvent] = field(default_factory=partial(deque, (), MAX_REFUSALS))
    _rival: Rival = field(default_factory=Rival)
    _logged: int | None = None
    """The last renewal by the log, if the latest state has no stamp of it."""
    _write_before: Write = Write()
    """The one before the latest."""
    _stored_write: Write = Write()
    """The latest one that was stored: when others were answered says nothing of what follows them."""
    _shared: Tenure | None = None
    """The tenure already reported as shared by several processes."""
    _events: list[LeaseEvent] = field(default_factory=list)
    _status: tuple[int, LeaseStatus] | None = None
    """At the moment that was asked for last, since the latest observation."""

    @property
    def kind(self) -> InputKind:
        """That of the latest observation."""
        return self.continuity.kind

    @property
    def hidden_since(self) -> int | None:
        """Since when the input may lack what was written to it; None once a write follows the one that is known."""
        return self.continuity.hidden_since

    @property
    def is_partial(self) -> bool:
        """Whether writes may have been missed."""
        return self.continuity.is_partial

    @property
    def is_deleted(self) -> bool:
        """Whether it was deleted."""
        return self.existence.is_deleted

    @property
    def is_mixed(self) -> bool:
        """Whether the input is of several clusters, so that nothing is known."""
        return self.existence.is_mixed

    @property
    def vacancy(self) -> Vacancy:
        """The latest time in which no one led."""
        return self.succession.vacancy

    @property
    def leaderless(self) -> int:
        """For how long no one led between holders, at most, in all; microseconds."""
        return self.vacancy.leaderless

    def status(self, now: int) -> LeaseStatus | None:
        """Return the status of the lease; None if its object was never seen, or is gone."""
        # Sight is lost between observations, too: that is asked each time, and what is kept does not depend on it.
        if self.lease is None or self.is_deleted or self.is_mixed or self.hidden_since:
            return None
        if self._status is None or self._status[0] != now:
            self._status = now, self._find_status(self.lease, now)
        return self._status[1]

    def _find_status(self, lease: Lease, now: int) -> LeaseStatus:
        return find_status(
            lease,
            self.entries,
            self.succession,
            now,
            logged=self._logged,
            is_seen_created=self.existence.is_seen_created,
            is_moment=self.is_moment,
        )

    @property
    def known_renewal(self) -> int | None:
        """The last renewal under its present holder that an API server dates; None if there is none."""
        return date_known_renewal(self.holder, is_moment=self.is_moment)

    @property
    def is_heartbeat(self) -> bool:
        """True if the lease has the shape of a heartbeat, and its holder was never seen to change."""
        if self.lease is None or not is_heartbeat(self.lease, self.namespace):
            return False
        return is_named_for_heartbeats(self.namespace, self.name) or len({one.holder for one in self.tenures}) < 2

    @property
    def duration(self) -> int | None:
        """Seconds, by the latest state."""
        return self.lease.spec.lease_duration_seconds if self.lease else None

    @property
    def is_as_sent(self) -> bool:
        """True if the latest state is what a client sent: a log shows it without what the API server added."""
        return self.lease is not None and self.kind is InputKind.AUDIT_LOG and not self.continuity.version

    @property
    def interval(self) -> float | None:
        """Seconds between renewals, as seen."""
        usual = self.renewals.usual
        return None if usual is None else usual / SECOND

    @property
    def late_silences(self) -> list[Silence]:
        """The latest silences after which most clients would have given up, oldest first; none after a release."""
        ended = [one for one in self.renewals.silences if (one.duration or 0) > RELEASED_DURATION]
        return [one for one in ended if one.length >= estimate_deadline(one.duration)]

    def find_tenure_of_silence(self, silence: Silence) -> Tenure | None:
        """Return the tenure to which a silence belongs; None if that was dropped because there were too many."""
        number = silence.tenure_number - 1 - (self.renewals.tenures - len(self.tenures))
        return self.tenures[number] if number >= 0 else None

    def measure_leaderless_time(self, now: int) -> int:
        """Return for how long no one led, at most, in all: also while a holder was late, and up to `now`."""
        held, status = self.holder, self.status(now)
        since = held.last_renewal if held and status and status.state is LeaseState.EXPIRED else None
        since = self.vacancy.since if held is None else since
        ongoing = 0 if since is None else max(0, now - since)
        return self.leaderless + sum(one.longest for one in self.late_silences) + ongoing

    @property
    def tenures(self) -> deque[Tenure]:
        """The latest tenures, oldest first."""
        return self.succession.tenures

    @property
    def tenure(self) -> Tenure | None:
        """The latest holder."""
        return self.succession.latest

    @property
    def holder(self) -> Tenure | None:
        """The present holder."""
        return self.succession.holder

    @property
    def handovers(self) -> dict[Handover, int]:
        """How often a holder began, by how it did: also one that takes it again under the same name."""
        return self.succession.handovers

    @property
    def changes(self) -> int:
        """How often the holder changed to another one, as far as was seen."""
        return self.succession.changes

    @property
    def has_reads_of_holders(self) -> bool:
        """Whether a log has reads by a user of its holders, so that others of that user that ask for it are heard."""
        own = {one.processes.own.user for one in self.tenures if one.processes.own is not None}
        return not own.isdisjoint(self.requests.users)

    def may_lack_writes(self, since: int, now: int) -> bool:
        """Return whether there were writes, of the last duration before `now`, that the input may lack since then."""
        recent = now - (self.duration or 0) * SECOND
        return self.hidden_since is not None or any(one.end > max(since, recent) for one in self.renewals.unseen)

    @property
    def _known_state(self) -> Known:
        lease = None if self.is_deleted else self.lease
        return Known(lease, self.entries, self.at, self._stored_write, self.continuity.path, self.holder is not None)

    @property
    def is_end_seen(self) -> bool:
        """Whether the input shows everything since the latest tenure ended."""
        ended = self.tenure.ended if self.tenure else None
        return ended is not None and all(one.end <= ended.at for one in self.renewals.unseen)

    def find_tenure_at(self, at: int) -> Tenure | None:
        """Return the latest tenure that had begun by an instant, which may have ended; None before the first one."""
        return self.succession.find_tenure_at(at)

    def find_last_renewal_by(self, user: str) -> int:
        """Return when a process of a user last renewed it as its holder, in microseconds since 1970; 0 if none did."""
        own = (one for one in self.tenures if one.processes.own is not None and one.processes.own.user == user)
        return max((one.last_renewal for one in own), default=0)

    def find_node_at(self, at: int) -> str:
        """Return the node of the pod that held it, "" if that is not known."""
        tenure = self.find_tenure_at(at)
        return tenure.processes.node if tenure else ""

    def feed(self, seen: Observation, bounds: Bounds) -> list[LeaseEvent]:
        """Take in one observation; those of one lease come in order."""
        self._begin(seen, bounds)
        if seen.input_kind is InputKind.AUDIT_LOG:
            self._hear(seen)
        if self.is_deleted and (seen.is_of_none or (seen.act is Act.CREATED and seen.is_stored)):
            self._confirm_deletion()
        if seen.act is Act.READ:
            self.requests.take_read(seen, self.renewals)
        else:
            self.requests.take_write(seen)
        if seen.is_of_none:
            self._take_absence(seen)
        if seen.act is Act.READ:
            return self._events
        if seen.is_stored:
            before = self.lease
            self._store_state_before(seen)
            self._store(seen)
            self._stored_write = self.write
            if self.holder is not None:
                self.holder.note_asked(self.requests.rewritten.asked_holder)
            if not _is_edit(before, self.lease, seen):
                self.requests.waiting.restart(self.moment)
            self._note_sight(seen, bounds)
            self._report_sharing()
        return self._events

    def lose_sight(self, since: int) -> None:
        """Remember that an audit log may lack requests since then."""
        self.continuity.change(Change.LOG_HAS_HOLE, since)

    def regain_sight(self, since: int) -> None:
        """Remember that the log went on from then on, so what was taken for a hole after that is none."""
        if self.hidden_since is not None and self.hidden_since >= since:
            self.continuity.change(Change.LOG_WENT_ON)

    def miss_write(self) -> None:
        """Remember that the log lacks writes, so what was not taken for a hole is one."""
        self.continuity.change(Change.WRITE_IS_MISSING)

    def put_back(self, since: int) -> None:
        """Remember that the store was put back to an earlier state after that: the lease may be another one since."""
        self.continuity.change(Change.STORE_WAS_PUT_BACK, since)
        self.continuity.forget_revisions()
        self.existence.forget_uid()

    def _begin(self, seen: Observation, bounds: Bounds) -> None:
        self._write_before, self._events, self._status = self.write, [], None
        self.write = date_write(seen, self._known_state, bounds)
        self.moment = self.write.at
        self.continuity.begin(seen, self.write, self._write_before, bounds)
        self.is_moment = self.is_moment and seen.input_kind is InputKind.DUMP

    def _hear(self, seen: Observation) -> None:
        """Note what any request in an audit log shows."""
        self.requests.hear(seen)
        hear(seen, self.tenure, self.succession.before)
        if self.continuity.sight is Sight.IN_HOLE and self._has_waited(seen):
            self.continuity.change(Change.HOLDER_HAD_WAITED)

    def _has_waited(self, seen: Observation) -> bool:
        """Return whether the holder had waited for this answer since its last renewal: it made no other request then.

        If anything else was written, the next write to the lease replaces a state that is not known.
        """
        holder, last = self.holder, self.renewals.last
        if seen.at is None or holder is None or last is None:
            return False
        received, usual = seen.at - seen.took, min(self.renewals.usual or 0, holder.processes.find_longest_pause(last))
        return received <= last + usual + usual // 2 and holder.is_by(seen.writer) is True

    def _note_sight(self, seen: Observation, bounds: Bounds) -> None:
        """Note what of the present state is known after a write."""
        if not self.is_deleted and self.write.is_dated:
            self.continuity.note_state(self.write, bounds)
        is_hidden = self._is_change_hidden(seen) and seen.at is not None
        self.continuity.change(Change.WRITE_WAS_HIDDEN if is_hidden else Change.STATE_WAS_SHOWN, seen.at)

    def _is_change_hidden(self, seen: Observation) -> bool:
        """Return whether a log does not show what a write changed, nor a watch beside it, and it may be no renewal."""
        if seen.object is not None or self.lease is None:
            return False
        if self.is_deleted:
            return self.existence.is_creation_hidden
        if self.continuity.path != seen.place.path:
            return False
        is_own = self.holder is not None and self.holder.is_by(seen.writer) is True
        return not (is_own and seen.verb == "update")

    def _report_sharing(self) -> None:
        """Report each tenure once if several processes take turns to renew it."""
        tenure = self.tenure
        if (
            tenure
            and tenure is not self._shared
            and tenure.processes.has_several_writers
            and tenure.processes.renews_in_turns
            and len(tenure.processes.writers) > 1
        ):
            self._shared = tenure
            self._record_event(EventKind.SHARED, self.at or 0)

    def _record_event(
        self, kind: EventKind, at: int, writer: Writer | None = None, text: str = "", *, silence: int | None = None
    ) -> None:
        event = LeaseEvent(
            kind,
            at,
            self.tenure,
            writer=writer,
            text=text,
            silence=silence,
            is_dated=self.write.is_dated or kind is EventKind.EXPIRED,
            is_claimed=self.write.is_claimed and kind is not EventKind.EXPIRED,
        )
        self._events.append(event)

    def _store_state_before(self, seen: Observation) -> None:
        """Take in the state that a write replaced, if the input shows it."""
        if isinstance(seen.old, Lease) and not self._is_older(seen.old):
            self.continuity.advance_to(seen.old)
            write = self.write
            self._change(seen, seen.old, list_entries(seen.old.metadata.managed_fields), Act.STORED)
            self.write = write

    def _store(self, seen: Observation) -> None:
        if seen.is_deletion:
            self._store_deletion(seen)
        elif isinstance(seen.object, Lease):
            if not self._is_older(seen.object):
                self.continuity.advance_to(seen.object)
                self._change(seen, seen.object, seen.entries, seen.act)
            if seen.act is Act.DELETED:
                self.existence.mark(seen.writer, self.moment)
            elif marked := stamp_of(seen.object.metadata.deletion_timestamp):
                self.existence.mark(None, marked)
        elif seen.at is not None and not seen.problem:
            if self.lease is not None:
                if seen.act is Act.CREATED:
                    self.existence.note_hidden_creation()
                self._take_hidden_write(seen, seen.at)
            else:
                self._take_logged_write(seen, seen.at)

    def _is_older(self, lease: Lease) -> bool:
        """Return whether a state is older than one that is known: lines of logs may be out of order."""
        return self.continuity.is_older(lease, is_deleted=self.is_deleted)

    # Deletion, and creation with the same name.

    def _store_deletion(self, seen: Observation) -> None:
        if self.holder and (self.hidden_since is not None or self.continuity.is_after_gap):
            # Another one may have held it by then.
            holder = self.holder
            self._end_tenure(self.hidden_since or self.moment, Handover.UNKNOWN)
            holder.note_end_dated(is_dated=False)
            if self.hidden_since is not None:
                self._record_event(EventKind.MISSED, self.hidden_since)
        shown = seen.object if isinstance(seen.object, Lease) else None
        if self.is_deleted or (shown is not None and self._is_older(shown)):
            return
        if shown is not None:
            self.continuity.advance_to(shown)
        self._delete(seen, self.moment)

    def _delete(self, seen: Observation, at: int) -> None:
        holder, is_dated = self.holder, seen.at is not None
        if holder is not None:
            # Who asks again for a deletion that waits for finalizers removes none of them.
            is_request = seen.act is Act.DELETED and seen.writer is not None
            by, marked_at = self.existence.find_deleter(seen), 0 if is_request else self.existence.marked_at
            holder.note_deletion(by, is_dated=is_dated, marked_at=marked_at, last_finalizer_by=seen.writer)
            holder.is_deletion_sure = seen.is_sure
        self._events.append(LeaseEvent(EventKind.DELETED, at, holder, seen.writer, is_dated=is_dated))
        if holder is not None or self.lease is None:
            self._end_tenure(at, Handover.DELETED)
        self.existence.delete(at, is_sure=seen.is_sure)
        self._advance_at(at)

    def _take_absence(self, seen: Observation) -> None:
        """Take in that the lease does not exist: its deletion was not seen. A single read may be answered from a cache.

        What an input shows before may have been replaced unseen.
        """
        is_known = self.lease is not None or self.holder is not None
        number = self.requests.absent[0] if self.requests.absent else 0
        if self.is_deleted or not is_known or (seen.act is Act.READ and number < _READS_OF_NONE):
            return
        if self.holder and (self.hidden_since is not None or self.continuity.is_after_gap):
            self._end_tenure(self.hidden_since or self.at or 0, Handover.UNKNOWN)
        self._delete(replace(seen, act=Act.STORED, at=None, writer=None, is_sure=True), self.at or 0)

    def _confirm_deletion(self) -> None:
        """Note that a deletion was none of a dry run."""
        self.existence.is_deletion_sure = True
        if self.tenure is not None:
            self.tenure.is_deletion_sure = True

    def _delete_unseen(self, seen: Observation) -> None:
        """Take in a deletion that the input does not show, which therefore has neither a time nor a writer."""
        if self.lease is not None and not self.is_deleted:
            self._delete(replace(seen, at=None, writer=None), self.at or 0)

    # States of the lease, one after another.

    def _change(self, seen: Observation, lease: Lease, entries: Sequence[Entry], act: Act) -> None:
        """Take in the next state of the lease; `seen` shows it, or shows it as the state before."""
        is_same_path = self.continuity.path == seen.place.path
        state = self._move_to(seen, lease, entries, act)
        self._note_log(state)
        is_dated_by_stamp = state.before is not None and seen.at is None
        self.stamped = find_stamp_between(state.old, state.new, state.known, entries) if is_dated_by_stamp else 0
        self.is_resumed = state.is_gap and act is Act.STORED
        self._follow_holder(state)
        if self.holder:
            self._note_facts(self.holder, state)
        if not state.is_gap:
            self._examine(state, is_same_path=is_same_path)
        self._advance_at(state.moment or None)

    def _move_to(self, seen: Observation, lease: Lease, entries: Sequence[Entry], act: Act) -> NextState:
        """Make a state the present one; return it beside the one before, which may have been deleted unseen."""
        is_old_state = lease is seen.old
        uid = self.lease.metadata.uid if self.lease else None
        is_other = is_other_uid(uid, lease.metadata.uid)
        if is_other:
            self.existence.replace_uid(uid, lease.metadata.uid)
        gap = self._find_gap(seen, lease, act, is_other=is_other)
        self._apply_gap(gap, seen)
        # A review of a creation comes before it is known whether the lease exists.
        if not gap.is_gap and (is_other or (act is Act.CREATED and self.kind is not InputKind.REVIEW)):
            self._delete_unseen(seen)
        was_deleted = self.is_deleted
        if act is Act.CREATED and not self.tenures:
            self.existence.is_seen_created = True
        before, known = (None, ()) if was_deleted else (self.lease, self.entries)
        moment: int | None = self.moment
        if is_old_state:
            moment = None if self._known_state.has_same_renewal(lease) else date_state(lease.spec, entries)
            self.write = date_state_before(moment, self.at or 0, self.write.skew)
        self.lease, self.entries = lease, entries
        self.existence.restore(is_other=is_other)
        self.continuity.path, self.continuity.version = seen.place.path, seen.resource_version
        return NextState(
            seen=seen,
            act=act,
            lease=lease,
            entries=entries,
            before=before,
            known=known,
            at=moment or self.at or 0,
            moment=moment,
            writer=None if is_old_state else seen.writer,
            is_gap=gap.is_gap,
            is_new=was_deleted or act is Act.CREATED,
        )

    def _apply_gap(self, gap: Gap, seen: Observation) -> None:
        """Remember what a write shows to be missing before it."""
        if gap.is_skip:
            self.continuity.note_skip(seen)
        if gap.is_doubtful:
            self.write = replace(self.write, is_doubtful=True)

    def _follow_holder(self, state: NextState) -> None:
        """Have the next state renew, end or begin a tenure, or do neither."""
        match state.classify(is_released=self.vacancy.how is Handover.RELEASED):
            case Transition.RENEWAL:
                self._renew(state)
            case Transition.TAKING:
                self._take_from_holder(state)
            case Transition.CLAIM:
                self._claim(state)
            case Transition.RELEASE:
                self._release(state)
            case Transition.BEGINNING:
                self._begin_state(state)
            case Transition.RESUMPTION:
                self._resume(state)
            case _:
                pass

    def _note_log(self, state: NextState) -> None:
        """Note when a log shows the last renewal, if the new state has no stamp of it."""
        if state.before is not None and not state.has_other_renew_time:
            return
        # After what was not seen, the renewal may be of another write than the one that shows it.
        is_seen = not state.is_gap or is_renewal_logged(state.new, state.entries, self.write)
        is_made = state.before is not None or state.act is Act.CREATED
        is_logged = is_seen and is_made and self.kind is InputKind.AUDIT_LOG
        self._logged = state.seen.at if is_logged and date_last_renewal(state.entries) is None else None

    def _find_gap(self, seen: Observation, lease: Lease, act: Act, *, is_other: bool) -> Gap:
        """Find what is missing between the state that is known and the next one."""
        if self.lease is None or self.is_deleted:
            return _NOTHING_MISSING
        if self.continuity.is_cut(seen):
            return Gap(is_gap=True, is_skip=True)
        if seen.is_order_unsure and _names_another(self.lease, lease):
            return Gap(is_gap=True)
        if not (seen.replaces and self.continuity.version):
            is_gap = self.continuity.has_gap_between(seen, self.lease, lease, act, is_other=is_other)
            return Gap(is_gap=True) if is_gap else _NOTHING_MISSING
        # A request names the state that it replaces.
        if seen.replaces == self.continuity.version:
            return _NOTHING_MISSING
        is_explained = self._is_explained_by_failure()
        return Gap(is_gap=not is_explained, is_skip=not is_explained, is_doubtful=is_explained)

    def _is_explained_by_failure(self) -> bool:
        """Return whether the write that is missing is one of the holder that was stored although its answer failed."""
        refusals = self.requests.refusals
        # Whoever asks meanwhile may be refused, which stores nothing.
        unknown = [one for one in refusals if one.was_stored is None]
        last = next(reversed(unknown or refusals), None)
        if self.holder is None or last is None or last.code < 500 or last.at < (self.at or 0):
            return False
        return self.holder.is_by(last.writer) is True

    def _note_facts(self, tenure: Tenure, state: NextState) -> None:
        """Have the holder remember its term, how long the lease lasts, and whether it is asked to step down."""
        old, new = state.old, state.new
        tenure.note_term(None if state.is_before_write or state.seen.is_stamp_old else state.seen.term)
        # After a gap, a renewal may stand beside the duration that another manager wrote.
        is_renewed = state.has_other_renew_time and not is_duration_by_another(state.entries)
        if is_renewed:
            tenure.confirm_duration()
        if tenure.duration != new.lease_duration_seconds:
            is_begun = any(one.kind is EventKind.ACQUIRED for one in self._events)
            is_same_write = state.has_other_renew_time or is_begun or state.is_gap
            if not is_same_write and self._is_last_renewal_known(tenure):
                # By what it lasted until then it may have expired before it was made to last longer.
                self._report_expiry(tenure.least_duration, tenure.kept_until, state.at, tenure.shortened_at)
            managers = [find_manager(entries, date_last_renewal(entries)) for entries in (state.entries, state.known)]
            at = self.write.at if state.before else max(self.write.at, date_duration_by_another(state.entries))
            tenure.set_duration(new.lease_duration_seconds, state.writer, *managers, at=at, is_renewed=is_renewed)
            if not state.has_other_renew_time and (new.lease_duration_seconds or 0) < (old.lease_duration_seconds or 0):
                tenure.shortened_at = self.write.at  # until then it lasted as long as it said before
        asker = None if state.is_gap or state.act is Act.STORED else state.writer
        tenure.ask(old.preferred_holder, new.preferred_holder, self.write, asker)

    def _examine(self, state: NextState, *, is_same_path: bool) -> None:
        """Find what a write did beside the holder and the renewal."""
        before, at = state.before, state.at
        if self.holder and not self._events and state.act is Act.UPDATED:
            who = state.writer.name if state.writer and state.writer.user else state.manager
            self.others.append((at, who))
            if state.writer is not None and self.holder.is_by(state.writer):
                self.holder.processes.unrenewed.append(at)
        version = state.lease.metadata.resource_version
        if state.act is Act.STORED or (before and version and before.metadata.resource_version == version):
            return
        if before is None or state.seen.old or is_same_path:
            problem = find_forged_stamps(state.seen, before, state.known, at, is_dated=self.write.is_dated)
            if problem:
                self._record_event(EventKind.FORGED, at, writer=state.writer, text=problem)
        if before is not None and (edit := describe_changed_fields(state.old, state.new)):
            # A stamp has whole seconds, and the write before may have been in the same one.
            at = max(at, self._write_before.at) if self.write.may_include(self._write_before.at) else at
            self._record_event(EventKind.EDITED, at, writer=state.writer, text=edit)
            self.edits.append(self._events[-1])

    # The first state, and the first one after what was not seen.

    def _begin_state(self, state: NextState) -> None:
        """Begin with a state before which the lease did not exist, or was not known."""
        if state.holder:
            self._begin_holder(state, state.holder)
        self._report_creation(state)

    def _begin_holder(self, state: NextState, holder: str) -> None:
        tenure, spec, writer = self.holder, state.new, state.writer
        if tenure and tenure.is_writer and tenure.holder and holder.startswith(tenure.holder):
            # A log without objects showed who writes; now a watch shows the holder identity.
            tenure.name_holder(holder)
        elif self.vacancy.how is Handover.DELETED or state.is_new:
            is_unseen = self.vacancy.how is Handover.UNKNOWN
            how = Handover.DELETED if self.vacancy.how is Handover.DELETED else Handover.CREATED
            # After a gap the first state need not be the one that was created.
            is_first = not self.continuity.is_after_gap or self.write.is_logged
            if state.act is Act.UPDATED or (self.existence.is_creation_hidden and state.act is not Act.CREATED):
                is_first = False  # what is updated was created before
            at = state.moment or date_renewal(spec, state.entries) or 0
            tenure = self._begin_tenure(holder, at, how if is_first else Handover.UNKNOWN, writer)
            if not is_first:
                tenure.begin_unseen()
            if is_unseen or not is_first:
                tenure.forget_previous()
        else:
            first = read_first_state(state.lease, state.entries, self.write, state.moment, self.kind)
            # A patch is answered with the state that it found if it changed nothing.
            is_renewer = state.seen.verb != "patch" and _may_be_renewal(state.entries, self.write)
            tenure = self._begin_tenure(
                holder, first.since, Handover.SEEN, writer if is_renewer else None, seen=first.last_renewal
            )
            tenure.begin_before_input(is_unseen=first.is_unseen, is_since_own=first.is_since_own)
            if first.is_unseen and self.write.dating is Dating.STAMP:
                # Any write until the latest stamp may have been a renewal.
                stamped = (state.seen.latest_stamp or 0) + SECOND
                tenure.keep(replace(self.write, latest=max(self.write.latest or 0, stamped)))
            if not is_renewer:
                tenure.keep(replace(tenure.kept, writer=None))
            tenure.note_claimed(get_readable_instant(normalize(spec.renew_time)))
            self._forget_undated(tenure)
            if first.is_as_chosen:
                self.renewals.forget()  # the API server made what looks like its last renewal

    def _report_creation(self, state: NextState) -> None:
        """Say when a lease came to exist; a watch and a dump show only when it was created."""
        if self.holder and (not self._events or self.holder.began is not Handover.SEEN):
            return
        created, at = stamp_of(state.lease.metadata.creation_timestamp), state.moment or self.at or 0
        if state.act is Act.STORED and created is not None and created <= at + BOUND:
            self._record_event(EventKind.CREATED, min(created, at), text="it was created, by its creationTimestamp")
        elif state.act is Act.CREATED:
            self._record_event(EventKind.CREATED, at, writer=state.writer)

    def _resume(self, state: NextState) -> None:
        """Go on after what was not seen: neither a silence nor how the holder changed is known."""
        assert state.before is not None
        tenure = self.holder
        self.continuity.is_partial = True
        # An API server may store a write and answer that it failed.
        is_failed = any(one.has_failed for one in self.requests.refusals)
        is_explained = self.hidden_since is not None or state.seen.is_order_unsure or is_failed
        if self.write.is_logged and not is_explained:
            self.continuity.is_log_leaky = True
        at = state.at
        if not self.write.is_logged and at < (self.at or 0) - MAX_TOLERANCE:
            # A stamp that is older than what was seen before is forged: the write came later.
            at = self.at or 0
            self.write = replace(self.write, at=at, latest=None, dating=Dating.ORDER)
        resumed = read_resumption(
            tenure,
            (state.before, state.lease),
            (state.known, state.entries),
            self.write,
            at=at,
            seen_until=self.hidden_since or self.at,
            longest_usual=self.renewals.longest_usual,
        )
        at, last = resumed.at, resumed.last
        if resumed.is_missed:
            self._record_event(EventKind.MISSED, last)
            self.renewals.miss(last, at)
        if tenure and resumed.is_kept:
            self._resume_tenure(tenure, state, at)
            return
        if tenure:
            self._end_tenure(last, Handover.UNKNOWN)
            if not state.holder or tenure.is_last_unseen:
                tenure.note_end_dated(is_dated=False)
            if self.continuity.sight is Sight.PUT_BACK:
                self.vacancy.forget_since()
        elif not state.holder:
            # Another one may have held and released it.
            self.vacancy.begin(None, Handover.UNKNOWN)
        if state.holder:
            following = self._add_unseen(tenure, state, at, is_new=not resumed.may_go_on)
            following.note_resumption(is_put_back=self.continuity.sight is Sight.PUT_BACK, may_go_on=resumed.may_go_on)

    def _resume_tenure(self, tenure: Tenure, state: NextState, at: int) -> None:
        assert state.before is not None
        # Nothing shows what the write changed: it need not have been a renewal.
        at, is_dated = date_resumed_renewal(state.new, state.entries, self.write, at)
        is_by_other = is_dated and may_renew_with(self.write, at) and tenure.is_by(state.writer) is False
        tenure.resume(at, is_seen=is_dated and not is_by_other)
        if is_by_other:
            tenure.touch(at, state.writer)  # when its own process renewed it last was not seen
        tenure.keep(self.write)
        self.renewals.restart(at)
        self._forget_undated(tenure)
        is_same = normalize(state.new.renew_time) == normalize(state.before.spec.renew_time)
        self._record_event(EventKind.RESUMED if is_same else EventKind.RENEWED, at, writer=state.writer)

    def _add_unseen(self, before: Tenure | None, state: NextState, at: int, *, is_new: bool) -> Tenure:
        """Add a holder that took the lease by a time, unseen; without `is_new` it may continue the tenure before."""
        spec, named = state.new, date_naming(state.entries)
        # A patch may leave the holder that it found, whoever sent it.
        is_named_with = named is not None and may_renew_with(self.write, named)
        writer = state.writer if state.seen.verb != "patch" or is_named_with else None
        tenure = self._begin_tenure(state.holder, at, Handover.UNKNOWN, writer, is_new=is_new)
        renewed, is_dated = date_resumed_renewal(spec, state.entries, self.write, at)
        tenure.resume(renewed, is_seen=is_dated)
        tenure.note_claimed(get_readable_instant(normalize(spec.renew_time)))
        self._forget_undated(tenure)
        if before and before.holder == state.holder and not (writer and writer.user):
            tenure.note_manager(before.manager)
            manager = find_manager(self.entries, date_last_renewal(self.entries))
            tenure.note_ambiguity(is_other=tenure.has_other_manager(manager) or before.is_ambiguous)
            tenure.follow_manager(manager)
        tenure.begin_unseen()
        return tenure

    def _forget_undated(self, tenure: Tenure) -> None:
        """Count no silence from a last renewal of which neither stamps nor a log show when it was made."""
        if tenure.has_unseen_renewals and not self.write.is_logged:
            self.renewals.forget()

    # Handovers.

    def _note_last_manager(self, known: Sequence[Entry]) -> None:
        if self.tenure:
            self.tenure.note_manager(find_manager(known, date_last_renewal(known)))

    def _claim(self, state: NextState) -> None:
        """Begin the tenure of a holder that was written into a free lease."""
        self._note_last_manager(state.known)
        how = self.vacancy.how
        began = how if how in _KEPT_AFTER_VACANCY else Handover.CLAIMED
        following = self._begin_tenure(state.holder, state.at, began, state.writer)
        self._note_waiting(following, state.writer)
        if how is Handover.UNKNOWN:
            # Before the input showed it again without a holder, another one may have held it.
            following.forget_previous()

    def _take_from_holder(self, state: NextState) -> None:
        """End the tenure of a holder that was still named when another one took the lease."""
        self._note_last_manager(state.known)
        before, at = self.tenure, state.at
        taking = find_taking(before, state.old, state.known, self.write, at)
        if taking.has_expired:
            self._report_expiry(taking.duration, taking.kept_until, at)
        self._end_tenure(taking.ended, taking.how)
        self.vacancy.begin_earlier(at if taking.kept_until is None else taking.kept_until)
        following = self._begin_tenure(state.holder, at, taking.how, state.writer)
        following.note_close(is_close=taking.is_close)
        self._note_waiting(following, state.writer)
        is_stale = following.processes.foreign_taker is not None and state.has_earlier_renew_time
        if before is None or (state.has_other_renew_time and not is_stale):
            following.note_renaming(state.old, state.new)
        else:
            following.inherit(before)

    def _note_waiting(self, following: Tenure, writer: Writer | None) -> None:
        """Note when the next holder asked for the lease before it took it."""
        if writer is not None and (asking := self.requests.waiting.asking.get(writer.process)):
            following.note_waiting(self.requests.waiting.since, asking.times)

    def _release(self, state: NextState) -> None:
        """End a tenure whose holder was removed, by itself or by another writer: then it may go on as the leader."""
        self._note_last_manager(state.known)
        holder = self.holder
        if holder:
            manager, is_field_gone = (
                find_manager_of_write(state.entries, state.known),
                state.new.holder_identity is None,
            )
            holder.note_removal(state.writer, manager, is_field_gone=is_field_gone)
        self._end_tenure(state.at, Handover.RELEASED, state.writer)
        if holder and holder.removal.may_be_by_another:
            self.vacancy.begin(holder.last_renewal, Handover.RELEASED)  # it may have stopped long before

    # Renewals, also by other pods under the same identity.

    def _renew(self, state: NextState) -> None:
        """Renew the tenure, by its own process or by another one; a write of the name alone may begin one."""
        tenure, old, new, at, writer = self.holder, state.old, state.new, state.at, state.writer
        if tenure is not None and is_release(old) and (new.lease_duration_seconds or 0) > RELEASED_DURATION:
            # The holder that was written into a lease that stayed released takes it only now.
            self._end_tenure(at, Handover.UNKNOWN)
            tenure = None
        if tenure is None:
            # The holder that had released it takes it again under the same name.
            self._begin_tenure(state.holder, at, Handover.UNKNOWN, writer)
            return
        if state.seen.stretch is not None:
            self.renewals.resume(state.seen.stretch, at)
            tenure.resume_stretch(at - state.seen.stretch.latest[-1])
        if state.act is not Act.STORED and self._is_expiry_known(tenure, writer):
            self._report_expiry(tenure.duration, tenure.kept_until, at)
        if self.succession.is_replaced_by(writer, at):
            self._replace(tenure, at, writer)
            return
        tenure.keep(self.write)
        if not self._note_own_renewal(tenure, state):
            tenure.touch(at, writer, get_readable_instant(normalize(new.renew_time)))
            self._record_event(EventKind.RENEWED, at, writer=writer)
            return
        self._count_renewal(tenure, state)
        if is_release(new) and (old.lease_duration_seconds or 0) > RELEASED_DURATION:
            self._end_tenure(at, Handover.RELEASED, writer)

    def _is_expiry_known(self, tenure: Tenure, writer: Writer | None) -> bool:
        """Return whether the input shows when a holder let the lease expire, if it did, before a renewal.

        Who was chosen has not until it takes up the lease; where it is chosen again instead, it had expired.
        """
        is_taken_up = tenure.is_chosen and not (tenure.processes.renewals or tenure.is_unseen)
        is_first = is_taken_up and not (writer is None and self._is_renewed_by_chooser(tenure))
        return self._is_last_renewal_known(tenure) and not is_first

    def _is_last_renewal_known(self, tenure: Tenure) -> bool:
        """Return whether the input shows the last renewal of a holder before a write, by the clock of that write."""
        is_shown = self.kind is not InputKind.REVIEW and not tenure.is_last_unseen
        return is_shown and tenure.kept.is_claimed == self.write.is_claimed

    def _note_own_renewal(self, tenure: Tenure, state: NextState) -> bool:
        if state.writer is None and (self.kind is InputKind.AUDIT_LOG or self._is_renewed_by_chooser(tenure)):
            return False
        within = None if self.write.is_claimed else (self.write.earliest, self.write.latest or state.at)
        return tenure.note_renewal(state.writer, state.at, within, is_set_back=is_set_back(state.old, state.new))

    def _is_renewed_by_chooser(self, tenure: Tenure) -> bool:
        """Return whether the field manager of an API server that chose a holder also made the last renewal."""
        manager = find_manager(self.entries, date_last_renewal(self.entries))
        return tenure.is_chosen and manager != "" and manager == tenure.taken_manager

    def _count_renewal(self, tenure: Tenure, state: NextState) -> None:
        """Count a renewal by the holder's own process."""
        at, writer = state.at, state.writer
        self._measure_clock(tenure)
        if not (writer and writer.user):
            manager = find_manager(self.entries, date_last_renewal(self.entries))
            tenure.note_ambiguity(is_other=_hints_at_another(tenure, manager, state.old, state.new))
            tenure.follow_manager(manager)
        is_first = tenure.processes.renewals == 1 and (tenure.is_chosen or tenure.inherited is not None)
        if is_first and tenure.is_chosen and tenure.leaderless is not None:
            # The API server chose it; that it leads is known from its own first renewal.
            unled = max(0, (self.write.latest or at) - (tenure.taken.latest or tenure.since))
            tenure.extend_leaderless(unled)
            self.vacancy.extend(unled)
        last = tenure.renewed or tenure.taken
        doubt = _measure_doubt(last, self.write, at)
        is_restarted = is_first or last.is_claimed != self.write.is_claimed  # another clock dates it
        tenure.renew(at, self.write)
        if is_restarted:
            self.renewals.restart(at)
        is_counted = self.kind is not InputKind.REVIEW and not is_restarted and self.write.is_dated
        silence = self.renewals.add(at, tenure.duration, doubt) if is_counted else None
        self._record_event(EventKind.RENEWED, at, writer=writer, silence=silence)

    def _replace(self, tenure: Tenure, at: int, writer: Writer | None) -> None:
        """Begin the tenure of another pod that renews under the same identity: it may not know of the one before."""
        is_dated = self.write.is_dated_by_a_server
        how = classify_write(tenure, tenure.kept_until, tenure.duration, self.write, is_dated=is_dated)
        is_expired = how is Handover.EXPIRED
        how = Handover.EXPIRED if is_expired else Handover.REPLACED
        self._end_tenure(tenure.last_renewal if is_expired else at, how)
        self._begin_tenure(tenure.holder, at, how, writer).begin_with_renewal(self.write, tenure)

    def _measure_clock(self, tenure: Tenure) -> None:
        tenure.measure_clock(measure_ahead(self.lease.spec, self.entries) if self.lease else None, self.write.skew)

    def _report_expiry(self, duration: int | None, last: int | None, before: int, shortened_at: int = 0) -> None:
        """Say when the lease expired, if that was before the write that is seen; not before it was shortened."""
        if last is not None and duration and duration > 0:
            expired = max(last + duration * SECOND, shortened_at)
            if expired < before:
                self._record_event(EventKind.EXPIRED, expired)

    # Writes whose object a log does not show.

    def _take_logged_write(self, seen: Observation, at: int) -> None:
        """Take in a write to a lease that no input shows: who writes regularly leads, as far as can be known."""
        writer, tenure = seen.writer or Writer(), self.holder
        if tenure is None:
            self.existence.restore(is_other=False)
            self._begin_tenure(name_writer(writer), at, self._begin_of_writer(seen), writer).stand_in()
            self._rival.begin(seen.verb)
        else:
            self._take_next_logged_write(tenure, seen.verb, at, writer)
        self._advance_at(at)

    def _take_next_logged_write(self, tenure: Tenure, verb: str, at: int, writer: Writer) -> None:
        match classify_write_to_unknown(tenure, self._rival, writer, verb):
            case HiddenWrite.RENEWAL:
                tenure.processes.note_beside(self._rival.others)
                self._rival.note_holder(verb)
                self._renew_hidden(tenure, at, writer)
            case HiddenWrite.BY_RIVAL:
                self.requests.accepted.append((at, writer))
                self._rival.add(at, writer)
                self._follow_rival(tenure, at, writer)
            case _:
                self.requests.accepted.append((at, writer))

    def _begin_of_writer(self, seen: Observation) -> Handover:
        if seen.act is Act.CREATED:
            return Handover.DELETED if self.vacancy.how is Handover.DELETED else Handover.CREATED
        return Handover.UNKNOWN if self.tenure else Handover.SEEN

    def _follow_rival(self, tenure: Tenure, at: int, writer: Writer) -> None:
        if not self._rival.has_followed(at, self.renewals.usual):
            return
        (since, _), *renewals = self._rival.writes
        self._end_tenure(tenure.last_renewal, Handover.UNKNOWN)
        if tenure.holder == API_SERVER:
            self.vacancy.forget_since()  # it may have named this writer, or another one that never led
        following = self._begin_tenure(name_writer(writer), since, Handover.UNKNOWN, writer)
        following.stand_in()
        self.requests.drop_accepted(writer, since)
        for renewed, _ in renewals:
            self._renew_hidden(following, renewed, writer)
        self._rival.writes.clear()

    def _take_hidden_write(self, seen: Observation, at: int) -> None:
        """Take in such a write to a lease that is known: a renewal, unless another input shows it."""
        tenure, self.continuity.version = self.holder, ""
        if tenure and seen.writer:
            self._take_hidden_write_by(seen.writer, tenure, seen.verb, at)
        self._advance_at(at)

    def _take_hidden_write_by(self, writer: Writer, tenure: Tenure, verb: str, at: int) -> None:
        match classify_write_to_known(tenure, writer, verb, at, self.renewals.usual):
            case HiddenWrite.RENEWAL:
                self._logged = at
                self._renew_hidden(tenure, at, writer)
            case HiddenWrite.SHOWN_RENEWAL:
                tenure.note_renewal(writer, at)
            case HiddenWrite.BY_ANOTHER:
                self.requests.accepted.append((at, writer))
            case _:
                pass

    def _renew_hidden(self, tenure: Tenure, at: int, writer: Writer | None) -> None:
        tenure.note_renewal(writer, at)
        tenure.renew_hidden(at)
        self._record_event(EventKind.RENEWED, at, writer=writer, silence=self.renewals.add(at, tenure.duration))

    # Tenures.

    def _begin_tenure(
        self,
        holder: str,
        since: int,
        how: Handover,
        writer: Writer | None,
        *,
        seen: int | None = None,
        is_new: bool = True,
    ) -> Tenure:
        """Add a holder; `seen` is its last renewal if it had the lease already when the input begins.

        Without `is_new` it may continue the tenure before.
        """
        tenure = Tenure(
            HolderProcesses(holder, self.namespace),
            since,
            how,
            since if seen is None else seen,
            is_dated=self.write.is_dated or how is Handover.SEEN,
            taken=self.write,
            kept=self.write,
            is_coordinated=self.lease is not None and bool(self.lease.spec.strategy),
        )
        manager = "" if is_constant(self.entries) else find_manager_of_write(self.entries, ())
        if how is Handover.SEEN:
            tenure.begin_seen(writer, manager)
        else:
            known = None if how is Handover.REPLACED else self.succession.find_process(holder, writer)
            tenure.begin(writer, manager, known)
        self._measure_clock(tenure)
        self.succession.begin(tenure, is_new=is_new, shows_renewals=self.kind is not InputKind.REVIEW)
        self.renewals.restart_with_holder(tenure.last_renewal, has_expired=how is Handover.EXPIRED)
        if self.write.is_claimed:
            self.renewals.set_back(tenure.last_renewal)
        self.renewals.latest.clear()
        self._record_event(EventKind.ACQUIRED, since, writer=writer)
        return tenure

    def _end_tenure(self, at: int, how: Handover, writer: Writer | None = None) -> None:
        ended = self.succession.end(at, how, self.write, self._write_before)
        if ended is not None and how is Handover.RELEASED:
            self._record_event(EventKind.RELEASED, at, writer=writer)

    def _advance_at(self, at: int | None) -> None:
        if at is not None:
            self.at = at if self.at is None else max(self.at, at)


def _may_be_renewal(entries: Sequence[Entry], write: Write) -> bool:
    """Return whether the write of a first state may be the last renewal, by the field managers stamped since then."""
    began = round_up_to_seconds(write.earliest)
    return all(one.owns_renew_time for one in entries if one.stamp is not None and one.stamp >= began)


def _names_another(before: Lease, after: Lease) -> bool:
    """Return whether another text stands in holderIdentity, or none does."""
    return (before.spec.holder_identity or "") != (after.spec.holder_identity or "")


def _is_edit(before: Lease | None, after: Lease | None, seen: Observation) -> bool:
    """Return whether a write is known to have left what electors wait for as it was: the holder, and its renewal."""
    if before is None or after is None or seen.object is None or before.metadata.uid != after.metadata.uid:
        return False
    old, new = before.spec, after.spec
    kept = (old.holder_identity, old.renew_time, old.lease_duration_seconds)
    return kept == (new.holder_identity, new.renew_time, new.lease_duration_seconds)


def _hints_at_another(tenure: Tenure, manager: str, old: LeaseSpec, new: LeaseSpec) -> bool:
    """Return whether field managers or leaseTransitions hint that another one renewed it: a client may lie."""
    is_counted = (new.lease_transitions or 0) != (old.lease_transitions or 0)
    return (is_counted and tenure.processes.renewals > 1) or tenure.has_other_manager(manager)


def _measure_doubt(before: Write, write: Write, at: int) -> int:
    """Return by how many microseconds the time between two renewals, the second one at `at`, may be longer."""
    if before.is_exact and write.is_exact:
        return 0
    return max(0, (write.latest or at) - at) + max(0, before.at - before.earliest)
