"""Why renewals failed to come: the API server, the way to it, or the one program that should have made them."""

from enum import StrEnum

from msgspec import Struct

from webhook.explanation.words import count, length
from webhook.history.cluster_history import ClusterHistory
from webhook.history.lease_history import LeaseHistory
from webhook.history.refusal import Refusal
from webhook.history.renewals import Company, received_within
from webhook.history.tenure import Tenure
from webhook.observations.observation import Origin

_WITHOUT_EVIDENCE = "no other lease in the input shows whether the API server was unavailable"


class Blame(StrEnum):
    """Where to look."""

    SERVER = "api-server"
    NETWORK = "network"
    """What all clients go through: a load balancer, or the network before the API server."""
    CLIENT = "client"
    REFUSED = "refused"
    """The API server, or a webhook or policy in it, refused the renewals."""
    UNKNOWN = "unknown"


class Cause(Struct, frozen=True):
    """Where to look, and the evidence as a clause of a sentence; `refusal` is the last one if the writes were refused.

    `is_silent` is set if an audit log shows that no request of the holder was received.
    """

    blame: Blame
    evidence: str
    refusal: Refusal | None = None
    is_silent: bool = False


def cause_of(
    cluster: ClusterHistory, history: LeaseHistory, start: int, end: int, requests: int | None = None
) -> Cause:
    """Why a lease was not renewed between two instants; what the API server answered counts before what others did.

    Args:
        cluster: all leases of the input.
        history: the lease.
        start: its last renewal, in microseconds since 1970.
        end: when it was renewed again, or taken.
        requests: how many requests of the holder were received in that time; None if that cannot be known.

    """
    # What was received at the end of that time only was held back until then.
    answers = [one for one in history.refusals if start <= one.at <= end and one.received < end - (end - start) // 8]
    refused = [one for one in answers if one.is_denied]
    if refused:
        return Cause(Blame.REFUSED, _refusals(refused), refused[-1])
    failed = [one for one in answers if one.has_failed]
    slow = [one for one in answers if 200 <= one.code < 300]
    company = cluster.company_of(history, start, end)
    late = _late(company)
    if failed:
        also = f", and {late}" if late else ""
        return Cause(Blame.SERVER, f"it answered {count(len(failed), 'request')} with {failed[-1].code}{also}")
    is_silent = requests == 0 and history.origin is Origin.AUDIT_LOG
    if late:
        if is_silent and not slow:
            until = "until the end of that time"
            return Cause(Blame.NETWORK, f"{late}, and it received no request from the holder {until}")
        return Cause(Blame.SERVER, late)
    if slow:
        longest = max(one.took for one in slow)
        return Cause(Blame.SERVER, f"it took up to {length(longest)} to answer a renewal")
    if company.is_known:
        others = "the other lease was" if company.on_time == 1 else f"{company.on_time} other leases were"
        unheard = ", and the API server received no request from it" if is_silent else ""
        return Cause(Blame.CLIENT, f"during that time {others} renewed on time{unheard}", is_silent=is_silent)
    return Cause(Blame.UNKNOWN, _WITHOUT_EVIDENCE)


def cause_of_loss(cluster: ClusterHistory, history: LeaseHistory, before: Tenure, after: Tenure) -> Cause:
    """Why a holder let the lease expire before the next one took it."""
    start = before.since if before.last_renewal is None else before.last_renewal
    return cause_of(cluster, history, start, after.since, received_within(before, start, after.since))


def snapshot_cause(cluster: ClusterHistory, history: LeaseHistory, last: int, now: int) -> Cause:
    """The same of a dump, which has only the last renewal of each lease."""
    company = cluster.stopped_with(history, last, now)
    if not company.is_known:
        return Cause(Blame.UNKNOWN, _WITHOUT_EVIDENCE)
    if company.all_were_late:
        return Cause(Blame.SERVER, f"{count(company.late, 'other lease')} stopped at the same time")
    return Cause(Blame.CLIENT, f"{count(company.on_time, 'other lease')} went on being renewed after that")


def sentence_of(cause: Cause, who: str) -> str:
    """A cause as one sentence about a holder, who is named or described, such as `the old holder`."""
    if cause.blame is Blame.SERVER:
        return f"The API server was slow or unavailable: {cause.evidence}."
    if cause.blame is Blame.NETWORK:
        return f"Clients did not reach the API server: {cause.evidence}."
    if cause.blame is Blame.CLIENT:
        # Only an audit log shows whether its writes were refused.
        suspects = "its process, CPU limit, node or network" + ("" if cause.is_silent else ", or its permissions")
        return f"Most likely the cause is on {who}'s side ({suspects}): {cause.evidence}."
    if cause.blame is Blame.REFUSED:
        return f"Its writes were refused: {cause.evidence}."
    return f"Why is not known: {cause.evidence}; give all of them (-A)."


def _late(company: Company) -> str:
    if not company.is_known or not company.all_were_late:
        return ""
    known = company.late + company.on_time
    which = {1: "the other lease", 2: "both other leases"}.get(known, f"all {known} other leases")
    if company.on_time:
        which = f"{company.late} of the {known} other leases"
    if company.is_sample:
        which = f"{company.late} of a sample of {known} other leases"
    verb = "was" if known == 1 else "were"
    return f"{which} with regular renewals {verb} late at the same time"


def _refusals(refused: list[Refusal]) -> str:
    last = refused[-1]
    said = f", the last one: {last.message}" if last.message else ""
    return f"{count(len(refused), 'write')} answered with {last.code}{said}"
