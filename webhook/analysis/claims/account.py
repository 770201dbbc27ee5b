"""Everything known about one lease, ready to be shown: the state, the facts, what happened, what to do."""

from typing import Final

from msgspec import Struct

from webhook.admission.rules.stamps import NAMES, is_constant
from webhook.analysis.claims.diagnosis import Diagnosis
from webhook.analysis.claims.evidence.contenders.askers import Askers
from webhook.analysis.claims.evidence.contenders.successors import find_last_rejection
from webhook.analysis.claims.evidence.contenders.surroundings import NO_SURROUNDINGS, Surroundings
from webhook.analysis.claims.evidence.coordination.election_facts import NO_ELECTION_FACTS, ElectionFacts
from webhook.analysis.claims.evidence.input_coverage import NO_INPUT_COVERAGE, InputCoverage
from webhook.analysis.claims.evidence.pods.pod_facts import NO_POD_FACTS, PodFacts
from webhook.analysis.claims.evidence.silent_holders.expiry_doubts import ExpiryDoubt
from webhook.analysis.claims.evidence.silent_holders.silent_together import SilentTogether
from webhook.analysis.claims.evidence.silent_holders.silent_writers import SilentWriter
from webhook.analysis.claims.evidence.silent_holders.write_pauses import WritePause
from webhook.analysis.claims.evidence.unshown_durations import UnshownDuration
from webhook.analysis.history.audit_log.refusal import Refusal
from webhook.analysis.history.holders.tenure import Handover, Tenure, find_first_under_name
from webhook.analysis.history.last_renewal import find_last_renewal
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.status import LeaseState, LeaseStatus, date_state, is_duration_by_another
from webhook.analysis.inputs.items import InputKind, RelatedWrite, Writer
from webhook.findings import ORDER, ReportFinding, Severity
from webhook.kubernetes.times import SECOND, get_readable_instant, normalize, parse_stamp

_MIN_SEEN: Final = 2
_USUAL: Final = 10 * SECOND
"""Clients renew more often than that, unless their leases last for minutes."""

_STATES_BY_TROUBLE: Final = (
    LeaseState.FROZEN,
    LeaseState.EXPIRED,
    LeaseState.UNKNOWN,
    LeaseState.RELEASED,
    LeaseState.NEVER_HELD,
    LeaseState.LIVE,
)


class Account(Struct, frozen=True):
    """Everything that is known of one lease at `now`, in microseconds since 1970.

    `status` is None if its object was never seen, or is gone. `findings` are all that is wrong with it, the worst
    first, and `cause` is why its holder does not renew it now; None if it does, or need not.
    """

    history: LeaseHistory
    now: int
    status: LeaseStatus | None
    findings: tuple[ReportFinding, ...]
    cause: Diagnosis | None
    doubt: ExpiryDoubt = ExpiryDoubt()
    """The reasons to doubt that it has expired."""
    askers: Askers | None = None
    """Who asks for it since it is free; None if it is not, or the input does not show that."""
    silent_together: SilentTogether | None = None
    """All who asked for it, if they fell silent together."""
    related_writes: tuple[RelatedWrite, ...] = ()
    """Writes to what its holders depend on."""
    pause: WritePause | None = None
    """The longest time without a write, if a log shows nothing else of it."""
    silent_writer: SilentWriter | None = None
    """The silence of who wrote a lease that has no holder, or is not shown, until the log ended."""
    unshown_duration: UnshownDuration | None = None
    """The takeover that casts doubt on how long it lasts, in a log of requests; None if there is none."""
    is_stored_heartbeat: bool = False
    """One list shows a heartbeat, without a history that would say so."""
    surroundings: Surroundings = NO_SURROUNDINGS
    """Facts from other leases."""
    pods: PodFacts = NO_POD_FACTS
    """Facts about its pods, from a log."""
    election: ElectionFacts = NO_ELECTION_FACTS
    """Facts about its election that the lease itself does not hold."""
    coverage: InputCoverage = NO_INPUT_COVERAGE
    """The time that the input covers, and its gaps."""

    @property
    def state(self) -> LeaseState:
        """UNKNOWN if its object was never seen, or is gone, or could have expired only after the input had ended."""
        return LeaseState.UNKNOWN if self.status is None or self.ended is not None else self.status.state

    @property
    def ended(self) -> int | None:
        """The end of an input that ended before the lease could expire, in microseconds since 1970."""
        return self.doubt.unlogged.ended or None if self.doubt.unlogged else None

    @property
    def holder(self) -> str:
        """Who holds it; for logs without objects, who wrote it last."""
        if self.status:
            return self.status.holder
        return self.history.latest_tenure.holder if self.history.latest_tenure and not self.history.is_deleted else ""

    @property
    def first_tenure(self) -> Tenure | None:
        """The tenure since which it is held under its present name, by one pod or by several after one another."""
        return find_first_under_name(self.history.tenures) if self.tenure is not None else None

    @property
    def is_taken_only(self) -> bool:
        """True if the input shows how its holder came to hold it, and that nobody has renewed it since."""
        tenure, is_cut = self.tenure, self.is_partial or self.coverage.lacks_requests
        if is_cut or self.history.read is not None:
            return False  # what the input lacks may be renewals
        if tenure is None or tenure.is_stand_in or tenure.began in {Handover.SEEN, Handover.REPLACED}:
            return False
        is_unrenewed = not (tenure.processes.renewals or tenure.processes.others or tenure.renewed_by_other)
        return is_unrenewed and (self.last_renewal is None or self.last_renewal <= tenure.since + SECOND)

    @property
    def known_holder(self) -> str:
        """The latest holder; "" if another holder may have followed in what the input does not show."""
        tenure = self.history.latest_tenure
        is_hidden = self.status is None and self.history.hidden_since is not None
        return "" if is_hidden and not (tenure and tenure.is_stand_in) else self.holder

    @property
    def is_partial(self) -> bool:
        """True if the input may lack an event of the lease between its first and its last record."""
        return self.history.is_partial or self.doubt.is_log_leaky or bool(self.coverage.unrecorded)

    @property
    def takeable_at(self) -> int | None:
        """From when on others may take it; None for never, or if that is not known.

        Renewals that a log lacks may have kept it; where every write of others fails, no one can; and no one takes a
        heartbeat without a holder.
        """
        is_expired = self.status is not None and self.status.state is LeaseState.EXPIRED
        is_doubtful = is_expired and self.doubt.may_lack_renewals
        is_known = not is_doubtful and not self.is_nameless and self.last_rejection is None
        return self.status.takeable_at if self.status is not None and is_known else None

    @property
    def recent_renew_time(self) -> int | None:
        """The renewTime by which a lease is live that has expired by a stamp; None if there is no such difference.

        In a watch, or a list, nothing shows whose clock is right: that of the writer, or that of an API server.
        """
        status, lease = self.status, self.history.lease
        if status is None or lease is None or self.state is not LeaseState.EXPIRED or not status.from_stamps:
            return None
        claimed = get_readable_instant(normalize(lease.spec.renew_time))
        if claimed is None or self.history.kind not in {InputKind.WATCH, InputKind.DUMP}:
            return None
        is_live = claimed <= self.now < claimed + (status.duration or 0) * SECOND
        return claimed if is_live else None

    @property
    def last_rejection(self) -> Refusal | None:
        """The last answer to a write by which others would have taken it, if each failed or was refused."""
        return find_last_rejection(self.history, self.status)

    @property
    def last_renewal(self) -> int | None:
        """The time of the last renewal by the holder: from the log, else from the stamp."""
        return find_last_renewal(self.history, self.status, self.tenure, self.now, self.coverage.unrecorded)

    @property
    def renewer(self) -> Writer | None:
        """The process that made the last renewal; None if it is not known."""
        tenure, at = self.tenure, self.last_renewal
        if self.history.read is not None:
            return None  # the answer to a read does not say who wrote what it shows
        return tenure.find_renewer(at) if tenure and at is not None else None

    @property
    def manager_of_renewal(self) -> str:
        """The field manager of the last renewal by the holder; "" if it is not known.

        A later write may send managedFields with another one.
        """
        if self.status is None or not self.is_renewed_last:
            return ""
        tenure = self.tenure
        is_seen = tenure is not None and tenure.last_renewal_write is not None
        return tenure.renewed_under if tenure is not None and is_seen else self.status.manager

    @property
    def tenure(self) -> Tenure | None:
        """The present holder's time, if it was seen."""
        tenure = self.history.latest_tenure
        return tenure if tenure and tenure.holder == self.holder else None

    @property
    def is_renewed_last(self) -> bool:
        """False if another writer than the holder made the last renewal."""
        return self.tenure is None or not self.tenure.is_last_by_other

    @property
    def may_be_shortened_by_another(self) -> bool:
        """For a lease that seems released and is still named: whether another than its holder may have shortened it.

        Meaningless for any other lease. A release by the holder ends its tenure, where a history shows it; what a list
        shows is told by field managers.
        """
        return not self.history.is_list_only or is_duration_by_another(self.history.entries)

    @property
    def is_renewed_as_usual(self) -> bool:
        """True if one process was seen to renew the lease at its usual rhythm until the end."""
        return self._was_renewed_as_usual(self.now)

    @property
    def is_renewed_until_input_ends(self) -> bool:
        """True if the input ends before this moment, and one process renewed the lease as usual until then."""
        ended = self.coverage.ended
        return 0 < ended < self.now and self._was_renewed_as_usual(ended)

    def _was_renewed_as_usual(self, at: int) -> bool:
        renewals, tenure = self.history.renewals, self.tenure
        if (
            tenure is None
            or renewals.last is None
            or (tenure.last_renewal_write is None and renewals.count < _MIN_SEEN)
        ):
            return False
        usual = renewals.longest_usual or max(renewals.longest, _USUAL)
        # A process that reads other settings may renew less often from then on.
        recent = max([*renewals.latest][-_MIN_SEEN:], default=0)
        return self.is_renewed_last and at - renewals.last <= max(2 * usual, recent)

    @property
    def written_later(self) -> int | None:
        """The time of a later write than the last renewal that set the holder or a stamp; None if it is known which."""
        lease, tenure, renewed = self.history.lease, self.tenure, self.last_renewal
        if lease is None or tenure is None or renewed is None or not self.history.is_list_only or lease.spec.strategy:
            return None  # in a coordinated election the API server writes the holder, which then renews
        if not is_constant(self.history.entries):
            written = date_state(lease.spec, self.history.entries) or renewed
            return written if written > renewed else None
        annotations = (lease.metadata.annotations or {}).items()
        stamps = [parse_stamp(text) or 0 for key, text in annotations if key.startswith(f"{NAMES}written-")]
        return next((at for at in stamps if renewed + SECOND < at <= self.now), None)

    @property
    def worst(self) -> ReportFinding | None:
        """The most severe finding; None if nothing needs attention."""
        return next((one for one in self.findings if one.severity is not Severity.INFO), None)

    @property
    def is_late(self) -> bool:
        """True if it is held, and was not renewed for longer than twice its usual interval."""
        usual = self.history.interval
        if usual is None or self.state is not LeaseState.LIVE:
            return False
        at = self.last_renewal
        return at is not None and self.now - at > 2 * usual * SECOND

    @property
    def trouble(self) -> tuple[int, int, bool]:
        """A key that sorts leases with the worst first: by the severity of what is wrong, then by state."""
        worst = self.worst
        return ORDER[worst.severity if worst else Severity.INFO], _STATES_BY_TROUBLE.index(self.state), not self.is_late

    @property
    def is_heartbeat(self) -> bool:
        """True if the lease shows that one process is alive, and no one else would ever take it."""
        return self.is_stored_heartbeat or self.history.is_heartbeat

    @property
    def is_nameless(self) -> bool:
        """True if it is a heartbeat that is renewed without a holder."""
        is_renewed = self.state in {LeaseState.LIVE, LeaseState.EXPIRED, LeaseState.UNKNOWN}
        return is_renewed and self.is_heartbeat and self.status is not None and not self.status.holder
