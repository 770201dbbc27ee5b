"""How holders lost a lease: by expiry, by a steal, by deletion; each with its cause, as findings."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from webhook.audit.command_words import kubectl
from webhook.explanation import commands
from webhook.explanation.cause import Blame, Cause, cause_of_loss, sentence_of
from webhook.explanation.explained import Explained, explained
from webhook.explanation.leader_time import without_leader
from webhook.explanation.next_step import Advice, next_step
from webhook.explanation.words import clock, length, name, writer
from webhook.history.cluster_history import ClusterHistory
from webhook.history.lease_history import LeaseHistory
from webhook.history.tenure import Handover, Tenure
from webhook.history.timing import timing_of
from webhook.reports.model import Severity
from webhook.rules.times import SECOND

MOST: Final = 10
"""Findings of one kind: the latest ones."""
_OFF: Final = 2 * SECOND
"""How far a clock must be off to be reported."""


def handovers(cluster: ClusterHistory, history: LeaseHistory, now: int) -> Iterator[Explained]:
    """Everything that went wrong when the holder changed, the latest last."""
    tenures = list(history.tenures)
    for before, after in list(pairwise(tenures))[-MOST:]:
        if after.began is Handover.STOLEN:
            yield _stolen(history, before, after, now)
        elif after.began is Handover.DELETED:
            yield _deleted(history, before, after, now)
        elif after.began is Handover.EXPIRED:
            yield _lost(history, before, after, cause_of_loss(cluster, history, before, after), now)
    if history.is_deleted and tenures:
        yield _deleted(history, tenures[-1], None, now)


def _lost(history: LeaseHistory, before: Tenure, after: Tenure, cause: Cause, now: int) -> Explained:
    last = before.since if before.last_renewal is None else before.last_renewal
    message = (
        f"{name(before.holder)} last renewed at {clock(last, now)} and let the lease expire; "
        f"{name(after.holder)} took it at {clock(after.since, now)}: "
        f"{without_leader(after.leaderless or 0, _duration(history))}. "
        f"{sentence_of(cause, 'the old holder')}{_afterwards(cause.blame, before, now)}"
    )
    step = next_step(cause, history, before)
    advice = Advice(f"The lease is held now. {step.sentence}", step.command)
    return explained(history, "leader-lost", Severity.WARNING, message, advice, cause.blame, is_over=True)


def _afterwards(blame: Blame, before: Tenure, now: int) -> str:
    if blame is not Blame.CLIENT or before.heard_again is None:
        return ""
    return (
        f" From {clock(before.heard_again, now)} on, the API server received requests from its pod again: it had been "
        "paused, cut off or restarted. Unless it restarted, it may have acted as leader beside the new holder until it "
        "noticed."
    )


def _stolen(history: LeaseHistory, before: Tenure, after: Tenure, now: int) -> Explained:
    duration, last = _duration(history), before.last_renewal
    left = (
        "" if last is None or not duration else f", {length(last + duration * SECOND - after.since)} before it expired"
    )
    message = (
        f"at {clock(after.since, now)} {name(after.holder)} took the lease while {name(before.holder)} still held it"
        f"{left}: two may have led at once, until the old holder noticed"
    )
    taker = name(after.holder)
    if before.ahead is not None and before.ahead < -_OFF:
        message += (
            f". The old holder's clock is {length(-before.ahead)} behind the API server's, so the lease looked expired "
            "to the new holder, if that compares renewTime with its own clock"
        )
        sentence = (
            f"Correct the clock of the node of {name(before.holder)}; {taker} should wait until the lease has not "
            "changed for its whole duration. To see which nodes they run on:"
        )
        advice = Advice(sentence, f"{kubectl(history.namespace)} get pods -o wide")
        return explained(history, "lease-stolen", Severity.ERROR, message, advice, "clock", is_over=True)
    sentence = (
        f"Find out why {taker} does not wait until the lease expires (the webhook denies this in preset strict). To "
        "see what it is:"
    )
    advice = Advice(sentence, commands.pod_of_holder(history.namespace, after.holder))
    return explained(history, "lease-stolen", Severity.ERROR, message, advice, "stolen", is_over=True)


def _deleted(history: LeaseHistory, before: Tenure, after: Tenure | None, now: int) -> Explained:
    who = before.deleted_by
    by = f"{writer(who)} deleted the lease" if who and who.name else "the lease was deleted"
    at = "" if before.until is None else f" at {clock(before.until, now)}"
    message = f"{by}{at} while {name(before.holder)} held it"
    if after is not None:
        message += f"; {name(after.holder)} created it again {length(after.leaderless or 0)} later"
    is_taken = after is not None and after.holder != before.holder
    if is_taken:
        deadline = timing_of(_duration(history) or 15, None).deadline
        message += (
            f": two may have led at once. The old holder notices only when a renewal fails; most clients then go on as "
            f"leader for up to {deadline:.0f} s"
        )
    severity = Severity.ERROR if is_taken else Severity.WARNING
    if who and who.name:
        sentence = f"Decide whether {name(who.name)} should be allowed to delete leases. To see whether it still is:"
        command = commands.rights("delete", history.namespace, history.name, who)
    else:
        sentence = "A watch does not show who deleted it; the audit log of the API server does:"
        command = commands.audit_log(history.namespace, history.name)
    is_over = None if after is None else True
    advice = Advice(sentence, command)
    return explained(history, "lease-deleted", severity, message, advice, "deleted", is_over=is_over)


def _duration(history: LeaseHistory) -> int | None:
    return history.lease.spec.lease_duration_seconds if history.lease else None
