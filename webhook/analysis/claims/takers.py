"""Claims about who takes a lease that is free: no one asks for it, or one took it long after it could have."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from webhook.analysis.claims.advice import Advice, command_for_log_of_holder
from webhook.analysis.claims.candidates import SHORTEST
from webhook.analysis.claims.claim import Claim
from webhook.analysis.claims.handovers import find_duration_edit
from webhook.analysis.claims.lease_claim import make_claim
from webhook.analysis.claims.words import clock, count, name
from webhook.analysis.heartbeats import is_named_for_heartbeats
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.refusal import UNAUTHENTICATED, By
from webhook.analysis.history.tenure import Handover, Tenure
from webhook.analysis.history.waiting import MAX_TIMES
from webhook.findings import Severity
from webhook.kubernetes.times import SECOND, length

if TYPE_CHECKING:
    from webhook.analysis.claims.account import Account

_PATIENCE: Final = 5 * SECOND
"""The most that a client waits beyond the duration: two retry periods of client-go, with jitter."""


def claim_no_candidate(account: "Account") -> Iterator[Claim]:
    """Yield the claim that no process asks for a lease that is free."""
    found = account.candidates
    if found is None or found.asking:
        return
    who = "no other process" if account.holder else "no process"
    asked = "asked for it" if found.shows_reads else "tried to write it"
    message = f"{who} {asked} from {clock(found.since, account.now)} to {clock(found.until, account.now)}"
    how = None if found.shows_reads else "writes"
    arguments = {"identity": account.holder, "how": how, "from": found.since, "to": found.until}
    yield make_claim(account.history, "no-candidate", Severity.INFO, message, Advice(""), arguments=arguments)


def find_late_takers(histories: ClusterHistory, history: LeaseHistory, now: int) -> Iterator[Claim]:
    """Yield a finding for the latest holder that took an expired lease long after it could have.

    No one waits for a heartbeat.
    """
    if is_named_for_heartbeats(history.namespace, history.name):
        return
    late = [
        one
        for before, one in pairwise(history.tenures)
        if _lateness_of(before, one) is not None and not _has_duration_edit(history, before, one)
    ]
    previous = {id(after): before for before, after in pairwise(history.tenures)}
    for after in late[-1:]:
        before = previous[id(after)]
        lateness = _lateness_of(before, after)
        assert lateness is not None
        yield _claim_late_taker(histories, history, after, lateness, now)


def _has_duration_edit(history: LeaseHistory, before: Tenure, after: Tenure) -> bool:
    """Return whether the duration was changed meanwhile: then it is not known when the lease could be taken."""
    return before.inherited is not None or find_duration_edit(history, before, after) is not None


def _lateness_of(before: Tenure, after: Tenure) -> int | None:
    """Return how long after it had expired a lease was taken, if that was longer than followers take."""
    if after.began is not Handover.EXPIRED or not before.duration or before.has_unseen_renewals or after.is_chosen:
        return None
    if not (after.taken.is_dated_by_a_server and before.kept.is_dated_by_a_server) or after.holder == before.holder:
        return None
    late = after.taken.earliest - (before.kept.latest or before.kept.at) - before.duration * SECOND
    return late if late > max(SHORTEST, before.duration * SECOND) else None


def _claim_late_taker(
    histories: ClusterHistory, history: LeaseHistory, after: Tenure, lateness: int, now: int
) -> Claim:
    since = after.since - lateness
    taker, bounds = name(after.holder), histories.bounds
    is_logged = after.taken.is_logged and bool(history.requests.readers) and not bounds.is_log_leaky
    is_logged = is_logged and not bounds.has_hole(since, after.since)
    is_logged = is_logged and after.waited_since is not None and after.waited_since <= since
    silent = _find_silence(after, since) if is_logged else None
    newcomer = _find_first_request(after, since) if is_logged else None
    refused = [one for one in history.requests.refusals if since < one.at < after.since and one.is_denied]
    nameless = [one for one in refused if one.by is By.CREDENTIALS and not one.writer.user]
    how = "unknown"
    why = "whether it ran then, and who asked for the lease, is not known; an audit log that has reads shows it"
    if newcomer is not None and not nameless and _has_waited_once(after, newcomer):
        how, silent = "silent", (since, newcomer)
        why = (
            f"{taker} made no request for it until {clock(newcomer, now)}: it did not run yet, or was paused, blocked "
            "or cut off; whoever looks for the first time waits for as long as the lease lasts"
        )
    elif nameless and silent and any(silent[0] <= one.received <= silent[1] for one in nameless):
        why = (
            f"no request by its name was received from {clock(silent[0], now)} until {clock(silent[1], now)}: it did "
            f"not run yet, or was paused, blocked or cut off, or some of {count(len(nameless), 'request')} without "
            f"accepted credentials, answered with {UNAUTHENTICATED}, were its own"
        )
    elif is_logged and silent and silent[1] - silent[0] > lateness // 2:
        how = "silent"
        begin = f"from {clock(silent[0], now)} " if silent[0] > since else ""
        why = (
            f"{taker} made no request for it {begin}until {clock(silent[1], now)}: it did not run yet, or was paused, "
            "blocked or cut off, or it asks rarely"
        )
    elif is_logged:
        how, asked = "asking", count(len([one for one in after.waited if one > since]), "time")
        why = f"{taker} had asked for it {asked} meanwhile: it waits for longer than the lease lasts, or was refused"
    if refused and len(nameless) < len(refused):
        why += (
            f"; {count(len(refused), 'request')} for it were refused in that time, the last one with {refused[-1].code}"
        )
    message = f"{taker} took it {length(lateness)} after it had expired at {clock(since, now)}: {why}"
    advice = Advice(
        f"See what {taker} did before it took the lease:", command_for_log_of_holder(history.namespace, after.holder)
    )
    return make_claim(
        *(history, "taken-late", Severity.WARNING, message, advice),
        over_since=after.since,
        arguments={
            "identity": after.holder,
            "how": how,
            "from": since,
            "to": after.since,
            "earliest": silent[0] if silent and how == "silent" else None,
            "latest": silent[1] if silent and how == "silent" else None,
        },
    )


def _has_waited_once(after: Tenure, since: int) -> bool:
    """Return whether a taker took the lease about as long after `since` as it lasts."""
    duration = (after.duration or 0) * SECOND
    return duration - SECOND <= after.since - since <= duration + _PATIENCE


def _find_first_request(after: Tenure, since: int) -> int | None:
    """Return when the taker first asked for the lease, if that could be taken by then; None if it may have before."""
    first = min(after.waited, default=since)
    return first if first > since and len(after.waited) < MAX_TIMES else None


def _find_silence(after: Tenure, since: int) -> tuple[int, int] | None:
    """Return the longest time in which the taker made no request since the lease could be taken."""
    times: Sequence[int] = sorted(one for one in after.waited if one <= after.since)
    points = [since, *(one for one in times if one > since)]
    return max(pairwise(points), key=lambda pair: pair[1] - pair[0], default=None)
