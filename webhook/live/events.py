"""Server-sent events of a feed: `lanes` that changed, `clock` for the end of the timeline, `status`, `end`."""

import threading
import time
from collections.abc import Iterator
from typing import Final

import msgspec

from webhook.live.feed import Feed
from webhook.timeline.page_data import page_data
from webhook.timeline.thinning import fitted

MOST_LISTENERS: Final = 8
SHORTEST_PAUSE: Final = 0.4
"""Seconds between two messages, so that a burst of changes is one message."""
LONGEST_PAUSE: Final = 1.0
_SHARE: Final = 4
"""The pause after a message, as a multiple of the time that making it took, so that work stays bounded."""


class Listeners:
    """Counts the pages that listen, and gives each of them its events."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed

        self._places = threading.BoundedSemaphore(MOST_LISTENERS)

    def messages(self) -> "Messages | None":
        """The events for one more page; None if there are too many."""
        return Messages(self._feed, self._places) if self._places.acquire(blocking=False) else None


class Messages:
    """The events for one page, as bytes. A server calls `close` when the page has gone."""

    def __init__(self, feed: Feed, places: threading.BoundedSemaphore) -> None:
        self._places = places
        self._closing = threading.Lock()
        self._is_closed = False
        self._events = _events(feed)

    def __iter__(self) -> Iterator[bytes]:
        return self._events

    def close(self) -> None:
        """Free the place for another page; a second call does nothing."""
        with self._closing:
            if not self._is_closed:
                self._is_closed = True
                self._places.release()


def _events(feed: Feed) -> Iterator[bytes]:
    version, status = 0, ""
    while True:
        began = time.monotonic()
        change = feed.since(version)
        if change.timeline.lanes:
            yield _event("lanes", page_data(fitted(change.timeline)))
        else:
            yield _event("clock", msgspec.json.encode({"ends": change.timeline.ends}))
        if change.status != status:
            status = change.status
            yield _event("status", msgspec.json.encode({"text": status}))
        if change.has_ended:
            yield _event("end", msgspec.json.encode({"why": status}))
            return
        version = change.version
        took = time.monotonic() - began
        time.sleep(max(SHORTEST_PAUSE, took * _SHARE))
        feed.wait(version, LONGEST_PAUSE)


def _event(name: str, data: bytes) -> bytes:
    # JSON of one line has no line break, which would end the data.
    return b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"
