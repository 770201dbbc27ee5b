"""Everything known about one lease, ready to be shown: the state, the facts, what happened, what to do."""

from typing import Any, Final

from msgspec import Struct

from webhook.api.micro_time import canonical
from webhook.audit.finding import RANK, Finding
from webhook.audit.ownership import foreign_in_kube_system, homes_of
from webhook.audit.stock import LEASE_CHECKS, subject_of
from webhook.explanation.advice import advice
from webhook.explanation.cause import Blame, Cause, cause_of, snapshot_cause
from webhook.explanation.explained import Explained
from webhook.explanation.incidents import incidents
from webhook.explanation.next_step import Advice
from webhook.history.cluster_history import ClusterHistory
from webhook.history.lease_history import LeaseHistory
from webhook.history.renewals import received_within
from webhook.history.standing import Standing, State
from webhook.history.tenure import Tenure
from webhook.history.timing import Timing, timing_of
from webhook.observations.observation import Origin
from webhook.rules.times import SECOND

MOST_TENURES: Final = 20


class Account(Struct, frozen=True):
    """One lease at `now`; `standing` is None if its object was never seen, or is gone."""

    history: LeaseHistory
    now: int
    state: State
    standing: Standing | None
    findings: tuple[Finding, ...]
    cause: Cause | None
    has_pod: bool | None
    advice: Advice

    @property
    def holder(self) -> str:
        """Who holds it; for logs without objects, who wrote it last."""
        if self.standing:
            return self.standing.holder
        return self.history.tenure.holder if self.history.tenure and not self.history.is_deleted else ""

    @property
    def last_renewal(self) -> int | None:
        """When it was last renewed: by the log, else by the stamp."""
        logged = self.history.renewals.last
        shown = self.standing.last_renewal if self.standing else None
        if shown is None or (logged is not None and abs(logged - shown) < 2 * SECOND):
            return logged if logged is not None else shown
        return shown

    @property
    def tenure(self) -> Tenure | None:
        """The present holder's time, if it was seen."""
        tenure = self.history.tenure
        return tenure if tenure and tenure.holder == self.holder else None

    @property
    def timing(self) -> Timing | None:
        """What the elector survives; None if it is not an election, not held, or renewed by several processes."""
        standing = self.standing
        if standing is None or standing.state is not State.LIVE or not standing.duration or standing.duration <= 1:
            return None
        if self.history.renewals.is_doubled or (self.tenure and self.tenure.has_several_writers):
            return None  # the intervals are those of several processes
        return timing_of(standing.duration, interval_of(self.history))


def interval_of(history: LeaseHistory) -> float | None:
    """Seconds between renewals, as seen."""
    usual = history.renewals.usual
    return None if usual is None else usual / SECOND


def account_of(cluster: ClusterHistory, history: LeaseHistory, now: int, *, has_pod: bool | None = None) -> Account:
    """Everything that is known of one lease.

    Args:
        cluster: all leases of the input, which show whether only one was late or all were.
        history: the lease.
        now: microseconds since 1970.
        has_pod: whether the pod that the holder names exists; None if it was not checked.

    """
    standing = history.standing(now)
    state = standing.state if standing else State.UNKNOWN
    cause = _ongoing(cluster, history, standing, now)
    findings: list[Finding] = list(incidents(cluster, history, now, cause))
    if history.lease is not None and standing is not None:
        subject = subject_of(history.lease, history.namespace, history.name, now, interval=interval_of(history))
        known = {one.check for one in findings}
        stored = (one for check in LEASE_CHECKS for one in check(subject))
        findings += [one for one in stored if one.check != "shared-lease" or "lease-shared" not in known]
        findings += foreign_in_kube_system(subject, homes_of(history))
    findings.sort(key=lambda one: -RANK[one.severity])
    return Account(
        history,
        now,
        state,
        standing,
        tuple(findings),
        cause,
        has_pod,
        advice(history, standing, state, findings, cause, has_pod=has_pod),
    )


def _ongoing(cluster: ClusterHistory, history: LeaseHistory, standing: Standing | None, now: int) -> Cause | None:
    """Why the holder does not renew now."""
    if standing is None or standing.state is not State.EXPIRED or standing.last_renewal is None:
        return None
    start = standing.last_renewal
    if history.origin is not Origin.DUMP and cluster.until is not None:
        end = min(now, cluster.until)
        cause = cause_of(cluster, history, start, end, received_within(history.tenure, start, end))
        if cause.blame is not Blame.UNKNOWN:
            return cause
    # A watch in which every lease stopped ends with the last renewal.
    return snapshot_cause(cluster, history, start, now)


def as_json(account: Account) -> dict[str, Any]:
    """The account as a JSON object; times are RFC 3339, lengths of time are seconds."""
    history, standing, timing = account.history, account.standing, account.timing
    tenure = account.tenure
    return {
        "namespace": history.namespace,
        "name": history.name,
        "state": account.state.value,
        "holder": account.holder or None,
        "held_since": _time(tenure.since if tenure else None),
        "last_renewal": _time(account.last_renewal),
        "last_renewal_by": _last_writer(account),
        "evidence": "none" if standing is None else "api-server" if standing.from_stamps else "holder",
        "takeable_at": _time(standing.takeable_at if standing else None),
        "duration_seconds": standing.duration if standing else None,
        "holder_clock_ahead_seconds": _seconds(standing.ahead if standing else None),
        "holder_pod_exists": account.has_pod,
        "now": _time(account.now),
        "handovers": {how.value: number for how, number in history.handovers.items()},
        "leaderless_seconds": _seconds(history.leaderless),
        "tenures": [_tenure(one) for one in list(history.tenures)[-MOST_TENURES:]],
        "renewals": {
            "seen": history.renewals.count,
            "usual_interval_seconds": interval_of(history),
            "longest_silence_seconds": _seconds(history.renewals.longest),
        },
        "timing": None if timing is None else _timing(timing),
        "waiting": dict(history.readers.counts),
        "refused": sum(1 for one in history.refusals if one.code >= 400),
        "findings": [
            {
                "check": one.check,
                "severity": one.severity.value,
                "is_over": one.is_over if isinstance(one, Explained) else None,
                "cause": (one.cause if isinstance(one, Explained) else "") or None,
                "message": one.message,
                "repair": one.repair,
            }
            for one in account.findings
        ],
        "advice": {"sentence": account.advice.sentence, "command": account.advice.command},
    }


def _tenure(tenure: Tenure) -> dict[str, Any]:
    return {
        "holder": tenure.holder,
        "since": _time(tenure.since),
        "until": _time(tenure.until),
        "began": tenure.began.value,
        "leaderless_seconds": _seconds(tenure.leaderless),
        "writers": [{"user": one.user, "pod": one.pod} for one in tenure.writers],
    }


def _timing(timing: Timing) -> dict[str, Any]:
    return {
        "retry_seconds": timing.retry,
        "is_retry_seen": timing.is_seen,
        "assumed_deadline_seconds": timing.deadline,
        "survives_outage_seconds": timing.survives,
        "tolerates_skew_seconds": timing.skew,
        "longest_without_leader_seconds": timing.longest_without_leader,
        "writes_per_hour": timing.writes_per_hour,
    }


def _last_writer(account: Account) -> dict[str, str] | None:
    tenure = account.tenure
    manager = account.standing.manager if account.standing else ""
    writer = tenure.writers[-1] if tenure and tenure.writers else None
    if writer is None and not manager:
        return None
    return {"user": writer.user if writer else "", "pod": writer.pod if writer else "", "manager": manager}


def _time(at: int | None) -> str | None:
    return None if at is None else canonical(at)


def _seconds(micros: int | None) -> float | None:
    return None if micros is None else micros / SECOND
