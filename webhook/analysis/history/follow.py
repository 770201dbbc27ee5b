"""Every lease of an input, followed: each item is added to the history of its lease, or to what all leases share.

In: the items of an input, in order. Out: the history of each lease, and an `index` of them all. A lease that only lists
show is followed once it is asked for.
"""

from collections import deque
from collections.abc import Iterator
from functools import partial
from typing import Final

from msgspec import Struct, field

from webhook.admission.rules.change import GARBAGE_COLLECTOR, NODE_LEASES
from webhook.admission.rules.limits import FindLimits, find_default_limits
from webhook.analysis.heartbeats import is_of_api_server
from webhook.analysis.history.audit_log.deleted_pods import DeletedPods
from webhook.analysis.history.audit_log.failing_requests import FailingRequests
from webhook.analysis.history.audit_log.log_continuation import LogContinuation, RenewalBaseline
from webhook.analysis.history.audit_log.pod_activities import PodActivities
from webhook.analysis.history.audit_log.pod_requests import PodRequests
from webhook.analysis.history.audit_log.refusal import NOT_FOUND, Refusal, is_not_served
from webhook.analysis.history.audit_log.related_writes import RelatedWrites
from webhook.analysis.history.elections.candidate_writers import CandidateWriters
from webhook.analysis.history.elections.candidates import read_event
from webhook.analysis.history.elections.pings import Pings
from webhook.analysis.history.elections.refused_candidates import RefusedCandidates
from webhook.analysis.history.elections.unserved_candidates import UnservedCandidates
from webhook.analysis.history.events import LeaseEvent
from webhook.analysis.history.history_index import HistoryIndex
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.observe import observe
from webhook.analysis.history.stored_leases import Key, StoredLeases
from webhook.analysis.history.visibility.bounds import MAX_LISTED, Bounds
from webhook.analysis.inputs.absences import NODE
from webhook.analysis.inputs.items import (
    Act,
    ClockSkew,
    ElectionEvent,
    FenceReport,
    InputKind,
    Item,
    LogEnd,
    ObjectAbsence,
    Observation,
    PodActivity,
    PodDeletion,
    PodRequest,
    RecordingGap,
    RelatedWrite,
    StoreRestored,
    Writer,
)
from webhook.analysis.inputs.pod_activity import find_activity
from webhook.kubernetes.objects import LeaseCandidate
from webhook.kubernetes.request import VERSIONS_OF
from webhook.kubernetes.times import SECOND, get_instant, normalize

MAX_MISSING: Final = 1000
"""Pods, by namespace, whose reads of leases that do not exist are remembered."""
MAX_CANDIDATE_WRITES: Final = 1000
"""Updates of LeaseCandidates that are remembered: the latest."""
MAX_USERS: Final = 10_000
"""Users whose updates of leases are remembered."""
_RENEWING: Final = frozenset({"update", "patch"})
"""Verbs by which a lease is renewed."""


class ClusterHistory(Struct):
    """Every lease that was seen, by namespace and name; `bounds.until` is by an API server's clock, None for dumps."""

    leases: dict[Key, LeaseHistory] = field(default_factory=dict)
    """Without those that are only `stored`."""
    stored: StoredLeases = field(default_factory=StoredLeases)
    nodes: set[str] = field(default_factory=set)
    """The names of all leases of nodes."""
    managers_of_servers: set[str] = field(default_factory=set)
    """The field managers of a few leases of API servers, which clients choose."""
    candidates: dict[Key, LeaseCandidate] = field(default_factory=dict)
    candidate_writes: deque[int] = field(default_factory=partial(deque, (), MAX_CANDIDATE_WRITES))
    """When LeaseCandidates were updated, by the clock of an API server, the latest."""
    candidate_events: dict[Key, deque[LeaseEvent]] = field(default_factory=dict)
    """The latest deletions and edits of candidates, by the lease that they are for."""
    refused_candidates: RefusedCandidates = field(default_factory=RefusedCandidates)
    candidate_writers: CandidateWriters = field(default_factory=CandidateWriters)
    pings: Pings = field(default_factory=Pings)
    election_events: dict[Key, set[tuple[int, str]]] = field(default_factory=dict)
    """Time and text of Events. Clients write them, so they are not part of a history."""
    deleted_pods: DeletedPods = field(default_factory=DeletedPods)
    pod_requests: PodRequests = field(default_factory=PodRequests)
    pod_activities: PodActivities = field(default_factory=PodActivities)
    failing_requests: FailingRequests = field(default_factory=FailingRequests)
    _related_writes: RelatedWrites = field(default_factory=RelatedWrites)
    collection_deletions: deque[Observation] = field(default_factory=partial(deque, (), MAX_LISTED))
    """The latest requests that deleted leases of which the log does not show which they were."""
    _served: dict[str, tuple[int, int] | None] = field(default_factory=dict)
    """When an API server first and last answered that it does not serve a version of LeaseCandidates; None if it does.
    """
    updating: set[str] = field(default_factory=set)
    """Users of whom an audit log has an update of a lease, stored or not: a policy may leave out others'."""
    bounds: Bounds = field(default_factory=Bounds)
    has_managed_fields: bool = False
    lists_managed_fields: bool = False
    """A watch, a list or a review has managedFields, and not only an audit log: kubectl hides them unless asked."""
    stamped: frozenset[str] = frozenset()
    """Namespaces in which the API server stamps writers, as a policy file says."""
    find_limits: FindLimits = find_default_limits
    """The numbers of rules for a lease, as a policy file says."""
    _continuation: LogContinuation = field(default_factory=LogContinuation)
    watched_until: dict[str, int] = field(default_factory=dict)
    """When the latest write was made that each watch shows: until then it shows what a log may lack."""
    _has_sparse_leases: bool = False
    """Whether a lease may be SPARSE, or IN_HOLE after that, so that a missing write changes what is known of it."""
    _missing: dict[tuple[str, Writer], set[Key]] = field(default_factory=dict)
    """The leases that a pod asked for in vain, by namespace and pod."""
    _index: HistoryIndex | None = None
    """None until it is asked for, and after anything else was added."""

    @property
    def hides_stamps(self) -> bool:
        """True if leases were shown, all of them without managedFields, and no audit log dates their writes."""
        is_any_shown = self.stored.numbers or any(one.lease for one in self.leases.values())
        return bool(is_any_shown) and not (self.has_managed_fields or self.bounds.logged_until)

    @property
    def unserved(self) -> UnservedCandidates | None:
        """The versions of LeaseCandidates that an API server does not serve; None if it serves one that was asked for.

        Whether it serves a version that nobody asked for is not known.
        """
        answered = [times for times in self._served.values() if times is not None]
        if not answered or len(answered) < len(self._served):
            return None
        firsts, lasts = zip(*answered, strict=True)
        return UnservedCandidates(min(firsts), max(lasts), tuple(sorted(self._served)))

    @property
    def lease_count(self) -> int:
        """The number of leases."""
        return len(self.leases) + len(self.stored.numbers)

    def names(self) -> list[Key]:
        """Return the names of all leases, in order."""
        return sorted(self.list_keys_unsorted())

    def list_keys_unsorted(self) -> list[Key]:
        """Return the names of all leases, unsorted: in this order, each block of stored leases is read once."""
        return [*self.leases, *self.stored.numbers]

    def get_history(self, key: Key) -> LeaseHistory:
        """Return what is known of one of the `names`."""
        if key in self.leases:
            return self.leases[key]
        history, state = LeaseHistory(*key, self.nodes, self.managers_of_servers), self.stored.get(key)
        assert state is not None
        observe(history, state, self.bounds)
        return history

    @property
    def index(self) -> HistoryIndex:
        """All leases by what is asked of them."""
        if self._index is None:
            ends = [one for one in (self.bounds.until, self.bounds.log_spans.first_end) if one is not None]
            self._index = HistoryIndex(
                followed=self.leases,
                stored=self.stored,
                until=self.bounds.until,
                shown_until=min(ends, default=None),
                follow=self.get_history,
                list_related_writes=self.list_related_writes,
            )
        return self._index

    def add(self, seen: Item) -> list[LeaseEvent]:
        """Add one item, and return what happened to its lease, if it is an observation.

        What a list shows of a lease that nothing else has shown is kept aside, and followed once that is asked for.
        """
        self._index = None
        match seen:
            case Observation():
                return [] if self._keep_aside(seen) else self._add_observation(seen)
            case PodDeletion() | PodRequest() | PodActivity() | RelatedWrite():
                self._note_dependency_request(seen)
            case ObjectAbsence():
                self.deleted_pods.absences.add(seen)
            case RecordingGap():
                self._note_recording_gap(seen)
            case ClockSkew():
                self._note_skew(seen)
            case LogEnd():
                self._note_log_end(seen)
            case FenceReport():
                self._note_fence_report(seen)
            case ElectionEvent():
                self._note_election_event(seen)
        return []

    def _keep_aside(self, seen: Observation) -> bool:
        """Keep what a list shows of a lease as it is; False if the lease is followed, or must be."""
        if seen.kind != "Lease" or seen.input_kind is not InputKind.DUMP:
            return False
        key = (seen.namespace, seen.name)
        self._continuation.note_lease(*key)
        if key in self.leases or not self.stored.add(key, seen):
            return False
        self._note_node(key)
        self._note_managed_fields(seen)
        return True

    def _note_node(self, key: Key) -> None:
        namespace, name = key
        if namespace == NODE_LEASES:
            self.nodes.add(name)

    def _note_manager_of_server(self, history: LeaseHistory) -> None:
        held = history.current_tenure if is_of_api_server(history.namespace, history.name) else None
        if held is not None and held.manager and len(self.managers_of_servers) < MAX_LISTED:
            self.managers_of_servers.add(held.manager)

    def _note_managed_fields(self, seen: Observation) -> None:
        if not seen.has_managed_fields:
            return
        self.has_managed_fields = True
        is_of_log_alone = seen.input_kind is InputKind.AUDIT_LOG and (seen.has_object_of_log or not seen.is_watched)
        self.lists_managed_fields = self.lists_managed_fields or not is_of_log_alone

    def would_show_managed_fields(self, history: LeaseHistory) -> bool:
        """Return whether the input that shows the state of a lease would show its managedFields, if it had any."""
        is_of_log_alone = history.kind is InputKind.AUDIT_LOG and not history.watch
        return self.has_managed_fields if is_of_log_alone else self.lists_managed_fields

    def _note_recording_gap(self, seen: RecordingGap) -> None:
        self.bounds.unrecorded.append(seen)
        if isinstance(seen, StoreRestored):
            for lease in self.leases.values():
                lease.mark_store_restored(seen.start)

    def _note_skew(self, seen: ClockSkew) -> None:
        self.bounds.skew, self.bounds.is_skewed_within = seen.least, seen.is_within
        self.deleted_pods.skew = seen.least
        for lease in self.leases.values():
            lease.note_skew(seen.least)

    def _note_log_end(self, seen: LogEnd) -> None:
        until = min(seen.at, self.bounds.latest)
        self._hide_leases(self.bounds.note_log_end(until), until)

    def _note_fence_report(self, seen: FenceReport) -> None:
        fenced = self._find_history((seen.namespace, seen.name))
        if fenced is not None and seen.is_refused:
            fenced.requests.fenced.append(seen)

    def _note_election_event(self, seen: ElectionEvent) -> None:
        said = self.election_events.setdefault((seen.namespace, seen.lease), set())
        said.add((seen.at, seen.text))
        if len(said) > MAX_LISTED:
            said.remove(min(said))

    def _note_dependency_request(self, seen: PodDeletion | PodRequest | PodActivity | RelatedWrite) -> None:
        """Record a request about a pod, or about another object that a holder depends on."""
        activity = find_activity(seen) if isinstance(seen, PodDeletion | PodRequest) else None
        if activity is not None:
            self.pod_activities.add(activity)
            self.failing_requests.add(activity)
        if isinstance(seen, PodDeletion):
            self.deleted_pods.add(seen)
        elif isinstance(seen, PodRequest):
            self.pod_requests.add(seen)
        elif isinstance(seen, PodActivity):
            self.pod_activities.add(seen)
            self.failing_requests.add(seen)
        else:
            self.pod_activities.add_related_write(seen)
            self._related_writes.add(seen)

    def list_related_writes(self) -> Iterator[RelatedWrite]:
        """Yield the writes to what leaders depend on; a deletion after which the object was gone was no dry run."""
        return self._related_writes.list_confirmed(self.deleted_pods.absences, self.bounds.skew)

    def _note_collection(self, seen: Observation) -> None:
        """Note that the garbage collector deleted the lease of a node: the node was gone."""
        is_collector = seen.writer is not None and seen.writer.user == GARBAGE_COLLECTOR
        is_deleted = seen.act is Act.DELETED and seen.is_stored and seen.namespace == NODE_LEASES
        if is_collector and is_deleted and seen.at is not None and seen.writer and not seen.writer.impersonator:
            self.deleted_pods.absences.add(ObjectAbsence(seen.at, NODE, "", seen.name))

    def _add_observation(self, seen: Observation) -> list[LeaseEvent]:
        self._note_whether_served(seen)
        if seen.act is Act.COLLECTION:
            if (
                seen.kind == "Lease"
                and seen.is_stored
                and seen.collection_deletion
                and seen.collection_deletion.is_unknown
            ):
                self.collection_deletions.append(seen)
            return []
        key = (seen.namespace, seen.name)
        self._mark_log_hole(seen)
        if seen.kind == "Lease":
            return self._add_lease_observation(key, seen)
        self._add_candidate_observation(key, seen)
        return []

    def is_candidate_missing(self, namespace: str, candidate: str) -> bool:
        """Return whether a LeaseCandidate is gone, as far as the input shows."""
        return bool(candidate) and (namespace, candidate) not in self.candidates

    def find_strategy(self, history: LeaseHistory) -> str | None:
        """Return the strategy of the coordinated election of a lease; None if it has none, "" if it is not known.

        A lease that its first holder created names no strategy. Its election is coordinated all the same if it was held
        under the name of a LeaseCandidate for it: anyone may create another one.
        """
        if history.lease is not None and history.lease.spec.strategy:
            return history.lease.spec.strategy
        holders = {one.holder for one in history.tenures}
        found = (self.candidates.get((history.namespace, holder)) for holder in sorted(holders))
        own = next((one.spec for one in found if one is not None and one.spec.lease_name == history.name), None)
        return None if own is None else next(iter(own.strategies), "")

    def _note_whether_served(self, seen: Observation) -> None:
        """Note whether an API server serves a version of LeaseCandidates: without any, it chooses no holder."""
        if seen.kind != "LeaseCandidate" or seen.answer is None:
            return
        is_unknown = is_not_served(seen.answer)
        # Anyone may ask for a version that is not served any longer, or not yet.
        if is_unknown and seen.version in VERSIONS_OF["leasecandidates"]:
            first, _ = self._served.get(seen.version) or (seen.at or 0, 0)
            self._served[seen.version] = first, seen.at or 0
        elif not is_unknown and (seen.answer.is_stored or seen.answer.code == NOT_FOUND):
            self._served[seen.version] = None

    def _add_candidate_observation(self, key: Key, seen: Observation) -> None:
        """Remember a candidate, and what was done to it that no renewal does, by the lease that it is for."""
        before = self.candidates.get(key)
        at = seen.at if seen.at is not None else self.bounds.until
        event = None if at is None else read_event(seen, before, at)
        created = seen.object if seen.act is Act.CREATED and isinstance(seen.object, LeaseCandidate) else None
        candidate = before or created
        lease = candidate.spec.lease_name if candidate else None
        if event is not None and lease:
            self.candidate_events.setdefault((seen.namespace, lease), deque(maxlen=MAX_LISTED)).append(event)
        self.refused_candidates.take(seen, seen.asked_lease or lease or "")
        if not seen.is_stored:
            return
        written = seen.latest_stamp if seen.at is None else seen.at
        if seen.act is Act.UPDATED and written is not None:
            self.candidate_writes.append(written)
        self.pings.take(seen, before, written)
        self.candidate_writers.take(seen)
        if isinstance(seen.object, LeaseCandidate):
            self.candidates[key] = seen.object
            self.bounds.note_candidate(seen, get_instant(normalize(seen.object.spec.ping_time)))
        if seen.act is Act.DELETED:
            self.candidates.pop(key, None)

    def is_of_a_lease(self, seen: Observation) -> bool:
        """Return whether an observation is of a lease that exists, or may exist now.

        A creation without a name is refused, and a dry run of an unknown lease stores nothing.
        """
        key = (seen.namespace, seen.name)
        is_known = key in self.leases or key in self.stored.numbers
        return bool(seen.name) and (is_known or not seen.is_dry_run)

    def _add_lease_observation(self, key: Key, seen: Observation) -> list[LeaseEvent]:
        if not self.is_of_a_lease(seen):
            self._note_unnamed(seen)
            return []
        self._note_collection(seen)
        if seen.verb in _RENEWING and seen.writer and len(self.updating) < MAX_USERS:
            self.updating.add(seen.writer.user)
        if seen.act is Act.READ and seen.answer and seen.answer.code == NOT_FOUND and seen.writer:
            self._note_missing(key, seen.writer.process)
        history = self.find_or_begin_history(key)
        before = RenewalBaseline.from_history(history) if self._continuation.is_asked_for else None
        events = observe(history, seen, self.bounds)
        self._note_manager_of_server(history)
        self._confirm_or_clear_log_hole(history, seen, before)
        self.bounds.is_log_leaky = self.bounds.is_log_leaky or history.continuity.is_log_leaky
        self._note_managed_fields(seen)
        at = None if history.at is None else history.moment
        at = at if seen.at is None else min(seen.at, self.bounds.latest)
        self.bounds.note(seen, at, history.stamped, is_resumed=history.is_resumed)
        if at is not None and history.watch and (seen.is_watched or seen.input_kind is InputKind.WATCH):
            self.watched_until[history.watch] = max(at, self.watched_until.get(history.watch, 0))
        return events

    def find_or_begin_history(self, key: Key) -> LeaseHistory:
        """Return the history of a lease; an empty one if nothing of it was seen yet."""
        history = self._find_history(key)
        if history is None:
            self._continuation.note_lease(*key)
            self._index = None
            history = self.leases[key] = LeaseHistory(*key, self.nodes, self.managers_of_servers)
            self._note_node(key)
        return history

    def _confirm_or_clear_log_hole(
        self, history: LeaseHistory, seen: Observation, before: RenewalBaseline | None
    ) -> None:
        """Have every lease remember whether what was taken for a hole in an audit log is one."""
        if history.continuity.has_skipped and seen.at is not None:
            self._continuation.note_missing_write(seen.at)
            self.bounds.note_missing_write()
            if self._has_sparse_leases:
                self._has_sparse_leases = False
                for lease in self.leases.values():
                    lease.miss_write()
        since = self._continuation.find_since(self.leases, history, seen, before) if before else None
        # By clocks that differ, what came between two renewals is not known.
        if since is not None and self.bounds.skew <= SECOND:
            self.bounds.note_continuation(since)
            self._has_sparse_leases = True
            for lease in self.leases.values():
                lease.mark_visible(since)

    def _note_missing(self, key: Key, reader: Writer) -> None:
        """Remember who asked for a lease that does not exist."""
        if reader.pod and (len(self._missing) < MAX_MISSING or (key[0], reader) in self._missing):
            missing = self._missing.setdefault((key[0], reader), set())
            if len(missing) < MAX_LISTED:
                missing.add(key)

    def _note_unnamed(self, seen: Observation) -> None:
        """Have a lease remember a refused creation: an API server authorizes it before it reads the name.

        It is of the lease that the same pod has asked for in vain, if that is only one.
        """
        refusal = Refusal.from_observation(seen) if seen.act is Act.CREATED and not seen.name else None
        if refusal is None or not refusal.is_denied:
            return
        missing = [self.leases.get(key) for key in self._missing.get((seen.namespace, refusal.writer.process), ())]
        wanted = [one for one in missing if one is not None and (one.lease is None or one.is_deleted)]
        if len(wanted) == 1:
            wanted[0].requests.remember(refusal)

    def _mark_log_hole(self, seen: Observation) -> None:
        """Have every lease remember since when an audit log may lack requests, if it does before this one."""
        if seen.input_kind is not InputKind.AUDIT_LOG or seen.at is None:
            return
        self.bounds.log_spans.note(seen.log_path, seen.at)
        self._hide_leases(self.bounds.note_request(seen.at), seen.at)

    def _hide_leases(self, since: int | None, until: int) -> None:
        """Have every lease remember from when until when an audit log may lack requests; None if it lacks none."""
        # A log has no requests about a single lease either while no one wants it.
        if since is None or len(self.leases) < 2:
            return
        self._continuation.ask()
        # A watch hides nothing, but who else asked for a lease only the log shows.
        for lease in self.leases.values():
            if not lease.watch:
                lease.mark_hidden(since, until)

    def forget_lease(self, key: Key) -> None:
        """Forget a lease, and what was seen of its election."""
        self._index = None
        for kept in (self.leases, self.candidate_events, self.election_events):
            kept.pop(key, None)

    def _find_history(self, key: Key) -> LeaseHistory | None:
        if key in self.stored.numbers:
            self._index = None
            self.leases[key] = self.get_history(key)
            self.stored.forget(key)
        return self.leases.get(key)

    def shows_all_requests(self, history: LeaseHistory, start: int, end: int) -> bool:
        """Return whether a log seems to have every request for a lease between two instants, of all API servers."""
        lacks_requests = history.is_partial or self.lacks_requests(history) or self.bounds.has_hole(start, end)
        return not lacks_requests and self.bounds.log_spans.find_ended(start, end) is None

    def lacks_requests(self, history: LeaseHistory) -> bool:
        """Return whether a log lacks requests for a lease: some here and there, or those that a watch shows."""
        return self.bounds.is_log_leaky or self.lacks_shown_requests(history)

    def lacks_shown_requests(self, history: LeaseHistory) -> bool:
        """Return whether a watch shows writes to a lease, during a log, that the log does not have.

        Another API server answered these, or a policy or a collector left them out; it may have answered others, too.
        """
        unlogged = history.unlogged
        # A stamp has whole seconds: what may have come after the end of the log need not be in it.
        return unlogged is not None and (unlogged.by or unlogged.since) <= self.bounds.logged_until

    def is_watched_at(self, history: LeaseHistory, at: int) -> bool:
        """Return whether a watch shows all writes to a lease until an instant: it shows a later one, if of another."""
        return self.watched_until.get(history.watch, 0) >= at

    def list_collection_deletions(self, namespace: str, start: int, end: int) -> list[Observation]:
        """Return the requests from `start` to `end` that may have deleted any lease of a namespace."""
        return [
            one for one in self.collection_deletions if one.namespace == namespace and start <= (one.at or 0) <= end
        ]
