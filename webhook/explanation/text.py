"""An account as lines of text: a headline, facts with labels, what happened, findings, and what to do."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from webhook.explanation.account import Account, interval_of
from webhook.explanation.cause import Blame, sentence_of
from webhook.explanation.words import ago, clock, length, name, writer
from webhook.history.standing import Standing, State
from webhook.history.tenure import Handover, Tenure
from webhook.history.timing import proposal_for
from webhook.rules.times import SECOND
from webhook.rules.well_known import NODE_LEASES

MOST_WAITING: Final = 4
API_SERVER: Final = "system:apiserver"
"""Who writes the holder in a coordinated election."""


class Line(Struct, frozen=True):
    """One line: `label` is in a column of its own, `text` is wrapped."""

    label: str
    text: str


def headline(account: Account) -> str:
    """The state in one clause."""
    standing, now = account.standing, account.now
    holder = name(account.holder) if account.holder else "no one"
    if account.history.is_deleted:
        return "the lease was deleted"
    if standing is None:
        return f"{holder} wrote it last; the log does not show the lease itself"
    if account.state is State.LIVE:
        pods = pods_at_once(account)
        return f"{len(pods)} pods lead as {holder}: {' and '.join(pods)}" if pods else f"{holder} leads"
    if account.state is State.EXPIRED:
        return f"no one leads: {holder} last renewed{_since(standing.last_renewal, now)}"
    if account.state is State.RELEASED:
        return f"no one leads: it was released{_since(standing.last_renewal, now)}"
    if account.state is State.NEVER_HELD:
        return "no one leads: the lease was never held"
    if account.state is State.FROZEN and standing.frozen:
        until = standing.frozen.until
        end = "it is repaired" if until is None else clock(until, now)
        return f"{holder} keeps it until {end}: {standing.frozen.reason}"
    return f"{holder} holds it, but the lease does not say until when"


def pods_at_once(account: Account) -> list[str]:
    """The pods that renew the lease in turns under the present holder's name, the latest three; none if one does."""
    tenure = account.tenure
    if tenure is None or not tenure.has_several_writers or len(set(tenure.pods)) < 2:
        return []
    return [name(pod) for pod in tenure.pods[-3:]]


def facts(account: Account) -> Iterator[Line]:
    """The known facts, each with a label."""
    standing, now = account.standing, account.now
    if account.holder:
        yield Line("Held by", f"{name(account.holder)}{_held_since(account)}{_pod(account)}")
    if account.last_renewal is not None:
        yield Line(
            "Last renewed", f"{clock(account.last_renewal, now)}, {ago(account.last_renewal, now)}{_by(account)}"
        )
    if standing is not None:
        yield from _takeable(standing, now)
        if standing.ahead is not None and abs(standing.ahead) > 2 * SECOND and standing.frozen is None:
            direction = "ahead of" if standing.ahead > 0 else "behind"
            yield Line("Clock", f"the holder's is {length(abs(standing.ahead))} {direction} the API server's")
        if not standing.from_stamps and standing.last_renewal is not None:
            yield Line("Evidence", "the holder's own clock: the input has no time of the API server for this lease")
    if account.cause is not None and account.cause.blame is not Blame.UNKNOWN:
        yield Line("Why", _why(account))
    usual = interval_of(account.history)
    if usual is not None:
        longest = length(account.history.renewals.longest)
        gaps = [one.leaderless or 0 for one in account.history.tenures if one.began is Handover.EXPIRED]
        expired = f"; longest gap before another replica took it: {length(max(gaps))}" if gaps else ""
        usually = length(int(usual * SECOND))
        yield Line(
            "Renewals", f"typically every {usually}; longest gap between two by the same holder: {longest}{expired}"
        )
    waiting = list(_waiting(account))
    if waiting:
        yield Line("Waiting", f"{', '.join(waiting[:MOST_WAITING])} (asked for the lease since the holder took it)")


def timing(account: Account) -> Iterator[Line]:
    """What the elector survives, and numbers that survive more."""
    found = account.timing
    if found is None or account.history.namespace == NODE_LEASES:
        return
    seen = "" if found.is_seen else ", assumed"
    yield Line(
        "Duration",
        f"{found.duration:.0f} s, renewed every {round(found.retry, 1):g} s{seen}: "
        f"{found.writes_per_hour:.0f} writes an hour",
    )
    yield Line(
        "Survives",
        f"an API server that is unavailable for {found.survives:.0f} s, if the client gives up {found.deadline:.0f} s "
        "after its last renewal (its deadline, which is assumed)",
    )
    yield Line(
        "After a crash",
        f"up to {found.longest_without_leader:.0f} s without a leader",
    )
    yield Line("Clocks", f"may run apart by up to {found.skew:.0f} s in that time (what is tolerated, not observed)")
    if found.survives < 30:
        for outage in (30, 78):
            better = proposal_for(outage)
            took = f"after a crash up to {better.timing.longest_without_leader:.0f} s without a leader"
            yield Line(
                f"To survive {outage} s",
                f"duration {better.duration} s, deadline {better.deadline} s, retry {better.retry} s; {took}",
            )


def _waiting(account: Account) -> Iterator[str]:
    """Who asked for the lease while the present holder had it, other than the holder."""
    tenure = account.tenure
    for one, at in account.history.readers.latest.items():
        if one != API_SERVER and (tenure is None or (at >= tenure.since and one not in tenure.pods)):
            yield name(one)


def _since(at: int | None, now: int) -> str:
    return "" if at is None else f" {ago(at, now)}"


def _held_since(account: Account) -> str:
    tenure, now = account.tenure, account.now
    by_own_clock = ", as it wrote itself" if tenure and tenure.is_cut and not tenure.is_writer else ""
    return f", since {clock(tenure.since, now)} ({ago(tenure.since, now)}{by_own_clock})" if tenure else ""


def _pod(account: Account) -> str:
    if account.has_pod is None:
        return ""
    return "; its pod exists" if account.has_pod else "; its pod no longer exists"


def _by(account: Account) -> str:
    tenure, standing = account.tenure, account.standing
    who = [f"by {writer(tenure.writers[-1])}"] if tenure and tenure.writers else []
    who += [f"field manager {name(standing.manager)}"] if standing and standing.manager else []
    return f", {', '.join(who)}" if who else ""


def _takeable(standing: Standing, now: int) -> Iterator[Line]:
    at = standing.takeable_at
    if standing.state in {State.RELEASED, State.NEVER_HELD}:
        yield Line("Can be taken", "now")
    elif standing.frozen is not None:
        yield Line(
            "Can be taken", "never, unless it is repaired" if at is None else f"{clock(at, now)}, {ago(at, now)}"
        )
    elif at is not None and at > now:
        yield Line("Expires", f"{clock(at, now)} ({ago(at, now)}) unless renewed")
    elif at is not None:
        yield Line(
            "Can be taken",
            f"now, since {clock(at, now)} ({ago(at, now)}), {standing.duration} s after the last renewal",
        )


def _why(account: Account) -> str:
    assert account.cause is not None
    evidence = account.cause.evidence
    if account.cause.blame is Blame.SERVER:
        return f"{evidence}: look at the API server"
    if account.cause.blame is not Blame.CLIENT:
        return sentence_of(account.cause, name(account.holder))
    return f"{evidence}: the API server was available, so look at {name(account.holder)}"


def handover(tenure: Tenure) -> str:
    """How a holder came to hold the lease, as a clause."""
    holder = name(tenure.holder)
    if tenure.taken_by is not None and tenure.taken_by.user == API_SERVER and tenure.began is not Handover.SEEN:
        return _chosen(tenure)
    who = f" ({writer(tenure.taken_by)})" if tenure.taken_by else ""
    gap = "" if tenure.leaderless is None else f"; no one led for {length(tenure.leaderless)}"
    unheld = "" if tenure.leaderless is None else f"; the lease had no holder for {length(tenure.leaderless)}"
    before = name(tenure.previous) if tenure.previous else "the holder before"
    texts = {
        Handover.SEEN: f"{holder} held it at the start of the data{who}",
        Handover.CREATED: f"{holder} created it{who}",
        Handover.CLAIMED: f"{holder} took it; no one had held it{who}{gap}",
        Handover.RELEASED: f"{holder} took it after {before} released it, an orderly handover{who}{gap}",
        Handover.EXPIRED: f"{holder} took it after {before} let it expire{who}; no one led for up to "
        f"{length(tenure.leaderless or 0)}",
        Handover.STOLEN: f"{holder} took it from {before}, which still held it{who}: two may have led",
        Handover.DELETED: f"{holder} created it again after it was deleted{who}{unheld}",
        Handover.UNKNOWN: f"{holder} held it{who}{gap}",
    }
    return texts[tenure.began]


def _chosen(tenure: Tenure) -> str:
    """A coordinated election: the API server writes the holder."""
    before = name(tenure.previous)
    ends = {
        Handover.EXPIRED: f" after {before} let it expire; no one led for up to {length(tenure.leaderless or 0)}",
        Handover.RELEASED: f" after {before} released it; no one led for {length(tenure.leaderless or 0)}",
        Handover.STOLEN: f" in place of {before}",
    }
    return f"the API server chose {name(tenure.holder)}{ends.get(tenure.began, '')}"
