"""Whether something is to be done now: the start of an advice, in words that are true at the end of the input."""

from typing import Final

from msgspec.structs import replace

from webhook.analysis.claims.account import Account
from webhook.analysis.claims.claim import Advice
from webhook.analysis.claims.evidence.writers.stored_copies import find_stored_copies
from webhook.analysis.claims.findings.free_times import is_used_at_times
from webhook.analysis.claims.findings.ongoing import is_ongoing
from webhook.analysis.claims.presentation.advise import advise
from webhook.analysis.heartbeats import is_identity_of_api_server
from webhook.analysis.history.status import LeaseState
from webhook.findings import Severity
from webhook.kubernetes.times import DAY, MINUTE, SECOND

_NOW: Final = "Act now. "
_IF_USED: Final = "Act now if a program still uses this lease. "
_HELD: Final = "Held and renewed now. "
_RENEWED: Final = "Renewed now. "
"""Start of an advice about a heartbeat that names no holder."""
_HELD_UNTIL_LATER: Final = "Held now. "
"""Start of an advice where a renewal is due, or more than one, but none is so late that it would be a finding.

Or where the holder has only taken the lease so far.
"""
_HELD_BY_ENDED: Final = "Held now, but a container of its holder's pod has ended since its last write. "
_STATES: Final = ("It is held", "It is renewed", "The lease is held")
"""Openings of advice that already states whether the lease is held."""


def advise_with_urgency(account: Account) -> Advice:
    """Return the advice about a lease, which begins with whether something is to be done now, if that is known."""
    advice, start = advise(account), _find_start(account)
    sentence = advice.sentence
    is_state = start in {_HELD, _RENEWED, _HELD_UNTIL_LATER, _HELD_BY_ENDED}
    # What to look at first may stand before that.
    is_said_later = is_state and any(f". {one}" in sentence for one in _STATES)
    if not start or sentence.startswith(_STATES) or is_said_later:
        return advice
    return replace(advice, sentence=f"{start}{sentence}")


def _is_free_for_long(account: Account) -> bool:
    """Return whether no one has taken a lease for a while that its last holder renewed, as no lock for a task is."""
    tenure = account.history.latest_tenure
    until = tenure.until if tenure is not None and tenure.processes.renewals else None
    return until is not None and account.now - until >= MINUTE and not is_used_at_times(account)


def _find_start(account: Account) -> str:
    if account.status is None or account.history.is_mixed:
        return ""
    loud = [one for one in account.findings if one.severity is not Severity.INFO]
    checks = {one.check for one in loud}
    if is_identity_of_api_server(account.history.namespace, account.history.name):
        loud = [one for one in loud if one.check != "renewal-late"]  # others answer as long as any writes
    if account.state is LeaseState.FROZEN or any(map(is_ongoing, loud)) or "election-stalled" in checks:
        return _NOW
    copies = find_stored_copies(account.history)
    if copies is not None and copies.is_ongoing(account.history, account.now):
        return _NOW  # between two of these, others took it: it is in use
    if account.state is LeaseState.EXPIRED:
        is_doubtful = account.doubt.may_lack_renewals or account.recent_renew_time is not None
        is_old = account.last_renewal is not None and account.now - account.last_renewal >= DAY
        return "" if account.is_heartbeat or is_doubtful or is_old else _IF_USED
    if account.state is LeaseState.RELEASED and _is_free_for_long(account):
        return _IF_USED
    if account.state is not LeaseState.LIVE or not account.is_renewed_as_usual:
        return ""
    renewals = account.history.renewals
    is_due = account.now - (renewals.last or 0) > 2 * (renewals.usual or SECOND) + SECOND
    if account.is_nameless:
        return "" if is_due else _RENEWED
    if account.pods.end_of_holder:
        return _HELD_BY_ENDED
    return _HELD_UNTIL_LATER if is_due or account.is_taken_only else _HELD
