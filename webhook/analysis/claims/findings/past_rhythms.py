"""A lease that two electors seem to have renewed under one identity, and renew no longer: its intervals alternated.

Where they still do, a finding says so, and where a log shows who renewed, that.
"""

from msgspec import Struct

from webhook.analysis.claims.words import format_clock, format_name
from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.renewals import TwoRhythms
from webhook.kubernetes.times import SECOND


class PastRhythms(Struct, frozen=True):
    """Until when a holder was renewed in two rhythms."""

    holder: str
    rhythms: TwoRhythms

    def describe(self, now: int) -> str:
        """`until 12:00:42Z db-0 was renewed in two rhythms (4.9 and 0.1 s in turn), as if by two electors`."""
        longer, shorter = (f"{one / SECOND:.1f}" for one in self.rhythms.intervals)
        return (
            f"until {format_clock(self.rhythms.end, now)} {format_name(self.holder)} was renewed in two rhythms "
            f"(after {longer} and {shorter} s in turn), as if by two electors under one identity"
        )


def find_past_rhythms(history: LeaseHistory) -> PastRhythms | None:
    """Return the latest time in which the intervals of a lease alternated; None if they do, or one pod renewed it."""
    rhythms = history.renewals.two_rhythms
    tenure = history.find_tenure_of_silence(rhythms) if rhythms is not None else None
    if rhythms is None or tenure is None or not tenure.holder or history.renewals.is_doubled:
        return None
    return None if _shows_processes(tenure) else PastRhythms(tenure.holder, rhythms)


def _shows_processes(tenure: Tenure) -> bool:
    """Return whether a log shows whose renewals these were: of several processes, or of one pod."""
    processes = tenure.processes
    is_one_pod = processes.own is not None and bool(processes.own.pod) and not processes.unknown_renewals
    return processes.has_several_writers or bool(processes.others) or is_one_pod
