"""What all connections of one port share: the guards, the counters, known heads, and the bytes that are being read."""

import time
from typing import Final

from webhook.server.known_heads import KnownHeads
from webhook.server.logs import LOG, Seldom
from webhook.server.metrics import Metrics
from webhook.server.settings import Guards

COMPLAIN_EVERY: Final = 10
"""Seconds between two log lines about bad requests; a flood of them must not become a flood of lines."""


class Load:
    """`bytes_in_flight` is kept by the connections."""

    def __init__(self, guards: Guards, metrics: Metrics) -> None:
        self.guards = guards
        self.metrics = metrics
        self.bytes_in_flight = 0
        self.known_heads = KnownHeads()
        self._seldom = Seldom(COMPLAIN_EVERY)

    def has_room(self, more: int = 0) -> bool:
        """Whether so many more bytes may be read beside those that are being read."""
        return self.bytes_in_flight + more <= self.guards.largest_bytes_in_flight

    def complain(self, status: int, text: str, client: object) -> None:
        """Say in the log, now and then, that a client sends bad requests."""
        silent = self._seldom.admit(time.monotonic())
        if silent is not None:
            fields = {"status": status, "reason": text, "client": str(client), "more_since_last_line": silent}
            LOG.warning("bad request", extra={"fields": fields})
