"""What is known of one lease; `webhook.analysis.history.observe` takes in its observations. Memory is bounded."""

from collections import deque
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Final

from msgspec import Struct, field

from webhook.analysis.heartbeats import is_heartbeat, is_named_for_heartbeats, is_nameless_heartbeat
from webhook.analysis.history.audit_log.kept_refusals import MAX_REFUSALS
from webhook.analysis.history.audit_log.requests import Requests
from webhook.analysis.history.events import LeaseEvent
from webhook.analysis.history.holders.nameless_renewals import MAX_PAST_RUNS, NamelessRenewals
from webhook.analysis.history.holders.rival import Rival
from webhook.analysis.history.holders.succession import Succession
from webhook.analysis.history.holders.taken_back import MAX_ELECTION_FIELD_CHANGES, ElectionFieldChange
from webhook.analysis.history.holders.tenure import Handover, Tenure
from webhook.analysis.history.holders.vacancy import Vacancy
from webhook.analysis.history.idle_writes import IdleWrite
from webhook.analysis.history.known_status import date_known_renewal, doubt_expiry, doubt_release, find_status
from webhook.analysis.history.marks import MAX_MARKS, LabelChange, MarkedLease
from webhook.analysis.history.owners import AddedOwners
from webhook.analysis.history.renewals import FormerRhythm, Renewals, Silence, TwoRhythms, estimate_deadline
from webhook.analysis.history.serving_addresses import ServingAddresses
from webhook.analysis.history.status import RELEASED_DURATION, LeaseState, LeaseStatus
from webhook.analysis.history.visibility.clock_steps import ClockSteps
from webhook.analysis.history.visibility.continuity import Continuity, VisibilityChange
from webhook.analysis.history.visibility.dating import KnownState
from webhook.analysis.history.visibility.existence import Existence
from webhook.analysis.history.visibility.separate_stores import SeparateStores
from webhook.analysis.history.write import Write
from webhook.analysis.inputs.items import InputKind, Writer
from webhook.kubernetes.managed_fields import Entry
from webhook.kubernetes.objects import Lease
from webhook.kubernetes.request import NODE_USER
from webhook.kubernetes.times import SECOND

MAX_OTHERS: Final = 1000


class ShownByRead(Struct, frozen=True, gc=False):
    """A read that shows a state which no write in the input made; it was answered at an instant."""

    at: int
    is_from_cache: bool = False


class UnloggedWrites(Struct, frozen=True):
    """Writes after the first request of a log that something else shows, and the log does not."""

    since: int
    """When the first one was made at the earliest."""
    by: int | None
    """When the first one was stored at the latest; None if that is not known."""
    until: int
    """When the last one was made."""
    is_watched: bool = False
    """A watch shows one of them; if not, the answers to reads do."""


class LeaseHistory(Struct):
    """Everything that is known about one lease. `at` is the latest moment at which it was observed."""

    namespace: str
    name: str
    nodes: AbstractSet[str] = frozenset()
    """The names of nodes that the input shows by their heartbeats, shared by all leases."""
    managers_of_servers: AbstractSet[str] = frozenset()
    """Field managers under which API servers, as far as it is theirs, write their own leases, shared as well."""
    lease: Lease | None = None
    entries: Sequence[Entry] = ()
    at: int | None = None
    is_list_only: bool = True
    """Only lists have shown it: nothing is known of what happened before."""
    problem: str = ""
    """Why the object in a list cannot be read: the field that has a wrong type; "" if it can be."""
    stamped: int = 0
    """The stamp of the latest write, 0 if a client may have invented it."""
    is_resumed: bool = False
    """The latest state follows what was not seen."""
    moment: int = 0
    """Estimated time of the latest write, in microseconds since 1970; unlike `at`, it may go back."""
    write: Write = Write()
    """The write of the latest observation."""
    skew: int = 0
    """The least difference between the clocks of the API servers, in microseconds, as far as is known."""
    existence: Existence = field(default_factory=Existence)
    stores: SeparateStores = field(default_factory=SeparateStores)
    continuity: Continuity = field(default_factory=Continuity)
    succession: Succession = field(default_factory=Succession)
    renewals: Renewals = field(default_factory=Renewals)
    requests: Requests = field(default_factory=Requests)
    idle_writes: deque[IdleWrite] = field(default_factory=partial(deque, (), MAX_OTHERS))
    election_field_changes: deque[ElectionFieldChange] = field(
        default_factory=partial(deque, (), MAX_ELECTION_FIELD_CHANGES)
    )
    """Fields of coordinated elections, other than the holder, that were set or cleared."""
    edits: deque[LeaseEvent] = field(default_factory=partial(deque, (), MAX_REFUSALS))
    marks: deque[MarkedLease] = field(default_factory=partial(deque, (), MAX_MARKS))
    label_changes: deque[LabelChange] = field(default_factory=partial(deque, (), MAX_MARKS))
    """Those by others than its holder, as far as is known."""
    added_owners: deque[AddedOwners] = field(default_factory=partial(deque, (), MAX_REFUSALS))
    patched_owners: frozenset[str | None] = frozenset()
    """The uids of owners that a patch set since the latest state."""
    clock_steps: ClockSteps = field(default_factory=ClockSteps)
    serving_addresses: ServingAddresses = field(default_factory=ServingAddresses)
    """Of the identity lease of an API server, from where it is renewed."""
    rival: Rival = field(default_factory=Rival)
    nameless: NamelessRenewals | None = None
    """The latest renewals while it named no holder; None if it names one, or was not renewed since."""
    past_nameless: deque[NamelessRenewals] = field(default_factory=partial(deque, (), MAX_PAST_RUNS))
    """The runs of such renewals that another holder, or what was not seen, has ended."""
    logged: int | None = None
    """The last renewal by the log, if the latest state has no stamp of it."""
    stored_write: Write = Write()
    """The latest one that was stored: when others were answered says nothing of what follows them."""
    unlogged: UnloggedWrites | None = None
    """The writes that a watch or a read shows, and a log lacks; None if there are none."""
    read: ShownByRead | None = None
    """The read that shows the latest state; None if the write that made it is known."""
    unchanged_at: int = 0
    """When a read was last answered with what the latest write of a log had made; 0 if none was."""
    watch: str = ""
    """The watch that shows the latest write, "" if none does: it is of other leases, or has ended."""
    reported_shared_tenure: Tenure | None = None
    """The tenure already reported as shared by several processes."""
    _status: tuple[int, LeaseStatus] | None = None
    """The status at the moment that was asked for last, since the latest observation."""

    @property
    def kind(self) -> InputKind:
        """The kind of the input with the latest observation."""
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
        return self.existence.is_mixed or self.existence.overlap > 0 or self.stores.found is not None

    @property
    def vacancy(self) -> Vacancy:
        """The latest time in which no one led."""
        return self.succession.vacancy

    @property
    def leaderless(self) -> int:
        """For how long no one led between holders, at most, in all; microseconds."""
        return self.vacancy.leaderless

    @property
    def is_ever_renewed(self) -> bool:
        """Whether its latest state, or an earlier holder, shows a renewal: a lock that is only created has none."""
        is_dated = self.lease is None or self.lease.spec.renew_time is not None
        return is_dated or any(one.processes.renewals for one in self.tenures)

    def is_read_unchanged_at(self, at: int) -> bool:
        """Return whether a read shows that its state was still the latest one that is known, at an instant."""
        is_shown_by_read = self.read is not None and self.read.at >= at and not self.read.is_from_cache
        return is_shown_by_read or self.unchanged_at >= at

    def find_status(self, now: int) -> LeaseStatus | None:
        """Return the status of the lease; None if its object was never seen, or is gone."""
        # Visibility is lost between observations, too: that is asked each time, and what is kept does not depend on it.
        if self.lease is None or self.is_deleted or self.is_mixed or self.hidden_since:
            return None
        if self._status is None or self._status[0] != now:
            self._status = now, self._find_status(self.lease, now)
        return self._status[1]

    def _find_status(self, lease: Lease, now: int) -> LeaseStatus:
        status = find_status(
            lease,
            self.entries,
            self.succession,
            now,
            logged=self.logged,
            is_seen_created=self.existence.is_seen_created,
            is_list_only=self.is_list_only,
        )
        return doubt_expiry(doubt_release(status, self.nameless, now), now, self.skew)

    def note_skew(self, skew: int) -> None:
        """Note by how much the clocks of the API servers differ, in microseconds, whenever that is found."""
        if skew != self.skew:
            self.skew = skew
            self.forget_status()

    def forget_status(self) -> None:
        """Forget the status that was asked for, as an observation may change it."""
        self._status = None

    @property
    def known_renewal(self) -> int | None:
        """The last renewal under its present holder that an API server dates; None if there is none."""
        return date_known_renewal(self.current_tenure, is_list_only=self.is_list_only)

    @property
    def is_heartbeat(self) -> bool:
        """True if the lease has the shape of a heartbeat, and its holder was never seen to change."""
        if self.lease is None or not is_heartbeat(self.lease, self.namespace):
            return False
        if is_named_for_heartbeats(self.namespace, self.name):
            return True
        is_one = len({one.holder for one in self.tenures}) < 2
        return is_one and not (is_nameless_heartbeat(self.lease.spec) and self.succession.has_named_holder)

    @property
    def is_nameless(self) -> bool:
        """True if it is a heartbeat, and never named a holder."""
        return self.lease is not None and self.is_nameless_in(self.lease)

    def is_nameless_in(self, lease: Lease) -> bool:
        """Return whether a state is that of a heartbeat which never named a holder."""
        return is_nameless_heartbeat(lease.spec) and not self.succession.has_named_holder

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

    def find_tenure_of_silence(self, silence: Silence | TwoRhythms | FormerRhythm) -> Tenure | None:
        """Return the tenure to which a time belongs; None if that was dropped because there were too many."""
        number = silence.tenure_number - 1 - (self.renewals.tenure_count - len(self.tenures))
        return self.tenures[number] if number >= 0 else None

    def measure_leaderless_time(self, now: int) -> int:
        """Return for how long no one led, at most, in all: also while a holder was late, and up to `now`."""
        held, status = self.current_tenure, self.find_status(now)
        since = held.last_renewal if held and status and status.state is LeaseState.EXPIRED else None
        since = self.vacancy.since if held is None else since
        ongoing = 0 if since is None else max(0, now - since)
        return self.leaderless + sum(one.longest for one in self.late_silences) + ongoing

    @property
    def tenures(self) -> deque[Tenure]:
        """The latest tenures, oldest first."""
        return self.succession.tenures

    @property
    def latest_tenure(self) -> Tenure | None:
        """The latest holder."""
        return self.succession.latest

    @property
    def current_tenure(self) -> Tenure | None:
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

    def is_older(self, lease: Lease) -> bool:
        """Return whether a state is older than one that is known: lines of logs may be out of order."""
        return self.continuity.is_older(lease, is_deleted=self.is_deleted)

    @property
    def known_state(self) -> KnownState:
        """What an observation is dated by."""
        lease = None if self.is_deleted else self.lease
        return KnownState(
            lease, self.entries, self.at, self.stored_write, self.continuity.path, self.current_tenure is not None
        )

    @property
    def is_end_seen(self) -> bool:
        """Whether the input shows everything since the latest tenure ended."""
        ended = self.latest_tenure.ended if self.latest_tenure else None
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

    def find_address_of_kubelet(self) -> str:
        """Return the only address from which the kubelet of a node renewed its lease; "" if there is none, or several.

        A kubelet has the name of its node, and writes without a pod.
        """
        own = Writer(f"{NODE_USER}{self.name}")
        found = [seen.counts for who, seen in self.requests.addresses.by_writer.items() if who.is_same(own)]
        addresses = {address for counts in found for address in counts}
        return addresses.pop() if len(addresses) == 1 else ""

    def mark_hidden(self, since: int, until: int) -> None:
        """Remember that an audit log may lack requests of a time, unless a read shows that none changed the lease."""
        if not self.is_deleted and self.unchanged_at >= until:
            return
        self.continuity.apply(VisibilityChange.LOG_HAS_HOLE, since)

    def mark_visible(self, since: int) -> None:
        """Note that the log continued from then on, so what was taken for a hole after that is none."""
        if self.hidden_since is not None and self.hidden_since >= since:
            self.continuity.apply(VisibilityChange.LOG_WENT_ON)

    def miss_write(self) -> None:
        """Remember that the log lacks writes, so what was not taken for a hole is one."""
        self.continuity.apply(VisibilityChange.WRITE_IS_MISSING)

    def mark_store_restored(self, since: int) -> None:
        """Remember that the store was put back to an earlier state after that: the lease may be another one since."""
        self.continuity.apply(VisibilityChange.STORE_WAS_RESTORED, since)
        self.continuity.forget_revisions()
        self.existence.forget_uid()
