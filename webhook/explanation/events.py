"""What happened to a lease, line by line: changes of the holder, silences, refused writes, deletions."""

from collections.abc import Iterator
from itertools import groupby, zip_longest
from typing import Final

from webhook.explanation.account import Account
from webhook.explanation.leader_time import deadline_of
from webhook.explanation.text import Line, handover
from webhook.explanation.words import clock, count, length, name, writer
from webhook.history.lease_history import LeaseHistory
from webhook.history.refusal import Refusal
from webhook.history.tenure import Handover, Tenure
from webhook.observations.observation import Fenced
from webhook.rules.times import SECOND

MOST_EVENTS: Final = 16


def events(account: Account) -> Iterator[Line]:
    """The latest events, oldest first."""
    history, now = account.history, account.now
    found = sorted(_events(history), key=lambda one: one[0])
    if len(found) == 1 and history.tenure and history.tenure.is_cut:
        return  # the headline says as much
    for at, text in found[-MOST_EVENTS:]:
        yield Line(clock(at, now), text)
    if history.changes > 1:
        changes, spent = count(history.changes, "change"), length(history.leaderless)
        yield Line("", f"{changes} of holder; no one led for up to {spent} in all")


def _events(history: LeaseHistory) -> Iterator[tuple[int, str]]:
    tenures = list(history.tenures)
    for tenure, after in zip_longest(tenures, tenures[1:]):
        yield tenure.since, handover(tenure)
        yield from _end(history, tenure, after)
    yield from _silences(history)
    yield from _refusals(history)
    yield from _fenced(history)


def _end(history: LeaseHistory, tenure: Tenure, after: Tenure | None) -> Iterator[tuple[int, str]]:
    holder, duration = name(tenure.holder), _duration(history)
    if tenure.heard_again is not None:
        yield (
            tenure.heard_again,
            (f"the API server is again receiving requests from pod {name(tenure.pods[-1])}, the former holder"),
        )
    if tenure.has_several_writers:
        for at, other in tenure.joined:
            yield at, f"{writer(other)} renews it too, under the same identity"
    if tenure.until is None:
        return
    if tenure.is_deleted:
        by = f"{writer(tenure.deleted_by)} deleted the lease" if tenure.deleted_by else "the lease was deleted"
        yield tenure.until, f"{by} while {holder} held it"
    elif tenure is history.tenure or (after is not None and after.began is Handover.RELEASED):
        yield tenure.until, f"{holder} released it"
    elif after is not None and after.began is Handover.EXPIRED and tenure.last_renewal is not None and duration:
        expired = tenure.last_renewal + duration * SECOND
        if expired <= after.since:
            yield expired, f"the lease expired, {duration} s after the last renewal by {holder}"


def _silences(history: LeaseHistory) -> Iterator[tuple[int, str]]:
    duration = _duration(history)
    if duration is None:
        return
    for silence in history.renewals.silences:
        if silence.length >= deadline_of(duration):
            if silence.length >= duration * SECOND:
                yield silence.start + duration * SECOND, "the lease expired, and no one took it"
            yield silence.start, f"the holder did not renew it for {length(silence.length)}"
            yield silence.end, "the holder renewed it again"


def _duration(history: LeaseHistory) -> int | None:
    """Seconds; None if the lease does not say, or was released."""
    duration = history.lease.spec.lease_duration_seconds if history.lease else None
    return duration if duration and duration > 1 else None


def _fenced(history: LeaseHistory) -> Iterator[tuple[int, str]]:
    """Runs of refused writes of one writer."""

    def kind(one: Fenced) -> tuple[str, str]:
        return one.fence, writer(one.writer)

    for (fence, who), run in groupby(history.fenced, kind):
        several = list(run)
        what = f"{count(len(several), 'write')} by {who} without the lease, such as: {several[0].target}"
        yield several[0].at, f"fence {name(fence)} refused {what}"


def _refusals(history: LeaseHistory) -> Iterator[tuple[int, str]]:
    """Runs of the same answer to the same writer."""

    def kind(one: Refusal) -> tuple[int, str, str]:
        return one.code, writer(one.writer), one.name

    wanted = (one for one in history.refusals if one.is_denied or one.has_failed)
    for (code, who, by), run in groupby(wanted, kind):
        several = list(run)
        what = "failed" if several[0].has_failed else "was refused" if len(several) == 1 else "were refused"
        seconds = several[-1].at - several[0].received
        within = f" within {length(seconds)}" if len(several) > 1 and seconds >= SECOND else ""
        refused_by = f" by {several[0].by.value} {by}" if by else ""
        yield several[0].at, f"{count(len(several), 'write')} by {who} {what} with {code}{refused_by}{within}"
