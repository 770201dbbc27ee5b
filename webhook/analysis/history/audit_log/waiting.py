"""Who asked for a lease since anything was stored in it: who waits for it reads it again and again.

In: every request of an audit log. Out: by process, when it asked, and what it was answered last.
"""

from collections import deque
from functools import partial
from typing import Final

from msgspec import Struct, field

from webhook.analysis.history.visibility.bounds import MAX_LISTED
from webhook.analysis.inputs.items import Act, Observation, Writer

MAX_TIMES: Final = 64


class Asking(Struct):
    """The requests of one process: when the latest of them were received, and the last answer."""

    times: deque[int] = field(default_factory=partial(deque, (), MAX_TIMES))
    code: int = 0
    message: str = ""
    wrote_at: int | None = None
    """When its latest try to write the lease was received; None if it only read."""

    @property
    def last(self) -> int:
        """When the last one was received, in microseconds since 1970: answers come in another order than requests."""
        return max(self.times)


class Waiting(Struct):
    """The requests since `since`, when something was last stored, in microseconds since 1970.

    `is_whole` is false once there were more processes than are kept. Who is not authenticated is Writer().
    """

    since: int = 0
    is_whole: bool = True
    asking: dict[Writer, Asking] = field(default_factory=dict)
    known: set[Writer] = field(default_factory=set)
    """Processes that asked before that; of many, the first ones."""

    def note_request(self, seen: Observation) -> None:
        """Add a request of any kind."""
        who = seen.writer.process if seen.writer else Writer()
        if who not in self.asking and len(self.asking) >= MAX_LISTED:
            self.is_whole = False
            return
        asking = self.asking.setdefault(who, Asking())
        asking.times.append((seen.at or 0) - seen.took)
        if seen.act is not Act.READ:
            asking.wrote_at = (seen.at or 0) - seen.took
        asking.code, asking.message = (seen.answer.code, seen.answer.message) if seen.answer else (0, "")

    def restart(self, at: int, *, is_dated: bool) -> None:
        """Restart as something is stored; another input may show that after requests that came later.

        Without `is_dated`, at most its writer's clock says when, so that it is not known who asked since then.
        """
        if not is_dated:
            self.is_whole = False
            return
        self.known.update(self.asking if len(self.known) < MAX_LISTED else ())
        later = {who: one for who, one in self.asking.items() if one.last > at}
        self.since, self.is_whole, self.asking = at, self.is_whole or not later, later

    def find_others(self, own: Writer | None, since: int) -> list[tuple[Writer, Asking]]:
        """Return the processes other than one that asked after a moment, the last one first."""
        found = [(who, one) for who, one in self.asking.items() if one.last > since and not (own and own.is_same(who))]
        return sorted(found, key=lambda pair: -pair[1].last)
