"""Heads of requests that were answered before, so that the same bytes are not parsed and checked again.

kube-apiserver sends the same few headers with each review; only Content-Length differs. What a head means follows from
its bytes alone, as long as they stand where a request may begin, so a table from bytes to meaning is as good as the
parser, at a fraction of its cost. Only heads that were answered and left the connection open get into it.
"""

from typing import Final

from webhook.server.http.message import UNUSUAL, Head

MOST_HEADS: Final = 1024
LONGEST_HEAD: Final = 512
"""Bytes. kube-apiserver's heads have about 250; one that carries a token is not kept."""
MOST_FIELDS: Final = 16
"""With the numbers above this bounds the memory that clients can fill with heads of their own: about 4 MiB."""

_END: Final = b"\r\n\r\n"


class KnownHeads:
    """For all connections of one port."""

    def __init__(self) -> None:
        self._heads: dict[bytes, Head] = {}

    def __len__(self) -> int:
        return len(self._heads)

    def find(self, data: bytes) -> tuple[Head, bytes] | None:
        """Head and body of `data`, if it is one whole request, and nothing more, with a known head."""
        begin = _begin_of_body(data)
        head = self._heads.get(data[:begin])
        if head is None or len(data) != begin + head.length:
            return None
        return head, data[begin:]

    def remember(self, data: bytes, head: Head) -> None:
        """Remember `head`, the last one that was read from `data`, which began where a request may begin.

        The sum shows whether `data` was this request alone: with anything before, between or after it would be larger.
        """
        begin = _begin_of_body(data)
        is_alone = begin > 0 and len(data) == begin + head.length
        if not is_alone or len(head.fields) > MOST_FIELDS or not head.fields.keys().isdisjoint(UNUSUAL):
            return
        if len(self._heads) >= MOST_HEADS:
            del self._heads[next(iter(self._heads))]
        self._heads[data[:begin]] = head


def _begin_of_body(data: bytes) -> int:
    """Where a head that is not too long has ended; 0 if none has."""
    end = data.find(_END, 0, LONGEST_HEAD)
    return 0 if end < 0 else end + len(_END)
