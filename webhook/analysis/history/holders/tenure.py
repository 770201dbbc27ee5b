"""A tenure: the time for which one holder had a lease, who wrote for it, and how it began and ended.

All instants are microseconds since 1970 by the clocks of API servers, as far as the input shows those.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.analysis.history.audit_log.addresses import Elsewhere
from webhook.analysis.history.holders.beginning import Beginning, RequestsBefore
from webhook.analysis.history.holders.clock import HolderClock, SetBack, find_set_back
from webhook.analysis.history.holders.deletion import DeletionOfHeld
from webhook.analysis.history.holders.duration import HeldDuration
from webhook.analysis.history.holders.manager_run import ManagerRun, follow_manager
from webhook.analysis.history.holders.processes import MIN_RENEWALS, HolderProcesses, OtherProcess
from webhook.analysis.history.holders.removal import Removal
from webhook.analysis.history.holders.renewal_by_other import RenewalByOther
from webhook.analysis.history.holders.step_down import StepDown
from webhook.analysis.history.status import has_expired
from webhook.analysis.history.write import Write
from webhook.analysis.inputs.items import Writer
from webhook.kubernetes.managed_fields import OF_API_SERVERS
from webhook.kubernetes.objects import LeaseSpec
from webhook.kubernetes.times import SECOND

API_SERVER: Final = "system:apiserver"
"""Who writes the holder in a coordinated election."""


class Handover(StrEnum):
    """How a replica came to hold a lease."""

    SEEN = "seen"
    """It held the lease already when the input begins."""
    CREATED = "created"
    CLAIMED = "claimed"
    """The lease existed, and no one held it."""
    RELEASED = "released"
    EXPIRED = "expired"
    STOLEN = "stolen"
    """The previous holder still had it: two may have led."""
    DELETED = "deleted"
    """The lease was deleted while the previous holder had it, and created again."""
    PREFERRED = "preferred"
    """The previous holder was asked to step down for another one, as the API server does in a coordinated election."""
    REPLACED = "replaced"
    """Another pod of the same account renews it under the same identity from then on."""
    UNKNOWN = "unknown"


class Tenure(Struct):
    """One holder, from `since` to `until` (None: it still holds, as far as is known), in microseconds since 1970.

    `leaderless` is how long no one led before it, at most: from the last sign of life of the holder before. It is None
    if that was not seen. `is_stand_in` is set if the log hides the holder and its writer stands in. `last_renewal` is
    `since` at first.
    """

    processes: HolderProcesses
    since: int
    began: Handover
    last_renewal: int
    previous: str = ""
    leaderless: int | None = None
    beginning: Beginning = Beginning()
    requests_before: RequestsBefore = RequestsBefore()
    is_stand_in: bool = False
    is_coordinated: bool = False
    """The lease has a strategy: API servers choose its holders."""

    held_duration: HeldDuration = HeldDuration()
    last_renewal_write: Write | None = None
    """The last renewal by the holder; None before the first one that was seen."""
    is_own_claimed: bool = False
    """Only the clock of its writer dates `last_renewal`."""
    renewed_under: str = ""
    """The field manager of `last_renewal_write`, as the state that it made says; "" if that says none."""
    has_unseen_renewals: bool = False
    """The input does not show when it was last renewed, only that it still held the lease at `last_renewal`."""
    manager: str = ""
    """The field manager of its last renewal."""
    manager_run: ManagerRun | None = None
    """Its latest renewals under another field manager than those before; None if there were none."""
    clock: HolderClock = HolderClock()
    set_back: SetBack | None = None
    """The latest of its renewals that moved renewTime back; None if none did."""
    term: int | None = None
    """The latest term that the API server stamped, where stamps are believed."""
    is_ambiguous: bool = False
    """The input does not show who renewed it, and field managers or leaseTransitions differ: others may have."""
    inherited: int | None = None
    """The last renewal before it, if the write that put the holder there left renewTime as it was."""
    last_extension: Write = Write()
    """The last renewal, whoever made it, or what put the holder there."""
    renewed_by_other: RenewalByOther | None = None
    longest_gap: tuple[int, int] | None = None
    """The longest time without any renewal between its last own renewal and the last one by another; None of none."""
    is_last_by_other: bool = False
    """The latest renewal was by another writer. Times alone do not say so where the clocks of API servers differ."""
    asked_holder: str = ""
    """The holder that the latest write of its own process asked for, as far as is known, if another one was stored.

    Of a log with the objects of requests.
    """

    step_down: StepDown = StepDown()
    until: int | None = None
    ended: Write | None = None
    """The write that removed or replaced the holder, or deleted the lease."""
    is_end_dated: bool = True
    """False if the input does not say when the holder was removed: then it was at `until` or later."""
    removal: Removal = Removal()
    deletion: DeletionOfHeld = DeletionOfHeld()
    is_before_previous: bool = False
    """The holder before it is the one after it, too."""

    def begin_seen(self, writer: Writer | None, manager: str = "") -> None:
        """Remember who wrote the state with which the input begins, and the field manager that put the holder there."""
        if not self.is_coordinated:
            self.beginning = replace(self.beginning, manager=manager)
        if writer is not None and writer.user and writer.user != API_SERVER:
            self.processes.begin_seen(writer)

    def begin(self, writer: Writer | None, manager: str = "", known: Writer | None = None) -> None:
        """Remember who wrote the holder into the lease; `known` is the process that had this identity before."""
        self.beginning = replace(self.beginning, manager=manager)
        if writer is None or not writer.user:
            self.processes.begin(None, known)
            return
        self.processes.taken_by = writer
        if known is not None or not self.is_chosen:
            self.processes.begin(writer, known)

    def follow(self, before: "Tenure | None", leaderless: int | None) -> None:
        """Remember the holder before, and for how long no one led since, at most; None if that is not known."""
        self.previous, self.leaderless = before.holder if before else "", leaderless
        if before is not None:
            before.is_before_previous = before.previous == self.holder

    def name_holder(self, holder: str) -> None:
        """Name the holder, for which its writer stood in."""
        self.processes.identity, self.is_stand_in = holder, False

    def begin_before_input(self, *, is_unseen: bool, is_since_own: bool) -> None:
        """Note what the first state of an input shows: not its last renewal, or that the holder wrote `since`."""
        self.has_unseen_renewals = is_unseen
        self.beginning = replace(self.beginning, is_since_own=is_since_own)

    def note_renew_time(self, renewed: int | None) -> None:
        """Remember renewTime of the state that first showed it."""
        self.beginning = replace(self.beginning, renew_time=renewed)

    def begin_unseen(self) -> None:
        """Note that the input does not show how it took the lease; the holder seen before may be this one."""
        self.beginning = replace(self.beginning, is_unseen=True)
        if self.previous == self.holder:
            self.previous = ""

    def begin_with_renewal(self, write: Write, manager: str, before: "Tenure", *, is_nameless: bool) -> None:
        """Note that it began with a renewal by its own process, which follows another one under the same name."""
        self.processes.begin_with_renewal(before.processes, is_nameless=is_nameless)
        self.last_renewal_write, self.renewed_under = write, manager

    def merge_concurrent_process(self, newcomer: "Tenure") -> None:
        """Add another process that renews under its name, and had been taken for the next holder."""
        self.until, self.ended, self.is_end_dated, self.is_before_previous = None, None, True, False
        self.processes.merge_concurrent_process(
            newcomer.processes,
            OtherProcess(
                newcomer.processes.known_renewals,
                newcomer.since,
                newcomer.last_renewal,
                newcomer.beginning.write.earliest,
                newcomer.last_extension.latest or newcomer.last_renewal,
                nameless=newcomer.processes.nameless_renewals,
            ),
        )
        self.note_term(newcomer.term)
        at, is_claimed = newcomer.last_renewal, newcomer.is_own_claimed
        self.longest_gap = self.find_longest_gap_until(newcomer.since) or (self.kept_until, newcomer.since)
        self.note_renewal_by_other(at, newcomer.processes.own, is_claimed=is_claimed, is_gap_known=True)

    def forget_previous(self) -> None:
        """Forget the holder before: another process may have had the lease in between."""
        self.previous = ""

    def note_taking_up(self, writer: Writer | None) -> None:
        """Note who is about to renew: of a chosen identity, the first pod to do so is its process.

        An API server chooses a name, which another pod of the account may have had before.
        """
        is_untaken = self.is_chosen and not self.processes.renewals
        if is_untaken and self.processes.is_replaced_by(writer) and self.processes.may_share(writer):
            self.processes.forget_process()

    def extend(self, write: Write) -> None:
        """Remember a renewal, whoever made it."""
        self.last_extension = write

    def renew(self, at: int, write: Write, manager: str = "") -> None:
        """Remember a renewal by its own process, of which the input shows when it was made, and its field manager."""
        self.last_renewal, self.last_renewal_write, self.is_own_claimed = at, write, write.is_claimed
        self.renewed_under = manager
        self.has_unseen_renewals = self.is_last_by_other = False
        self.longest_gap = None

    def renew_hidden(self, at: int) -> None:
        """Remember a renewal by its own process whose object a log does not show."""
        self.last_renewal, self.is_own_claimed, self.is_last_by_other = at, False, False

    def resume(self, at: int, *, is_seen: bool, is_claimed: bool) -> None:
        """Go on with a state after what was not seen; `is_seen`: it dates the last renewal at `at`.

        `is_claimed`: its writer's clock alone does.
        """
        self.last_renewal, self.last_renewal_write, self.has_unseen_renewals = at, None, not is_seen
        self.is_own_claimed, self.is_last_by_other = is_claimed, False

    def resume_after_counted_renewals(self, at: int) -> None:
        """Go on after renewals that were counted, the last one at `at`."""
        self.last_renewal = at

    def extend_leaderless(self, length: int) -> None:
        """Add to how long no one led before it."""
        self.leaderless = (self.leaderless or 0) + length

    def note_term(self, term: int | None) -> None:
        """Remember the term that the API server stamped, if it did."""
        self.term = self.term if term is None else term

    def note_asked(self, holder: str) -> None:
        """Remember which holder the latest write of its own process asked for, "" if that one was stored."""
        self.asked_holder = holder

    def note_renewal_by_other(
        self,
        at: int,
        writer: Writer | None,
        renew_time: int | None = None,
        *,
        is_claimed: bool = False,
        is_gap_known: bool = False,
    ) -> None:
        """Remember a renewal that another made in the holder's place, and the renewTime that it wrote.

        `is_claimed`: its writer's clock alone dates it. `is_gap_known`: the time before it is in `longest_gap`.
        """
        if not is_gap_known:
            self.longest_gap = self.find_longest_gap_until(at) or (self.kept_until, at)
        self.renewed_by_other = RenewalByOther(at, writer or Writer(), renew_time, is_claimed)
        self.is_last_by_other = True

    def find_longest_gap_until(self, at: int) -> tuple[int, int] | None:
        """Return the longest time without any renewal from its last own one to an instant; None if no other renewed."""
        if self.longest_gap is None:
            return None
        return max(self.longest_gap, (self.kept_until, at), key=lambda one: one[1] - one[0])

    def inherit(self, before: "Tenure") -> None:
        """Take over the last renewal before it: who wrote this one in left the lease to expire as it was.

        That is the last one of the holder before, or the removal of that.
        """
        if before.removal.is_renewal and before.ended is not None:
            self.inherited, self.last_extension = before.ended.at, before.ended
            return
        self.inherited, self.last_extension = before.kept_until, before.last_extension
        self.has_unseen_renewals = before.has_unseen_renewals

    def set_duration(
        self, seconds: int | None, writer: Writer | None, *managers: str, at: int, is_renewed: bool
    ) -> None:
        """Take over another duration, unless a writer other than the holder lowers it: the holder does not know.

        `managers` are the field managers of the last renewal after and before the write at `at`, which `is_renewed` if
        it was one itself.
        """
        is_own = is_renewed and self.is_by(writer, *managers) is True
        is_unheld = self.processes.is_own_taking is not True and not self.processes.renewals
        may_be_own = is_renewed and self.processes.may_renew(writer)
        # Of a holder that was written in and has not renewed, no process knows another duration.
        self.held_duration = self.held_duration.follow(seconds, at, is_own=is_own, may_be_own=may_be_own or is_unheld)

    def note_manager(self, manager: str) -> None:
        """Remember the field manager of its last renewal."""
        self.manager = manager

    def note_ambiguity(self, *, is_other: bool) -> None:
        """Note a renewal of which the input does not show who made it; `is_other`: there are hints of another one."""
        self.is_ambiguous = self.is_ambiguous or is_other

    def has_other_manager(self, manager: str) -> bool:
        """Return whether the field manager of a renewal is known to differ from that of the renewal before."""
        return self.manager != "" and manager not in {"", self.manager}

    def follow_manager(self, manager: str, at: int) -> None:
        """Remember the field manager of a renewal at an instant, if it is known."""
        if self.manager_run is not None or self.has_other_manager(manager):
            self.manager_run = follow_manager(self.manager_run, self.manager, manager, at)
        self.manager = manager or self.manager

    def measure_clock(self, ahead: int | None, skew: int) -> None:
        """Measure the holder's clock by its latest write."""
        self.clock = self.clock.measure(ahead, skew)

    def note_renew_times(self, old: LeaseSpec, new: LeaseSpec, at: int) -> None:
        """Note whether one of its renewals moved renewTime back."""
        self.set_back = find_set_back(old, new, at, self.set_back)

    def note_removal(
        self,
        writer: Writer | None,
        manager: str,
        *,
        is_field_gone: bool,
        is_renewal: bool,
        is_blind: bool,
        elsewhere: Elsewhere | None,
    ) -> None:
        """Note who removed the holder: itself, or another writer, and then it may go on as the leader.

        `manager` is the field manager of that write. `is_field_gone`: the field of the holder is gone, not empty.
        `is_renewal`: it set another renewTime. `is_blind`: it was a patch without a precondition.
        `elsewhere`: it came from another address than the renewals of the pod whose token it had.
        """
        is_own = self.is_by(writer, manager, self.manager)
        # Of two processes that use one name, the other may lead on.
        is_doubtful = self._may_stand_for_other if is_own else self.processes.may_share(writer)
        is_hint = (self.is_by(writer) or not (writer and writer.user)) and self.has_own_manager
        self.removal = Removal(
            writer,
            manager,
            is_own=None if is_doubtful else is_own,
            is_field_gone=is_field_gone,
            is_renewal=is_renewal,
            is_blind=is_blind,
            is_under_own_manager=is_own is True and not (writer and writer.user),
            is_under_other_manager=is_hint and bool(self.manager) and manager not in {"", self.manager},
            elsewhere=elsewhere,
        )

    def doubt_removal(self) -> None:
        """Note that what followed its removal casts doubt on who made that: a field manager does not say it."""
        self.removal = replace(self.removal, is_own=None, is_doubted=True)

    @property
    def _may_stand_for_other(self) -> bool:
        """True if another process may lead under the same text: one that took or renewed the lease before its own.

        Whose renewals are all that an input shows may be a stranger, if the first state has a holder that was written
        under another field manager, and that does not name its pod.
        """
        who = self.processes
        is_renewer_only = who.renewals > 0 and not self.is_known_to_have_held
        is_latecomer = self.began is Handover.REPLACED and not who.names_own_pod and who.renewals < MIN_RENEWALS
        is_seen_later = self.began is Handover.SEEN and not (who.names_own_pod or self.is_coordinated)
        is_seen_later = is_seen_later and bool(self.manager) and self.beginning.manager not in {"", self.manager}
        return who.may_stand_for_other or is_renewer_only or is_latecomer or is_seen_later

    @property
    def is_deleted_by_itself(self) -> bool | None:
        """True if its process deleted the lease, as some do when they stop, False if another did, None if unknown.

        A user without a pod may be any process with its credentials, and of several that renew others may lead on.
        """
        by = self.deletion.by
        if by is None or not by.user:
            return None
        is_own = self.processes.is_by(by)
        is_alone = bool(by.pod or by.uid) and not self.processes.others
        return is_own if is_own is not True or is_alone else None

    def end(self, at: int, write: Write) -> None:
        """End it with a write that removed or replaced the holder, or deleted the lease."""
        self.until, self.ended = at, write

    def note_end_dated(self, *, is_dated: bool) -> None:
        """Note whether the input says when the holder was removed."""
        self.is_end_dated = is_dated

    @property
    def holder(self) -> str:
        """The text that names it."""
        return self.processes.identity

    @property
    def duration(self) -> int | None:
        """Seconds that the lease lasts, without what another writer took from them."""
        return self.held_duration.seconds

    @property
    def is_deleted(self) -> bool:
        """True if it ended because the lease was deleted."""
        return self.deletion.is_deleted

    @property
    def is_exact(self) -> bool:
        """Whether a log says when it began: a stamp has whole seconds."""
        return self.beginning.write.is_exact

    @property
    def kept_until(self) -> int:
        """The last renewal, whoever made it, or what put the holder there: the one before, if that did not renew."""
        if self.inherited is not None and self.renewed_by_other is None and self.last_renewal == self.since:
            return self.inherited
        return self._find_last_of_both(self.renewed_by_other)

    def _find_last_of_both(self, other: RenewalByOther | None) -> int:
        """Return when it was last renewed, by its process or by another one."""
        if other is None:
            return self.last_renewal
        if other.is_claimed != self.is_own_claimed:
            # A writer's clock may be off by hours: only the order says which of the two came last.
            return other.at if self.is_last_by_other else self.last_renewal
        return max(self.last_renewal, other.at)

    @property
    def is_last_unseen(self) -> bool:
        """True if the input does not show when it was renewed last, by its holder or by another one."""
        return self.has_unseen_renewals and not self.is_last_by_other

    @property
    def is_claimed(self) -> bool:
        """True if only a writer's own clock dates its last renewal."""
        return (self.last_renewal_write or self.last_extension).is_claimed

    @property
    def is_renewed_last_by_own(self) -> bool:
        """False if another process wrote the state of `last_renewal`, after what was not seen, or may have renewed."""
        if self.last_renewal_write is not None:
            return self.processes.is_last_known
        own, writer = self.processes.own, self.last_extension.writer
        return own is None or writer is None or own.is_same(writer)

    @property
    def last_of_identity(self) -> int:
        """The last renewal by its process, or by another writer that may be one of its identity."""
        other = self.renewed_by_other
        may_be_own = other is not None and self.processes.may_renew_last(other.writer)
        return self._find_last_of_both(other if may_be_own else None)

    @property
    def is_last_of_identity_known(self) -> bool:
        """False if the last renewal by its identity was not seen, or only a claim dates it.

        The latter if an API server dates a later one by another writer: the claim may be hours off, or after that.
        """
        other = self.renewed_by_other
        is_followed = other is not None and self.is_last_by_other and not self.processes.may_renew_last(other.writer)
        is_dated_later = other is not None and is_followed and not other.is_claimed
        return not (self.has_unseen_renewals or (self.is_own_claimed and is_dated_later))

    def find_renewer(self, at: int) -> Writer | None:
        """Return who made the renewal of an instant, or put the holder there then; None if that is not known."""
        own, is_seen_taken = self.processes.own, self.began is not Handover.SEEN
        writes = [(self.last_extension.at, self.last_extension.writer)]
        if self.last_renewal_write is not None or self.last_renewal != self.since:
            is_known = self.processes.is_last_known and bool(self.processes.renewals or self.processes.is_process_known)
            by_own = own if is_known and self.is_renewed_last_by_own else None
            writes.append(
                (self.last_renewal, (self.last_renewal_write.writer if self.last_renewal_write else None) or by_own)
            )
        writes += [(self.renewed_by_other.at, self.renewed_by_other.writer)] if self.renewed_by_other else []
        writes += [(self.since, self.processes.taken_by)] if is_seen_taken else []
        when, who = min(reversed(writes), key=lambda write: abs(write[0] - at))
        if abs(when - at) > SECOND:
            is_own = not (is_seen_taken or self.has_unseen_renewals) and self.is_renewed_last_by_own
            who = own if is_own else None
        return who.process if who and who.user else None

    def note_renewal(
        self,
        writer: Writer | None,
        at: int,
        within: tuple[int, int] | None = None,
        *,
        is_set_back: bool = False,
        is_nameless: bool = False,
    ) -> bool:
        """Remember who renewed; return False if that was another process than the holder's: `HolderProcesses.renew`."""
        since, last = self.since, self.last_renewal
        so_far = OtherProcess(
            self.processes.known_renewals,
            since,
            last,
            min(since, self.beginning.write.earliest),
            last,
            nameless=self.processes.nameless_renewals,
        )
        return self.processes.renew(
            writer, at, within or (at, at), so_far=so_far, is_set_back=is_set_back, is_nameless=is_nameless
        )

    def is_by(self, writer: Writer | None, manager: str = "", own_manager: str = "") -> bool | None:
        """True if a writer is the holder, False if it is another one, None if that cannot be known.

        Without a writer, a field manager that is its own says that it was; another one says nothing, as a process may
        write by several clients.
        """
        has_managers = bool(manager and own_manager) and self.has_own_manager
        if writer is None or not writer.user:
            # Who put the holder there, as an API server does, need not be the one that renews.
            return True if has_managers and manager == own_manager else None
        is_own = self.processes.is_by(writer)
        # A person with the same credentials is the same user; only a pod's token is of one process.
        is_shared = has_managers and manager != own_manager and not (writer.pod or writer.uid)
        return None if is_own and is_shared else is_own

    @property
    def is_since_known(self) -> bool:
        """True if it is held since `since`, False if that is only the latest moment at which it was taken."""
        is_first_state = self.began is Handover.SEEN and not self.is_stand_in
        is_dated = self.beginning.is_dated and not (self.beginning.write.is_claimed or self.beginning.is_unseen)
        return self.beginning.is_since_own if is_first_state else is_dated

    @property
    def is_end_known(self) -> bool:
        """True if an API server says when it ended, or when it was last renewed before it expired."""
        if self.ended is None:
            return self.is_end_dated
        if self.ended.is_dated:
            # It may count as ended at its last renewal, which its own clock alone may date.
            is_by_end = self.until is None or self.ended.may_include(self.until)
            return self.is_end_dated and not self.ended.is_claimed and (is_by_end or not self.is_claimed)
        # What nothing dates ended it at its last renewal or later, which its own clock alone may date, or nothing.
        return self.is_end_dated and self.beginning.is_dated and not self.is_claimed

    @property
    def has_own_manager(self) -> bool:
        """True if it was renewed under the field manager of its last renewal, as far as is known."""
        return self.processes.renewals > 0 or (self.began is Handover.SEEN and self.beginning.is_since_own)

    @property
    def is_chosen(self) -> bool:
        """True if the API server wrote the holder in a coordinated election: the identity leases are its own."""
        if not (self.is_coordinated or self.is_stand_in):
            return False
        by = self.processes.taken_by
        return self.beginning.manager == OF_API_SERVERS if by is None else by.user == API_SERVER

    @property
    def may_be_chosen(self) -> bool:
        """True if stamps alone show who wrote the holder in a coordinated election: an API server may have.

        Not under the field manager of the holder's renewals, nor under that which API servers have by default.
        """
        manager = self.beginning.manager
        is_own = self.processes.renewals > 0 and manager == self.manager
        is_other = manager not in {"", OF_API_SERVERS} and not is_own
        return self.is_coordinated and self.processes.taken_by is None and is_other

    @property
    def is_never_taken_up(self) -> bool:
        """True if the API server chose it, and the input shows that no process has renewed it since."""
        is_seen = self.began is not Handover.SEEN and not (
            self.beginning.is_unseen or self.has_unseen_renewals or self.is_stand_in
        )
        return self.is_chosen and is_seen and not self.processes.renewals and self.renewed_by_other is None

    @property
    def may_be_stolen(self) -> bool:
        """True if it took the lease from a live holder, or may have, because the input does not say when."""
        is_undated = not (self.beginning.is_dated or self.beginning.is_unseen)
        return self.began is Handover.STOLEN or (
            self.began is Handover.UNKNOWN and self.is_after_another and is_undated
        )

    @property
    def is_after_another(self) -> bool:
        """True if another holder is known to have been before it: false of one that takes its lease again."""
        return self.previous not in {"", self.holder}

    @property
    def is_unclear(self) -> bool:
        """True if it took the lease from another holder, and it is not known whether the lease had expired."""
        is_taken = self.began is Handover.UNKNOWN and self.is_after_another and self.leaderless is None
        return self.beginning.may_have_been_expired or (is_taken and not (self.beginning.is_unseen or self.is_stand_in))

    @property
    def is_after_no_duration(self) -> bool:
        """True if it took the lease from another holder, and nothing said until when that one had it."""
        is_taken = self.began is Handover.UNKNOWN and bool(self.previous) and self.beginning.is_dated
        return is_taken and self.duration is None and not (self.beginning.is_unseen or self.is_stand_in)

    @property
    def is_release_known(self) -> bool:
        """True if it can be said who removed the holder, or how."""
        is_known = self.removal.may_be_by_another or self.removal.is_own is True
        return is_known or self.processes.is_never_renewed or self.is_only_named

    @property
    def had_expired(self) -> bool:
        """True if the holder had let the lease expire before it was removed, or the lease was deleted."""
        return self.has_expired_at(self.until or 0)

    def has_expired_at(self, at: int) -> bool:
        """Return whether the lease had expired by an instant, if its holder alone had renewed it."""
        return self.duration is not None and has_expired(self.last_renewal, self.duration, at)

    @property
    def is_only_named(self) -> bool:
        """True if the input shows neither who put it there nor a renewal since: it need not stand for a process."""
        is_named = self.processes.taken_by is None and not self.processes.renewals
        return is_named and self.began not in {Handover.SEEN, Handover.REPLACED}

    @property
    def was_left_as_written(self) -> bool:
        """True if it was written in, by another one as far as is known, and no renewal followed."""
        is_seen = not (self.has_unseen_renewals or self.beginning.is_unseen or self.is_chosen or self.is_claimed)
        return self.processes.is_never_renewed or (self.is_only_named and self.renewed_by_other is None and is_seen)

    @property
    def is_named_by_edit(self) -> bool:
        """True if the write that put it there is none of an elector, and no renewal followed: someone edited the lease.

        Such a write leaves renewTime, or acquireTime and leaseTransitions, as they were.
        """
        is_left = self.inherited is not None and self.renewed_by_other is None and self.duration is not None
        is_edit = self.beginning.is_renaming or is_left
        is_unknown = self.processes.taken_by is None and not (self.beginning.is_unseen or self.is_chosen)
        return is_edit and is_unknown and not (self.processes.renewals or self.has_unseen_renewals)

    @property
    def own_clock_ahead(self) -> int | None:
        """How far its process's clock is ahead, in microseconds; None if another process may have written renewTime."""
        is_own = self.is_known_to_have_held and not (self.was_left_as_written or self.is_last_by_other)
        return self.clock.ahead if is_own else None

    @property
    def copied_age(self) -> int | None:
        """How old renewTime was when another one wrote the holder in, and had expired by; None if it was not.

        Whoever writes what was stored long ago, such as a manifest that was exported, writes that time, too.
        """
        ahead, duration = self.clock.ahead_at_last, self.duration
        if ahead is None or duration is None or not self.was_left_as_written or -ahead <= duration * SECOND:
            return None
        return -ahead

    @property
    def is_known_to_have_held(self) -> bool:
        """True if it took the lease itself, or renewed it.

        If another writer, or another field manager, wrote the holder in, who renews need not be the one that is named.
        """
        who = self.processes
        if who.is_own_taking or self.is_chosen or not who.renewals:
            return bool(who.is_own_taking or who.renewals)
        if who.taken_by is not None and who.own is not None:
            return who.own.is_same(who.taken_by) or who.names_own_pod
        if self.began is Handover.SEEN and (self.beginning.is_since_own or who.names_own_pod):
            return True
        return not self.beginning.manager or self.manager in {"", self.beginning.manager}


def find_first_under_name(tenures: Sequence[Tenure]) -> Tenure | None:
    """Return the tenure since which the lease is held under its present name; None if there is none.

    Pods that replaced one another under it did not let it expire: to the lease they are one holder.
    """
    oldest = tenures[0] if tenures else None
    return next((one for one in reversed(tenures) if one.began is not Handover.REPLACED), oldest)


def with_previous(tenures: Iterable[Tenure]) -> Iterator[tuple[Tenure | None, Tenure]]:
    """Yield each tenure after the one before it; None before the first."""
    before = None
    for tenure in tenures:
        yield before, tenure
        before = tenure


def find_latest_pair(tenures: Sequence[Tenure]) -> tuple[Tenure, Tenure] | None:
    """Return the latest tenure, after the one before it; None if there are fewer than two."""
    return (tenures[-2], tenures[-1]) if len(tenures) > 1 else None
