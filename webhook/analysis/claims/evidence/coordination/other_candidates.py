"""Pods that ask for a lease of a coordinated election, and whose LeaseCandidates are for another one.

An API server chooses the holder of a lease among the candidates that name it: who reads one lease and is a candidate
for another waits in vain, while that other one is given to it.
"""

from msgspec import Struct

from webhook.analysis.claims.claim import Advice
from webhook.analysis.claims.evidence.contenders.askers import Askers, describe_process, join_names
from webhook.analysis.claims.words import format_clock, format_name
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.inputs.items import Writer
from webhook.text.commands import make_kubectl_prefix


class OtherCandidates(Struct, frozen=True):
    """The pods, and the lease that their candidates name.

    An API server chose `chosen` for that at `at`, in microseconds since 1970, if the input shows that; else "".
    """

    namespace: str
    lease: str
    pods: tuple[Writer, ...]
    chosen: str = ""
    at: int = 0

    def describe(self, now: int) -> str:
        """Say what the log shows of it, as a sentence without its end."""
        who, lease = join_names([describe_process(one) for one in self.pods]), format_name(self.lease)
        asks, its = ("asks", "its LeaseCandidates") if len(self.pods) == 1 else ("ask", "their LeaseCandidates")
        text = f"{who} {asks} for this lease, but {its} are for lease {lease}, and none in the log is for this one"
        if self.chosen:
            at = format_clock(self.at, now)
            text += f"; an API server chose {format_name(self.chosen)} for {lease} at {at}"
        return text

    def advise(self) -> Advice:
        """Return what to do so that one of them can be chosen."""
        who = join_names([describe_process(one) for one in self.pods])
        sentence = (
            f"An API server chooses only among the LeaseCandidates of a lease: set leaseName in those of {who} to the "
            "lease that they wait for. To see which lease each is for:"
        )
        columns = "custom-columns=NAME:.metadata.name,LEASE:.spec.leaseName"
        return Advice(sentence, f"{make_kubectl_prefix(self.namespace)} get leasecandidates -o {columns}")


def find_other_candidates(
    histories: ClusterHistory, history: LeaseHistory, askers: Askers | None
) -> OtherCandidates | None:
    """Return them if each pod that asks for a free lease has candidates, and all of them for one other lease."""
    if askers is None or histories.find_strategy(history) is None or not askers.asking:
        return None
    pods = tuple(who for who, _ in askers.asking)
    found = [histories.candidate_writers.list_leases(history.namespace, who).values() for who in pods]
    leases = {lease for named in found for lease in named}
    if not all(found) or len(leases) != 1 or history.name in leases:
        return None
    lease = leases.pop()
    other = histories.leases.get((history.namespace, lease))
    given = next((one for one in reversed(other.tenures) if one.is_chosen), None) if other is not None else None
    chosen, at = (given.holder, given.since) if given is not None else ("", 0)
    return OtherCandidates(history.namespace, lease, tuple(sorted(pods, key=lambda one: one.pod)), chosen, at)
