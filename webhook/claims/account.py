"""Everything known about one lease, ready to be shown: the state, the facts, what happened, what to do."""

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from webhook.api.objects import Lease
from webhook.api.times import SECOND, canonical, stamp_of
from webhook.audit.leases import Subject, of_state
from webhook.claims import causes
from webhook.claims.causes import Advice, Blame, Cause
from webhook.claims.claim import Claim
from webhook.claims.claim import as_json as claim_as_json
from webhook.claims.collect import with_findings
from webhook.claims.findings import beside, incidents
from webhook.claims.words import name
from webhook.findings import ORDER, Finding, Severity, filled, kubectl, word
from webhook.history.events import Tenure
from webhook.history.follow import Follower
from webhook.history.lease import LeaseHistory
from webhook.history.status import LeaseStatus, State, renewed_at, written_at
from webhook.inputs.items import InputKind, Observation, Unrecorded, Writer
from webhook.rules.stamps import NAMES, is_constant

MAX_TENURES: Final = 20
_MIN_SEEN: Final = 2
_EXPLAINED: Final = frozenset({Blame.SERVER, Blame.NETWORK, Blame.REFUSED, Blame.THROTTLED, Blame.CONFLICT})
_USUAL: Final = 10 * SECOND
"""Clients renew more often than that, unless their leases last for minutes."""

_STATES_BY_TROUBLE: Final = (
    State.FROZEN,
    State.EXPIRED,
    State.UNKNOWN,
    State.RELEASED,
    State.NEVER_HELD,
    State.LIVE,
)


class Account(Struct, frozen=True):
    """One lease at `now`; `standing` is None if its object was never seen, or is gone."""

    history: LeaseHistory
    now: int
    standing: LeaseStatus | None
    findings: tuple[Finding, ...]
    cause: Cause | None
    election_events: tuple[tuple[int, str], ...] = ()
    """Time and text of the Events by which a replica said that it began or stopped to lead."""
    unrecorded: tuple[Unrecorded, ...] = ()

    @property
    def state(self) -> State:
        """UNKNOWN if its object was never seen, or is gone."""
        return self.standing.state if self.standing else State.UNKNOWN

    @property
    def holder(self) -> str:
        """Who holds it; for logs without objects, who wrote it last."""
        if self.standing:
            return self.standing.holder
        return self.history.tenure.holder if self.history.tenure and not self.history.is_deleted else ""

    @property
    def last_renewal(self) -> int | None:
        """When the holder last renewed it: by the log, else by the stamp."""
        if self.tenure and not self.is_renewed_last:
            return self.tenure.last_renewal
        logged = self.history.renewals.last
        shown = self.standing.last_renewal if self.standing else None
        if shown is None and self.history.is_moment:
            return None  # it was taken, and whether it was renewed is not known
        if shown is None or (logged is not None and abs(logged - shown) < 2 * SECOND):
            return logged if logged is not None else shown
        return shown

    @property
    def tenure(self) -> Tenure | None:
        """The present holder's time, if it was seen."""
        tenure = self.history.tenure
        return tenure if tenure and tenure.holder == self.holder else None

    @property
    def is_renewed_last(self) -> bool:
        """False if another writer than the holder made the last renewal."""
        return self.tenure is None or self.tenure.kept_until == self.tenure.last_renewal

    @property
    def is_renewed_as_usual(self) -> bool:
        """True if one process was seen to renew the lease at its usual rhythm until the end."""
        renewals, tenure = self.history.renewals, self.tenure
        if tenure is None or renewals.last is None or (tenure.renewed is None and renewals.count < _MIN_SEEN):
            return False
        usual = renewals.longest_usual or max(renewals.longest, _USUAL)
        return self.is_renewed_last and self.now - renewals.last <= 2 * usual

    @property
    def written_later(self) -> int | None:
        """The time of a later write than the last renewal that set the holder or a stamp; None if it is known which."""
        lease, tenure, renewed = self.history.lease, self.tenure, self.last_renewal
        if lease is None or tenure is None or renewed is None or not self.history.is_moment or lease.spec.strategy:
            return None  # in a coordinated election the API server writes the holder, which then renews
        if not is_constant(self.history.entries):
            written = written_at(lease.spec, self.history.entries) or renewed
            return written if written > renewed else None
        annotations = (lease.metadata.annotations or {}).items()
        stamps = [stamp_of(text) or 0 for key, text in annotations if key.startswith(f"{NAMES}written-")]
        return next((at for at in stamps if renewed + SECOND < at <= self.now), None)

    @property
    def worst(self) -> Finding | None:
        """The most severe finding; None if nothing needs attention."""
        return next((one for one in self.findings if one.severity is not Severity.INFO), None)

    @property
    def is_late(self) -> bool:
        """True if it is held, and was not renewed for longer than twice its usual interval."""
        usual, at = self.history.interval, self.last_renewal
        return self.state is State.LIVE and usual is not None and at is not None and self.now - at > 2 * usual * SECOND

    @property
    def trouble(self) -> tuple[int, int, bool]:
        """A key that sorts leases with the worst first: by the severity of what is wrong, then by state."""
        severity = self.worst.severity if self.worst else Severity.INFO
        return ORDER[severity], _STATES_BY_TROUBLE.index(self.state), not self.is_late

    @property
    def claims(self) -> Iterator[Claim]:
        """Everything that is said of the lease."""
        return with_findings(self)

    @property
    def advice(self) -> Advice:
        """What a person on call should do about the lease."""
        history, standing = self.history, self.standing
        where = kubectl(history.namespace)
        lease = f"{where} get lease {word(history.name)}"
        if history.is_mixed:
            return _of(self.findings[0])
        if standing is None:
            return self._without_lease(lease)
        stalled = [one for one in self.findings if one.check == "election-stalled"]
        if stalled:
            return Advice("Clear preferredHolder; an API server then names a holder again:", stalled[0].fix)
        if standing.block:
            repair = filled(standing.block.repair, history.namespace, history.name)
            return Advice("Repair it, or no other replica can follow the holder:", repair)
        if (error := self._pressing) is not None:
            return _of(error)
        if self.state is State.EXPIRED:
            return self._after_expiry(standing)
        if self.written_later is not None:
            clock = "" if standing.from_stamps else ", unless its clock is behind"
            sentence = f"Another one than the holder may have written it after its last renewal{clock}. To see who:"
            return Advice(sentence, causes.audit_log(history.namespace, history.name))
        if self.state in {State.RELEASED, State.NEVER_HELD}:
            asks = "" if history.readers else "; if none runs, the lease stays free"
            return Advice(f"Any replica may take the lease at once{asks}:", f"{where} get pods")
        return self._while_held(standing)

    def _without_lease(self, lease: str) -> Advice:
        """Return the advice if its object was never seen, or is gone; `lease` is the command that shows it."""
        if self.history.is_deleted:
            return Advice("The lease was deleted; a program that still runs creates it again:", f"{lease} --watch")
        if self.history.absent:
            pods = f"{kubectl(self.history.namespace)} get leases,pods"
            return Advice("It does not exist; its clients create it when they may:", pods)
        return Advice("Only its writes were seen, not the lease:", f"{lease} -o yaml --show-managed-fields")

    @property
    def _pressing(self) -> Finding | None:
        """The error to answer: one that goes on, else one after which no holder renewed and then lost the lease."""
        errors = [one for one in self.findings if one.severity is Severity.ERROR]
        over = [one for one in errors if isinstance(one, Claim) and one.is_over]
        going_on = [one for one in errors if one not in over]
        history, lost = self.history, self._last_loss
        end = self.now if self.state is State.EXPIRED else 0 if lost is None else lost.over_since or self.now
        # Who was written into a lease and never renewed it is lost because of that.
        renewed = next((one.last_renewal for one in reversed(history.tenures) if one.since < end), 0)
        return next(iter(going_on or [one for one in over if (one.over_since or self.now) >= renewed]), None)

    @property
    def _last_loss(self) -> Claim | None:
        lost = [one for one in self.findings if isinstance(one, Claim) and one.check in {"leader-lost", "renewal-late"}]
        return max(lost, key=lambda one: one.over_since or self.now, default=None)

    def _while_held(self, standing: LeaseStatus) -> Advice:
        warnings = [one for one in self.findings if one.severity is Severity.WARNING]
        if known := [one for one in warnings if isinstance(one, Claim)]:
            return _of(self._last_loss or known[-1])
        if self.state is State.UNKNOWN:
            sentence = "The lease does not say when it expires, so its own client decides:"
            return Advice(sentence, causes.pod_of_holder(self.history.namespace, standing.holder))
        if warnings:
            return Advice(f"The lease is held and renewed, but: {warnings[0].message}.", warnings[0].fix)
        if self.history.is_moment:
            return Advice("Nothing now: the lease is held.")
        if self.is_renewed_as_usual:
            return Advice("Nothing: the lease is held and renewed.")
        pod = causes.pod_of_holder(self.history.namespace, standing.holder)
        return Advice("The input does not show two renewals by the same process, so see whether it runs:", pod)

    def _after_expiry(self, standing: LeaseStatus) -> Advice:
        history, cause, holder = self.history, self.cause, name(standing.holder)
        if cause is not None and history.tenure and cause.blame in _EXPLAINED:
            return causes.next_step(cause, history, history.tenure)
        pods = f"{kubectl(history.namespace)} get pods"
        sentence = f"Find out whether {holder} still runs, and why no other replica takes over:"
        process = history.tenure.process if history.tenure and history.tenure.is_sure else None
        pod = causes.pod_of_holder(history.namespace, (process.pod if process else "") or standing.holder)
        return Advice(sentence, pods if pod == pods else f"{pods}; {pod}")


def _of(finding: Finding) -> Advice:
    if isinstance(finding, Claim):
        return Advice(finding.advice, finding.fix)
    text = finding.message
    return Advice(text[:1].upper() + text[1:] + ("" if text.endswith(".") else "."), finding.fix)


def account_of(cluster: Follower, history: LeaseHistory, now: int, seen_until: int = 0) -> Account:
    """Return everything that is known of one lease at `now`, in microseconds since 1970.

    The other leases of `cluster` show whether only one was late or all were. `seen_until` is that of a `Subject`.
    """
    standing = history.status(now)
    cause = ongoing_cause(cluster, history, now)
    findings: list[Finding] = list(incidents(cluster, history, now, cause))
    if history.lease is not None and standing is not None:
        subject = Subject(history.lease, history.namespace, history.name, now, history.interval, standing, seen_until)
        findings += beside(findings, of_state(subject))
    findings.sort(key=lambda one: ORDER[one.severity])
    said = cluster.election_events.get((history.namespace, history.name), ())
    quoted = tuple(sorted(one for one in said if one[0] <= now))
    return Account(history, now, standing, tuple(findings), cause, quoted, tuple(cluster.bounds.unrecorded))


def account_of_state(seen: Observation, now: int) -> Account:
    """Return what one list shows of a lease: no history, and so no cause."""
    assert isinstance(seen.object, Lease)
    subject = Subject(seen.object, seen.namespace, seen.name, now)
    history = LeaseHistory(seen.namespace, seen.name)
    at = renewed_at(subject.lease, subject.entries)
    if at is not None and subject.status.holder:
        history.renewals.restart(at)
    findings = sorted(of_state(subject), key=lambda one: ORDER[one.severity])
    return Account(history, now, subject.status, tuple(findings), None)


def ongoing_cause(cluster: Follower, history: LeaseHistory, now: int) -> Cause | None:
    """Return why the holder does not renew now; None if the lease has not expired."""
    standing = history.status(now)
    if standing is None or standing.state is not State.EXPIRED or standing.last_renewal is None:
        return None
    if history.kind is not InputKind.DUMP and cluster.bounds.until is not None:
        tenure = history.tenure
        start = tenure.last_renewal if tenure and tenure.touched else standing.last_renewal
        cause = causes.cause_of(cluster, history, tenure, start, min(now, cluster.bounds.until))
        if cause.evidence != causes.WITHOUT_EVIDENCE:
            return cause
    # A watch in which every lease stopped ends with the last renewal.
    return causes.snapshot_cause(cluster, standing, now)


def as_json(account: Account) -> dict[str, Any]:
    """Return the account as a JSON object; times are RFC 3339, lengths of time are seconds."""
    history, standing, tenure, gaps = account.history, account.standing, account.tenure, account.unrecorded
    return {
        "namespace": history.namespace,
        "name": history.name,
        "state": account.state.value,
        "holder": account.holder or None,
        "held_since": _time(tenure.since if tenure and tenure.is_dated and account.written_later is None else None),
        "last_renewal": _time(account.last_renewal),
        "last_renewal_by": _last_writer(account),
        "evidence": "none" if standing is None else "api-server" if standing.from_stamps else "holder",
        "takeable_at": _time(standing.takeable_at if standing else None),
        "duration_seconds": standing.duration if standing else None,
        "holder_clock_ahead_seconds": _seconds(standing.ahead if standing else None),
        "now": _time(account.now),
        "handovers": {how.value: number for how, number in history.handovers.items()},
        "leaderless_seconds": _seconds(history.leaderless_until(account.now)),
        "tenures": [_tenure(one) for one in list(history.tenures)[-MAX_TENURES:]],
        "renewals": {
            "seen": history.renewals.count,
            "usual_interval_seconds": history.interval,
            "longest_silence_seconds": _seconds(history.renewals.longest),
        },
        "unrecorded": [{"from": _time(one.start), "to": _time(one.end), "reason": one.reason} for one in gaps],
        "waiting": {who: number for who, (number, _) in history.readers.items()},
        "refused": sum(1 for one in history.refusals if one.code >= 400),
        "events": [{"time": _time(at), "says": text} for at, text in account.election_events],
        "claims": [claim_as_json(claim) for claim in account.claims],
        "findings": [
            {
                "check": one.check,
                "severity": one.severity.value,
                "is_over": one.is_over if isinstance(one, Claim) else None,
                "cause": (one.cause if isinstance(one, Claim) else "") or None,
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
        "since": _time(tenure.since if tenure.is_dated else None),
        "until": _time(tenure.until if tenure.is_end_dated else None),
        "began": tenure.began.value,
        "leaderless_seconds": _seconds(tenure.leaderless),
        "writers": [_writer(one) for one in tenure.writers],
        **({} if tenure.term is None else {"term": tenure.term}),
    }


def _last_writer(account: Account) -> dict[str, str] | None:
    tenure = account.tenure
    manager = account.standing.manager if account.standing and account.is_renewed_last else ""
    writer = tenure.renewer if tenure else None
    if writer is None and not manager:
        return None
    return {**_writer(writer or Writer()), "manager": manager}


def _writer(one: Writer) -> dict[str, str]:
    known = {"pod_uid": one.uid, "impersonated_by": one.impersonator}
    return {"user": one.user, "pod": one.pod, **{key: text for key, text in known.items() if text}}


def _time(at: int | None) -> str | None:
    return None if at is None else canonical(at)


def _seconds(micros: int | None) -> float | None:
    return None if micros is None else micros / SECOND
