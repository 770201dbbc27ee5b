"""A timeline: a lane for each lease, with spans of who held it, its renewals, marks of what happened, and gaps.

All times are microseconds since 1970 by the clocks of API servers, as far as the input shows those.
"""

from bisect import bisect_right
from collections.abc import Sequence
from enum import StrEnum
from itertools import groupby, takewhile
from typing import Any, Final

from msgspec import Struct, field, to_builtins
from msgspec.structs import replace

from webhook.admission.rules.change import NODE_LEASES
from webhook.analysis.claims.words import describe_writer, format_bound, format_clock, format_count, format_name
from webhook.analysis.history.holders.tenure import Tenure
from webhook.analysis.inputs.items import Writer
from webhook.kubernetes.times import SECOND, format_length, format_micro_time
from webhook.text.quoting import escape, truncate

_MAX_NAME: Final = 256
MAX_TEXT: Final = 4000
"""Characters of a mark; a denial may have 12 KB."""
_MAX_WRITERS: Final = 3


class Kind(StrEnum):
    """A kind of what is drawn."""

    @property
    def words(self) -> str:
        """Its name in words: `takeover after release`."""
        return _WORDS.get(self.value, self.value.replace("-by-", " after ").replace("-", " "))


_WORDS: Final = {
    "leaderless": "no leader",
    "several": "many changes",
    "unrecorded": "not recorded",
    "never-held": "never held",
    "removed": "holder removed",
    "written": "writes it",
    "silent": "possibly no leader",
    "contested": "two may lead",
}


class SpanKind(Kind):
    """The state of a lease for a while."""

    HELD = "held"
    OVERDUE = "overdue"
    """Held in name: the last renewal was longer ago than the duration, so anyone could have taken it."""
    FROZEN = "frozen"
    """Held in name, and no other replica can take it for longer than any duration explains, if ever."""
    LEADERLESS = "leaderless"
    """No one held it: it was released, or deleted and created again later."""
    REMOVED = "removed"
    """No one holds it, as another one removed its holder, which most likely leads on."""
    CHOSEN = "chosen"
    """An API server chose its holder, which has not renewed it yet: after a time without a leader."""
    WRITTEN = "written"
    """The input hides who holds it, and shows who writes it."""
    NEVER_HELD = "never-held"
    """It exists, and no one has held it yet: any replica may take it."""
    UNRECORDED = "unrecorded"
    """The input does not show who held it, from the last renewal before it has nothing to the first one after that."""
    SEVERAL = "several"
    """Changes too many to be kept one by one; `count` says how many spans it stands for."""
    SILENT = "silent"
    """Upon a held one, after the last renewal before the lease expired: its holder may have ended right after it."""
    CONTESTED = "contested"
    """Upon a held one, after a steal, until the lease of the one before would have expired: that one may not have
    noticed."""


UNLED: Final = frozenset({SpanKind.OVERDUE, SpanKind.LEADERLESS, SpanKind.CHOSEN})


class Span(Struct, frozen=True, gc=False):
    """Who held a lease from `begins` to `ends`, which is None if it is still so at the end of the input.

    Spans of a lane are in order and do not overlap. Nothing lies between two of them, except that no lease existed. The
    first one may begin before the timeline does: since then its holder says that it holds the lease. Texts are "" if
    unknown; `writer` is the user or pod that wrote as this holder, `manager` its field manager. `reason` says why no
    other replica can take a frozen one, what alone says that one is held or was never held, or what is not recorded if
    it is not who held it.
    """

    kind: SpanKind
    begins: int
    ends: int | None = None
    holder: str = ""
    writer: str = ""
    manager: str = ""
    count: int = 1
    reason: str = ""

    @property
    def is_unled(self) -> bool:
        """Whether no one leads in it, or in a part of it: its holder was removed, or the lease deleted."""
        return self.kind in UNLED or (self.kind is SpanKind.UNRECORDED and bool(self.reason) and not self.holder)

    def join(self, other: "Span") -> "Span":
        """Return one span that stands for both, without their holders."""
        return Span(SpanKind.SEVERAL, self.begins, other.ends, count=self.count + other.count)

    def describe(self, found: Sequence["Gap"], until: int) -> str:
        """Return the span in words, without its times; `found` are the gaps of its lane."""
        if self.kind is SpanKind.HELD:
            return f"held by {_name_or(self.holder)}{self.reason and f', {self.reason}'}"
        if self.kind is SpanKind.WRITTEN:
            return f"written by {_name_or(self.holder)}: the input does not show who holds it"
        if self.kind is SpanKind.REMOVED:
            return "no one holds it: another writer removed its holder, which may still lead"
        if self.kind is SpanKind.UNRECORDED:
            return f"not recorded: {self.reason or 'the input does not show who held it'}"
        if self.kind is SpanKind.FROZEN:
            return f"frozen: held by {format_name(self.holder)}, and {self.reason}"
        if self.kind is SpanKind.NEVER_HELD:
            return f"never held{self.reason and f', {self.reason}'}: any replica may take it"
        if self.kind is SpanKind.SEVERAL:
            return f"{format_count(self.count, 'short span')}, too many changes to draw"
        unled = found[bisect_right(found, self.begins, key=lambda gap: gap.expires) - 1].describe(until)
        if self.kind is SpanKind.CHOSEN:
            return f"chosen: {format_name(self.holder)}, which has not renewed it yet, {unled}"
        return unled if self.kind is SpanKind.LEADERLESS else f"overdue: held by {_name_or(self.holder)}, {unled}"


class MarkKind(Kind):
    """Something that happened at one moment, the gravest first."""

    STEAL = "steal"
    FORGED_STAMPS = "forged-stamps"
    """A write that put managedFields there that no API server makes."""
    IDENTITY_SHARED = "identity-shared"
    """Two processes renew in turns under one identity."""
    DENIED = "denied"
    """Refused with 4xx: by an admission webhook, by RBAC or by validation. Conflicts are not counted."""
    FENCED = "fenced"
    """A write of another object that a fence of this lease refused, or noted."""
    WOULD_DENY = "would-deny"
    """Admitted by lease-webhook only because a cap or an exemption lifts the denial."""
    WARNED = "warned"
    FAILED = "failed"
    """The API server answered a write with 429 or 5xx."""
    LATE = "late"
    """The holder renewed when its lease had expired, or when most clients would have given up."""
    SLOW = "slow"
    """The API server took more than a second to answer a write."""
    DELETED = "deleted"
    TAKEOVER_BY_EXPIRY = "takeover-by-expiry"
    TAKEOVER = "takeover"
    """Another holder, by the own pod of the one before, or the input does not show how."""
    TAKEOVER_BY_RELEASE = "takeover-by-release"
    RELEASE = "release"
    CREATED = "created"
    CLAIM = "claim"
    """The first holder of a lease that was there."""
    EDIT = "edit"
    """Fields of the spec that no renewal writes were changed."""


class Mark(Struct, frozen=True, gc=False):
    """Something that happened at `begins`; or, if `count` is above 1, as often as that until `ends`.

    The text is then that of the first. `holder` is who held the lease afterwards, `writer` who wrote; "" if unknown.
    """

    kind: MarkKind
    begins: int = field(name="at")
    text: str
    holder: str = ""
    writer: str = ""
    count: int = 1
    ends: int | None = None
    contested_until: int | None = None
    """Of a steal: when the lease of the holder before would have expired, None if that is not known."""

    def join(self, other: "Mark") -> "Mark":
        """Return one mark that stands for both, which are of one kind."""
        return replace(
            self,
            count=self.count + other.count,
            ends=max(self.ends or self.begins, other.ends or other.begins),
            holder=self.holder if self.holder == other.holder else "",
            writer=self.writer if self.writer == other.writer else "",
            contested_until=max(self.contested_until or 0, other.contested_until or 0) or None,
        )


class Bucket(Struct, frozen=True, gc=False):
    """A number of renewals, the first at `begins`, the last at `ends`."""

    begins: int
    ends: int
    count: int = 1

    def join(self, other: "Bucket") -> "Bucket":
        """Return the renewals of both."""
        return Bucket(self.begins, max(self.ends, other.ends), self.count + other.count)


class Ticks(Struct):
    """Renewals: `buckets` of older ones, in order, and then `moments` of those that are kept one by one."""

    moments: Sequence[int] = ()
    buckets: Sequence[Bucket] = ()

    @property
    def count(self) -> int:
        """How many renewals there were."""
        return len(self.moments) + sum(one.count for one in self.buckets)


class Gap(Struct, frozen=True, gc=False):
    """A time without a leader, in microseconds since 1970.

    It begins with the last renewal before the lease expired, as its holder may have died right after, or with the
    release or deletion; `expires` is then the same, as it is where the input does not show that renewal. A holder that
    was cut off went on as the leader for a while, so the time since a renewal is a bound. `holder` led before, "" if
    unknown; `ends` may be that of the timeline.
    """

    begins: int
    expires: int
    ends: int
    length: int
    holder: str = ""
    is_open: bool = False
    is_bound: bool = False
    """It begins with an expiry, or with a removal that nothing dates."""
    is_node: bool = False
    """The lease is that of a node, or a heartbeat without a holder: who renews it reports by it and leads nothing."""

    def describe(self, until: int) -> str:
        """Return the caption of the gap, which stays the same as time passes."""
        what = "no heartbeat" if self.is_node else "no leader"
        if self.is_open:
            # A lease does not show whether a holder that stopped to renew it leads on.
            silent = "not renewed" if self.is_bound else "no holder"
            what = what if self.is_node else silent
            return f"{what} since {_format_moment(self.begins, until)}" if self.begins > 0 else what
        return f"{what} for {format_bound(self.length) if self.is_bound else format_length(self.length)}"


class Lane(Struct, frozen=True, gc=False):
    """One Lease; `duration_seconds` is that of the last holder."""

    namespace: str
    name: str
    duration_seconds: int | None = None
    spans: tuple[Span, ...] = ()
    ticks: Ticks = field(default_factory=Ticks)
    marks: tuple[Mark, ...] = ()
    is_list_only: bool = False
    """Only lists have shown it: nothing is known of what happened before."""
    problem: str = ""
    """The defect of this program by which it cannot be drawn."""
    handovers: int = 0
    """How often the holder changed to another one, as far as was seen."""
    renewed_before: int | None = None
    """The last renewal before the timeline begins."""
    is_claimed: bool = False
    """A part of its times is by the clocks of who wrote them, as no API server dates it."""
    is_nameless: bool = False
    """It is a heartbeat that never named a holder."""

    def list_gaps(self, until: int) -> tuple[Gap, ...]:
        """Return each time without a leader, in order; `until` is the end of the timeline."""
        groups = [list(group) for _, group in groupby(self.spans, key=lambda span: span.is_unled)]
        found: list[Gap] = []
        for number, spans in enumerate(groups):
            if not spans[0].is_unled:
                continue
            following = groups[number + 1][0] if number + 1 < len(groups) else None
            # Of a removal that nothing dates, only what followed bounds for how long no one led.
            undated = [] if following else list(takewhile(lambda span: span.kind not in UNLED, spans))
            if dated := spans[len(undated) :]:
                earlier = groups[number - 1] if number else []
                before = next(reversed([*earlier, *undated]), None)
                found.append(self._make_gap(before, dated, following, until))
        return tuple(found)

    def _make_gap(self, before: Span | None, spans: list[Span], following: Span | None, until: int) -> Gap:
        first, last = spans[0], spans[-1]
        begins = expires = first.begins
        if first.kind is SpanKind.OVERDUE and before:
            begins = self._find_last_renewal(expires, before.begins)
            if before.kind is SpanKind.UNRECORDED and not before.holder and begins == before.begins:
                begins = expires
        if following:
            ends = following.begins
        else:
            ends = max(begins, until if last.ends is None else last.ends)
        holder = first.holder or (before.holder if before else "")
        return Gap(
            begins,
            expires,
            ends,
            ends - begins,
            holder,
            is_open=following is None and last.ends is None,
            is_bound=first.kind in {SpanKind.OVERDUE, SpanKind.UNRECORDED},
            is_node=self.namespace == NODE_LEASES or self.is_nameless,
        )

    def _find_last_renewal(self, at: int, since: int) -> int:
        """Return the last renewal until `at`, or `since` if none was seen after that."""
        number = bisect_right(self.ticks.moments, at)
        if number:
            return max(since, self.ticks.moments[number - 1])
        earlier = [self.renewed_before] if self.renewed_before is not None else []
        return max([since, *earlier, *(bucket.ends for bucket in self.ticks.buckets if bucket.ends <= at)])

    def list_doubts(self, found: Sequence[Gap], until: int) -> list[tuple[Span, str]]:
        """Return each time at which the holder may not have led, or not alone, with its text; `found` are the gaps."""
        silent = [
            (Span(SpanKind.SILENT, gap.begins, gap.expires, gap.holder), gap.describe(until))
            for gap in found
            if gap.begins < gap.expires
        ]
        contested = [
            (Span(SpanKind.CONTESTED, one.begins, self._find_end_of_contest(one), one.holder), one.text)
            for one in self.marks
            if one.kind is MarkKind.STEAL
        ]
        return sorted([*silent, *contested], key=lambda one: one[0].begins)

    def _find_end_of_contest(self, steal: Mark) -> int:
        """Return until when the holder before a steal may lead: until its lease has expired, or it has it back."""
        last, until = steal.ends or steal.begins, max(steal.begins, steal.contested_until or 0)
        before = [span.holder for span in self.spans if span.begins < steal.begins and span.holder]
        back = (span.begins for span in self.spans if before and span.holder == before[-1] and span.begins > last)
        return min(until, next(back, until))


class Timeline(Struct, frozen=True):
    """Everything that an input shows, from its first moment to its last.

    `thinned` says what was left out or aggregated; `sources` names what was read, and `read_at` when (None: no matter).
    `left_out` counts the leases that have no lane.
    """

    begins: int
    ends: int
    lanes: tuple[Lane, ...] = ()
    thinned: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    read_at: int | None = None
    left_out: int = 0


def make_timeline_json(timeline: Timeline) -> dict[str, Any]:
    """Return a timeline as JSON for programs: times as RFC 3339, and a name for every value."""
    return {
        "begins": format_micro_time(timeline.begins),
        "ends": format_micro_time(timeline.ends),
        "sources": [one.encode(errors="replace").decode() for one in timeline.sources],
        "thinned": list(timeline.thinned),
        "leases": [_encode_lane(lane) for lane in timeline.lanes],
    }


def _encode_lane(lane: Lane) -> dict[str, Any]:
    return {
        "namespace": lane.namespace,
        "name": lane.name,
        "duration_seconds": lane.duration_seconds,
        "spans": [_encode_part(span) for span in lane.spans],
        "renewals": {
            "count": lane.ticks.count,
            "at": [format_micro_time(at) for at in lane.ticks.moments],
            "groups": [_encode_part(one) for one in lane.ticks.buckets],
        },
        "marks": [_encode_part(mark) for mark in lane.marks],
        **({"is_by_writers_clock": True} if lane.is_claimed else {}),
        **({"problem": lane.problem} if lane.problem else {}),
    }


def _encode_part(drawn: Span | Mark | Bucket) -> dict[str, Any]:
    fields: dict[str, Any] = to_builtins(drawn)
    fields.pop("contested_until", None)  # the page shows it as a span of its own
    if not fields.get("reason"):
        fields.pop("reason", None)
    return fields | {
        key: format_micro_time(fields[key]) for key in ("begins", "at", "ends") if fields.get(key) is not None
    }


def shorten_for_page(text: str, most: int = _MAX_NAME) -> str:
    """Return a name or, with MAX_TEXT, the text of a mark, as it is drawn and searched for."""
    return escape(truncate(text, most))


def describe_writers(who: Tenure | Writer | None) -> str:
    """Return who wrote, or who wrote as a holder, which may be several; "" if unknown."""
    if isinstance(who, Tenure):
        return shorten_for_page(" and ".join(map(describe_writer, who.processes.writers[-_MAX_WRITERS:])))
    return shorten_for_page(describe_writer(who)) if who and who.user else ""


def _name_or(holder: str) -> str:
    return format_name(holder) if holder else "a holder that the input does not name"


def _format_moment(at: int, until: int) -> str:
    """Return an instant for a sentence, to a tenth of a second, as lengths are."""
    tenth = at % SECOND // (SECOND // 10)
    text = format_clock(at, until)
    return f"{text.removesuffix('Z')}.{tenth}Z" if tenth else text
