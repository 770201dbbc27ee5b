"""One LeaseCandidate of a coordinated election, updated with each observation."""

from msgspec import Struct, field

from webhook.api.managed_fields import stamp_of
from webhook.api.objects import LeaseCandidate, LeaseCandidateSpec
from webhook.observations.observation import Act, Observation
from webhook.rules.expiry import BOUND
from webhook.rules.times import normalized, readable
from webhook.timeline.answers import marks_of_answer
from webhook.timeline.before import Bounds
from webhook.timeline.marks import MarkRecord
from webhook.timeline.model import Mark, MarkKind
from webhook.timeline.spans import SpanRecord
from webhook.timeline.texts import by, changed_fields, sentence, writer_name
from webhook.timeline.ticks import TickRecord


class CandidateRecord(Struct):
    """What happened to one candidate; `lease` is the name of the lease that it is a candidate for."""

    lease: str = ""
    spans: SpanRecord = field(default_factory=SpanRecord)
    ticks: TickRecord = field(default_factory=TickRecord)
    marks: MarkRecord = field(default_factory=MarkRecord)
    at: int | None = None
    is_deleted: bool = False
    _spec: LeaseCandidateSpec | None = None

    def observe(self, seen: Observation, bounds: Bounds) -> None:
        """Take in one observation."""
        if seen.act is Act.READ:
            return
        at = self._moment(seen, bounds)
        for mark in marks_of_answer(seen, at, ""):
            self.marks.add(mark)
        if not seen.is_stored or seen.problem:
            return
        if isinstance(seen.old, LeaseCandidate):
            self._spec = seen.old.spec
        if seen.act is Act.DELETED:
            self._deleted(seen, at)
        elif isinstance(seen.object, LeaseCandidate):
            self._stored(seen, seen.object, at, bounds)
        self.at = at if self.at is None else max(self.at, at)

    def _moment(self, seen: Observation, bounds: Bounds) -> int:
        at = seen.at
        if at is None:
            at = bounds.until if seen.act is Act.DELETED else seen.latest_stamp
        if at is None and isinstance(seen.object, LeaseCandidate):
            at = readable(normalized(seen.object.spec.renew_time))
        if at is None or at > bounds.latest:
            at = self.at
        return min(at or 0, bounds.latest)

    def _deleted(self, seen: Observation, at: int) -> None:
        self.is_deleted, self._spec = True, None
        self.spans.end(at)
        text = sentence(f"the candidate was deleted{by(seen.writer)}")
        self.marks.add(Mark(MarkKind.DELETED, at, text, "", writer_name(seen.writer)))

    def _stored(self, seen: Observation, one: LeaseCandidate, at: int, bounds: Bounds) -> None:
        old, new = self._spec, one.spec
        self._spec, self.is_deleted = new, False
        self.lease = new.lease_name or self.lease
        writer = writer_name(seen.writer)
        if self.spans.begins is None:
            created = stamp_of(one.metadata.creation_timestamp)
            is_dated = seen.act is Act.CREATED or created is None or created > at + BOUND
            since = at if is_dated else min(created or at, at)
            self.spans.offer(since)
            if seen.act is not Act.UPDATED:
                self.marks.add(Mark(MarkKind.CREATED, since, sentence(f"the candidate was created{by(seen.writer)}")))
        if old is None:
            return
        if normalized(old.renew_time) != normalized(new.renew_time):
            self.ticks.add(at, bounds.most_ticks)
        if new.ping_time and normalized(old.ping_time) != normalized(new.ping_time):
            text = sentence(f"the election asks the candidate whether it still runs{by(seen.writer)}")
            self.marks.add(Mark(MarkKind.PINGED, at, text, "", writer))
        if changes := changed_fields(old, new):
            self.marks.add(Mark(MarkKind.EDIT, at, sentence(f"{changes}{by(seen.writer)}"), "", writer))
