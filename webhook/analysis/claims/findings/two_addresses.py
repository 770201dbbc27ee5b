"""A holder whose writes come from several addresses in turn, and conflict: two machines may have its credentials."""

from typing import Final

from msgspec import Struct

from webhook.admission.rules.change import NODE_LEASES
from webhook.analysis.claims.claim import Advice
from webhook.analysis.claims.commands import make_command_for_managers, make_command_for_node
from webhook.analysis.claims.words import describe_user, describe_writer, format_clock, format_count, format_name
from webhook.analysis.history.audit_log.addresses import AddressesOfWriter
from webhook.analysis.history.lease import LeaseHistory
from webhook.analysis.inputs.items import Writer

_MIN_TURNS: Final = 4
_MAX_ADDRESSES: Final = 3
"""More are those of a pool, as of proxies or NAT, behind which may be one machine."""
_MIN_CONFLICTS: Final = 5
"""Now and then an answer is lost, and the next write is made for a state that has changed by its own hand."""


class TwoAddresses(Struct, frozen=True):
    """From which addresses a holder writes in turn."""

    writer: Writer
    seen: AddressesOfWriter

    @property
    def start(self) -> int:
        """When the latest of them was first seen."""
        return self.seen.first[self.latest]

    @property
    def latest(self) -> str:
        """The one that was seen first after all others."""
        return max(self.seen.first, key=lambda one: self.seen.first[one])

    def describe(self) -> str:
        """`system:node:a writes it from 2 addresses in turn: 30 writes from 10.0.0.7, 25 from 10.0.0.9; 25 of …`."""
        counts = [f"{number} from {format_name(one)}" for one, number in self.seen.counts.items()]
        total = format_count(sum(self.seen.counts.values()), "write")
        who = f"{describe_writer(self.writer)} writes it from {len(counts)} addresses in turn"
        return f"{who}: of {total} in the log, {', '.join(counts)}; {self.seen.conflicts} of them conflicted (409)"

    def advise(self, history: LeaseHistory) -> Advice:
        """Return what to do: an address is what finds the machine."""
        sentence = (
            f"Find out what writes as {describe_user(self.writer)} from {format_name(self.latest)}, "
            f"which the log first has at {format_clock(self.start, history.moment)}:"
        )
        is_node = history.namespace == NODE_LEASES
        command = make_command_for_node(history.name) if is_node else make_command_for_managers(history)
        return Advice(sentence, command)


def find_two_addresses(history: LeaseHistory) -> TwoAddresses | None:
    """Return from which addresses the present holder writes in turn; None if from one, or without conflicts."""
    own = history.current_tenure.processes.own if history.current_tenure is not None else None
    seen = history.requests.addresses.by_writer.get(own) if own is not None else None
    if own is None or seen is None or len(seen.counts) > _MAX_ADDRESSES:
        return None
    if seen.turns < _MIN_TURNS or seen.conflicts < _MIN_CONFLICTS:
        return None
    return TwoAddresses(own, seen)
