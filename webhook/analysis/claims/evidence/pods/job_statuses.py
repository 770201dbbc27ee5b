"""The Job of which a holder's pod has the name, and of which the status was written after the pod's last write.

A log of low level does not show what the status says: as a rule, the job controller writes it when a pod ends.
"""

import re
from typing import Final

from msgspec import Struct

from webhook.analysis.claims.claim import Advice
from webhook.analysis.claims.words import format_clock, format_name
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.lease import LeaseHistory
from webhook.kubernetes.generated_names import GENERATED
from webhook.kubernetes.request import UserInfo
from webhook.kubernetes.times import MINUTE
from webhook.text.commands import make_kubectl_prefix, quote_name

_POD: Final = re.compile(rf"(.+)-{GENERATED}{{5}}")
"""The name of a pod of a Job: the name of that, and a random text."""


class JobStatus(Struct, frozen=True):
    """The first write of the status of a Job by the job controller since the last write by a pod of its name."""

    at: int
    namespace: str
    job: str

    def describe(self) -> str:
        """`the job controller wrote the status of Job backup-1, as when a pod of it ends`."""
        return f"the job controller wrote the status of Job {format_name(self.job)}, as when a pod of it ends"

    def advise(self, now: int) -> Advice:
        """Return how to see whether the Job has ended: then no one needs the lease."""
        sentence = (
            f"Its last writer is named as a pod of Job {format_name(self.job)}, of which the status was written at "
            f"{format_clock(self.at, now)}, after that. See whether the Job is complete; if so, no action is needed:"
        )
        return Advice(sentence, f"{make_kubectl_prefix(self.namespace)} get job {quote_name(self.job)}")


def find_job_status(histories: ClusterHistory, history: LeaseHistory, now: int) -> JobStatus | None:
    """Return when the status of the Job of the latest holder's pod was written after its last write; else None.

    Nor while its next write may still come.
    """
    tenure = history.latest_tenure
    own = tenure.processes.own if tenure is not None and tenure.processes.is_process_known else None
    account = UserInfo(own.user).service_account if own is not None else None
    if tenure is None or own is None or account is None or own.impersonator:
        return None
    named = _POD.fullmatch(own.pod)
    if named is None:
        return None
    last = max(tenure.last_of_identity, tenure.until or 0)
    if tenure.until is None and now - last <= 2 * (history.renewals.usual or 0):
        return None
    about = histories.pod_requests.list_about_job(account[0], named[1])
    at = next((one.at for one in about if last < one.at <= last + MINUTE), None)
    return JobStatus(at, account[0], named[1]) if at is not None else None
