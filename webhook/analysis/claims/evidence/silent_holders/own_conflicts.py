"""An update that conflicted with the holder's own last renewal: both were under way at once.

A client that renews twice at a time, as after a pause, may take its own conflict for another leader, and stop.
"""

from msgspec.structs import replace

from webhook.analysis.claims.diagnosis import Blame, Cause, Diagnosis
from webhook.analysis.claims.evidence.silent_holders.silence_evidence import SilenceEvidence
from webhook.analysis.history.audit_log.refusal import Refusal
from webhook.analysis.history.write import Write


def add_own_conflict(cause: Diagnosis, evidence: SilenceEvidence) -> Diagnosis:
    """Return the cause of a silence, with an update of the holder that its own last renewal made conflict."""
    if cause.blame not in {Blame.CLIENT, Blame.UNKNOWN} or not _has_own_conflict(evidence):
        return cause
    text = (
        "it had sent its last renewal and another update at once, of which the other one was answered with 409: a "
        "client that takes that for another leader may have stopped"
    )
    possible = tuple(dict.fromkeys((*cause.possible_causes, Cause.CONFLICT)))
    return replace(cause, evidence=f"{text}; {cause.evidence}", possible_causes=possible)


def _has_own_conflict(evidence: SilenceEvidence) -> bool:
    """Return whether a request that conflicted was under way with the last renewal; who tries again comes later."""
    tenure = evidence.tenure
    renewal = tenure.last_renewal_write if tenure else None
    if tenure is None or renewal is None or not renewal.is_exact:
        return False
    conflicts = (one for one in evidence.history.requests.refusals if one.has_conflicted and not one.is_read)
    return any(_overlaps(renewal, one) and tenure.is_by(one.writer) is True for one in conflicts)


def _overlaps(renewal: Write, answer: Refusal) -> bool:
    """Return whether both were surely under way at one instant."""
    received, answered = renewal.earliest + renewal.skew, (renewal.latest or renewal.at) - renewal.skew
    return received < answer.at and answer.received < answered
