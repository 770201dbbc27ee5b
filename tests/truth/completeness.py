"""How much of what happened to a lease is said: of each loss of its holder who lost it, to whom, how, and why.

A loss that an input does not show is not counted: where it is read late, or through a hole.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from tests.truth.evaluation import Evaluated
from tests.truth.facts import Facts, Write
from tests.truth.inputs import Input
from tests.truth.records import History
from tests.truth.stage import SECOND

LEASE: Final = ("shop", "checkout")
MAX_CAUSES: Final = 3
"""How many causes a set may have that says why."""
LOSSES, TAKER, HOW, EXPIRED, WHY = "losses", "taker", "how", "expired", "why"


def count_losses(history: History, given: Input, evaluations: Iterable[Evaluated]) -> Counter[str]:
    """Return how many holders were lost, and of how many it is said, truly, to whom, how, and why."""
    facts = Facts(history, *LEASE, given.last)
    claims = [one.claim for one in evaluations if one.lease == "/".join(LEASE) and one.is_true]
    losses: Counter[str] = Counter()
    for previous, write in _losses(facts):
        if not (given.shows(write.at) and given.shows(write.at - 30 * SECOND)):
            continue
        losses[LOSSES] += 1
        taken = [
            one
            for one in claims
            if one["claim"] == "taken" and one["identity"] == write.puts and _is_in(facts, one, write)
        ]
        losses[TAKER] += any(one.get("previous") == previous for one in taken)
        losses[HOW] += any(one.get("how", "unknown") != "unknown" for one in taken)
        if write.removes and not facts.may_be_live(write.begin):
            losses[EXPIRED] += 1
            lost = (one for one in claims if one["claim"] == "leader-lost" and one.get("identity") == write.puts)
            losses[WHY] += any(one.get("cause") or 0 < len(one.get("causes", ())) <= MAX_CAUSES for one in lost)
    return losses


def _losses(facts: Facts) -> Iterator[tuple[str, Write]]:
    """Yield who lost the lease, and the write that put another one there."""
    previous = ""
    for write in facts.writes:
        if write.puts and previous and write.puts != previous:
            yield previous, write
        previous = write.after.holder or previous


def _is_in(facts: Facts, claim: dict[str, str], write: Write) -> bool:
    begin, end = facts.interval(claim)
    return write.begin <= end and begin <= write.end
