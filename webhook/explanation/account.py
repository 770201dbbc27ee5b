"""Everything known about one lease, ready to be shown: the state, the facts, what happened, what to do."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from webhook.api.times import SECOND, canonical
from webhook.audit.command_words import filled, kubectl, word
from webhook.audit.inventory import LEASE_CHECKS
from webhook.audit.leases import foreign_in_kube_system, homes_of
from webhook.audit.subject import Subject
from webhook.explanation.causes import (
    Advice,
    Blame,
    Cause,
    cause_of,
    next_step,
    pod_of_holder,
    snapshot_cause,
)
from webhook.explanation.findings import Explained, beside, incidents
from webhook.explanation.words import name
from webhook.findings import Finding, Severity
from webhook.history.events import Handover, Tenure
from webhook.history.follow import Follower, LeaseHistory
from webhook.history.status import LeaseStatus, State
from webhook.history.timing import Timing, timing_of
from webhook.inputs.items import InputKind

MAX_TENURES: Final = 20


class Account(Struct, frozen=True):
    """One lease at `now`; `standing` is None if its object was never seen, or is gone."""

    history: LeaseHistory
    now: int
    state: State
    standing: LeaseStatus | None
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


def account_of(cluster: Follower, history: LeaseHistory, now: int, *, has_pod: bool | None = None) -> Account:
    """Everything that is known of one lease.

    Args:
        cluster: all leases of the input, which show whether only one was late or all were.
        history: the lease.
        now: microseconds since 1970.
        has_pod: whether the pod that the holder names exists; None if it was not checked.

    """
    standing = history.status(now)
    state = standing.state if standing else State.UNKNOWN
    cause = ongoing_cause(cluster, history, now)
    findings: list[Finding] = list(incidents(cluster, history, now, cause))
    if history.lease is not None and standing is not None:
        subject = Subject(history.lease, history.namespace, history.name, now, interval=interval_of(history))
        findings += beside(findings, (one for check in LEASE_CHECKS for one in check(subject)))
        findings += foreign_in_kube_system(subject, homes_of(history))
    findings.sort(key=lambda one: list(Severity).index(one.severity))
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


def ongoing_cause(cluster: Follower, history: LeaseHistory, now: int) -> Cause | None:
    """Why the holder does not renew now; None if the lease has not expired."""
    standing = history.status(now)
    if standing is None or standing.state is not State.EXPIRED or standing.last_renewal is None:
        return None
    start = standing.last_renewal
    if history.kind is not InputKind.DUMP and cluster.until is not None:
        end = min(now, cluster.until)
        cause = cause_of(cluster, history, history.tenure, start, end)
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
        "tenures": [_tenure(one) for one in list(history.tenures)[-MAX_TENURES:]],
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
                "fix": one.fix,
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


_LOST: Final = frozenset({"leader-lost", "renewal-late"})


def advice(
    history: LeaseHistory,
    standing: LeaseStatus | None,
    state: State,
    findings: Sequence[Finding],
    cause: Cause | None,
    *,
    has_pod: bool | None,
) -> Advice:
    """What a person on call should do about a lease."""
    where = kubectl(history.namespace)
    if history.is_deleted:
        sentence = "The lease was deleted; a program that still runs creates it again:"
        return Advice(sentence, f"{where} get lease {word(history.name)} --watch")
    if standing is None:
        sentence = "Only its writes were seen, not the lease:"
        return Advice(sentence, f"{where} get lease {word(history.name)} -o yaml --show-managed-fields")
    if state is State.FROZEN and standing.block:
        repair = filled(standing.block.repair, history.namespace, history.name)
        return Advice("Repair it, or no other replica can follow the holder:", repair)
    worst = findings[0] if findings and findings[0].severity is Severity.ERROR else None
    if worst is not None:
        return _of(worst)
    if state is State.EXPIRED:
        return _expired(history, standing, cause, has_pod=has_pod)
    if state in {State.RELEASED, State.NEVER_HELD}:
        asks = "" if history.readers.counts else "; if none runs, the lease stays free"
        return Advice(f"Any replica may take the lease at once{asks}:", f"{where} get pods")
    known = [one for one in findings if isinstance(one, Explained) and one.severity is Severity.WARNING]
    lost = [one for one in known if one.check in _LOST]
    if known:
        return _of((lost or known)[-1])
    if state is State.UNKNOWN:
        sentence = "The lease does not say when it expires, so its own client decides:"
        return Advice(sentence, pod_of_holder(history.namespace, standing.holder))
    wrong = next((one for one in findings if one.severity is Severity.WARNING), None)
    if wrong is not None:
        return Advice(f"The lease is held and renewed, but: {wrong.message}.", wrong.fix)
    return _nothing(history)


def _nothing(history: LeaseHistory) -> Advice:
    tenure = history.tenure
    if history.is_moment:
        return Advice(
            "Nothing now: the lease is held. What happened before is not in a list, but in a watch or an audit log."
        )
    before = history.tenures[-2] if len(history.tenures) > 1 else None
    if tenure is not None and tenure.began is Handover.RELEASED and before is not None and before.is_own_release:
        return Advice("Nothing: the last change of leader was an orderly handover, and the lease is held and renewed.")
    return Advice("Nothing: the lease is held and renewed.")


def _of(finding: Finding) -> Advice:
    if isinstance(finding, Explained):
        return Advice(finding.advice, finding.fix)
    return Advice(_sentence(finding.message), finding.fix)


def _expired(history: LeaseHistory, standing: LeaseStatus, cause: Cause | None, *, has_pod: bool | None) -> Advice:
    where, holder = kubectl(history.namespace), name(standing.holder)
    if cause is not None and cause.blame in {Blame.SERVER, Blame.NETWORK, Blame.REFUSED}:
        return next_step(cause, history, history.tenure or Tenure(standing.holder, 0, Handover.SEEN))
    if has_pod is False:
        sentence = f"The pod of {holder} is gone, and no other replica took the lease:"
        return Advice(sentence, f"{where} get pods,deployments")
    sentence = f"Find out whether {holder} still runs, and why no other replica takes over:"
    pods, pod = f"{where} get pods", pod_of_holder(history.namespace, standing.holder)
    return Advice(sentence, pods if pod == pods else f"{pods}; {pod}")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
