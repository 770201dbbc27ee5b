"""A tenure: the time for which one holder had a lease, who wrote for it, and how it began and ended.

All instants are microseconds since 1970 by the clocks of API servers, as far as the input shows those.
"""

from collections import deque
from enum import StrEnum
from functools import partial
from typing import Final

from msgspec import Struct, field

from webhook.admission.rules.holders import fits_pod
from webhook.analysis.history.clock import HolderClock
from webhook.analysis.history.removal import Removal
from webhook.analysis.history.status import has_expired
from webhook.analysis.history.step_down import StepDown
from webhook.analysis.history.write import Write
from webhook.analysis.inputs.items import Writer
from webhook.kubernetes.objects import LeaseSpec
from webhook.kubernetes.request import UserInfo

API_SERVER: Final = "system:apiserver"
"""Who writes the holder in a coordinated election."""
MAX_WRITERS: Final = 8
MAX_REQUESTS: Final = 64
MAX_HEARD_AGAIN: Final = 6
MIN_RENEWALS: Final = 3
"""Renewals after which another writer counts as a process that shares an identity: by hand anyone may renew once."""


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


class Other(Struct):
    """A process that renewed a lease beside its holder's own: how often, and when first and last.

    `backward` of these moved renewTime back by more than the duration, which renews nothing. The first renewal was
    stored at `earliest` or later, the last one at `latest` or before.
    """

    count: int
    first: int
    last: int
    earliest: int
    latest: int
    backward: int = 0


class Tenure(Struct):
    """One holder, from `since` to `until` (None: it still holds, as far as is known), in microseconds since 1970.

    `leaderless` is how long no one led before it, at most: from the last sign of life of the holder before. It is None
    if that was not seen. `is_writer` is set if the log hides the holder and its writer stands in. `last_renewal` is
    `since` at first.
    """

    holder: str
    since: int
    began: Handover
    last_renewal: int
    previous: str = ""
    leaderless: int | None = None
    until: int | None = None
    is_dated: bool = True
    """False if the input does not say when it began: then it was at `since` or later."""
    is_end_dated: bool = True
    """False if it does not say when the holder was removed: then it was at `until` or later."""
    taken: Write = Write()
    """The write that put the holder there, or first showed it."""
    renewed: Write | None = None
    """The last renewal by the holder; None before the first one that was seen."""
    claimed: int | None = None
    """renewTime of the state that first showed it: a later write under the same field manager moves the stamp."""
    has_unseen_renewals: bool = False
    """The input does not show when it was last renewed, only that it still held the lease at `last_renewal`."""
    ended: Write | None = None
    """The write that removed or replaced the holder, or deleted the lease."""
    duration: int | None = None
    """Seconds that the lease lasts, without what another writer took from them."""
    shorter: int | None = None
    """Fewer seconds, if a writer that may be the holder wrote them with its last renewal."""
    is_exact: bool = False
    """True if a log says when it began: a stamp has whole seconds."""
    is_writer: bool = False
    namespace: str = ""
    """That of the lease."""
    process: Writer | None = None
    """The process that took it; of one that another writer wrote in, that which renews it; None if it is not known."""
    is_sure: bool = False
    """The process is the one whose pod the holder names, or took the lease and renewed it."""
    others: dict[Writer, Other] = field(default_factory=dict)
    """Other processes that renewed it under this name, however often: none of them becomes the holder."""
    renewals: int = 0
    """By its own process, as far as they were seen."""
    term: int | None = None
    """The latest one that the API server stamped, where stamps are believed."""
    is_renaming: bool = False
    """The write that put it there renewed the lease, and left acquireTime and leaseTransitions, as no elector does."""
    is_close: bool = False
    """It took the lease when that may have expired: by clocks that may differ, or by a write that may have failed."""
    is_unseen: bool = False
    """The input began again after another one had held the lease, and does not show when this one took it, or how."""
    taken_by: Writer | None = None
    """Who wrote the holder into the lease."""
    taken_manager: str = ""
    """The field manager of that write: a hint."""
    is_since_own: bool = False
    """Its holder wrote `since` itself, as field managers show, though the lease was held when the input begins."""
    is_coordinated: bool = False
    """The lease has a strategy: API servers choose its holders."""
    removal: Removal = Removal()
    """The write that removed the holder, if one did."""
    step_down: StepDown = StepDown()
    """Whether the holder was asked to step down."""
    is_deleted: bool = False
    """It ended because the lease was deleted."""
    deleted_by: Writer | None = None
    node: str = ""
    """Node of the pod that renewed last."""
    manager: str = ""
    """The field manager of its last renewal."""
    clock: HolderClock = HolderClock()
    is_ambiguous: bool = False
    """The input does not show who renewed it, and field managers or leaseTransitions differ: others may have."""
    inherited: int | None = None
    """The last renewal before it, if the write that put the holder there left renewTime as it was."""
    kept: Write = Write()
    """The last renewal, whoever made it, or what put the holder there."""
    touched: tuple[int, Writer] | None = None
    """The time and the writer of the last renewal that another made in the holder's place."""
    is_touched_last: bool = False
    """That was after the last renewal by its own process; times do not show it where API servers' clocks differ."""
    requests: deque[int] = field(default_factory=partial(deque, (), MAX_REQUESTS))
    """The times of its pods' latest requests for the lease, as far as an audit log shows."""
    heard_again: list[int] = field(default_factory=list)
    """The times of the first requests of its pods after another one had taken the lease."""

    def seen_written_by(self, writer: Writer | None, manager: str = "") -> None:
        """Remember who wrote the state with which the input begins, and the field manager that put the holder there."""
        if not self.is_coordinated:
            self.taken_manager = manager
        if writer is not None and writer.user and writer.user != API_SERVER:
            self.process, self.is_sure = writer.process, self._is_pod_of(writer)

    def begun_by(self, writer: Writer | None, manager: str = "", known: Writer | None = None) -> None:
        """Remember who wrote the holder into the lease; `known` is the process that had this identity before."""
        self.taken_manager = manager
        if writer is None or not writer.user:
            self.process, self.is_sure = known, known is not None
            return
        self.taken_by = writer
        if self.is_chosen and known is None:
            return
        is_own = self._is_pod_of(writer) or known is None or known.is_same(writer)
        self.process = writer.process if is_own else known
        self.is_sure = self._is_pod_of(writer) or known is not None

    def name_holder(self, holder: str) -> None:
        """Name the holder, for which its writer stood in."""
        self.holder, self.is_writer = holder, False

    def stand_in(self) -> None:
        """Note that the writer stands in for the holder, which the log hides."""
        self.is_writer = True

    def begin_before_input(self, *, is_unseen: bool, is_since_own: bool) -> None:
        """Note what the first state of an input shows: not its last renewal, or that the holder wrote `since`."""
        self.has_unseen_renewals, self.is_since_own = is_unseen, is_since_own

    def note_claimed(self, renewed: int | None) -> None:
        """Remember renewTime of the state that first showed it."""
        self.claimed = renewed

    def begin_unseen(self) -> None:
        """Note that the input does not show how it took the lease; the holder seen before may be this one."""
        self.is_unseen = True
        if self.previous == self.holder:
            self.previous = ""

    def begin_with_renewal(self, write: Write) -> None:
        """Note that it began with a renewal by its own process."""
        self.is_sure, self.renewals, self.renewed = True, 1, write

    def note_close(self, *, is_close: bool) -> None:
        """Note whether the lease may have expired when it took it."""
        self.is_close = is_close

    def note_renaming(self, old: LeaseSpec, new: LeaseSpec) -> None:
        """Note whether the write that put it there, a renewal, left the other fields that an elector writes then."""
        is_same = (old.acquire_time, old.lease_transitions) == (new.acquire_time, new.lease_transitions)
        self.is_renaming = is_same and new.acquire_time is not None

    def forget_previous(self) -> None:
        """Forget the holder before: another one may have had the lease in between."""
        self.previous = ""

    def keep(self, write: Write) -> None:
        """Remember a renewal, whoever made it."""
        self.kept = write

    def renew(self, at: int, write: Write) -> None:
        """Remember a renewal by its own process, of which the input shows when it was made."""
        self.last_renewal, self.renewed = at, write
        self.has_unseen_renewals = self.is_touched_last = False

    def renew_hidden(self, at: int) -> None:
        """Remember a renewal by its own process whose object a log does not show."""
        self.last_renewal, self.is_touched_last = at, False

    def resume(self, at: int, *, is_seen: bool) -> None:
        """Go on with a state after what was not seen; `is_seen`: it dates the last renewal at `at`."""
        self.last_renewal, self.renewed, self.has_unseen_renewals = at, None, not is_seen
        self.is_touched_last = False

    def resume_stretch(self, at: int) -> None:
        """Go on after renewals that were counted, the last one at `at`."""
        self.last_renewal = at

    def extend_leaderless(self, length: int) -> None:
        """Add to how long no one led before it."""
        self.leaderless = (self.leaderless or 0) + length

    def hear_again(self, at: int) -> None:
        """Remember a request of its pods after another one had taken the lease."""
        if len(self.heard_again) < MAX_HEARD_AGAIN:
            self.heard_again.append(at)

    def note_term(self, term: int | None) -> None:
        """Remember the term that the API server stamped, if it did."""
        self.term = self.term if term is None else term

    def touch(self, at: int, writer: Writer | None) -> None:
        """Remember a renewal that another made in the holder's place."""
        self.touched, self.is_touched_last = (at, writer or Writer()), True

    def inherit(self, before: "Tenure") -> None:
        """Take over the last renewal of the holder before: who wrote this one in left the lease to expire as it was."""
        self.inherited, self.kept = before.kept_until, before.kept

    def set_duration(self, seconds: int | None, writer: Writer | None, *managers: str, is_renewed: bool) -> None:
        """Take over another duration, unless a writer other than the holder lowers it: the holder does not know.

        `managers` are the field managers of the last renewal after and before the write, which `is_renewed` if it was
        one itself.
        """
        is_own = is_renewed and self.is_by(writer, *managers)
        if is_renewed and not is_own and self.may_be_renewed_by(writer):
            self.shorter = seconds
        if is_own or self.duration is None or (seconds or 0) > self.duration:
            self.duration = seconds

    def confirm_duration(self) -> None:
        """Note that a renewal kept the duration, or that its holder wrote it."""
        self.shorter = None

    def note_manager(self, manager: str) -> None:
        """Remember the field manager of its last renewal."""
        self.manager = manager

    def note_ambiguity(self, *, is_other: bool) -> None:
        """Note a renewal of which the input does not show who made it; `is_other`: there are hints of another one."""
        self.is_ambiguous = self.is_ambiguous or is_other

    def change_manager(self, manager: str) -> bool:
        """Remember the field manager of a renewal, if it is known; return whether it is another one than before."""
        before, self.manager = self.manager, manager or self.manager
        return before != "" and manager not in {"", before}

    def measure_clock(self, ahead: int | None, skew: int) -> None:
        """Measure the holder's clock by its latest write."""
        self.clock = self.clock.measure(ahead, skew)

    def ask(self, old: str | None, new: str | None, write: Write, writer: Writer | None) -> None:
        """Note whether it is asked to step down, and by whom: `old` and `new` are the values of preferredHolder."""
        self.step_down = self.step_down.follow(old, new, write, writer)

    def note_removal(self, writer: Writer | None, manager: str, *, is_field_gone: bool) -> None:
        """Note who removed the holder: itself, or another writer, and then it may go on as the leader.

        `manager` is the field manager of that write. `is_field_gone`: the field of the holder is gone, not empty.
        """
        is_own = self.is_by(writer, manager, self.manager)
        is_hint = (self.is_by(writer) or not (writer and writer.user)) and self.has_own_manager
        self.removal = Removal(
            writer,
            manager,
            is_own=None if is_own is False and self.may_be_of(writer) else is_own,
            is_field_gone=is_field_gone,
            is_under_other_manager=is_hint and bool(self.manager) and manager not in {"", self.manager},
        )

    def note_deletion(self, by: Writer | None, *, is_dated: bool) -> None:
        """Note that the lease was deleted, by whom, and whether the input says when."""
        self.is_deleted, self.deleted_by, self.is_end_dated = True, by, is_dated

    def end(self, at: int, write: Write) -> None:
        """End it with a write that removed or replaced the holder, or deleted the lease."""
        self.until, self.ended = at, write

    def note_end_dated(self, *, is_dated: bool) -> None:
        """Note whether the input says when the holder was removed."""
        self.is_end_dated = is_dated

    @property
    def kept_until(self) -> int:
        """The last renewal, whoever made it, or what put the holder there: the one before, if that did not renew."""
        if self.inherited is not None and self.touched is None and self.last_renewal == self.since:
            return self.inherited
        return max(self.last_renewal, self.touched[0] if self.touched else 0)

    @property
    def is_claimed(self) -> bool:
        """True if only a writer's own clock dates its last renewal."""
        return (self.renewed or self.kept).is_claimed

    @property
    def last_of_identity(self) -> int:
        """The last renewal by its process, or by another writer that may be one of its identity."""
        at, who = self.touched or (0, None)
        return max(self.last_renewal, at) if self.may_be_renewed_by(who) else self.last_renewal

    @property
    def names_its_pod(self) -> bool:
        """True if the holder's text names the pod of its process; else another one that renews may be the holder."""
        return self.process is not None and self._is_pod_of(self.process)

    def may_be_renewed_by(self, writer: Writer | None) -> bool:
        """True if another writer that renews it may be the holder: of its account, or the text does not name its pod.

        Who wrote a text that is not its own, and renews it, looks like the holder of which it is the text.
        """
        own = self.process
        return own is None or not self.names_its_pod or (writer is not None and writer.user == own.user)

    def renewed_by(
        self, writer: Writer | None, at: int, within: tuple[int, int] | None = None, *, is_set_back: bool = False
    ) -> bool:
        """Remember who renewed; return False if that was another process than the holder's.

        `within` are the earliest and the latest moment at which that was stored, if it is not `at` exactly.
        `is_set_back` is set if the write moved renewTime back by more than the duration.
        """
        earliest, latest = within or (at, at)
        if writer is None or not writer.user:
            self.renewals += 1
            return True
        process = self.process
        if process is None or process.is_same(writer):
            self._renewed_by_own(writer)
            return True
        is_other = writer.user != process.user and not self._is_pod_of(process)
        is_named = is_other and self._is_pod_of(writer) and self._is_here(writer)
        is_guess = not self.is_sure and (not self.renewals or self._is_pod_of(writer) or writer.is_same(self.taken_by))
        if is_named or is_guess:
            # Who wrote the holder does not renew it; or one that renewed was not the one that took it.
            if self.renewals:
                since, last = self.since, self.last_renewal
                self.others[process] = Other(self.renewals, since, last, min(since, self.taken.earliest), last)
                self.renewals = 0
            self._renewed_by_own(writer)
            return True
        if writer.process in self.others or len(self.others) < MAX_WRITERS:
            other = self.others.setdefault(writer.process, Other(0, at, at, earliest, latest))
            other.count, other.last, other.latest = other.count + 1, at, latest
            other.backward += 1 if is_set_back else 0
        return False

    def _renewed_by_own(self, writer: Writer) -> None:
        self.process, self.node = writer.process, writer.node or self.node
        self.others.pop(self.process, None)
        self.renewals += 1
        self.is_sure = self.is_sure or self._is_pod_of(writer) or writer.is_same(self.taken_by)

    def is_replaced_by(self, writer: Writer | None) -> bool:
        """True if a writer is another pod of the account whose pod holds it."""
        own = self.process
        if own is None or writer is None or writer.user != own.user or writer.impersonator or own.impersonator:
            return False
        is_known = self.is_sure or self.renewals > 0
        return is_known and bool(own.pod or own.uid) and bool(writer.pod or writer.uid) and not own.is_same(writer)

    @property
    def renewer(self) -> Writer | None:
        """Its own process, if any is known."""
        return self.process

    def is_by(self, writer: Writer | None, manager: str = "", own_manager: str = "") -> bool | None:
        """True if a writer is the holder, False if it is another one, None if that cannot be known.

        Without a writer, a field manager that is its own says that it was; another one says nothing, as a process may
        write by several clients.
        """
        if writer is not None and writer.user:
            if self.process is not None and self.process.is_same(writer):
                # A person with the same credentials is the same user; only a pod's token is of one process.
                is_shared = not (writer.pod or writer.uid) and manager and own_manager and self.has_own_manager
                return None if is_shared and manager != own_manager else True
            if self.is_sure:
                return False
            # Who was seen to write it may be a stranger; a pod that the holder names is not.
            return True if self._is_here(writer) and self._is_pod_of(writer) else None
        # Who put the holder there, as an API server does, need not be the one that renews.
        return True if manager and manager == own_manager and self.has_own_manager else None

    @property
    def is_since_known(self) -> bool:
        """True if it is held since `since`, False if that is only the latest moment at which it was taken."""
        is_first_state = self.began is Handover.SEEN and not self.is_writer
        return self.is_dated and (self.is_since_own or not is_first_state)

    @property
    def has_own_manager(self) -> bool:
        """True if it was renewed under the field manager of its last renewal, as far as is known."""
        return self.renewals > 0 or (self.began is Handover.SEEN and self.is_since_own)

    def _is_here(self, writer: Writer) -> bool:
        # Pods of other namespaces may have the same name.
        account = UserInfo(writer.user).service_account
        return account is not None and account[0] == self.namespace

    def _is_pod_of(self, writer: Writer) -> bool:
        # Who impersonates another one can name a pod, too.
        return bool(writer.pod) and not writer.impersonator and fits_pod(self.holder, writer.pod)

    @property
    def impersonator(self) -> str:
        """Who acted as the one that wrote the holder, "" if that wrote itself."""
        return self.taken_by.impersonator if self.taken_by else ""

    @property
    def is_chosen(self) -> bool:
        """True if the API server wrote the holder in a coordinated election: the identity leases are its own."""
        if not (self.is_coordinated or self.is_writer):
            return False
        by = self.taken_by
        return self.taken_manager == "kube-apiserver" if by is None else by.user == API_SERVER

    @property
    def may_be_stolen(self) -> bool:
        """True if it took the lease from a live holder, or may have, because the input does not say when."""
        return self.began is Handover.STOLEN or (
            self.began is Handover.UNKNOWN and not (self.is_dated or self.is_unseen)
        )

    @property
    def is_unclear(self) -> bool:
        """True if it took the lease from another holder, and it is not known whether the lease had expired."""
        is_taken = self.began is Handover.UNKNOWN and bool(self.previous) and self.leaderless is None
        return self.is_close or (is_taken and not (self.is_unseen or self.is_writer))

    @property
    def is_release_known(self) -> bool:
        """True if it can be said who removed the holder, or how."""
        return (
            self.removal.may_be_by_another or self.removal.is_own is True or self.is_never_renewed or self.is_only_named
        )

    @property
    def had_expired(self) -> bool:
        """True if the holder had let the lease expire before it was removed, or the lease was deleted."""
        return self.duration is not None and has_expired(self.last_renewal, self.duration, self.until or 0)

    @property
    def foreign_taker(self) -> Writer | None:
        """Who wrote the holder into the lease, if that was not itself; None if it was, or if that is not known.

        Another pod of its account may use the same identity.
        """
        taker, own = self.taken_by, self.process
        if taker is None or own is None or own.is_same(taker):
            return None
        return None if self.may_be_of(taker) else taker

    def may_be_of(self, writer: Writer | None) -> bool:
        """True if a writer is another pod of its process's account, which may use the same identity.

        Of an identity that names its pod, only one of the same name may: a pod that was replaced may live on.
        """
        own = self.process
        if own is None or writer is None:
            return False
        may_share = not self._is_pod_of(own) or self._is_pod_of(writer)
        return writer.user == own.user and bool(writer.pod and own.pod) and may_share

    @property
    def is_own_taking(self) -> bool | None:
        """True if its own process wrote the holder; False if another one did; None if that is not known."""
        taker, own = self.taken_by, self.process
        if taker is None or own is None:
            return None
        if own.is_same(taker):
            return True if self.is_sure or self._is_pod_of(taker) else None
        return False if self.is_sure else None

    def is_of_pod_of(self, before: "Tenure | None") -> bool:
        """True if this holder was written from the pod of the holder before; containers of one pod look the same.

        Unless another pod renews it then: the holder before wrote its successor in.
        """
        if before is None or not before.is_sure or before.process is None:
            return False
        is_led_elsewhere = self.process is not None and not before.process.is_pod_of(self.process)
        return before.process.is_pod_of(self.taken_by) and not is_led_elsewhere

    @property
    def is_never_renewed(self) -> bool:
        """True if no process is known to have renewed it, and another one than the pod that it names wrote it in."""
        return self.taken_by is not None and not self.renewals and not self._is_pod_of(self.taken_by)

    @property
    def is_only_named(self) -> bool:
        """True if the input shows neither who put it there nor a renewal since: it need not stand for a process."""
        return self.taken_by is None and not self.renewals and self.began not in {Handover.SEEN, Handover.REPLACED}

    @property
    def is_known_to_have_held(self) -> bool:
        """True if it took the lease itself, or renewed it.

        If another writer, or another field manager, wrote the holder in, who renews need not be the one that is named.
        """
        if self.is_own_taking or self.is_chosen or not self.renewals:
            return bool(self.is_own_taking or self.renewals)
        if self.taken_by is not None and self.process is not None:
            return self.process.is_same(self.taken_by) or self.names_its_pod
        if self.began is Handover.SEEN and (self.is_since_own or self.names_its_pod):
            return True
        return not self.taken_manager or self.manager in {"", self.taken_manager}

    @property
    def sharers(self) -> list[Writer]:
        """Who renewed it beside its own process, and not only once or twice, the last one last."""
        often = [
            (other.last, writer)
            for writer, other in self.others.items()
            if other.count - other.backward >= MIN_RENEWALS
        ]
        return [writer for _, writer in sorted(often, key=lambda pair: pair[0])]

    @property
    def has_several_writers(self) -> bool:
        """True if its own process renewed it, and another one again and again."""
        return bool(self.renewals and self.sharers)

    @property
    def writers(self) -> list[Writer]:
        """Who renewed it, its own process first."""
        return [*([self.process] if self.process else []), *self.sharers]

    @property
    def pods(self) -> list[str]:
        """The pod of its own process, and of others that renewed it again and again."""
        return [writer.pod for writer in self.writers if writer.pod]

    def requests_between(self, start: int, end: int) -> int | None:
        """Return how many requests of its pods were received between two instants; None if that cannot be known."""
        is_pod = self.process is not None and self.is_sure and bool(self.process.pod)
        return sum(start < one <= end for one in self.requests) if is_pod else None
