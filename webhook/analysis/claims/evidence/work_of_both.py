"""What the pod of a former holder wrote after another one had taken the lease: the work of two leaders, perhaps."""

from msgspec import Struct

from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.holders.tenure import Tenure


class WorkOfBoth(Struct, frozen=True):
    """Writes to other objects: of the former holder's pod, and of the next holder's until the last of those.

    `last` is when the last one of the former holder was answered, in microseconds since 1970.
    """

    own: int
    last: int
    other: int


def find_work_of_both(histories: ClusterHistory, before: Tenure, after: Tenure) -> WorkOfBoth | None:
    """Return what the pods of two holders wrote at the same time; None if the former one wrote nothing then.

    Once it asks for the lease again, its elector has noticed, or its process has restarted.
    """
    own, other = before.processes.own, after.processes.own
    if own is None or not before.processes.is_process_known or own.is_pod_of(other) or before.processes.others:
        return None
    heard = before.processes.list_requests_after(before.last_of_identity)
    ends = [at for at in (*heard[:1], after.until, histories.bounds.until) if at is not None]
    start, end = after.since + histories.bounds.skew, min(ends, default=after.since)
    until = histories.bounds.until or end
    seen = histories.pod_activities.list_between(own, start, until)
    writes = [one for one in seen if one.is_write and one.received <= end]
    if not writes:
        return None
    last = max(one.at for one in writes)
    others = [one for one in histories.pod_activities.list_between(other, start, last) if one.is_write]
    return WorkOfBoth(len(writes), last, len(others))
