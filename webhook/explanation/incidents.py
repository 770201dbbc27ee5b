"""What went wrong in the history of a lease, as findings: lost leaders, late renewals, odd writers, refused writes."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from msgspec import Struct

from webhook.explanation.cause import Blame, Cause, cause_of, cause_of_loss, sentence_of
from webhook.explanation.explained import Explained, explained
from webhook.explanation.handovers import handovers
from webhook.explanation.leader_time import deadline_of, goes_on_for
from webhook.explanation.next_step import Advice, next_step
from webhook.explanation.refused import fenced, refused
from webhook.explanation.words import clock, length, name
from webhook.explanation.writers import writers
from webhook.history.cluster_history import ClusterHistory
from webhook.history.lease_history import LeaseHistory
from webhook.history.renewals import Silence
from webhook.history.tenure import Handover, Tenure
from webhook.reports.model import Severity
from webhook.rules.times import SECOND

MOST: Final = 10
"""Findings of one kind: the latest ones."""


def incidents(
    cluster: ClusterHistory, history: LeaseHistory, now: int, ongoing: Cause | None = None
) -> Iterator[Explained]:
    """Everything that went wrong, the latest of each kind last; `ongoing` is why the holder does not renew now."""
    late = list(late_renewals(cluster, history))
    lost = list(handovers(cluster, history, now))
    yield from lost
    yield from (_late(history, one, now) for one in late)
    yield from writers(history, history.standing(now))
    known = [(one.silence.start, one.silence.end) for one in late if one.cause.blame is Blame.REFUSED]
    known += _explained_by_refusals(cluster, history)
    if ongoing is not None and ongoing.blame is Blame.REFUSED and history.tenure:
        known.append((history.tenure.last_renewal or now, now))
    yield from refused(history, known, now)
    yield from fenced(history, now)


class Late(Struct, frozen=True):
    """A holder that renewed so late that its lease had expired, or that most clients would have given up."""

    silence: Silence
    tenure: Tenure
    cause: Cause
    risk: str

    @property
    def holder(self) -> str:
        """Who renewed late."""
        return self.tenure.holder

    @property
    def sentence(self) -> str:
        """All of it but when it was."""
        return f"{name(self.holder)} did not renew for {length(self.silence.length)}. {self.rest}"

    @property
    def rest(self) -> str:
        """Why, and what it risked."""
        return f"{sentence_of(self.cause, 'the holder')} {self.risk}."


def late_renewals(cluster: ClusterHistory, history: LeaseHistory) -> Iterator[Late]:
    """The latest renewals that came beyond the deadline of most clients, oldest first."""
    duration = history.lease.spec.lease_duration_seconds if history.lease else None
    if not duration or duration <= 1:
        return
    deadline = deadline_of(duration)
    for silence in list(history.renewals.silences)[-MOST:]:
        if silence.length < deadline:
            continue  # late, but in time
        risk = (
            f"Most clients stop leading {length(deadline)} to {length(goes_on_for(duration))} after their last "
            f"renewal, so possibly no one led, for up to about {length(silence.length - deadline)}; "
            "the input does not show whether this one stopped"
        )
        if silence.length >= duration * SECOND:
            risk += ". The lease expired, but no one took it, so the holder could renew it"
        cause = cause_of(cluster, history, silence.start, silence.end, silence.requests)
        yield Late(silence, _tenure_at(history, silence.end), cause, risk)


def _late(history: LeaseHistory, one: Late, now: int) -> Explained:
    since = clock(one.silence.start, now)
    message = f"{name(one.holder)} did not renew for {length(one.silence.length)}, from {since} on. {one.rest}"
    step = next_step(one.cause, history, one.tenure)
    ended = "The refusals have ended" if one.cause.blame is Blame.REFUSED else "The lease is renewed again"
    advice = Advice(f"{ended}. {step.sentence}", step.command)
    return explained(history, "renewal-late", Severity.WARNING, message, advice, one.cause.blame, is_over=True)


def _explained_by_refusals(cluster: ClusterHistory, history: LeaseHistory) -> Iterator[tuple[int, int]]:
    """The times before takeovers whose cause is that writes were refused."""
    tenures = list(history.tenures)
    for before, after in pairwise(tenures):
        if after.began is Handover.EXPIRED and cause_of_loss(cluster, history, before, after).blame is Blame.REFUSED:
            yield before.last_renewal or before.since, after.since


def _tenure_at(history: LeaseHistory, at: int) -> Tenure:
    """Who held a lease that was renewed at that instant."""
    held = [one for one in history.tenures if one.since <= at]
    return (held or history.tenures)[-1]
