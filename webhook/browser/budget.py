"""Limits what a browser reads, uncompressed, and reports how far the reading is."""

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from webhook.analysis.inputs.meter import Meter
from webhook.errors import InputError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MEGABYTE: Final = 1_000_000
MAX_BYTES: Final = 150 * MEGABYTE
"""Bytes of all inputs, uncompressed: the histories of as many fit into the memory of a tab."""
_PIECE: Final = 1024 * 1024
_TOO_LARGE: Final = (
    "more than {} MB, uncompressed, is too much for a browser; on a command line it reads any size: "
    "lease-webhook why --input {}"
)


class TooLargeError(InputError):
    """The inputs have more bytes than the budget."""


def ignore_progress(_read: int, _size: int) -> None:
    """Ignore how many bytes were read, and of how many."""


class Budget(Meter):
    """The meter of one reading of all inputs, which ends beyond `limit` bytes, uncompressed.

    `progress` is called with the bytes that were read, and with those that there are, as they are in the files.
    """

    path: str = "FILE"
    limit: int = MAX_BYTES
    progress: Callable[[int, int], None] = ignore_progress
    used: int = 0

    def wrap(self, plain: io.BufferedReader) -> io.BufferedReader:
        """Return a file that raises TooLargeError beyond the limit."""
        return io.BufferedReader(_Counted(self, plain), _PIECE)

    def spend(self, more: int) -> None:
        """Count bytes; raises TooLargeError beyond the limit."""
        self.used += more
        if self.used > self.limit:
            raise TooLargeError(_TOO_LARGE.format(self.limit // MEGABYTE, self.path))
        self.progress(min(self.read, self.size), self.size)


class _Counted(io.RawIOBase):
    """The plain bytes of a file; what is read twice, as a List is, counts once."""

    def __init__(self, budget: Budget, plain: io.BufferedReader) -> None:
        self._budget = budget
        self._plain = plain
        self._counted = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._plain.seekable()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._plain.seek(offset, whence)

    def tell(self) -> int:
        return self._plain.tell()

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        count = self._plain.readinto1(buffer)
        more = max(0, self._plain.tell() - self._counted)
        self._counted += more
        self._budget.spend(more)
        return count
