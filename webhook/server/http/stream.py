"""A response in blocks: a thread puts them, and the connection takes them when its client has read the one before."""

import asyncio
import contextlib
import threading
from typing import Final

from webhook.server.http.message import HttpResponse

_BLOCKS: Final = 1
"""Blocks that wait for the client; while one waits, the thread waits too."""


class BrokenStreamError(Exception):
    """The application failed after a part of its response was written."""


class AbandonedError(Exception):
    """No one takes the blocks any more: the client has gone, or does not read."""


class Stream:
    """A response whose body is sent in blocks while a thread is still making it.

    It is made in the thread of the application. `head` has no body; its `has_length` says that the blocks need no
    chunks.
    """

    def __init__(self, head: HttpResponse, loop: asyncio.AbstractEventLoop) -> None:
        self.head = head
        self._loop = loop
        self._blocks: asyncio.Queue[bytes | None] = asyncio.Queue(_BLOCKS)
        self._is_broken = False
        self._is_abandoned = threading.Event()

    # In the thread.

    def put(self, block: bytes | None) -> None:
        """Give the next block, or None after the last; raises AbandonedError."""
        if self._is_abandoned.is_set():
            raise AbandonedError
        asyncio.run_coroutine_threadsafe(self._blocks.put(block), self._loop).result()

    def fail(self) -> None:
        """End the stream in its middle."""
        self._is_broken = True
        with contextlib.suppress(AbandonedError):
            self.put(None)

    # On the event loop.

    async def take(self) -> bytes | None:
        """Return the next block, or None after the last; raises BrokenStreamError."""
        block = await self._blocks.get()
        if block is None and self._is_broken:
            raise BrokenStreamError
        return block

    def abandon(self) -> None:
        """Take no more blocks; a thread that waits goes on, and its next block fails."""
        self._is_abandoned.set()
        while not self._blocks.empty():
            self._blocks.get_nowait()
