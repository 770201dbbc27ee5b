"""From when to when each of several audit logs has requests: one may end, with its API server, while others go on."""

from collections import deque
from functools import partial
from typing import Final

from msgspec import Struct, field

from webhook.kubernetes.times import SECOND

MAX_LOGS: Final = 1000
_MAX_PAUSES: Final = 100
_MIN_PAUSE: Final = 5 * SECOND
_JOINT: Final = 5 * SECOND
"""A log that begins so shortly before another one ends may be its next part."""


class EndedLog(Struct, frozen=True):
    """A log of which nothing follows the last request, answered at `at`, in microseconds since 1970."""

    path: str
    at: int


class SilentLog(Struct, frozen=True):
    """A log that has no answer from `start` to `end`, in microseconds since 1970, while another log has some."""

    path: str
    start: int
    end: int


class LogChanges(Struct):
    """Which log has the writes to a lease, from when on: the latest changes, as its clients change API servers."""

    _changes: deque[tuple[int, str]] = field(default_factory=partial(deque, (), _MAX_PAUSES))

    def note(self, path: str, at: int) -> None:
        """Note the log of a write that was answered at an instant."""
        if not self._changes or self._changes[-1][1] != path:
            self._changes.append((at, path))

    def find_at(self, at: int) -> str:
        """Return the path of the log that has the last write until an instant, "" if that is not known."""
        return next((path for since, path in reversed(self._changes) if since <= at), "")


class LogSpans(Struct):
    """The first and the last answer about any lease that each log has, in microseconds since 1970, and its pauses."""

    _spans: dict[str, tuple[int, int]] = field(default_factory=dict)
    _pauses: dict[str, deque[tuple[int, int]]] = field(default_factory=dict)
    """The latest long times without an answer, by path."""

    def note(self, path: str, at: int) -> None:
        """Note an answer; of more logs than is plausible, the later ones are left out."""
        if path in self._spans:
            first, last = self._spans[path]
            if at - last > _MIN_PAUSE:
                self._pauses.setdefault(path, deque(maxlen=_MAX_PAUSES)).append((last, at))
            self._spans[path] = min(first, at), max(last, at)
        elif len(self._spans) < MAX_LOGS:
            self._spans[path] = at, at

    @property
    def first_end(self) -> int | None:
        """The end of the first of the logs, which may be a part of another one; None without any."""
        return min((last for _, last in self._spans.values()), default=None)

    def find_ended(self, start: int, end: int) -> EndedLog | None:
        """Return a log that ends in the first half of a time, while another log continues until its end.

        None if there is none, or several, or if a log begins where it ends, which may be its next part.
        """
        spans = self._spans
        if len(spans) < 2 or len(spans) == MAX_LOGS:
            return None
        ended = [EndedLog(path, last) for path, (_, last) in spans.items() if start <= last <= (start + end) // 2]
        if len(ended) != 1:
            return None
        at = ended[0].at
        goes_on = any(first < at and last >= end for first, last in spans.values())
        return ended[0] if goes_on and all(first < at - _JOINT for first, _ in spans.values()) else None

    def find_silent(self, path: str, start: int, end: int) -> SilentLog | None:
        """Return a log if it has no answer for most of a time, and some after that, while another log has some."""
        for since, until in self._pauses.get(path, ()):
            if 4 * (min(until, end) - max(since, start)) >= 3 * (end - start) > 0:
                is_alone = not any(self._goes_on(other, since, until) for other in self._spans if other != path)
                return None if is_alone else SilentLog(path, since, until)
        return None

    def _goes_on(self, path: str, start: int, end: int) -> bool:
        """Return whether a log has answers throughout a time, but for less than half of it."""
        first, last = self._spans[path]
        pauses = self._pauses.get(path, ())
        is_interrupted = any(2 * (min(until, end) - max(since, start)) >= end - start for since, until in pauses)
        return first < start and last > end and not is_interrupted
