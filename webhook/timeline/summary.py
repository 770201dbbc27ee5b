"""One lane in a few sentences: who led, how often that changed, and how long no one did, at most, and why."""

from bisect import bisect_right
from typing import Final

from msgspec import Struct

from webhook.api.times import SECOND
from webhook.explanation.words import clock, count, length, name
from webhook.timeline.model import Lane, MarkKind, Span, SpanKind

UNLED: Final = frozenset({SpanKind.OVERDUE, SpanKind.LEADERLESS})
MAX_HOLDERS: Final = 3
"""Holders that are named one by one."""


class Gap(Struct, frozen=True, gc=False):
    """A time without a leader, in microseconds since 1970.

    It begins with the last renewal before the lease expired, as its holder may have died right after, or with the
    release or deletion. `deleted` says that it was deleted then, and `expired` that its holder did not renew in time.
    `is_bound`: its length is a bound, as a holder that was cut off went on as the leader for a while.
    `holder` led before, "" if that is unknown. `next_holder` is "" and `ends` the end of the timeline if it lasts until
    then.
    """

    begins: int
    ends: int
    holder: str
    expired: bool
    next_holder: str = ""
    is_open: bool = False
    deleted: bool = False
    is_bound: bool = False

    @property
    def length(self) -> int:
        """Microseconds from its begin to its end."""
        return self.ends - self.begins

    @property
    def in_words(self) -> str:
        """How long no one led."""
        return f"up to {length(self.length)}" if self.is_bound else length(self.length)


def gaps(lane: Lane, until: int) -> tuple[Gap, ...]:
    """Each time without a leader, in order; `until` is the end of the timeline."""
    found: list[Gap] = []
    spans = lane.spans
    number = 0
    while number < len(spans):
        first = spans[number]
        if first.kind not in UNLED:
            number += 1
            continue
        after = number
        while after < len(spans) and spans[after].kind in UNLED:
            after += 1
        found.append(_gap(lane, spans[number - 1] if number else None, first, spans[after - 1], until, after))
        number = after
    return tuple(found)


def longest_gap(lane: Lane, until: int) -> Gap | None:
    """The longest time without a leader, the first of equally long ones; None if there was none."""
    return max(gaps(lane, until), key=lambda gap: gap.length, default=None)


def summary(lane: Lane, until: int) -> str:
    """The most important facts about this lane; `until` is the end of the timeline."""
    led = [span for span in lane.spans if span.kind not in UNLED]
    if not led:
        return "No one held it." if lane.spans else "It was not seen."
    if lane.kind == "LeaseCandidate":
        return f"A candidate from {_moment(led[0].begins, until)}."
    sentences = [*_steals(lane, until), _who(led, until)]
    gap = longest_gap(lane, until)
    if gap:
        sentences.append(_in_words(gap, until))
    elif len(sentences) == 1:
        is_moment = "The input shows one moment only, not what happened before."
        sentences.append(is_moment if lane.is_moment else "It always had a leader.")
    return " ".join(sentences)


def _gap(lane: Lane, before: Span | None, first: Span, last: Span, until: int, after: int) -> Gap:
    expired = first.kind is SpanKind.OVERDUE
    begins = first.begins
    if expired:
        begins = _last_renewal(lane, first.begins, before.begins if before else first.begins)
    holder = first.holder or (before.holder if before else "")
    deleted = any(mark.kind is MarkKind.DELETED and mark.at == begins for mark in lane.marks)
    following = lane.spans[after] if after < len(lane.spans) else None
    next_holder = following.holder if following else ""
    ends = following.begins if following else max(begins, until if last.ends is None else last.ends)
    is_open = following is None and last.ends is None
    return Gap(begins, ends, holder, expired, next_holder, is_open, deleted, expired and begins < first.begins)


def _last_renewal(lane: Lane, at: int, since: int) -> int:
    """The last renewal until `at`, or `since` if none was seen after that."""
    moments = lane.ticks.moments
    number = bisect_right(moments, at)
    if number:
        return max(since, moments[number - 1])
    ended = [bucket.ends for bucket in lane.ticks.buckets if bucket.ends <= at]
    return max(since, ended[-1]) if ended else since


def _who(led: list[Span], until: int) -> str:
    """The holders in their order, each change of hands once."""
    turns = [span for number, span in enumerate(led) if not number or span.holder != led[number - 1].holder]
    if any(span.kind is SpanKind.SEVERAL for span in led):
        changes = sum(span.count for span in led if span.kind is SpanKind.SEVERAL) + len(turns) - 1
        return f"It changed hands about {changes} times; {name(led[-1].holder)} was the last leader."
    holders = [f"{name(span.holder)} from {_moment(span.begins, until)}" for span in turns[1:]]
    if not holders:
        return f"{name(turns[0].holder)} led."
    if len(turns) <= MAX_HOLDERS:
        return f"{name(turns[0].holder)} led, then {', then '.join(holders)}."
    distinct = len({span.holder for span in turns})
    return (
        f"{name(turns[0].holder)} led first; {count(len(turns) - 1, 'handover')} among {distinct} holders, "
        f"the last to {holders[-1]}."
    )


def _steals(lane: Lane, until: int) -> list[str]:
    stolen = [mark for mark in lane.marks if mark.kind is MarkKind.STEAL]
    if not stolen:
        return []
    if len(stolen) == 1:
        taken = f"{name(stolen[0].holder)} took it at {_moment(stolen[0].at, until)}"
    else:
        taken = f"It was taken {len(stolen)} times"
    return [f"{taken} while it was held: two replicas may have acted as leader."]


def _in_words(gap: Gap, until: int) -> str:
    holder = name(gap.holder) if gap.holder else "its holder"
    since = _moment(gap.begins, until)
    if gap.expired:
        why = f"{holder} renewed it last at {since}"
    elif gap.deleted:
        why = f"it was deleted at {since}"
    elif gap.holder:
        why = f"{holder} released it at {since}"
    else:
        why = f"no one held it from {since} on"
    if gap.is_open:
        return f"No one has led for {gap.in_words}: {why}, and no one has taken it since."
    if not gap.next_holder or gap.next_holder == gap.holder:
        return f"Longest time without a leader: {gap.in_words}; {why}, and again at {_moment(gap.ends, until)}."
    return (
        f"Longest time without a leader: {gap.in_words}; {why}, and {name(gap.next_holder)} "
        f"took it at {_moment(gap.ends, until)}."
    )


def _moment(at: int, until: int) -> str:
    """An instant within a sentence: like a length, to a tenth of a second."""
    tenth = at % SECOND // (SECOND // 10)
    text = clock(at, until)
    return f"{text.removesuffix('Z')}.{tenth}Z" if tenth else text
