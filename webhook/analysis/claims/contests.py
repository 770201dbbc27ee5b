"""Claims about processes that take a lease from each other again and again: each goes on as the leader."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

from webhook.analysis.claims.advice import advise_on_contest
from webhook.analysis.claims.claim import Claim
from webhook.analysis.claims.lease_claim import make_claim
from webhook.analysis.claims.words import format_clock, format_name
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.tenure import Handover, Tenure
from webhook.findings import Severity
from webhook.kubernetes.times import SECOND

_LEAST: Final = 4
"""The fewest takeovers in turns that count as a contest: each holder takes back what it lost."""


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


def find_contest(tenures: Sequence[Tenure]) -> Contest | None:
    """Return the latest takeovers in turns by two holders, if they are many; `tenures` have the oldest one first."""
    contest, run = None, list[Tenure]()
    for before, after in pairwise(tenures):
        if not _is_taken_while_live(before, after):
            run = []
            continue
        is_in_turn = bool(run) and {after.holder, before.holder} == {run[-1].holder, run[-1].previous}
        run = [*run, after] if is_in_turn else [after]
        contest = Contest(tuple(run)) if len(run) >= _LEAST else contest
    return contest


def _is_taken_while_live(before: Tenure, after: Tenure) -> bool:
    """Return whether another process took the lease itself, as far as is known, while its holder still held it."""
    is_own = after.began is Handover.STOLEN and after.is_dated and after.processes.doubtful_taker is None
    return is_own and before.holder != after.holder and not after.processes.is_from_pod_of(before.processes)


def claim_contest(history: LeaseHistory, contest: Contest, now: int) -> Claim:
    """Return the claim that two took the lease from each other."""
    first, last = contest.first, contest.last
    is_ongoing = last.until is None and now - last.last_renewal < (last.duration or 0) * SECOND
    is_known = all(one.processes.taken_by is not None for one in contest.tenures)
    did = "took the lease from each other" if is_known else "were written into the lease in place of each other"
    led = "both may lead" if is_ongoing else "both may have led all the time"
    message = (
        f"{format_name(last.previous)} and {format_name(last.holder)} {did} {len(contest.tenures)} times from "
        f"{format_clock(first.since, now)} to {format_clock(last.since, now)}, while it was live: {led}"
    )
    advice = advise_on_contest(history, last, is_ongoing=is_ongoing)
    return make_claim(
        *(history, "lease-contended", Severity.ERROR, message, advice, "stolen"),
        over_since=0 if is_ongoing else last.since,
        arguments={
            "identity": last.holder,
            "previous": last.previous,
            "count": len(contest.tenures),
            "from": first.since,
            "to": last.since,
        },
    )
