"""Who holds a lease as that changes: spans one after another, in bounded memory."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from webhook.history.tenure import Tenure
from webhook.timeline.model import Span, SpanKind
from webhook.timeline.texts import shown, writers_of

MOST_SPANS: Final = 2000


class _Open(Struct):
    kind: SpanKind
    begins: int
    tenure: Tenure | None = None
    manager: str = ""

    def span(self, ends: int | None) -> Span:
        tenure = self.tenure
        if tenure is None:
            return Span(self.kind, self.begins, ends)
        return Span(self.kind, self.begins, ends, shown(tenure.holder), writers_of(tenure), shown(self.manager))


class SpanRecord:
    """The spans of one lease. Each begins when the one before ends; a moment before that counts as that moment."""

    __slots__ = ("_closed", "_most", "_open")

    def __init__(self, most: int = MOST_SPANS) -> None:
        self._closed: list[Span] = []
        self._open: _Open | None = None
        self._most = most

    @property
    def is_empty(self) -> bool:
        """Whether nothing was recorded yet."""
        return self._open is None and not self._closed

    @property
    def begins(self) -> int | None:
        """When the present span began."""
        return self._open.begins if self._open else None

    def hold(self, at: int, tenure: Tenure, manager: str) -> None:
        """From now on it is held."""
        self._begin(SpanKind.HELD, at, tenure, manager)

    def overdue(self, at: int) -> None:
        """It was not renewed in time: from `at` on anyone could have taken it."""
        if self._open and self._open.kind is SpanKind.HELD:
            self._begin(SpanKind.OVERDUE, at, self._open.tenure, self._open.manager)

    def renewed(self, at: int) -> None:
        """It is held again by the one that had let it expire."""
        if self._open and self._open.kind is SpanKind.OVERDUE:
            self._begin(SpanKind.HELD, at, self._open.tenure, self._open.manager)

    def vacate(self, at: int) -> None:
        """From now on no one holds it."""
        self._begin(SpanKind.LEADERLESS, at, None, "")

    def offer(self, at: int) -> None:
        """From now on a candidate exists."""
        self._begin(SpanKind.OFFERED, at, None, "")

    def end(self, at: int) -> int:
        """The present span is over, or the object is gone; gives the moment that counts."""
        current = self._open
        if current is None:
            return max(at, self._closed[-1].ends or at) if self._closed else at
        at = max(at, current.begins)
        if at > current.begins:
            self._closed.append(current.span(at))
            if len(self._closed) > self._most:
                half = len(self._closed) // 2
                self._closed[:half] = merged(self._closed[:half], self._most // 4)
        self._open = None
        return at

    def spans(self, overdue_at: int | None, end: int, *, is_gone: bool) -> tuple[Span, ...]:
        """All spans.

        Args:
            overdue_at: since when the present holder is late, if it is.
            end: where the timeline ends, in microseconds since 1970.
            is_gone: the lease was deleted, so that no one holds it is nothing that lasts.

        """
        current = self._open
        if current is None or (is_gone and current.kind is SpanKind.LEADERLESS):
            return tuple(self._closed)
        if current.kind is not SpanKind.HELD or overdue_at is None or overdue_at >= end:
            return (*self._closed, current.span(None))
        since = max(overdue_at, current.begins)
        late = _Open(SpanKind.OVERDUE, since, current.tenure, current.manager).span(None)
        return (*self._closed, *([current.span(since)] if since > current.begins else []), late)

    def _begin(self, kind: SpanKind, at: int, tenure: Tenure | None, manager: str) -> None:
        self._open = _Open(kind, self.end(at), tenure, manager)


def merged(spans: Sequence[Span], most: int) -> list[Span]:
    """Spans that have ended as at most about twice `most`: runs of short ones become one each."""
    if len(spans) <= most:
        return list(spans)
    ends = [span.begins if span.ends is None else span.ends for span in spans]
    width = (ends[-1] - spans[0].begins) // max(1, most) + 1
    found: list[Span] = []
    for span, end in zip(spans, ends, strict=True):
        last = found[-1] if found else None
        if last is not None and end - last.begins <= width:
            found[-1] = Span(SpanKind.SEVERAL, last.begins, end, count=last.count + span.count)
        else:
            found.append(span)
    return found
