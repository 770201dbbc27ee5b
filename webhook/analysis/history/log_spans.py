"""From when to when each of several audit logs has requests: one may end, with its API server, while others go on."""

from typing import Final

from msgspec import Struct, field

from webhook.kubernetes.times import SECOND

MAX_LOGS: Final = 1000
_JOINT: Final = 5 * SECOND
"""A log that begins so shortly before another one ends may be its next part."""


class EndedLog(Struct, frozen=True):
    """A log of which nothing follows the last request, answered at `at`, in microseconds since 1970."""

    path: str
    at: int


class LogSpans(Struct):
    """The first and the last answer that each log has, in microseconds since 1970."""

    _spans: dict[str, tuple[int, int]] = field(default_factory=dict)

    def note(self, path: str, at: int) -> None:
        """Note an answer; of more logs than is plausible, the later ones are left out."""
        if path in self._spans:
            first, last = self._spans[path]
            self._spans[path] = min(first, at), max(last, at)
        elif len(self._spans) < MAX_LOGS:
            self._spans[path] = at, at

    def find_ended(self, start: int, end: int) -> EndedLog | None:
        """Return a log that ends in the first half of a time, while another one goes on until its end.

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
