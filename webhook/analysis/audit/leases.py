"""Checks of one stored object: who can take it, who renews it, its timings, its place, its stamps; and of all of them.

The webhook's own rules are checked where they need no second state to compare with.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from webhook.admission.rules.change import (
    IDENTITY_LABEL,
    KUBE_SYSTEM,
    NODE_LEASES,
    CandidateChange,
    LeaseChange,
    make_change,
)
from webhook.admission.rules.expiry import BOUND
from webhook.admission.rules.holders import make_host_name
from webhook.admission.rules.limits import DEFAULT_LIMITS, Limits
from webhook.admission.rules.mode import Mode
from webhook.admission.rules.registry import RULES
from webhook.admission.rules.rule import Rule
from webhook.admission.rules.stamps import is_constant
from webhook.analysis.audit.candidates import Candidate, find_conflicts
from webhook.analysis.audit.registry import OUTAGE, report_problem
from webhook.analysis.audit.repairs import make_repair_command
from webhook.analysis.heartbeats import find_owner, is_heartbeat
from webhook.analysis.history.renewals import estimate_timing
from webhook.analysis.history.status import LeaseState, LeaseStatus, find_state_of_lease
from webhook.analysis.inputs.items import is_dated_by_stamp
from webhook.analysis.named_pods import find_named_pod, guess_named_pod
from webhook.cached_property import cached_property
from webhook.findings import ObjectName, ReportFinding, Severity
from webhook.kubernetes.generated_names import GENERATED
from webhook.kubernetes.managed_fields import (
    ACQUIRE_TIME,
    ANCIENT_CHANGES,
    APPLY,
    BEFORE_FIRST_APPLY,
    HOLDER,
    OF_API_SERVERS,
    RENEW_TIME,
    Entry,
    is_nested_too_deeply,
)
from webhook.kubernetes.objects import Lease, LeaseCandidate, LeaseSpec
from webhook.kubernetes.request import GROUP, AdmissionRequest, Operation
from webhook.kubernetes.times import DAY, HOUR, SECOND, format_length, format_span, format_time, is_time_zone
from webhook.text.commands import fill_in
from webhook.text.quoting import quote, truncate

STORED_RULES: Final[dict[str, Rule]] = {
    id_: rule for id_, rule in RULES.items() if rule.stored and Operation.CREATE in rule.operations
}
"""Rules that a stored object alone can break."""
_RULES_OF: Final = {
    resource: tuple(rule for rule in STORED_RULES.values() if resource in rule.resources)
    for resource in ("leases", "leasecandidates")
}

TIGHTEST: Final = 10
"""Seconds of duration: no default of a known elector is shorter."""
_SLOWEST: Final = 10 * SECOND
"""After which nearly all clients give a request up."""
_STALLED: Final = 30 * SECOND
"""An API server names a holder within seconds after the last one's lease has expired, unless something keeps it."""
_POD_OF_DEPLOYMENT: Final = re.compile(rf"([a-z0-9.-]+)-{GENERATED}{{6,10}}-{GENERATED}{{5}}")

_NOT_AN_APPLICATION: Final = frozenset({ANCIENT_CHANGES, BEFORE_FIRST_APPLY, OF_API_SERVERS, "unknown", ""})


class Subject(Struct, frozen=True, dict=True):
    """A Lease or LeaseCandidate; `now` in microseconds since 1970.

    `interval` is the seconds between renewals, None if they were not seen. `known_status` is its status, if a history
    knows more than the object. `seen_until` is the end of an input that shows more than happened until `now`.
    `is_as_sent`: a log shows what a client sent, without what the API server added. `is_election`: its
    history is not that of a heartbeat. `runs_on`: the pod of its holder asked for other
    things until the end, as a log shows.
    """

    object: Lease | LeaseCandidate
    namespace: str
    name: str
    now: int
    interval: float | None = None
    known_status: LeaseStatus | None = None
    seen_until: int = 0
    is_as_sent: bool = False
    is_election: bool = False
    runs_on: bool = False
    is_held_by_node: bool = False
    """Its holder is a node by its name, so whoever renews it is no elector with deadlines of its own."""
    is_never_renewed: bool = False
    """A history shows that what was written in with its holder is old, and that no one has renewed it since."""
    other_managers: frozenset[str] = frozenset()
    """Field managers of which a history shows that they are none of holders."""
    is_server_clock_right: bool = False
    """The clocks of other holders agree with that of the API server that dates its renewals."""
    ends_at: int | None = None
    """The end of a history that is over, in microseconds since 1970; None if time has passed in it until now."""
    source: str = ""
    limits: Limits = DEFAULT_LIMITS
    """The numbers of the rules for this object."""
    least_severity: Severity = Severity.INFO
    """Findings that are less severe may be left out: of 100,000 leases a table shows the worst one of each."""

    @property
    def kind(self) -> str:
        """`Lease` or `LeaseCandidate`."""
        return "Lease" if isinstance(self.object, Lease) else "LeaseCandidate"

    @cached_property
    def change(self) -> LeaseChange | CandidateChange:
        """The object as rules see it: as if it were being created."""
        request = AdmissionRequest(
            uid="stored",
            operation=Operation.CREATE,
            resource=f"{self.kind.lower()}s",
            kind=self.kind,
            version=(self.object.api_version or "").partition("/")[2],
            group=GROUP,
            namespace=self.namespace,
            name=self.name,
            new=self.object,
        )
        return make_change(request, self.now, self.limits)

    @property
    def entries(self) -> Sequence[Entry]:
        """Entries of managedFields."""
        return self.change.new_entries

    @property
    def lease(self) -> LeaseSpec:
        """The spec of a Lease."""
        assert isinstance(self.object, Lease)
        return self.object.spec

    @cached_property
    def status(self) -> LeaseStatus:
        """The state of a Lease."""
        assert isinstance(self.object, Lease)
        return self.known_status or find_state_of_lease(self.object, self.entries, self.now)

    @property
    def is_heartbeat(self) -> bool:
        """True if it shows that something runs: no one else would ever take such a lease."""
        is_of_shape = isinstance(self.object, Lease) and is_heartbeat(self.object, self.namespace)
        return is_of_shape and not self.is_election

    @property
    def is_apiserver_identity(self) -> bool:
        """True if it is the identity of an API server."""
        labels = self.object.metadata.labels or {}
        return self.namespace == KUBE_SYSTEM and IDENTITY_LABEL in labels

    @property
    def object_name(self) -> ObjectName:
        """The object as findings name it."""
        return ObjectName(self.kind, self.namespace, self.name)

    @property
    def holder(self) -> str:
        """The holder of a Lease."""
        return self.status.holder if isinstance(self.object, Lease) else ""

    def report(self, check: str, message: str, severity: Severity | None = None, fix: str = "") -> ReportFinding:
        """Return a finding of the registry about this object, see `report_problem`."""
        name, source, holder = self.object_name, self.source, self.holder
        return report_problem(check, message, name, severity=severity, fix=fix, source=source, identity=holder)

    def report_broken_rule(self, rule: str, severity: Severity, message: str, fix: str) -> ReportFinding:
        """Return a finding of a rule about this object; its names are filled into the fix, see `fill_in`."""
        command = fill_in(fix, self.namespace, self.name)
        return ReportFinding(rule, severity, message, command, self.source, self.object_name, self.holder)


def check_rules(subject: Subject) -> Iterator[ReportFinding]:
    """Yield what the rules find in a stored object, unless another check reports it."""
    change = subject.change
    for rule in _RULES_OF[change.request.resource]:
        for found in rule.check(change):
            if not _is_reported(subject, rule.id):
                severity = Severity.ERROR if found.tier is Mode.DENY else Severity.WARNING
                yield subject.report_broken_rule(rule.id, severity, str(found.error), rule.repair)


def _is_reported(subject: Subject, rule: str) -> bool:
    """Return whether another check reports what breaks a rule."""
    if not isinstance(subject.object, Lease):
        return False
    if subject.status.block and subject.status.block.rule == rule:
        return True
    # The check holder-clock measures it by the API server's clock.
    return rule == "renew-time-in-future" and subject.status.ahead is not None


def _check_takeover_block(subject: Subject) -> Iterator[ReportFinding]:
    """A lease that no one else can take, for a year or more."""
    why = subject.status.block
    if why is None:
        return
    until = "until it is fixed" if why.until is None else f"until {format_time(why.until)}"
    message = f"no one else can take this lease {until}: {why.reason}"
    yield subject.report_broken_rule(why.rule, Severity.ERROR, message, make_repair_command(why))


def _check_expiry(subject: Subject) -> Iterator[ReportFinding]:
    """A lease whose holder no longer renews it."""
    status = subject.status
    if status.state is not LeaseState.EXPIRED or status.last_renewal is None or not _is_surely_over(subject):
        return
    ago = subject.now - status.last_renewal
    holder = quote(truncate(status.holder, 80))
    renewed = f"last renewed {format_time(status.last_renewal)}, {format_length(ago)} ago"
    seen = f"{renewed}, with a duration of {status.duration or 0} s"
    if subject.is_apiserver_identity:
        message = f"API server {holder} no longer runs: {seen}; another API server removes the lease within an hour"
        yield subject.report("expired", message, Severity.INFO, "{kubectl} get lease {name} # in an hour")
    elif subject.namespace == NODE_LEASES:
        message = f"node {holder} no longer reports: {seen}"
        yield subject.report("expired", message, fix="kubectl describe node {name}")
    elif subject.is_heartbeat:
        assert isinstance(subject.object, Lease)
        owner = find_owner(subject.object)
        beat = f"the heartbeat of {holder}" if status.holder else "a heartbeat without a holder (by its fields)"
        message = f"{beat} has been silent for {format_length(ago)}: {seen}"
        message += f"; its owner is {quote(truncate(owner, 120))}" if owner else ""
        yield subject.report("heartbeat-silent", message)
    elif ago >= DAY:
        yield _report_long_silence(subject, status.last_renewal, holder, seen)
    elif subject.lease.strategy and subject.lease.preferred_holder:
        preferred = quote(truncate(subject.lease.preferred_holder, 80))
        message = (
            f"{holder} was asked to step down for {preferred} (preferredHolder), which has not taken over; {seen}. "
            f"Until preferredHolder is cleared, the election {_describe_stall(subject, status)}"
        )
        found = subject.report("election-stalled", message)
        yield found if status.from_stamps else replace(found, how="writer-clock")
    elif status.is_choice:
        since = format_time(status.last_renewal)
        message = (
            f"{holder} was chosen by an API server at {since}, {format_length(ago)} ago, "
            "and has not renewed the lease since"
        )
        yield subject.report("not-taken-up", message)
    else:
        yield _report_silence(subject, holder, seen)


def _describe_stall(subject: Subject, status: LeaseStatus) -> str:
    """Say whether an election may stall, or goes no further: an API server would have named a holder by then."""
    shown = min(subject.now, subject.ends_at or subject.now)
    is_shown = status.from_stamps and status.takeable_at is not None and shown - status.takeable_at >= _STALLED
    return "does not go on" if is_shown else "may stall"


def _report_long_silence(subject: Subject, last: int, holder: str, seen: str) -> ReportFinding:
    """Return the finding about a lease that was renewed a day ago or earlier: abandoned, if that much is shown."""
    if min(subject.now, subject.ends_at or subject.now) - last < DAY:
        return _report_silence(subject, holder, seen)
    message = f"it has not been renewed for a day or more: {holder} holds it, {seen}"
    return subject.report("abandoned", message)


def _report_silence(subject: Subject, holder: str, seen: str) -> ReportFinding:
    """Return the finding about a holder that no longer renews its lease."""
    status = subject.status
    message = f"{holder} holds the lease and no longer renews it; {seen}"
    if not status.from_stamps:
        message = f"{holder} holds the lease and, unless its clock is behind, no longer renews it; {seen}"
    if subject.is_never_renewed:
        written = f"{format_time(status.last_renewal or 0)}, with a duration of {status.duration or 0} s"
        message = f"{holder} has not renewed the lease since it was written in at {written}"
        return subject.report("expired", message, fix="{kubectl} get pods")
    found = subject.report("expired", message, fix=f"{{kubectl}} get pods; {_make_command_for_logs(subject)}")
    return found if status.from_stamps else replace(found, how="writer-clock")


def _make_command_for_logs(subject: Subject) -> str:
    """Return the command that shows the log of a holder's pod; if that is gone, of one of the Deployment's that runs.

    If the pod runs on, the log of a container that has ended would be of another one.
    """
    pod = guess_named_pod(subject.status.holder)
    logs = f"{{kubectl}} logs {pod or 'POD'}"
    if subject.runs_on:
        return logs
    found = _POD_OF_DEPLOYMENT.fullmatch(pod)
    of_others = f" || {{kubectl}} logs deploy/{found[1]}" if found is not None else ""
    return f"{logs} --previous{of_others}"


def _is_surely_over(subject: Subject) -> bool:
    """Return whether a lease that has expired by what it shows has done so: stamps have whole seconds."""
    status = subject.status
    if is_constant(subject.entries) and not status.from_stamps:
        return False  # only the holder's clock says so, and the stamps would know
    is_whole = (status.last_renewal or 0) % SECOND == 0 and status.from_stamps
    return not (is_whole and status.takeable_at is not None and subject.now < status.takeable_at + SECOND)


def _check_timing(subject: Subject) -> Iterator[ReportFinding]:
    """An elector that a short outage of the API server, or one missed renewal, ends."""
    status, interval = subject.status, subject.interval
    is_election = not (subject.is_heartbeat or subject.lease.strategy or subject.is_held_by_node)
    if status.state is not LeaseState.LIVE or not status.duration or status.duration <= 1:
        return
    if interval is None and status.duration >= TIGHTEST and subject.least_severity is not Severity.INFO:
        return
    found = estimate_timing(status.duration, interval)
    if interval is not None and found.missed_renewals < 1 and status.holder:
        every = format_length(round(interval * SECOND))
        message = f"it is renewed every {every} and lasts {status.duration} s: one missed renewal ends it"
        yield subject.report("timing-tight", message, Severity.WARNING)
    elif is_election and found.survives < OUTAGE:
        severity = Severity.WARNING if status.duration < TIGHTEST else Severity.INFO
        assumed = "" if found.is_seen else f", if it is renewed every {found.retry:.0f} s"
        message = (
            f"it lasts {status.duration} s: an API server that is away for more than {found.survives:.0f} s may cost "
            f"the leader its lease{assumed}"
        )
        yield subject.report("timing-tight", message, severity)


def _check_applications(subject: Subject) -> Iterator[ReportFinding]:
    """A lease whose spec several programs have written, as far as managedFields still show.

    Who takes a lease writes the holder with renewTime: one that held it before owns neither. Who owns renewTime, and
    not the holder, renewed in the name of another one.
    """
    if len(subject.entries) < 2 or subject.is_heartbeat or subject.lease.strategy:
        return
    latest: dict[str, int] = {}
    for entry in subject.entries:
        is_candidate = _is_application(entry) and entry.manager not in subject.other_managers
        if is_candidate and _may_have_held(subject, entry) and entry.stamp is not None:
            latest[entry.manager or ""] = max(entry.stamp, latest.get(entry.manager or "", 0))
    if len(latest) < 2:
        return
    newest, *others = sorted(latest, key=lambda manager: (-latest[manager], manager))
    is_recent = latest[newest] - latest[others[0]] <= HOUR
    names = ", ".join(quote(truncate(one, 40)) for one in (newest, *others[:3]))
    message = f"at least {len(latest)} programs have written this lease: {names}"
    if not is_recent:
        message += "; the others long ago, so it may be one program under a new name"
    yield subject.report("lease-shared", message, Severity.WARNING if is_recent else Severity.INFO)


def _may_have_held(subject: Subject, entry: Entry) -> bool:
    """Return whether a field manager may be that of a holder, by what it owns."""
    if HOLDER in entry.owned.spec:
        return True
    block = subject.status.block
    if block is not None and entry.owned.spec == {block.field.replace("spec.", "f:")}:
        return False  # another finding tells what it wrote
    return RENEW_TIME not in entry.owned.spec


def _check_acquire_time(subject: Subject) -> Iterator[ReportFinding]:
    """A lease whose holder and acquireTime two field managers wrote: an elector that takes it writes both at once.

    In a coordinated election the API server writes the holder. Stamped leases have one entry for all writers.
    """
    spec = subject.lease
    holder, acquired = (
        [one for one in subject.entries if name in one.owned.spec and not one.is_fold]
        for name in (HOLDER, ACQUIRE_TIME)
    )
    if (
        subject.least_severity is not Severity.INFO
        or not spec.holder_identity
        or len(holder) != 1
        or len(acquired) != 1
    ):
        return
    if spec.strategy or holder[0].manager in {acquired[0].manager, OF_API_SERVERS} or subject.is_heartbeat:
        return
    named, dated = (quote(truncate(one.manager or "", 40)) for one in (holder[0], acquired[0]))
    when, who = truncate(spec.acquire_time or "", 40), quote(truncate(spec.holder_identity, 80))
    message = (
        f"by managedFields, {named} wrote the holder, {who}, and {dated} wrote acquireTime, {when}: "
        "whoever takes a lease writes both, so this is not when the holder took it, or was changed since"
    )
    yield subject.report("acquire-time-foreign", message)


def _is_application(entry: Entry) -> bool:
    manager = entry.manager or ""
    if entry.operation == APPLY or manager in _NOT_AN_APPLICATION or manager.startswith("kubectl"):
        return False
    return bool(entry.owned.spec)


def _check_forged_stamps(subject: Subject) -> Iterator[ReportFinding]:
    """Entries of managedFields that no API server writes: dated ahead, below a scalar, or nested too deeply."""
    deep = ": they nest deeper than any API server makes them" if is_nested_too_deeply(subject.entries) else ""
    present = max(subject.now, subject.seen_until)
    forgeries = (forgery for entry in subject.entries if (forgery := _find_forgery(entry, present)))
    if problem := next(forgeries, deep):
        message = f"managedFields were written by hand{problem}"
        yield subject.report("renewal-stamp-tampered", message)


def _find_forgery(entry: Entry, now: int) -> str:
    below, stamp = entry.owned.below, entry.stamp
    is_ahead = stamp is not None and stamp > now + BOUND
    if not is_ahead and not below:
        return ""
    who = f"the entry of manager {quote(truncate(entry.manager or '', 40))}"
    if stamp is not None and is_ahead:
        what = f"{who} is dated {format_time(stamp)}, {format_span(stamp - now)} later"
        return f", or the time of evaluation, {format_time(now)}, is too early: {what}"
    return f": {who} owns something below {quote(truncate(below[0], 40))} of spec, where nothing can be"


def _check_missing_stamp(subject: Subject) -> Iterator[ReportFinding]:
    """Yield a finding for a lease without managedFields, or a held one without a stamp of its last renewal.

    The first also before it is held: an API server keeps none for a lease that was created empty.
    """
    fix, severity = "", Severity.WARNING
    if any(entry.owns_renew_time and entry.stamp is not None for entry in subject.entries):
        return
    if is_constant(subject.entries):
        message = "its stamps count only with a policy file that lists its namespace: a client can write them, too"
        fix = "lease-webhook audit --policy FILE   # one that lists the namespace under `stamps`"
        severity = Severity.INFO  # nothing is wrong with the lease
    elif subject.lease.holder_identity and subject.lease.renew_time:
        message = (
            "the API server has no record of the last renewal, so only the holder's own clock says whether it leads"
        )
        if subject.status.from_stamps:
            message = (
                "the lease has no record of when it was renewed: without the log, only its holder's own clock says"
            )
    elif not subject.entries:
        message = "the API server keeps no managedFields of it, so one write will be able to take it from a live holder"
    else:
        return
    yield subject.report("lease-without-stamps", message, severity, fix)


def _check_not_stamped(subject: Subject) -> Iterator[ReportFinding]:
    """A held lease without a dated stamp, where the API server stamps writers: it does not stamp its own choices."""
    if subject.lease.strategy and subject.lease.acquire_time is None:
        return
    if subject.entries and subject.lease.holder_identity and not is_dated_by_stamp(subject.entries):
        message = "the API server stamps writers in its namespace, and it has no stamp with a time: it was not renewed"
        message += " since the namespace was labeled, or not through an API server that stamps"
        yield subject.report("stamp-missing", message)


def check_stamps(subject: Subject, stamped: Collection[str], *, has_managed_fields: bool) -> Iterator[ReportFinding]:
    """Yield what is wrong with the stamps of a lease; `stamped` are the namespaces in which writers are stamped.

    If no lease of the input has managedFields, the input was asked for without them, and nothing follows from that; nor
    from a lease as its client sent it.
    """
    if subject.is_as_sent:
        return
    if subject.namespace in stamped:
        yield from _check_not_stamped(subject)
    elif has_managed_fields:
        yield from _check_missing_stamp(subject)


def _check_clock(subject: Subject) -> Iterator[ReportFinding]:
    """A holder whose clock is not the API server's."""
    status = subject.status
    off = status.ahead
    if off is None or abs(off) <= 2 * SECOND or status.block:
        return
    # Whoever compares renewTime with another clock errs by the difference.
    limit = min(60, status.duration or 60) * SECOND
    severity = Severity.WARNING if abs(off) > limit else Severity.INFO
    direction = "ahead of" if off > 0 else "behind"
    zone = is_time_zone(abs(off))
    message = (
        f"renewTime is at least {format_span(abs(off))} {direction} the time at which the API server stored it: "
        f"the holder's clock is off{'' if subject.is_server_clock_right else ', or that of the API server'}"
    )
    if -_SLOWEST <= off < 0:
        message += ", or its requests take as long to be admitted"
    if zone:
        message += "; whole hours, as if its client wrote local time as UTC"
    fix = "update the client, if it writes local time; if other holders are off by as much, see the API server's clock"
    fix = fix if zone else ""
    yield subject.report("holder-clock", message, severity, fix)


class Inventory(Struct):
    """Gives findings as soon as they are certain, the rest at the end; `now` in microseconds since 1970."""

    now: int
    stamped: frozenset[str] = frozenset()
    """Namespaces in which the API server stamps writers, as the policy file says."""
    leases: dict[tuple[str, str], LeaseStatus] = field(default_factory=dict)
    candidates: dict[tuple[str, str], list[Candidate]] = field(default_factory=dict)
    """Candidates by the namespace and name of their lease."""
    without_stamps: list[ReportFinding] = field(default_factory=list)
    has_managed_fields: bool = False
    pods: dict[str, set[str]] = field(default_factory=dict)  # by namespace
    nodes: set[str] = field(default_factory=set)

    def add(self, subject: Subject) -> Iterator[ReportFinding]:
        """Take in one object; yield what is certain about it without the others."""
        if isinstance(subject.object, LeaseCandidate):
            spec = subject.object.spec
            lease = (subject.namespace, spec.lease_name or "")
            self.candidates.setdefault(lease, []).append(Candidate(subject.name, spec))
            yield from check_rules(subject)
            return
        self.note_lease((subject.namespace, subject.name), subject.status)
        self.has_managed_fields = self.has_managed_fields or bool(subject.entries)
        found = check_stamps(subject, self.stamped, has_managed_fields=True)
        if subject.namespace in self.stamped:
            yield from found
        else:
            self.without_stamps += found
        yield from check_stored_object(subject)

    def note_lease(self, key: tuple[str, str], status: LeaseStatus) -> None:
        """Take in the status of a lease, by namespace and name, for what needs all objects."""
        self.leases[key] = status

    def finish(self) -> Iterator[ReportFinding]:
        """Yield findings that need all objects."""
        if self.has_managed_fields:
            yield from self.without_stamps
        for (namespace, lease), candidates in self.candidates.items():
            yield from find_conflicts(namespace, lease, candidates, self.now)
        # The host name of a pod is shorter if its name is long.
        known = {name for pods in self.pods.values() for pod in pods for name in (pod, make_host_name(pod))}
        for (namespace, name), status in self.leases.items():
            yield from self._check_orphans(namespace, name, status, known)

    def _check_orphans(
        self, namespace: str, name: str, status: LeaseStatus, known: Collection[str]
    ) -> Iterator[ReportFinding]:
        subject = ObjectName("Lease", namespace, name)
        if namespace == NODE_LEASES:
            if self.nodes and name not in self.nodes:
                yield report_problem("node-gone", f"node {name} does not exist", subject)
            return
        pod = find_named_pod(status.holder)
        # An elector may keep its lease in another namespace; the host name of some pods is that of a node.
        # A pod's own name may end in a UUID, too.
        if not pod or not known or any(one in known or one in self.nodes for one in (pod, status.holder)):
            return
        # An elector in a pod is named by a host name and an underscore, or like a Deployment's pod; another name shows
        # nothing about a pod. If the input has no pod of the namespace, it may not cover it: then only a lease that no
        # one renews shows that its pod is gone.
        is_pod = "_" in status.holder or _POD_OF_DEPLOYMENT.fullmatch(pod)
        is_live = status.state is LeaseState.LIVE
        if not is_pod or (namespace not in self.pods and is_live):
            return
        message = f"the holder names pod {pod}, which does not exist"
        severity = Severity.INFO if is_live else Severity.WARNING
        fix = "wait until the lease has expired" if is_live else ""
        yield report_problem("holder-gone", message, subject, severity=severity, fix=fix)


def check_stored_object(subject: Subject) -> Iterator[ReportFinding]:
    """Yield what a stored lease shows by itself; `why` has these findings too.

    What follows only from other objects, or from the policy file, is in `Inventory`, which `audit` alone uses.
    """
    yield from _check_takeover_block(subject)
    yield from check_rules(subject)
    yield from _check_forged_stamps(subject)
    yield from _check_clock(subject)
    yield from _check_expiry(subject)
    yield from _check_timing(subject)
    yield from _check_applications(subject)
    yield from _check_acquire_time(subject)
