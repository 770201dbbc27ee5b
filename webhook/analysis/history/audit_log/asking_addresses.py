"""From which addresses users ask for a lease whose tokens name no pod, and when they did not.

An address is that of the peer of the API server. Behind a proxy there may be many, so it tells processes of one user
apart only where they have different ones: that none asked from an address says that this process did not.
"""

from typing import Final

from msgspec import Struct, field

from webhook.analysis.history.audit_log.addresses import get_address
from webhook.analysis.history.visibility.bounds import MAX_LISTED
from webhook.analysis.inputs.items import Observation, Writer
from webhook.kubernetes.times import SECOND

MAX_PAUSES: Final = 16
"""The latest of each address are kept."""
_LEAST: Final = 5 * SECOND
"""Electors ask more often, as a rule."""


class _Asked(Struct):
    """The time of the last request, and the pauses before it: start and end of each, with no start for the first."""

    last: int | None = None
    pauses: list[tuple[int | None, int]] = field(default_factory=list)


class AskingAddresses(Struct):
    """When requests came, by user and address; a user that watches need not ask."""

    _asked: dict[tuple[Writer, str], _Asked] = field(default_factory=dict)
    _watching: set[Writer] = field(default_factory=set)

    def note_request(self, seen: Observation) -> None:
        """Take in a request of any kind for the lease."""
        who = seen.writer.process if seen.writer else Writer()
        key = who, get_address(seen.source)
        is_nameless = bool(who.user and key[1]) and not (who.pod or who.uid or who.impersonator)
        if not is_nameless or seen.at is None or (key not in self._asked and len(self._asked) >= MAX_LISTED):
            return
        if seen.verb == "watch":
            self._watching.add(who)
        asked = self._asked.setdefault(key, _Asked())
        if asked.last is None or seen.at - asked.last > _LEAST:
            asked.pauses = [*asked.pauses, (asked.last, seen.at)][-MAX_PAUSES:]
        asked.last = seen.at

    def find_pause(self, who: Writer, address: str, since: int, until: int) -> int | None:
        """Return when a user asked from an address for the first time since an instant, and before another one.

        None if that was shortly after its last request, or is not remembered, or if it watches.
        """
        asked = self._asked.get((who.process, address))
        if asked is None or who.process in self._watching:
            return None
        found = (end for start, end in asked.pauses if (start is None or start <= since) and since < end <= until)
        return next(found, None)
