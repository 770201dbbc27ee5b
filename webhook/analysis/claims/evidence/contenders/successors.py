"""What an API server answered to those that would follow a silent holder: whether anyone could take its lease."""

from collections.abc import Sequence

from webhook.analysis.claims.evidence.silent_holders.silence_evidence import is_under_another_name
from webhook.analysis.history.audit_log.refusal import Refusal
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.status import LeaseState, LeaseStatus


def list_writes_of_successors(history: LeaseHistory, status: LeaseStatus) -> Sequence[Refusal]:
    """Return the answers to writes by other processes of the holder's user since the lease has expired, in order.

    One of them may be of the same pod, under another name.
    """
    tenure, since = history.latest_tenure, status.takeable_at
    own = tenure.processes.own if tenure and tenure.processes.is_process_known else None
    if tenure is None or own is None or since is None:
        return []
    answers = (one for one in history.requests.refusals if one.at >= since and not one.is_read)
    of_user = (one for one in answers if one.writer.user == own.user)
    return [one for one in of_user if not own.is_same(one.writer) or is_under_another_name(tenure, one)]


def find_failing_webhook(history: LeaseHistory, status: LeaseStatus) -> str:
    """Return the webhook that the API server could not call when such a process wrote last; "" if it could."""
    writes = list_writes_of_successors(history, status)
    return writes[-1].failed_webhook if writes and writes[-1].has_failed else ""


def find_last_rejection(history: LeaseHistory, status: LeaseStatus | None) -> Refusal | None:
    """Return the last answer to those that would take an expired lease if every write failed or was refused.

    None if no one tried, or if a write came too late only because of another one.
    """
    if status is None or status.state is not LeaseState.EXPIRED:
        return None
    writes = list_writes_of_successors(history, status)
    return writes[-1] if writes and all(one.has_failed or one.is_denied for one in writes) else None
