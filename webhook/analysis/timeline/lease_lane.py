"""One lane of a timeline: what is drawn of a lease beyond its history."""

from bisect import insort
from collections.abc import Iterable, Sequence
from functools import cache
from operator import attrgetter
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from webhook.admission.rules.expiry import MAX_TOLERANCE, date_last_renewal
from webhook.admission.rules.registry import RULES
from webhook.analysis.claims.evidence.silent_holders.cause_sentences import describe_cause
from webhook.analysis.claims.evidence.silent_holders.silences import find_late_renewals, find_lost_leaders
from webhook.analysis.claims.evidence.writers.owners import describe_added_owners
from webhook.analysis.claims.findings.missed_renewals import describe_delay
from webhook.analysis.claims.findings.passed_on import is_passed_on
from webhook.analysis.claims.handover_clauses import (
    describe_address_of_end,
    describe_dating_of,
    describe_dating_of_end,
    describe_edit,
    describe_ending,
    describe_handover,
)
from webhook.analysis.claims.handovers import has_lost_race, name_taking
from webhook.analysis.claims.words import describe_by_writer, format_clock, format_name
from webhook.analysis.history.audit_log.refusal import SLOW, Refusal
from webhook.analysis.history.events import EventKind, LeaseEvent
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Handover, Tenure, with_previous
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.renewals import estimate_deadline
from webhook.analysis.history.status import MAX_DURATION, MAX_TRANSITIONS, LeaseState, is_release
from webhook.analysis.inputs.items import Act, Answer, InputKind, Observation, Writer
from webhook.analysis.timeline.downsampling import (
    MAX_MARKS,
    Frozen,
    SpanRecord,
    TickRecord,
    shorten,
)
from webhook.analysis.timeline.model import (
    MAX_TEXT,
    Mark,
    MarkKind,
    SpanKind,
    describe_writers,
    shorten_for_page,
)
from webhook.kubernetes.managed_fields import Entry
from webhook.kubernetes.objects import NO_LEASE_SPEC, Lease
from webhook.kubernetes.times import DAY, SECOND, format_length, format_micro_time, normalize, parse_stamp

SETTLED_AFTER: Final = 10 * SECOND
"""By then other leases that were renewed on time have been: what they did says what the cause of a silence was."""
_KIND_OF_TAKING: Final = {
    "created": MarkKind.CREATED,
    "first": MarkKind.CLAIM,
    "after-release": MarkKind.TAKEOVER_BY_RELEASE,
    "after-expiry": MarkKind.TAKEOVER_BY_EXPIRY,
    "while-live": MarkKind.STEAL,
    "after-deletion": MarkKind.CREATED,
    "unknown": MarkKind.TAKEOVER,
}
"""Marks by how a claim says that a lease was taken. One that is held when the input begins is not an event."""
_HANDOVERS: Final = frozenset(_KIND_OF_TAKING.values())
_BY_FIRST_STATE: Final = "as the first state that was seen says"
_UNKNOWN_RENEWAL: Final = "the input does not show when it was renewed last"
_NO_RENEWAL: Final = "the lease has no renewTime"
_UNKNOWN_EXPIRY: Final = "it may have expired before the next holder took it"
_UNKNOWN_TIME: Final = "the input does not show when"
_WITHOUT_HOLDER: Final = "it was renewed without a holder: whoever compares that with an empty name may have led"
_FREE: Final = frozenset({SpanKind.LEADERLESS, SpanKind.REMOVED, SpanKind.NEVER_HELD})
_DATE: Final = "2026-11-22"
_TIME: Final = "2026-11-22T12:00:00.000000Z"
_NOT_COUNTED: Final = frozenset({404, 409, 410})
"""Conflicts and absent objects are how electors race."""


class LeaseLane(Struct):
    """One lane beyond its history; `causes` of takeovers and late renewals are those known, by moment."""

    history: LeaseHistory
    spans: SpanRecord = field(default_factory=SpanRecord)
    ticks: TickRecord = field(default_factory=TickRecord)
    marks: list[Mark] = field(default_factory=list)
    duration_held: int | None = None
    causes: dict[tuple[MarkKind, int], str] = field(default_factory=dict)
    frozen: Frozen | None = None
    """What the latest state shows."""
    is_claimed: bool = False
    """A part of its times is by its writers' own clocks."""
    claimed: int | None = None
    """The last renewal of the first holder that was seen, as it says itself, if the stamps of it lie in the future."""
    begun: int | None = None
    """When the audit log begins of which it is read."""
    drawn_since: int | None = None
    """Since when the present holder is drawn: not before the end of what is drawn of the one before."""
    drawn_ahead: int = 0
    """Renewals drawn of writes without objects, whose states were not seen since."""
    _explained: tuple[int, int] | None = None
    """A number that changes with every takeover and late renewal, when their causes were settled."""

    @property
    def holder(self) -> str:
        """The present holder, as a page shows it; "" for none."""
        return shorten_for_page(self.history.current_tenure.holder) if self.history.current_tenure else ""

    @property
    def overdue_at(self) -> int | None:
        """The time at which the present holder's lease expires, or expired; None if that cannot be known.

        If the input does not show when it was last renewed, this is the latest time at which it did.
        """
        tenure, duration = self.history.latest_tenure, self.history.duration
        if tenure is None or self.history.kind is InputKind.REVIEW or not duration or duration < 0:
            return None
        if not tenure.beginning.is_dated and not tenure.processes.renewals:
            return None  # it may have been taken at any time since, and the one before may have held it until then
        if self._is_renewal_unknown(tenure):
            renewed = self._find_latest_renewal(tenure)
        else:
            renewed = tenure.kept_until if self.claimed is None else self.claimed
        return None if renewed is None else max(renewed + duration * SECOND, tenure.held_duration.shortened_at)

    def _is_renewal_unknown(self, tenure: Tenure) -> bool:
        """Return whether the input does not show when its holder, or another one, renewed it last."""
        if tenure.is_stand_in or not self.history.is_list_only:
            return not tenure.is_stand_in and (tenure.is_last_unseen or not tenure.last_extension.is_dated)
        status = self.history.find_status(self.history.moment)
        return status is not None and status.is_disputed

    def _find_latest_renewal(self, tenure: Tenure) -> int | None:
        """Return the latest time at which it can have been renewed, None if nothing bounds it."""
        if not self.history.is_list_only:
            return tenure.last_extension.latest if tenure.last_extension.is_dated_by_a_server else None
        return self._latest_write

    @property
    def _latest_write(self) -> int:
        """When the latest state was written; what a list shows was at its latest stamp."""
        stamps = [one.stamp for one in self.history.entries if one.stamp is not None]
        return max([self.history.moment, *(stamps if self.history.is_list_only else [])])

    def find_freeze(self, now: int) -> Frozen | None:
        """Return since when and why no other replica can take the lease, None if another one can."""
        status = self.history.find_status(now)
        if status is None or status.block is None or not status.holder:
            return None
        until = "" if status.block.until is None else f" until {format_clock(status.block.until, now)}"
        reason = f"no other replica can take it{until}: {status.block.reason}"
        return Frozen(status.last_renewal or self.history.moment, shorten_for_page(reason, MAX_TEXT))

    def _may_be_frozen(self, latest: int) -> bool:
        """Return whether a look at the status is worth its cost: a holder may renew thousands of times a second."""
        spec = self.history.lease.spec if self.history.lease else NO_LEASE_SPEC
        renewed = spec.renew_time or ""
        return (
            (spec.lease_duration_seconds or 0) > MAX_DURATION
            or (spec.lease_transitions or 0) >= MAX_TRANSITIONS
            or len(renewed) > len(_TIME)
            or renewed[: len(_DATE)] > _date_after(latest // DAY)
        )

    def mark(
        self, kind: MarkKind, at: int, text: str, who: Writer | Tenure | None = None, holder: str = "", end: str = ""
    ) -> None:
        """Add a mark; `who` wrote, and `holder` held the lease afterwards. `end` follows the text, which may be cut."""
        self._insert_mark(Mark(kind, at, shorten_for_page(text, MAX_TEXT) + end, holder, describe_writers(who)))

    def _insert_mark(self, mark: Mark) -> None:
        insort(self.marks, mark, key=attrgetter("begins"))
        shorten(self.marks, MAX_MARKS, MAX_MARKS // 8)

    def explain(self, histories: ClusterHistory, until: int) -> bool:
        """Find out why leaders were lost or late, by a look at all other leases; True once that is settled."""
        history, silences = self.history, self.history.renewals.silences
        signature = (history.renewals.tenure_count, silences[-1].end if silences else 0)
        if self._explained == signature:
            return True
        self.causes = {}
        for gap in find_lost_leaders(histories, history):
            holder = format_name(gap.tenure.holder) if gap.tenure.holder else ""
            self.causes[MarkKind.TAKEOVER_BY_EXPIRY, gap.end] = describe_cause(gap.cause, holder, is_followed=True)
        for gap in find_late_renewals(histories, history):
            self.causes[MarkKind.LATE, gap.end] = describe_delay(history, gap)
        latest = max([signature[1], *(tenure.since for tenure in history.tenures)])
        is_settled = until - latest >= SETTLED_AFTER
        self._explained = signature if is_settled else None
        return is_settled or not self.causes

    def add_cause(self, mark: Mark) -> Mark:
        """Return a mark with what is known by now: how the holder came, and why another one was lost, or late."""
        mark = self._add_handover(mark) if mark.kind in _HANDOVERS and mark.count == 1 else mark
        cause = self.causes.get((mark.kind, mark.begins)) if mark.count == 1 else None
        if cause is None:
            return mark
        return replace(
            mark, text=shorten_for_page(cause if mark.kind is MarkKind.LATE else f"{mark.text}. {cause}", MAX_TEXT)
        )

    def _add_handover(self, mark: Mark) -> Mark:
        """Return the mark of a holder that begins; its first renewals show who wrote it in."""
        for before, tenure in with_previous(self.history.tenures):
            if tenure.since == mark.begins and shorten_for_page(tenure.holder) == mark.holder:
                text = shorten_for_page(describe_handover(tenure, before), MAX_TEXT)
                if mark.kind is MarkKind.STEAL and before is not None and self._is_passed_on(before, tenure):
                    return replace(mark, kind=MarkKind.TAKEOVER, text=text)
                return replace(mark, text=text)
        return mark

    def _is_passed_on(self, before: Tenure, tenure: Tenure) -> bool:
        return is_passed_on(self.history, before, tenure, self.history.moment)

    def observe(
        self, seen: Observation, events: Sequence[LeaseEvent], latest: int, max_ticks: int, begun: int | None
    ) -> None:
        """Add an observation that the history has taken in, with what happened."""
        is_write = seen.act is not Act.READ
        if is_write:
            self._note_write(seen, latest, begun, is_event=bool(events))
        for event in events:  # of a read: that the lease is gone
            if event.kind in {EventKind.ACQUIRED, EventKind.RENEWED}:
                self.claimed = None
            self._add(event, latest, max_ticks, is_drawn=event.kind is EventKind.RENEWED and self._is_drawn(seen))
        if is_write and seen.is_stored and not seen.problem and seen.act is not Act.DELETED:
            self._show_state()

    def _note_write(self, seen: Observation, latest: int, begun: int | None, *, is_event: bool) -> None:
        """Note the answer to a write, whether the lease is frozen since, and what its times are by."""
        self.begun = begun if seen.input_kind is InputKind.AUDIT_LOG else None
        if seen.answer:
            self._mark_answer(seen, seen.answer)
        self.frozen = self.find_freeze(self.history.moment) if self._may_be_frozen(latest) else None
        self.is_claimed = self.is_claimed or (is_event and self.history.write.is_claimed)

    def _show_state(self) -> None:
        """Show what the latest state says of its holder."""
        if self.history.lease is None:
            return
        if self.holder or self.duration_held is None:
            self.duration_held = self.history.duration
        self._turn_nameless()
        if self.spans.present is None and not self.spans.closed:
            self._begin_unheld(self.history.lease)
        elif self.spans.present and self.spans.present.kind in {SpanKind.HELD, SpanKind.FROZEN}:
            self._mark_held(self.history.moment)
        elif self.spans.present and self.spans.present.kind is SpanKind.WRITTEN:
            # What its writer's own clock dates came after the latest write that the log shows.
            self._mark_held(self.ticks.latest if self.history.write.is_claimed else self.history.moment)
        else:
            self._extend(self.history.moment)

    def _turn_nameless(self) -> None:
        """Say that nothing shows whether anyone led while a lease was renewed without a holder."""
        free, nameless = self.spans.present, self.history.nameless
        if free is None or free.kind not in _FREE or nameless is None or not nameless.is_run:
            return
        self.spans.begin(SpanKind.UNRECORDED, max(free.begins, nameless.since), reason=_WITHOUT_HOLDER)
        tenure = self.history.latest_tenure
        for number, mark in enumerate(self.marks):
            if tenure is not None and mark.kind is MarkKind.RELEASE and mark.begins == free.begins:
                # Who had emptied it was less doubtful before.
                how = f"{describe_ending(tenure)}{describe_address_of_end(tenure)}{describe_dating_of_end(tenure)}"
                self.marks[number] = replace(mark, text=shorten_for_page(how, MAX_TEXT))

    def _begin_unheld(self, lease: Lease) -> None:
        """Begin with a lease that no one holds: if no one ever did, that is so since it was created."""
        moment, created = self.history.moment, parse_stamp(lease.metadata.creation_timestamp)
        status = self.history.find_status(moment)
        if status is None or status.state is not LeaseState.NEVER_HELD:
            self.spans.begin(SpanKind.LEADERLESS, moment)
            return
        # Who wipes a lease leaves what its creation left.
        reason = "" if self.history.existence.is_seen_created else _BY_FIRST_STATE
        if created and _is_as_created(self.history.entries, created):
            moment = min(moment or created, created)
        self.spans.begin(SpanKind.NEVER_HELD, moment, reason=reason)

    def _mark_held(self, at: int) -> None:
        """Say that the holder has the lease, or that the lease is frozen."""
        if self.frozen:
            self.spans.turn(SpanKind.FROZEN, at, self.frozen.reason)
        else:
            kind, reason = self._classify_held()
            self.spans.turn(kind, at, reason)

    def _classify_held(self) -> tuple[SpanKind, str]:
        """Return what is known of a lease with a holder, and why no more is."""
        tenure, lease = self.history.latest_tenure, self.history.lease
        if tenure is not None and tenure.is_stand_in:
            return SpanKind.WRITTEN, ""  # a log without objects shows only who writes it
        if lease is not None and is_release(lease.spec):
            return SpanKind.LEADERLESS, ""  # who is written into a lease that stays released does not hold it
        if tenure is not None and self._is_renewal_unknown(tenure):
            return SpanKind.UNRECORDED, f"{format_name(self.holder)} is named as its holder, and {_UNKNOWN_RENEWAL}"
        if tenure is not None and self.holder and self._is_without_renewal(tenure):
            return SpanKind.UNRECORDED, f"{format_name(self.holder)} is named as its holder, and {_NO_RENEWAL}"
        return SpanKind.HELD, ""

    def _is_without_renewal(self, tenure: Tenure) -> bool:
        """Return whether nothing shows that the lease was ever renewed: some electors take such a lease at once."""
        spec, held = self.history.lease.spec if self.history.lease else NO_LEASE_SPEC, self.spans.present
        if normalize(spec.renew_time) is not None or (held and held.kind is SpanKind.HELD and held.tenure is tenure):
            return False  # a renewTime that was removed had been written
        signs = (tenure.last_renewal_write, tenure.renewed_by_other, tenure.inherited, tenure.beginning.renew_time)
        return all(one is None for one in signs)

    def _mark_answer(self, seen: Observation, answer: Answer) -> None:
        """Mark what the API server made of one write."""
        at, who, holder, by = self.history.moment, seen.writer, self.holder, describe_by_writer(seen.writer)
        dry = " (dry run)" if seen.is_dry_run else ""
        if not answer.is_stored:
            refusal = Refusal.from_observation(seen)
            is_race = refusal is not None and has_lost_race(refusal, self.history)
            is_expected = answer.code in _NOT_COUNTED and not (refusal is not None and refusal.is_apply_conflict)
            if not (is_expected or is_race):
                kind = MarkKind.FAILED if answer.code == 429 or answer.code >= 500 else MarkKind.DENIED
                code = f" with {answer.code}" if answer.code >= 400 else ""
                took = f" after {format_length(answer.took)}" if answer.took >= SECOND else ""
                said = f": {answer.message}" if answer.message else ""
                self.mark(kind, at, f"a write{by} was answered{code}{took}{said}", who, holder, dry)
            return
        if answer.took > SLOW:
            text = f"the API server took {format_length(answer.took)} to answer a write{by}{dry}"
            self.mark(MarkKind.SLOW, at, text, who, holder)
        noted = answer.webhook_annotations
        warned = [rule for rule, mode in noted.modes.items() if mode == "warn"]
        event = noted.event or "write"
        if noted.would_deny:
            rules = _describe_rules(noted.would_deny)
            text = f"lease-webhook admitted this {event}{by}, and would deny it by {rules}{dry}"
            self.mark(MarkKind.WOULD_DENY, at, text, who, holder)
        elif warned:
            text = f"lease-webhook warned about this {event}{by}: {_describe_rules(warned)}{dry}"
            self.mark(MarkKind.WARNED, at, text, who, holder)

    def _is_drawn(self, seen: Observation) -> bool:
        """Return whether a renewal was drawn before: a log shows writes without objects, whose states may come later.

        Neither says which state such a write made, where other writes may have made it as well.
        """
        if seen.object is None:
            self.drawn_ahead += 1
            return False
        may_be_drawn = seen.may_be_logged or self.history.write.is_claimed
        if not (self.drawn_ahead and may_be_drawn):
            return False
        self.drawn_ahead -= 1
        return True

    def _add(self, event: LeaseEvent, latest: int, max_ticks: int, *, is_drawn: bool) -> None:
        tenure, at = event.tenure, min(event.at, latest)
        match event.kind:
            case EventKind.ACQUIRED if tenure:
                self._mark_acquisition(tenure, at, latest, max_ticks)
            case EventKind.RENEWED:
                self._add_renewal(event, at, max_ticks, is_drawn=is_drawn)
            case EventKind.RESUMED:
                self._mark_held(at)
            case EventKind.MISSED:
                self._turn_overdue(tenure, at)
                self.spans.turn(SpanKind.UNRECORDED, at)
                if self.history.current_tenure is None and self.history.write.is_dated:
                    self.spans.begin(SpanKind.LEADERLESS, self.history.moment)
            case EventKind.EXPIRED if self._may_be_overdue(tenure):
                self.spans.turn(SpanKind.OVERDUE, at)
            case EventKind.RELEASED | EventKind.DELETED:
                # A deletion that was not seen ends no tenure: another holder may have followed the latest one by then.
                self._turn_overdue(tenure or self.history.latest_tenure, at)
                at = self._find_moment_of_end(at)
                self._begin_free(event, at)
                kind = MarkKind.RELEASE if event.kind is EventKind.RELEASED else MarkKind.DELETED
                how = f"the lease was deleted{describe_by_writer(event.writer)}"
                if tenure:
                    how = f"{describe_ending(tenure)}{describe_address_of_end(tenure)}"
                self.mark(kind, at, f"{how}{describe_dating_of(event)}", event.writer)
            case _:
                self._mark_event(event, at)

    def _may_be_overdue(self, tenure: Tenure | None) -> bool:
        """Return whether what is drawn now can turn overdue: not a frozen lease, nor one last renewed unseen."""
        present = self.spans.present
        if present is None or present.kind is not SpanKind.UNRECORDED or tenure is None:
            return present is None or present.kind is not SpanKind.FROZEN
        return not self._is_renewal_unknown(tenure)

    def _add_renewal(self, event: LeaseEvent, at: int, max_ticks: int, *, is_drawn: bool) -> None:
        tenure = event.tenure
        if tenure and self._is_first_after_choice(tenure):
            # The API server chose it; that it leads is known from its own first renewal.
            lasts = (self.duration_held or 0) * SECOND  # as it was chosen
            self.spans.delay(at, is_expired=tenure.processes.renewals == 1 and tenure.since + lasts < at)
        self._mark_held(at)
        if not is_drawn and not (tenure and self._is_renewal_unknown(tenure)):
            self.ticks.add(at, max_ticks)
        if tenure and event.silence and self._is_late(tenure, at - event.silence, at):
            text = f"{self.holder or 'its writer'} did not renew for {format_length(event.silence)}, and kept the lease"
            self.mark(MarkKind.LATE, at, text, holder=self.holder)

    def _is_late(self, tenure: Tenure, start: int, end: int) -> bool:
        """Return whether a holder did not renew for longer than most clients try, nor another one of its identity."""
        duration = self.history.duration or 0
        is_silent = duration > 1 and end - start >= estimate_deadline(duration)
        return is_silent and not tenure.processes.is_renewed_by_another(start, end)

    def _begin_free(self, event: LeaseEvent, at: int) -> None:
        """Begin after the holder was removed, or the lease deleted: that may have been later than is known."""
        is_released, tenure = event.kind is EventKind.RELEASED, event.tenure
        if event.is_dated or self.spans.present is None or self.spans.present.tenure is None:
            is_removed = is_released and tenure is not None and _is_removed_live(tenure)
            self.spans.begin(SpanKind.REMOVED if is_removed else SpanKind.LEADERLESS, at)
            return
        what = "its holder was removed" if is_released else "it was deleted"
        self.spans.begin(SpanKind.UNRECORDED, at, reason=f"{what} in this time, and {_UNKNOWN_TIME}")

    def _find_moment_of_end(self, at: int) -> int:
        """Return when to draw that a holder was removed, or the lease deleted: later than the holder took it.

        A stamp has whole seconds, and both may have been in one.
        """
        held = self.spans.present
        is_within = held is not None and held.kind is SpanKind.HELD and self.history.write.may_include(held.begins)
        return max(at, held.begins + 1) if held is not None and is_within else at

    def _is_first_after_choice(self, tenure: Tenure) -> bool:
        """Return whether a renewal may be the first one by a holder that an API server chose.

        By clocks that differ, the first one may seem to come before the choice: then no later one ends what began so.
        """
        is_begun = self.spans.present is not None and self.spans.present.begins == self.drawn_since
        is_begun = is_begun and tenure.processes.renewals <= 1
        is_whole = all(one.end <= tenure.since for one in self.history.renewals.unseen)
        return tenure.is_chosen and is_begun and is_whole and not (tenure.is_stand_in or tenure.beginning.is_unseen)

    @property
    def doubtful_at(self) -> int | None:
        """The time from which on the present holder's lease may have expired, where that is not known; else None."""
        tenure = self.history.latest_tenure
        seconds = tenure.held_duration.before_longer if tenure is not None else None
        return None if tenure is None or seconds is None else tenure.kept_until + seconds * SECOND

    def _turn_overdue(self, tenure: Tenure | None, at: int) -> None:
        """Say that a holder that is removed had let the lease expire before, if it had."""
        duration = tenure.held_duration.least if tenure else None
        if tenure and duration and not tenure.is_last_unseen:
            expired = max(tenure.kept_until + duration * SECOND, tenure.held_duration.shortened_at)
            if expired < at and self.spans.present and self.spans.present.kind is SpanKind.HELD:
                self.spans.turn(SpanKind.OVERDUE, expired)

    def _turn_doubtful(self, before: Tenure, at: int) -> None:
        """Say that a holder may have let the lease expire a second or more before another one took it."""
        expired, held = _find_expiry(before, at), self.spans.present
        if before.held_duration.least and expired + SECOND <= at and held and held.kind is SpanKind.HELD:
            self.spans.turn(SpanKind.UNRECORDED, expired, _UNKNOWN_EXPIRY)

    def _mark_event(self, event: LeaseEvent, at: int) -> None:
        """Mark what changes neither the holder nor how long it holds."""
        who = event.writer
        match event.kind:
            case EventKind.CREATED:
                self.mark(
                    MarkKind.CREATED, at, event.text or f"it was created without a holder{describe_by_writer(who)}", who
                )
            case EventKind.EDITED if self.holder:
                self.mark(MarkKind.EDIT, at, describe_edit(event, self.history.managers_of_servers), who, self.holder)
            case EventKind.OWNED if self.holder:
                self.mark(MarkKind.EDIT, at, describe_added_owners(self.history.added_owners[-1]), who, self.holder)
            case EventKind.FORGED:
                self.mark(
                    MarkKind.FORGED_STAMPS, at, f"this write{describe_by_writer(who)} {event.text}", who, self.holder
                )
            case EventKind.SHARED if event.tenure:
                text = f"{describe_writers(event.tenure)} renew in turn under one identity, as if each led"
                self.mark(MarkKind.IDENTITY_SHARED, at, text, event.tenure, self.holder)

    def _extend(self, at: int) -> None:
        """Say that an expired lease is held again if it was made to last longer than until now."""
        is_overdue = self.spans.present is not None and self.spans.present.kind is SpanKind.OVERDUE
        if is_overdue and (self.overdue_at or 0) > at:
            self._mark_held(at)

    def _find_start(self, tenure: Tenure, since: int) -> int:
        """Return since when the holder of a first state has it, as far as that state says it.

        It does not if another one wrote its holder in, or if a log before it shows that no one wrote the lease for
        long, or that writes were refused or failed: its holder may have lost it, and taken it again.
        """
        moment, begun = self.history.moment, self.begun
        if self._is_renewal_unknown(tenure) and not tenure.beginning.is_since_own:
            return max(since, self._latest_write)
        is_long = begun is not None and moment - begun > estimate_deadline(tenure.duration or self.history.duration)
        if is_long or any(one.is_denied or one.has_failed for one in self.history.requests.refusals):
            return max(since, moment)
        return since

    def _find_expiry_by_stamp(self, since: int) -> int:
        """Return when a first state expired, by the stamp of its last renewal, or from `since` on.

        Of a list it is not known whether the latest write was a renewal.
        """
        if self.history.is_list_only:
            return self._latest_write
        renewed = max(since, date_last_renewal(self.history.entries) or since)
        return renewed + max(0, self.history.duration or 0) * SECOND

    def _turn_unrecorded(self, tenure: Tenure) -> None:
        """Say that a lease which was free may have been taken at any time, if its next holder took it unseen."""
        free = self.spans.present
        if free is not None and free.kind is SpanKind.LEADERLESS and tenure.beginning.is_unseen:
            reason = f"{format_name(self.holder)} took it in this time, and {_UNKNOWN_TIME}"
            self.spans.begin(SpanKind.UNRECORDED, free.begins, reason=reason)

    def _mark_acquisition(self, tenure: Tenure, since: int, latest: int, max_ticks: int) -> None:
        if tenure.began is Handover.SEEN:
            # A stored state shows one renewal, the last: the holder took the lease before it.
            renewed = tenure.last_renewal
            if renewed > latest:
                status = self.history.find_status(latest)
                renewed = self.claimed = min(latest, (status and status.last_renewal) or latest)
            since = self._find_start(tenure, min(since, renewed))
            if since < renewed and not self._is_renewal_unknown(tenure):
                self.ticks.add(renewed, max_ticks)
        elif tenure.beginning.is_unseen and not tenure.has_unseen_renewals and tenure.last_renewal < since:
            self.ticks.add(tenure.last_renewal, max_ticks)
        self._turn_unrecorded(tenure)
        if tenure.began is Handover.UNKNOWN and len(self.history.tenures) > 1:
            self._turn_overdue(self.history.tenures[-2], since - MAX_TOLERANCE)
            self._turn_doubtful(self.history.tenures[-2], since)
        status = self.history.find_status(since)
        manager = status.manager if status else ""
        held, reason = self._classify_held()
        if held in {SpanKind.HELD, SpanKind.UNRECORDED} and not tenure.beginning.is_dated:
            held, reason = SpanKind.UNRECORDED, f"{format_name(self.holder)} took it in this time, and {_UNKNOWN_TIME}"
        if tenure.began is Handover.SEEN and held is SpanKind.HELD:
            reason = _BY_FIRST_STATE
        elif tenure.began is Handover.SEEN and held is SpanKind.UNRECORDED and since < self._latest_write:
            self.spans.begin(SpanKind.HELD, since, tenure, manager, _BY_FIRST_STATE)
            since = min(self._latest_write, self._find_expiry_by_stamp(since))
        if held is SpanKind.LEADERLESS and tenure.began is Handover.SEEN:
            # Since when it names that holder says nothing of when it was released under that name.
            since = max(since, min(latest, self._latest_write))
        # By its writer's own clock a holder may seem to have begun before what was seen of the one before.
        seen = self.ticks.latest if self.history.write.is_claimed else since
        self.spans.begin(held, max(since, seen), tenure, manager, reason)
        self.drawn_since = self.spans.present.begins if self.spans.present else None
        self._mark_taking(tenure, since)

    def _mark_taking(self, tenure: Tenure, since: int) -> None:
        """Mark how the present holder came."""
        tenures = self.history.tenures
        before = tenures[-2] if len(tenures) > 1 else None
        how = name_taking(tenure, before, is_seen_created=self.history.existence.is_seen_created)
        if kind := _KIND_OF_TAKING.get(how):
            text = shorten_for_page(describe_handover(tenure, before), MAX_TEXT)
            mark = Mark(kind, since, text, shorten_for_page(tenure.holder), describe_writers(tenure))
            if kind is MarkKind.STEAL and before is not None:
                # The one before does not know that another holder has another duration.
                mark = replace(mark, contested_until=_find_expiry(before, since))
            self._insert_mark(mark)


def _is_as_created(entries: Sequence[Entry], created: int) -> bool:
    """Return whether nothing was written since the creation, by stamps: whoever held it may have been wiped."""
    return bool(entries) and all(one.stamp is not None and one.stamp <= created + SECOND for one in entries)


def _find_expiry(tenure: Tenure, at: int) -> int:
    """Return when the lease of a holder that lost it at an instant would have expired at the earliest."""
    return min(tenure.kept_until, at) + (tenure.held_duration.least or 0) * SECOND


def _is_removed_live(tenure: Tenure) -> bool:
    """Return whether another one removed a holder whose lease had not expired: it most likely still leads."""
    return not tenure.had_expired and tenure.removal.is_likely_foreign


@cache
def _date_after(day: int) -> str:
    """Return the date after that of a day, which is counted since 1970, as times begin with it."""
    return format_micro_time((day + 1) * DAY)[: len(_DATE)]


def _describe_rules(rules: Iterable[str]) -> str:
    """Return the names of rules with what they say, as far as they are known."""
    return "; ".join(f"{name} ({RULES[name].summary.rstrip('.')})" if name in RULES else name for name in rules)
