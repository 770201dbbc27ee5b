"""What went wrong in the history of a lease, as findings: lost leaders, steals, late renewals, shared identities."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from msgspec import Struct

from webhook.audit.finding import Finding
from webhook.audit.holding import pod_of
from webhook.explanation.cause import Blame, Cause, cause_of, in_words
from webhook.explanation.words import clock, count, length, name, writer
from webhook.history.cluster_history import ClusterHistory
from webhook.history.lease_history import LeaseHistory
from webhook.history.renewals import Silence
from webhook.history.tenure import Handover
from webhook.history.timing import timing_of
from webhook.reports.model import Severity
from webhook.rules.times import SECOND

MOST: Final = 10
"""Findings of one kind: the latest ones."""


def incidents(cluster: ClusterHistory, history: LeaseHistory, now: int) -> Iterator[Finding]:
    """Everything that went wrong, the latest last."""
    yield from _handovers(cluster, history, now)
    yield from _late_renewals(cluster, history, now)
    yield from _writers(history)
    yield from _refusals(history)


def _handovers(cluster: ClusterHistory, history: LeaseHistory, now: int) -> Iterator[Finding]:
    ended = list(history.tenures)
    for before, after in list(pairwise(ended))[-MOST:]:
        at = clock(after.since, now)
        if after.began is Handover.STOLEN:
            message = (
                f"at {at} {name(after.holder)} took the lease while {name(before.holder)} still had it: "
                "two may have led at once"
            )
            repair = (
                "find the client that does not wait for the lease to expire: lease-webhook rules takeover-before-expiry"
            )
            yield _finding(history, "lease-stolen", Severity.ERROR, message, repair)
        elif after.began is Handover.EXPIRED and before.last_renewal is not None:
            cause = cause_of(cluster, history, before.last_renewal, after.since)
            message = (
                f"{name(before.holder)} last renewed at {clock(before.last_renewal, now)} and let the lease expire; "
                f"{name(after.holder)} took it at {at}: no one led for up to {length(after.leaderless or 0)}. "
                f"{in_words(cause, before.holder)}"
            )
            yield _finding(history, "leader-lost", Severity.WARNING, message, repair_for(cause, history, before.holder))


class Late(Struct, frozen=True):
    """A holder that renewed so late that its time had run out, or that most clients would have given up."""

    silence: Silence
    holder: str
    cause: Cause
    risk: str

    @property
    def sentence(self) -> str:
        """All of it but when it was."""
        return f"{name(self.holder)} did not renew for {length(self.silence.length)}, and kept the lease: {self.rest}"

    @property
    def rest(self) -> str:
        """What it risked, and why."""
        return f"{self.risk}. {in_words(self.cause, self.holder)}"


def late_renewals(cluster: ClusterHistory, history: LeaseHistory) -> Iterator[Late]:
    """The latest renewals that came beyond the deadline of most clients, oldest first."""
    duration = history.lease.spec.lease_duration_seconds if history.lease else None
    if not duration or duration <= 1:
        return
    deadline = timing_of(duration, None).deadline * SECOND
    for silence in list(history.renewals.silences)[-MOST:]:
        if silence.length < deadline:
            continue  # late, but in time
        holder = _holder_at(history, silence.end)
        has_expired = silence.length >= duration * SECOND
        risk = (
            "it had expired meanwhile, and anybody could have taken it"
            if has_expired
            else (f"after {length(int(deadline))} most clients give up and exit")
        )
        yield Late(silence, holder, cause_of(cluster, history, silence.start, silence.end), risk)


def _late_renewals(cluster: ClusterHistory, history: LeaseHistory, now: int) -> Iterator[Finding]:
    for one in late_renewals(cluster, history):
        since = clock(one.silence.start, now)
        message = (
            f"{name(one.holder)} did not renew for {length(one.silence.length)} from {since} on, and kept the lease: "
            f"{one.rest}"
        )
        repair = repair_for(one.cause, history, one.holder)
        yield _finding(history, "renewal-late", Severity.WARNING, message, repair)


def _writers(history: LeaseHistory) -> Iterator[Finding]:
    for tenure in list(history.tenures)[-MOST:]:
        if tenure.has_several_writers and len(tenure.writers) > 1:
            who = " and ".join(writer(one) for one in tenure.writers[-3:])
            message = f"{who} renew in turns under one identity, {name(tenure.holder)}: each believes that it leads"
            repair = "give every replica an identity of its own (the pod's name)"
            yield _finding(history, "identity-shared", Severity.ERROR, message, repair)
    users = {one.name for tenure in history.tenures for one in tenure.writers}
    if len(users) > 1 and not any(user.startswith("system:") for user in users):
        names = ", ".join(sorted(name(one) for one in users)[:4])
        message = f"several service accounts have held this lease: {names}"
        yield _finding(
            history, "lease-shared", Severity.WARNING, message, "if they are two applications, give each its own lease"
        )


def _refusals(history: LeaseHistory) -> Iterator[Finding]:
    denied = [one for one in history.refusals if one.code in {401, 403, 422}]
    if denied:
        last = denied[-1]
        message = f"{count(len(denied), 'write')} refused with {last.code}, the last by {writer(last.writer)}"
        if last.message:
            message += f": {name(last.message)}"
        user = last.writer.user or "USER"
        repair = f"kubectl auth can-i update lease/{history.name} -n {history.namespace} --as={name(user)}"
        yield _finding(history, "write-refused", Severity.WARNING, message, repair)


def repair_for(cause: Cause, history: LeaseHistory, holder: str) -> str:
    """The command to run next."""
    if cause.blame is Blame.SERVER:
        return "kubectl get --raw '/readyz?verbose'; then lease-webhook doctor, as a slow webhook looks the same"
    if cause.blame is Blame.REFUSED:
        return f"kubectl auth can-i update lease/{history.name} -n {history.namespace} --as=SERVICE-ACCOUNT"
    if cause.blame is Blame.CLIENT:
        return f"kubectl -n {history.namespace} describe pod {pod_of(holder)}"
    return "kubectl get leases -A -w -o json --output-watch-events --show-managed-fields > leases.json"


def _holder_at(history: LeaseHistory, at: int) -> str:
    """Who held a lease that was renewed at that instant."""
    held = [one for one in history.tenures if one.since <= at]
    return (held or history.tenures)[-1].holder


def _finding(history: LeaseHistory, check: str, severity: Severity, message: str, repair: str) -> Finding:
    return Finding(
        kind="Lease",
        namespace=history.namespace,
        name=history.name,
        check=check,
        severity=severity,
        message=message,
        repair=repair,
    )
