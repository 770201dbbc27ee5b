"""A node's heartbeat that another program writes from another address, with the credentials of its kubelet.

Whoever has these can keep the lease of a node fresh that does not run. An address is that of the peer of the API
server; what a program is called it says itself, so another name is told, and the name of a kubelet proves nothing.
"""

from typing import Final

from msgspec import Struct

from webhook.admission.rules.change import NODE_LEASES
from webhook.analysis.claims.claim import Advice
from webhook.analysis.claims.commands import make_command_for_node
from webhook.analysis.claims.words import describe_user, format_clock, format_name
from webhook.analysis.history.audit_log.addresses import SourceRun
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.inputs.items import Writer
from webhook.kubernetes.request import NODE_USER

_MIN_WRITES: Final = 3
_KUBELET: Final = "kubelet"


class MovedHeartbeat(Struct, frozen=True):
    """The writes of a node's lease since its kubelet was heard last, none of them from where that had written."""

    writer: Writer
    run: SourceRun

    @property
    def source(self) -> str:
        """`from 10.0.0.9 with the user agent curl`."""
        return _describe_source(self.run.program, self.run.address)

    def describe(self, now: int) -> str:
        """Say from where it is written since then, and from where it was before."""
        return (
            f"from then on {describe_user(self.writer)} wrote it {self.source}, and until "
            f"{format_clock(self.run.left, now)} {_describe_source(*self.run.before)}: "
            "it no longer shows that the node works"
        )

    def advise(self, history: LeaseHistory) -> Advice:
        """Return what to do: the lease is kept fresh whether the node runs or not."""
        sentence = (
            f"Find out what writes as {describe_user(self.writer)} from {format_name(self.run.address)} since "
            f"{format_clock(self.run.first, history.moment)}: unless that is meant, someone else has the credentials "
            "of the node, and keeps its lease fresh whether it runs or not. To see the addresses of the node:"
        )
        return Advice(sentence, make_command_for_node(history.name))


def _describe_source(program: str, address: str) -> str:
    return f"from {format_name(address)} with the user agent {format_name(program)}"


def find_moved_heartbeat(history: LeaseHistory) -> MovedHeartbeat | None:
    """Return who writes the lease of a node in its kubelet's place; None if none does, as far as is known.

    A kubelet whose node gets another address is called as before.
    """
    if history.namespace != NODE_LEASES or history.is_deleted:
        return None
    own = Writer(f"{NODE_USER}{history.name}")
    found = [seen.run for who, seen in history.requests.addresses.by_writer.items() if who.is_same(own) and seen.run]
    if len(found) != 1:
        return None
    run, before = found[0], found[0].before[0]
    if run.count < _MIN_WRITES or not run.program or not before or run.program in {before, _KUBELET}:
        return None
    return MovedHeartbeat(own, run)
