"""One lease, updated with each observation: what its history does not keep, as spans, ticks and marks."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct, field

from webhook.api.managed_fields import stamp_of
from webhook.api.objects import Lease
from webhook.explanation.text import handover
from webhook.explanation.words import length, name, writer
from webhook.history.lease_history import LeaseHistory
from webhook.history.moments import written_at
from webhook.history.tenure import Handover, Tenure
from webhook.history.timing import timing_of
from webhook.observations.observation import Act, Observation, Origin, Writer
from webhook.rules.expiry import BOUND
from webhook.rules.times import SECOND
from webhook.timeline.answers import marks_of_answer
from webhook.timeline.before import Before, Bounds
from webhook.timeline.causes import Causes
from webhook.timeline.edits import edit_of
from webhook.timeline.forged import forged_stamps
from webhook.timeline.marks import MarkRecord
from webhook.timeline.model import Mark, MarkKind
from webhook.timeline.spans import SpanRecord
from webhook.timeline.texts import by, sentence, shown, writer_name, writers_of
from webhook.timeline.ticks import TickRecord

KIND_OF_HANDOVER: Final = {
    Handover.CREATED: MarkKind.CREATED,
    Handover.CLAIMED: MarkKind.CLAIM,
    Handover.RELEASED: MarkKind.TAKEOVER_BY_RELEASE,
    Handover.EXPIRED: MarkKind.TAKEOVER_BY_EXPIRY,
    Handover.STOLEN: MarkKind.STEAL,
    Handover.DELETED: MarkKind.CREATED,
    Handover.UNKNOWN: MarkKind.TAKEOVER,
}
"""Without Handover.SEEN: a lease that is held when the input begins is no event."""
MOST_INPUTS: Final = 8
"""Files that show one lease at the same time, such as a watch and an audit log."""
_TAKEN: Final = frozenset({Handover.EXPIRED, Handover.STOLEN, Handover.UNKNOWN})


class LeaseRecord(Struct):
    """What happened to one lease; `at` is when it was last written.

    `duration` is that of the last state, `duration_held` of the last one with a holder: who releases writes 1 s.
    """

    history: LeaseHistory
    spans: SpanRecord = field(default_factory=SpanRecord)
    ticks: TickRecord = field(default_factory=TickRecord)
    marks: MarkRecord = field(default_factory=MarkRecord)
    duration: int | None = None
    duration_held: int | None = None
    at: int | None = None
    _seen: dict[str, str] = field(default_factory=dict)
    """The revision that each input showed last."""
    _is_by_holder: bool = False
    causes: Causes = Causes()
    _shared: Tenure | None = None
    """The tenure already reported as shared by several processes."""

    @property
    def holder(self) -> str:
        """The holder, as it is displayed."""
        tenure = self.history.tenure
        return shown(tenure.holder) if tenure and tenure.until is None else ""

    @property
    def overdue_at(self) -> int | None:
        """When the present holder's lease expires, or expired; None if that cannot be known."""
        tenure = self.history.tenure
        if tenure is None or self.history.origin is Origin.REVIEW:
            return None
        return _runs_out(tenure.last_renewal, self.duration)

    def observed(self, seen: Observation, before: Before, bounds: Bounds) -> None:
        """Add the observation that its history has just added."""
        if seen.act is Act.READ:
            return
        at = self._moment(seen, before, bounds)
        for mark in marks_of_answer(seen, at, self.holder):
            self.marks.add(mark)
        if not seen.is_stored or seen.problem:
            return
        old = seen.old if isinstance(seen.old, Lease) else before.lease
        duration = old.spec.lease_duration_seconds if old else self.duration
        self._renewed(seen, before, duration, bounds)
        new = sum(self.history.handovers.values()) - before.tenures
        begun = list(self.history.tenures)[-new:] if new else []
        if seen.act is Act.DELETED:
            if not before.is_deleted and self.history.is_deleted:
                self._deleted(seen, before, at)
        else:
            self._changed_hands(seen, [before.open, *begun, None], duration, bounds)
        lease = seen.object
        if seen.act is not Act.DELETED and isinstance(lease, Lease) and lease is self.history.lease:
            self._stored(seen, old, before, at, begun)
        self._find_shared_identity(at)
        self.at = at if self.at is None else max(self.at, at)

    def _moment(self, seen: Observation, before: Before, bounds: Bounds) -> int:
        """When something happened: by its own time, else by its stamps, else when anything was last seen."""
        at = seen.at
        if at is None and seen.act is Act.DELETED:
            deleted = stamp_of(seen.object.metadata.deletion_timestamp) if seen.object else None
            at = bounds.until if deleted is None else deleted
        elif at is None and isinstance(seen.object, Lease):
            is_same = before.lease is not None and before.lease.spec.renew_time == seen.object.spec.renew_time
            at = seen.latest_stamp if is_same else written_at(seen.object.spec, seen.entries)
        if at is None or at > bounds.latest:
            at = self.at
        return min(at or self.history.at or 0, bounds.latest)

    def _renewed(self, seen: Observation, before: Before, duration: int | None, bounds: Bounds) -> None:
        last = before.open.last_renewal if before.open else None
        if last is None or last == before.last_renewal:
            return
        at = min(last, bounds.latest)
        runs_out = _runs_out(before.last_renewal, duration)
        is_complete = seen.act is not Act.STORED and seen.origin is not Origin.REVIEW
        if is_complete and runs_out is not None and runs_out < at:
            self.spans.overdue(runs_out)
            self.spans.renewed(at)
        self.ticks.add(at, bounds.most_ticks)
        silence = self.history.renewals.silences[-1] if self.history.renewals.silences else None
        if silence is not None and silence.end == last and duration and duration > 1:
            deadline = timing_of(duration, None).deadline * SECOND
            if silence.length >= deadline:
                text = f"{self.holder} did not renew for {length(silence.length)}, and kept the lease"
                self.marks.add(Mark(MarkKind.LATE, at, sentence(text), self.holder))

    def _changed_hands(
        self, seen: Observation, tenures: Sequence[Tenure | None], duration: int | None, bounds: Bounds
    ) -> None:
        """Holders one after another: the one before, those that came with this observation, and no one after them."""
        for tenure, following in pairwise(tenures):
            is_taken = following is not None and following.began in _TAKEN
            if tenure is not None and tenure.until is not None and not is_taken:
                self._released(tenure, min(tenure.until, bounds.latest), seen.writer)
            if following is not None:
                self._begun(following, tenure, duration, bounds)

    def _begun(self, tenure: Tenure, previous: Tenure | None, duration: int | None, bounds: Bounds) -> None:
        since = min(tenure.since, bounds.latest)
        if tenure.began is Handover.EXPIRED and previous is not None:
            runs_out = _runs_out(previous.last_renewal, duration)
            if runs_out is not None and runs_out < since:
                self.spans.overdue(runs_out)
        if tenure.began is Handover.SEEN and tenure.last_renewal is not None:
            since = min(since, tenure.last_renewal)
        standing = self.history.standing(since)
        self.spans.hold(since, tenure, standing.manager if standing else "")
        kind = KIND_OF_HANDOVER.get(tenure.began)
        if kind is not None:
            self.marks.add(Mark(kind, since, sentence(handover(tenure)), shown(tenure.holder), writers_of(tenure)))

    def _released(self, tenure: Tenure, at: int, who: Writer | None) -> None:
        self.spans.vacate(at)
        is_other = who is not None and bool(tenure.writers) and Writer(who.user, who.pod) not in tenure.writers
        text = f"{name(tenure.holder)} released it" + (f" ({writer(who)})" if who and who.user else "")
        if is_other:
            text = f"{name(tenure.holder)} was removed as the holder{by(who)}"
        self.marks.add(Mark(MarkKind.RELEASE, at, sentence(text), "", writer_name(who)))

    def _deleted(self, seen: Observation, before: Before, at: int) -> None:
        held = f" while {name(before.open.holder)} held it" if before.open else ""
        when = "; the watch does not say when, at this time or later" if seen.at is None else ""
        text = sentence(f"it was deleted{by(seen.writer)}{held}{when}")
        self.marks.add(Mark(MarkKind.DELETED, at, text, "", writer_name(seen.writer)))
        self.spans.vacate(at)

    def _stored(self, seen: Observation, old: Lease | None, before: Before, at: int, begun: Sequence[Tenure]) -> None:
        lease = seen.object
        assert isinstance(lease, Lease)
        self.duration = lease.spec.lease_duration_seconds
        if self.holder or self.duration_held is None:
            self.duration_held = self.duration
        if old is None and before.open is None:
            self._first_state(seen, lease, at, begun)
        if self.spans.is_empty:
            self.spans.vacate(at)
        revision = lease.metadata.resource_version or ""
        previous = (old.metadata.resource_version or "") if old else ""
        path = seen.source.path
        is_next = isinstance(seen.old, Lease) or old is None or self._seen.get(path) == previous
        self._remember(path, revision)
        if old is not None and revision and revision == previous:
            self._seen_again(seen)
            return
        self._is_by_holder = bool(begun) or (old is not None and old.spec.renew_time != lease.spec.renew_time)
        if seen.act is Act.STORED:
            return
        entries = before.entries if not isinstance(seen.old, Lease) else None
        if is_next and (problem := forged_stamps(seen, old, entries, at)):
            text = sentence(f"this write{by(seen.writer)} {problem}")
            self.marks.add(Mark(MarkKind.FORGED_STAMPS, at, text, self.holder, writer_name(seen.writer)))
        if old is not None and self.holder and (edit := edit_of(old.spec, lease.spec)):
            text = sentence(f"{edit}{by(seen.writer)}")
            self.marks.add(Mark(MarkKind.EDIT, at, text, self.holder, writer_name(seen.writer)))

    def _find_shared_identity(self, at: int) -> None:
        tenure = self.history.tenure
        if tenure is None or tenure is self._shared or not tenure.has_several_writers or len(tenure.writers) < 2:
            return
        self._shared = tenure
        text = sentence(f"{writers_of(tenure)} renew in turns under one identity: each believes that it leads")
        self.marks.add(Mark(MarkKind.IDENTITY_SHARED, at, text, self.holder, writers_of(tenure)))

    def _seen_again(self, seen: Observation) -> None:
        """A write that another input showed before; the audit log adds who made it."""
        tenure = self.history.tenure
        if self._is_by_holder and tenure and tenure.until is None:
            tenure.written_by(seen.writer)

    def _remember(self, path: str, revision: str) -> None:
        self._seen.pop(path, None)
        self._seen[path] = revision
        if len(self._seen) > MOST_INPUTS:
            del self._seen[next(iter(self._seen))]

    def _first_state(self, seen: Observation, lease: Lease, at: int, begun: Sequence[Tenure]) -> None:
        """The first state of a lease; a watch and a dump show only when it was created."""
        created = stamp_of(lease.metadata.creation_timestamp)
        if any(tenure.began is not Handover.SEEN for tenure in begun):
            return
        if seen.act is Act.STORED and created is not None and created <= at + BOUND:
            self.marks.add(Mark(MarkKind.CREATED, min(created, at), "it was created, by its creationTimestamp"))
        elif seen.act is Act.CREATED:
            text = sentence(f"it was created without a holder{by(seen.writer)}")
            self.marks.add(Mark(MarkKind.CREATED, at, text, "", writer_name(seen.writer)))


def _runs_out(last: int | None, duration: int | None) -> int | None:
    return None if last is None or duration is None or duration <= 0 else last + duration * SECOND
