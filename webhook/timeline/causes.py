"""Why leaders were lost or late, as `why` finds it out, said in marks."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec.structs import replace

from webhook.explanation.cause import cause_of_loss, sentence_of
from webhook.explanation.incidents import late_renewals
from webhook.explanation.words import name
from webhook.history.cluster_history import ClusterHistory
from webhook.history.lease_history import LeaseHistory
from webhook.history.tenure import Handover
from webhook.timeline.model import Mark, MarkKind
from webhook.timeline.texts import sentence, shown


def with_causes(marks: Sequence[Mark], cluster: ClusterHistory, history: LeaseHistory) -> tuple[Mark, ...]:
    """The marks of a lease with the cause of each takeover by expiry that is remembered, and late renewals."""
    reasons = dict(_reasons(cluster, history))
    explained = [
        replace(mark, text=sentence(f"{mark.text}. {reasons[mark.at]}"))
        if mark.kind is MarkKind.TAKEOVER_BY_EXPIRY and mark.at in reasons and mark.count == 1
        else mark
        for mark in marks
    ]
    late = [
        Mark(MarkKind.LATE, one.silence.end, sentence(one.sentence), shown(one.holder))
        for one in late_renewals(cluster, history)
    ]
    return tuple(sorted([*explained, *late], key=lambda mark: mark.at)) if late else tuple(explained)


def _reasons(cluster: ClusterHistory, history: LeaseHistory) -> Iterator[tuple[int, str]]:
    for before, after in pairwise(history.tenures):
        if after.began is Handover.EXPIRED:
            yield after.since, sentence_of(cause_of_loss(cluster, history, before, after), name(before.holder))
