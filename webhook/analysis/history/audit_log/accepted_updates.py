"""The latest updates that were accepted, by which one that is sent again is known: it conflicts, and changes nothing.

A proxy, or a client, may send a request once more whose answer it missed. Two electors do not write one renewTime to
the microsecond for one version.
"""

from collections import deque
from functools import partial
from typing import Final

from msgspec import Struct, field

from webhook.analysis.inputs.items import Observation, Writer

_KEPT: Final = 8
_Update = tuple[Writer, str, str]


class AcceptedUpdates(Struct):
    """Updates by their writer, the version that each replaced, and its renewTime."""

    _latest: deque[_Update] = field(default_factory=partial(deque, (), _KEPT))

    def note_accepted(self, seen: Observation) -> None:
        """Remember an update that was accepted."""
        sent = seen.asked if seen.asked is not None else seen.object
        renewed = sent.spec.renew_time if sent is not None else None
        if seen.verb == "update" and seen.writer is not None and seen.replaces and renewed:
            self._latest.append((seen.writer.process, seen.replaces, renewed))

    def has_accepted(self, seen: Observation) -> bool:
        """Return whether an update that was not stored is one of these, sent again."""
        if seen.writer is None or not seen.replaces or not seen.refused_renew_time:
            return False
        return (seen.writer.process, seen.replaces, seen.refused_renew_time) in self._latest
