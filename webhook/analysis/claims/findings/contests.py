"""Claims about processes that take a lease from each other again and again: each still acts as the leader."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

from webhook.analysis.claims.advice.on_writers import advise_on_contest
from webhook.analysis.claims.claim import Claim
from webhook.analysis.claims.findings.lease_claim import make_claim
from webhook.analysis.claims.words import format_clocks, format_name
from webhook.analysis.history.holders.tenure import Handover, Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.findings import Severity
from webhook.kubernetes.times import MINUTE, SECOND, format_length

_LEAST: Final = 4
"""The fewest takeovers in turns that count as a contest: each holder takes back what it lost."""
_LEAST_OWN: Final = 2
"""Each took back what it had lost, by its own hand."""
_LONGEST_PAUSE: Final = 10 * MINUTE
"""A lease that is taken after a longer time as its holder is taken by itself, and not in answer to what was before."""

_UNKNOWN: Final = (
    ", unless they hand it over or another one writes one of them, or both; the input does not show who wrote it"
)


class Contest(Struct, frozen=True):
    """The tenures of two holders that took the lease from each other while it was live, one after the other."""

    tenures: Sequence[Tenure]

    @property
    def first(self) -> Tenure:
        """The first one that took it."""
        return self.tenures[0]

    @property
    def last(self) -> Tenure:
        """The last one that took it."""
        return self.tenures[-1]

    @property
    def is_by_holders(self) -> bool:
        """Whether each is known to have taken it itself again and again: no one wrote both in, or handed it over."""
        own = [one.holder for one in self._own]
        is_each = all(own.count(name) >= _LEAST_OWN for name in (self.last.previous, self.last.holder))
        return len(own) == len(self.tenures) or is_each

    @property
    def _own(self) -> Sequence[Tenure]:
        return [one for one in self.tenures if one.processes.taken_by is not None]

    def describe_unknown(self) -> str:
        """Return the end of a clause: how often each is known to have taken it itself, "" if each time."""
        if not self.is_by_holders:
            return _UNKNOWN
        number, is_all = len(self._own), len(self._own) == len(self.tenures)
        return "" if is_all else f"; of {number} of these times, the input shows that the new holder wrote itself in"

    @property
    def is_as_asked(self) -> bool:
        """Whether a log shows of some of them what they asked, and not what was stored before."""
        return any(one.beginning.is_over_unshown for one in self.tenures)

    def is_ongoing(self, now: int) -> bool:
        """Return whether the last one holds it, and the other one may be about to take it, by how it went so far."""
        last, duration = self.last, (self.last.duration or 0) * SECOND
        longest = max(after.since - before.since for before, after in pairwise(self.tenures))
        is_live = last.until is None and now - last.last_renewal < duration
        return is_live and now - last.since < max(2 * longest, duration)


def find_contest(tenures: Sequence[Tenure]) -> Contest | None:
    """Return the latest takeovers in turns by two holders, if they are many; `tenures` have the oldest one first."""
    contest, run = None, list[Tenure]()
    for before, after in pairwise(tenures):
        if not _is_taken_while_live(before, after):
            run = []
            continue
        is_in_turn = (
            bool(run)
            and {after.holder, before.holder} == {run[-1].holder, run[-1].previous}
            and after.since - run[-1].since <= _LONGEST_PAUSE
        )
        run = [*run, after] if is_in_turn else [after]
        contest = Contest(tuple(run)) if len(run) >= _LEAST else contest
    return contest


def _is_taken_while_live(before: Tenure, after: Tenure) -> bool:
    """Return whether another process took the lease itself, as far as is known, while its holder still held it."""
    # A log of requests does not show what was stored: by what was asked, it was held.
    is_taken = after.began is Handover.STOLEN or (
        after.beginning.is_over_unshown and after.processes.taken_by is not None
    )
    is_own = is_taken and after.beginning.is_dated and after.processes.doubtful_taker is None
    return is_own and before.holder != after.holder and not after.processes.is_from_pod_of(before.processes)


def _describe_copies(contest: Contest) -> str:
    """Say whose renewTimes were old when it was written in, as those of a stored copy of the lease are."""
    by_holder = {
        name: [one for one in contest.tenures if one.holder == name]
        for name in (contest.last.previous, contest.last.holder)
    }
    old = [ones[-1] for ones in by_holder.values() if all(one.copied_age for one in ones)]
    if len(old) != 1 or old[0].copied_age is None:
        return ""
    age = format_length(old[0].copied_age)
    manager = f", with the field manager {format_name(old[0].beginning.manager)}" if old[0].beginning.manager else ""
    return (
        f". Each time {format_name(old[0].holder)} was written in{manager}, renewTime was old, {age} at last, and no "
        "renewal followed, as if a stored copy of the lease was written, such as a manifest"
    )


def claim_contest(history: LeaseHistory, contest: Contest, now: int) -> Claim:
    """Return the claim that two took the lease from each other."""
    first, last, is_ongoing = contest.first, contest.last, contest.is_ongoing(now)
    did = (
        "took the lease from each other"
        if contest.is_by_holders
        else "were written into the lease in place of each other"
    )
    led = "both may lead" if is_ongoing else "both may have led all the time"
    unknown = contest.describe_unknown()
    unknown += "" if contest.is_by_holders else _describe_copies(contest)
    shown = " by what the log shows of their requests" if contest.is_as_asked else ""
    start, end = format_clocks(now, first.since, last.since)
    message = (
        f"{format_name(last.previous)} and {format_name(last.holder)} {did} {len(contest.tenures)} times between "
        f"{start} and {end}, each time while it was live{shown}: {led}{unknown}"
    )
    advice = advise_on_contest(history, last, is_ongoing=is_ongoing, is_known=contest.is_by_holders)
    return make_claim(
        history,
        "lease-contended",
        Severity.ERROR,
        message,
        advice,
        "stolen",
        over_since=0 if is_ongoing else last.since,
        arguments={
            "identity": last.holder,
            "previous": last.previous,
            "count": len(contest.tenures),
            "from": first.since,
            "to": last.since,
        },
    )
