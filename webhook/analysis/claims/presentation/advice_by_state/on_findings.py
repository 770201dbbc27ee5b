"""Advice on the findings about a lease, the most pressing one first."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from msgspec.structs import replace

from webhook.analysis.claims.account import Account
from webhook.analysis.claims.claim import REPLACED, Advice, Claim
from webhook.analysis.claims.commands import (
    MUTATORS,
)
from webhook.analysis.claims.evidence.machines.api_servers import (
    API_SERVERS,
)
from webhook.analysis.claims.evidence.writers.foreign_writes import is_taken_by_stranger
from webhook.analysis.claims.words import (
    format_name,
)
from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.history.status import LeaseState
from webhook.findings import ReportFinding, Severity
from webhook.text.commands import split_fix

LOSSES: Final = frozenset({"leader-lost", "renewal-late"})
"""Findings about a holder that lost the lease, or nearly did."""


def find_pressing_error(account: Account) -> ReportFinding | None:
    """Return the error to answer: an ongoing one, else one after which no holder renewed and then lost the lease."""
    errors = [one for one in account.findings if one.severity is Severity.ERROR]
    over = [one for one in errors if isinstance(one, Claim) and one.is_over]
    going_on = [one for one in errors if one not in over]
    history, lost = account.history, _find_last_loss(account.findings)
    end = 0
    if account.state is LeaseState.EXPIRED:
        end = account.now
    elif lost is not None:
        end = lost.over_since or account.now
    # Who was written into a lease and never renewed it is lost because of that, and so is who had stolen it.
    pairs = list(pairwise(history.tenures))
    strangers = {
        id(after) for before, after in pairs if after.until is not None and is_taken_by_stranger(before, after)
    }
    led = (one for one in reversed(history.tenures) if one.since < end and id(one) not in strangers)
    renewed = next((one.last_renewal for one in led), 0)
    if going_on:
        return going_on[0]
    # The latest one is what is shown of those of a kind.
    theft = _find_theft_before(account, lost)
    ended = [one for one in over if (one.over_since or 0) >= renewed or one is theft]
    return max(ended, key=lambda one: one.over_since or 0, default=None)


def _find_theft_before(account: Account, lost: Claim | None) -> Claim | None:
    """Return the theft, or the removal of the holder before, by which the one that lost it since had come to hold it.

    None if it had not come so. If the holder is known to be a pod, what became of that comes first.
    """
    since = lost.arguments.get("from") if lost is not None and lost.is_over else None
    tenure = account.history.find_tenure_at(since) if isinstance(since, int) else None
    own = tenure.processes.own if tenure is not None else None
    if tenure is None or account.state is LeaseState.EXPIRED or (own is not None and own.pod):
        return None
    removed = _find_removed_by_same(account, tenure)
    ends = {("lease-stolen", tenure.since), ("holder-removed", removed.until if removed is not None else None)}
    claims = (one for one in account.findings if isinstance(one, Claim))
    return next((one for one in claims if (one.check, one.over_since) in ends), None)


def _find_removed_by_same(account: Account, tenure: Tenure) -> Tenure | None:
    """Return the tenure that ended with a removal under the field manager of the next holder, and not its own.

    None if it did not: a field manager is a hint, by which the removal is looked at first.
    """
    before = next((one for one, after in pairwise(account.history.tenures) if after is tenure), None)
    is_same = before is not None and before.removal.is_under_other_manager and before.removal.manager == tenure.manager
    return before if is_same else None


def _find_last_loss(findings: Sequence[ReportFinding]) -> Claim | None:
    lost = [one for one in findings if isinstance(one, Claim) and one.check in LOSSES]
    return max(lost, key=lambda one: one.over_since or 2**63, default=None)


def advise_on_warnings(account: Account, known: Sequence[Claim]) -> Advice:
    """Return what to do about warnings of a lease that is held: first about a loss, unless a thief lost the lease."""
    replaced = (one for one in reversed(known) if one.cause == REPLACED)
    # That no one took it for long is often explained by another finding.
    last = next((one for one in reversed(known) if one.check != "taken-late"), known[-1])
    lost = _find_last_loss(known)
    advice = advise_on_finding(_find_theft_before(account, lost) or lost or next(replaced, last))
    chooser = account.election.change_of_chooser
    if lost is None or chooser is None:
        return advice
    server = f"Look at the API server {format_name(chooser.before)}, which chose before, too:"
    commands = [one for one in (advice.command, API_SERVERS) if one]
    return replace(advice, sentence=f"{advice.sentence.rstrip(':.')}. {server}", command="; ".join(commands))


def advise_on_mutation(account: Account, known: Sequence[Claim]) -> Advice | None:
    """Return what to do about writes that are not stored as requested, if that may go on while no loss does."""
    lost = _find_last_loss(known)
    if lost is not None and not lost.is_over:
        return None
    if account.unshown_duration is not None:
        sentence = "The lease may last longer than is asked for. To see what may change it on its way:"
        return Advice(sentence, MUTATORS)
    ongoing = (one for one in known if one.check == "stored-other-than-asked" and one.over_since == 0)
    return next(map(advise_on_finding, ongoing), None)


def advise_on_finding(finding: ReportFinding) -> Advice:
    """Return the advice of a finding: its own words, or its command."""
    if isinstance(finding, Claim):
        return Advice(finding.advice, finding.fix, finding.pods)
    return advise_to_fix("Fix it", finding.fix)


def advise_to_fix(start: str, fix: str) -> Advice:
    """Return the fix of a finding, which is a command, words, or both, as a sentence that begins so and a command."""
    words, command = split_fix(fix)
    said = f"{start}: {words}" if words else start
    return Advice(f"{said}{':' if command else '.'}", command)
