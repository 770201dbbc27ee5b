"""Candidates of a coordinated election whose answers to pings do not count: their clocks are behind.

An API server takes an answer for one only if its renewTime, which the candidate writes, is later than the pingTime that
it wrote itself.
"""

from msgspec import Struct
from msgspec.structs import replace

from webhook.analysis.claims.claim import Advice
from webhook.analysis.claims.commands import make_command_for_nodes_of_pods
from webhook.analysis.claims.words import format_clock, format_name
from webhook.analysis.history.elections.pings import Answer
from webhook.analysis.history.follow import ClusterHistory
from webhook.analysis.history.lease import LeaseHistory
from webhook.kubernetes.objects import is_foreign_strategy
from webhook.kubernetes.times import SECOND, format_length


class VainAnswer(Struct, frozen=True):
    """An answer that does not count."""

    namespace: str
    answer: Answer

    def describe(self, now: int) -> str:
        """Return it as a sentence without its end."""
        name, at = format_name(self.answer.candidate), format_clock(self.answer.at, now)
        return (
            f"LeaseCandidate {name} answers its pings, the last time at {at}, but its clock is "
            f"{format_length(self.answer.behind)} behind that of the API server: an answer whose renewTime is before "
            "the ping does not count"
        )

    def add_to(self, advice: Advice) -> Advice:
        """Return an advice that sets the clock first."""
        node = f", {format_name(self.answer.writer.node)}" if self.answer.writer.node else ""
        sentence = f"Set the clock of the node of LeaseCandidate {format_name(self.answer.candidate)}{node}."
        if advice.command or node:
            return replace(advice, sentence=f"{sentence} {advice.sentence}")
        nodes = make_command_for_nodes_of_pods(self.namespace)
        return Advice(f"{advice.sentence} {sentence} To see which node that is:", nodes)


def find_vain_answer(histories: ClusterHistory, history: LeaseHistory) -> VainAnswer | None:
    """Return the latest one for a lease; None if there is none, or if no API server chooses its holder."""
    strategy = histories.find_strategy(history)
    if strategy is None or is_foreign_strategy(strategy):
        return None
    found = histories.pings.list_vain_answers(history.namespace, history.name)
    late = [one for one in found if one.behind >= SECOND]
    return VainAnswer(history.namespace, late[-1]) if late else None
