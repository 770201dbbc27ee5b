"""Another node whose kubelet writes from the address of one that fell silent: one machine may have a new name.

An API server sees the address of its peer, which no client chooses. Behind a proxy or NAT many nodes have one, and it
may be given to another machine, so what follows is a lead.
"""

from msgspec import Struct

from webhook.admission.rules.change import NODE_LEASES
from webhook.analysis.claims.claim import Advice
from webhook.analysis.claims.words import format_clock, format_name
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.history.status import LeaseState
from webhook.text.commands import quote_name


class RenamedNode(Struct, frozen=True):
    """The node that renews its lease from the address from which `before` did, since `since`, after that was silent.

    `since` is in microseconds since 1970.
    """

    before: str
    name: str
    address: str
    since: int

    def describe(self, now: int) -> str:
        """Say what the log shows of it, as a sentence without its end."""
        return (
            f"node {format_name(self.name)} has renewed its lease since {format_clock(self.since, now)} from "
            f"{format_name(self.address)}, which was the address of this node: the machine may run under that name "
            "now, or the address was given to another machine"
        )

    def advise(self) -> Advice:
        """Return where to look before a machine that works is taken for dead."""
        sentence = (
            f"Its machine may go on as node {format_name(self.name)}: see there which name its kubelet uses, before "
            "anything is restarted or deleted. To compare both nodes:"
        )
        return Advice(sentence, f"kubectl get nodes {quote_name(self.before)} {quote_name(self.name)} -o wide")


def find_renamed_node(histories: ClusterHistory, history: LeaseHistory, now: int) -> RenamedNode | None:
    """Return the only other node at the address of a silent one, if it came after that had renewed last; else None."""
    status, tenure = history.find_status(now), history.latest_tenure
    if history.namespace != NODE_LEASES or status is None or status.state is not LeaseState.EXPIRED or tenure is None:
        return None
    address = history.find_address_of_kubelet()
    others = [one for one in histories.index.list_nodes_at(address) if one is not history] if address else []
    if len(others) != 1:
        return None
    other = others[0]
    first, its_status = other.tenures[0], other.find_status(now)
    if its_status is None or its_status.state is not LeaseState.LIVE or first.since <= tenure.last_renewal:
        return None
    return RenamedNode(history.name, other.name, address, first.since)
