"""Why renewals failed to come: the API server, or the one program that should have made them."""

from enum import StrEnum

from msgspec import Struct

from webhook.explanation.words import count, length, name
from webhook.history.cluster_history import ClusterHistory
from webhook.history.lease_history import LeaseHistory, Refusal


class Blame(StrEnum):
    """Where to look."""

    SERVER = "api-server"
    CLIENT = "client"
    REFUSED = "refused"
    """The API server, or a webhook or policy in it, refused the renewals."""
    UNKNOWN = "unknown"


class Cause(Struct, frozen=True):
    """Where to look, and the evidence as a clause of a sentence."""

    blame: Blame
    evidence: str


def cause_of(cluster: ClusterHistory, history: LeaseHistory, start: int, end: int) -> Cause:
    """Why a lease was not renewed between two instants; what the API server answered counts before what others did."""
    answers = [one for one in history.refusals if start <= one.at <= end]
    refused = [one for one in answers if 400 <= one.code < 500 and one.code not in {409, 429}]
    if refused:
        return Cause(Blame.REFUSED, _refusals(refused))
    failed = [one for one in answers if one.code >= 500 or one.code == 429]
    slow = [one for one in answers if 200 <= one.code < 300]
    if failed:
        return Cause(Blame.SERVER, f"it answered {count(len(failed), 'renewal')} with {failed[-1].code}")
    company = cluster.company_of(history, start, end)
    if company.is_known and company.all_were_late:
        known = company.late + company.on_time
        evidence = (
            f"{company.late} of the {known} other leases that are renewed often enough were late at the same time"
        )
        return Cause(Blame.SERVER, evidence)
    if slow:
        longest = max(one.took for one in slow)
        return Cause(Blame.SERVER, f"it took up to {length(longest)} to answer a renewal")
    if company.is_known:
        others = "the other lease was" if company.on_time == 1 else f"{company.on_time} other leases were"
        return Cause(Blame.CLIENT, f"{others} renewed on time meanwhile")
    return Cause(Blame.UNKNOWN, "no other lease in the input shows whether the API server was away")


def snapshot_cause(cluster: ClusterHistory, history: LeaseHistory, last: int, now: int) -> Cause:
    """The same of a dump, which has only the last renewal of each lease."""
    company = cluster.stopped_with(history, last, now)
    if not company.is_known:
        return Cause(Blame.UNKNOWN, "no other lease in the input shows whether the API server was away")
    if company.all_were_late:
        return Cause(Blame.SERVER, f"{count(company.late, 'other lease')} stopped at the same time")
    return Cause(Blame.CLIENT, f"{count(company.on_time, 'other lease')} went on being renewed after that")


def in_words(cause: Cause, holder: str) -> str:
    """A cause as one sentence about a holder."""
    if cause.blame is Blame.SERVER:
        return f"The API server was slow or away: {cause.evidence}."
    if cause.blame is Blame.CLIENT:
        return f"The fault is with {name(holder)} (its process, CPU limit, node or network): {cause.evidence}."
    if cause.blame is Blame.REFUSED:
        return f"Its writes were refused: {cause.evidence}."
    return f"Why is not known: {cause.evidence}; give all of them (-A)."


def _refusals(refused: list[Refusal]) -> str:
    last = refused[-1]
    said = f", the last one with: {name(last.message)}" if last.message else ""
    return f"{count(len(refused), 'write')} answered with {last.code}{said}"
