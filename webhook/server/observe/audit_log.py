"""Throttled log lines for findings of mode audit, of which the writer is not warned; they may come with every write.

Each worker limits its own lines. The metrics and the API server's audit log have every finding.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from webhook.rules.finding import Finding
from webhook.rules.mode import Mode
from webhook.server.logs import LOG, LogThrottle
from webhook.server.observe.review_log import described
from webhook.server.reviewer import Reviewed

SECONDS_BETWEEN_LINES: Final = 60.0
"""For the same rule, lease and user."""

MOST_KEYS: Final = 1000
"""Combinations of rule, lease and user that are remembered; clients choose names, so this bounds the lines as well."""


class _Line(Struct):
    logged_at: float
    silent: int = 0


class LogThrottleByKey:
    """Lets one line through for each key in each period, and counts the others.

    It remembers `most` keys. Further ones are silent until the oldest line is a period old; `lost` counts them.
    """

    def __init__(self, seconds: float, most: int) -> None:
        self.lost = 0
        self._seconds = seconds
        self._most = most
        self._lines: OrderedDict[int, _Line] = OrderedDict()

    def admit(self, key: int, now: float) -> int | None:
        """None to drop the line, else how many of this key were dropped since its last; `now` is monotonic seconds."""
        last = self._lines.get(key)
        if last is not None and now < last.logged_at + self._seconds:
            last.silent += 1
            return None
        if last is None and not self._make_room(now):
            self.lost += 1
            return None
        self._lines[key] = _Line(now)
        self._lines.move_to_end(key)
        return 0 if last is None else last.silent

    def _make_room(self, now: float) -> bool:
        """Whether one more key can be remembered; the oldest line comes first, so only that one may be forgotten."""
        if len(self._lines) < self._most:
            return True
        key, oldest = next(iter(self._lines.items()))
        if now < oldest.logged_at + self._seconds:
            return False
        del self._lines[key]
        return True


class AuditLog:
    """One line for each rule, lease and user in a minute; `clock` is in monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, most: int = MOST_KEYS) -> None:
        self._clock = clock
        self._lines = LogThrottleByKey(SECONDS_BETWEEN_LINES, most)
        self._complaints = LogThrottle(SECONDS_BETWEEN_LINES)
        self._one_at_a_time = threading.Lock()

    def responded(self, review: Reviewed) -> None:
        """Log the findings of mode audit that have not been logged within the last minute."""
        request, verdict = review.response.request, review.response.verdict
        if request is None or verdict is None or not verdict.findings:
            return
        first: dict[str, Finding] = {}
        for finding in verdict.findings:
            if finding.mode is Mode.AUDIT:
                first.setdefault(finding.rule, finding)
        for rule, finding in first.items():
            fields = described(request, verdict)
            silent = self._admit((rule, request.resource, request.namespace, request.name, str(fields["user"])))
            if silent is not None:
                fields |= {
                    "rules": f"{rule}={finding.mode.word}",
                    "reason": str(finding.error),
                    "more_since_last_line": silent,
                }
                LOG.info("audited", extra={"fields": fields})

    def failed(self, kind: str) -> None:
        """Without a verdict there are no findings."""

    def _admit(self, key: tuple[str, ...]) -> int | None:
        with self._one_at_a_time:
            now = self._clock()
            # The hash alone is remembered: a name may be as long as a client likes.
            silent = self._lines.admit(hash(key), now)
            if self._lines.lost and self._complaints.admit(now) is not None:
                LOG.warning("findings of mode audit are not logged", extra={"fields": {"lost": self._lines.lost}})
                self._lines.lost = 0
            return silent
