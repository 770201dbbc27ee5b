"""What a lane shows, in words: who led, how often that changed, and how long no one did, at most."""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import groupby, pairwise
from typing import Final

from msgspec import Struct

from webhook.api.times import SECOND
from webhook.explanation.words import clock, count, length, name
from webhook.history.renewals import deadline_of
from webhook.timeline.model import Lane, Mark, MarkKind, Span, SpanKind

UNLED: Final = frozenset({SpanKind.OVERDUE, SpanKind.LEADERLESS})
MAX_HOLDERS: Final = 3
"""Holders that are named one by one."""


class Gap(Struct, frozen=True, gc=False):
    """A time without a leader, in microseconds since 1970.

    It begins with the last renewal before the lease expired, as its holder may have died right after, or with the
    release or deletion; `expires` is then the same. A holder that was cut off went on as the leader for a while, so
    after an expiry its length is a bound. `why` is a clause without the time. `holder` led before, "" if that is
    unknown. `next_holder` is "" and `ends` the end of the timeline if it lasts until then.
    """

    begins: int
    expires: int
    ends: int
    length: int
    is_bound: bool
    why: str
    holder: str = ""
    next_holder: str = ""
    is_open: bool = False

    @property
    def in_words(self) -> str:
        """How long no one led."""
        return f"up to {length(self.length)}" if self.is_bound else length(self.length)

    def text(self, until: int) -> str:
        """Return what stands beside it; it says the same as time goes on."""
        since = f"no leader since {_moment(self.begins, until)}"
        return since if self.is_open else f"no leader for {self.in_words}"


def gaps(lane: Lane, until: int) -> tuple[Gap, ...]:
    """Each time without a leader, in order; `until` is the end of the timeline."""
    found: list[Gap] = []
    number = 0
    for is_unled, group in groupby(lane.spans, key=lambda span: span.kind in UNLED):
        spans = list(group)
        number += len(spans)
        if is_unled:
            before = lane.spans[number - len(spans) - 1] if number > len(spans) else None
            found.append(_gap(lane, before, spans, lane.spans[number] if number < len(lane.spans) else None, until))
    return tuple(found)


def _gap(lane: Lane, before: Span | None, spans: list[Span], following: Span | None, until: int) -> Gap:
    first, last = spans[0], spans[-1]
    begins = expires = first.begins
    if first.kind is SpanKind.OVERDUE:
        begins = _last_renewal(lane, expires, before.begins if before else expires)
    ends = following.begins if following else max(begins, until if last.ends is None else last.ends)
    holder = first.holder or (before.holder if before else "")
    next_holder = following.holder if following else ""
    who = name(holder) if holder else "its holder"
    if first.kind is SpanKind.OVERDUE:
        why = f"{who} renewed it last at" if begins < expires else f"the lease of {who} expired at"
    elif any(mark.kind is MarkKind.DELETED and mark.at == begins for mark in lane.marks):
        why = "it was deleted at"
    else:
        why = f"{who} released it at" if holder else "no one held it at"
    unled = ends - begins
    if begins < expires and holder and next_holder == holder:
        # It lived, so it led until its deadline.
        unled = max(0, unled - deadline_of(lane.duration_seconds))
    is_open = following is None and last.ends is None
    return Gap(begins, expires, ends, unled, begins < expires, why, holder, next_holder, is_open)


def _last_renewal(lane: Lane, at: int, since: int) -> int:
    """The last renewal until `at`, or `since` if none was seen after that."""
    moments = lane.ticks.moments
    number = bisect_right(moments, at)
    if number:
        return max(since, moments[number - 1])
    return max([since, *(bucket.ends for bucket in lane.ticks.buckets if bucket.ends <= at)])


def span_texts(lane: Lane, found: tuple[Gap, ...], until: int) -> Iterator[str]:
    """Yield each span in words, without its times; `found` are the gaps of the lane."""
    beginning = iter(found)
    gap: Gap | None = None
    for before, span in zip((None, *lane.spans), lane.spans, strict=False):
        if span.kind in UNLED and not (before and before.kind in UNLED):
            gap = next(beginning)
        yield _span_text(span, gap.text(until) if gap and span.kind in UNLED else "")


def _span_text(span: Span, unled: str) -> str:
    match span.kind:
        case SpanKind.LEADERLESS:
            return unled
        case SpanKind.SEVERAL:
            return f"{count(span.count, 'short span')}, too many changes to draw"
        case SpanKind.HELD:
            return f"held by {name(span.holder)}" if span.holder else "held by a holder that the input does not name"
        case _:
            return f"overdue: held by {name(span.holder)}, {unled}"


def doubts(lane: Lane, found: tuple[Gap, ...], until: int) -> list[tuple[Span, str]]:
    """Each time at which the holder may not have led, or not alone, in order, with its text; `found` are the gaps."""
    silent = [
        (Span(SpanKind.SILENT, gap.begins, gap.expires, gap.holder), gap.text(until))
        for gap in found
        if gap.begins < gap.expires
    ]
    stolen = _steals(lane)
    contested = [
        (Span(SpanKind.CONTESTED, one.at, _contested_until(lane, one), one.holder), one.text) for one in stolen
    ]
    return sorted([*silent, *contested], key=lambda one: one[0].begins)


def _contested_until(lane: Lane, steal: Mark) -> int:
    before = [span.begins for span in lane.spans if span.begins < steal.at]
    renewed = _last_renewal(lane, steal.at - 1, before[-1] if before else steal.at)
    return max(steal.at, (steal.ends or renewed) + (lane.duration_seconds or 0) * SECOND)


def _steals(lane: Lane) -> list[Mark]:
    return [mark for mark in lane.marks if mark.kind is MarkKind.STEAL]


def handovers(lane: Lane) -> int:
    """Return how often the lease changed hands, several short spans counted as one change each."""
    held = [span for span in lane.spans if span.kind not in UNLED]
    several = sum(span.count for span in held if span.kind is SpanKind.SEVERAL)
    return several + sum(one.holder != after.holder for one, after in pairwise(held))


def longest(found: tuple[Gap, ...]) -> Gap | None:
    """The longest time without a leader, the first of equally long ones; None if there was none."""
    return max(found, key=lambda gap: gap.ends - gap.begins, default=None)


def summary(lane: Lane, until: int) -> str:
    """The most important facts about this lane; `until` is the end of the timeline."""
    led = [span for span in lane.spans if span.kind not in UNLED]
    if not led:
        return "No one held it." if lane.spans else "It was not seen."
    stolen = _steals(lane)
    sentences = []
    if stolen:
        once = f"{name(stolen[0].holder)} took it at {_moment(stolen[0].at, until)}"
        taken = once if len(stolen) == 1 else f"It was taken {len(stolen)} times"
        sentences = [f"{taken} while it was held: two replicas may have acted as leader."]
    sentences.append(_who(lane, led, until))
    gap = longest(gaps(lane, until))
    if gap:
        sentences.append(_in_words(gap, until))
    elif not stolen:
        is_moment = "The input shows one moment only, not what happened before."
        sentences.append(is_moment if lane.is_moment else "It always had a leader.")
    return " ".join(sentences)


def _who(lane: Lane, led: list[Span], until: int) -> str:
    """The holders in their order, each change of hands once."""
    if any(span.kind is SpanKind.SEVERAL for span in led):
        return f"It changed hands about {handovers(lane)} times; {name(led[-1].holder)} was the last leader."
    turns = [span for before, span in pairwise(led) if span.holder != before.holder]
    first = f"{name(led[0].holder)} led"
    holders = [f"{name(span.holder)} from {_moment(span.begins, until)}" for span in turns]
    if len(turns) < MAX_HOLDERS:
        return f"{', then '.join([first, *holders])}."
    distinct = len({span.holder for span in led})
    return f"{first} first; {count(len(turns), 'handover')} among {distinct} holders, the last to {holders[-1]}."


def _in_words(gap: Gap, until: int) -> str:
    why = f"{gap.why} {_moment(gap.begins, until)}"
    if gap.is_open:
        return f"No one leads: {why}, and no one has taken it since."
    taken = f"{name(gap.next_holder)} took it" if gap.next_holder not in {"", gap.holder} else "again"
    return f"Longest time without a leader: {gap.in_words}; {why}, and {taken} at {_moment(gap.ends, until)}."


def _moment(at: int, until: int) -> str:
    """An instant within a sentence: like a length, to a tenth of a second."""
    tenth = at % SECOND // (SECOND // 10)
    text = clock(at, until)
    return f"{text.removesuffix('Z')}.{tenth}Z" if tenth else text
