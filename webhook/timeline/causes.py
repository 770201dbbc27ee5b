"""Why leaders were lost or late, as `why` finds it out, said in marks.

What the other leases did says whether the API server was the cause, so a cause is known some time after its mark. It
takes a look at every other lease, so it is not sought again once it is settled.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from webhook.explanation.cause import cause_of_loss, sentence_of
from webhook.explanation.incidents import late_renewals
from webhook.explanation.words import name
from webhook.history.cluster_history import ClusterHistory
from webhook.history.lease_history import LeaseHistory
from webhook.history.tenure import Handover
from webhook.rules.times import SECOND
from webhook.timeline.model import Mark, MarkKind
from webhook.timeline.texts import sentence

SETTLED_AFTER: Final = 10 * SECOND
"""By then other leases that were renewed on time have been."""

_Signature = tuple[int, int]


class Causes(Struct, frozen=True):
    """What is known of the marks of one lease: by the moment of a takeover, and of a late renewal, a sentence."""

    lost: dict[int, str] = field(default_factory=dict)
    late: dict[int, str] = field(default_factory=dict)
    signature: _Signature = (0, 0)
    is_settled: bool = False

    def is_of(self, history: LeaseHistory) -> bool:
        """Whether nothing has happened since that has a cause, and what has happened is settled."""
        return self.is_settled and self.signature == _signature(history)

    def explained(self, mark: Mark) -> Mark:
        """A mark with its cause, if that is known."""
        if mark.count > 1:
            return mark
        if mark.kind is MarkKind.TAKEOVER_BY_EXPIRY and mark.at in self.lost:
            return replace(mark, text=sentence(f"{mark.text}. {self.lost[mark.at]}"))
        if mark.kind is MarkKind.LATE and mark.at in self.late:
            return replace(mark, text=sentence(self.late[mark.at]))
        return mark


def causes_of(cluster: ClusterHistory, history: LeaseHistory, until: int) -> Causes:
    """The causes of what is remembered of a lease; the input reaches up to `until`, in microseconds since 1970."""
    signature = _signature(history)
    latest = max([signature[1], *(tenure.since for tenure in history.tenures)])
    return Causes(
        dict(_lost(cluster, history)),
        {one.silence.end: one.sentence for one in late_renewals(cluster, history)},
        signature,
        is_settled=until - latest >= SETTLED_AFTER,
    )


def with_causes(marks: Sequence[Mark], causes: Causes) -> tuple[Mark, ...]:
    """The marks of a lease with the cause of each lost leader and each late renewal that is known."""
    return tuple(map(causes.explained, marks)) if causes.lost or causes.late else tuple(marks)


def _signature(history: LeaseHistory) -> _Signature:
    """What changes with every takeover and every late renewal."""
    silences = history.renewals.silences
    return sum(history.handovers.values()), silences[-1].end if silences else 0


def _lost(cluster: ClusterHistory, history: LeaseHistory) -> Iterator[tuple[int, str]]:
    for before, after in pairwise(history.tenures):
        if after.began is Handover.EXPIRED:
            yield after.since, sentence_of(cause_of_loss(cluster, history, before, after), name(before.holder))
