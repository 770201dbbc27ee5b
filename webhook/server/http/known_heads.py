"""Heads of requests that were answered before, found by their bytes."""

from typing import Final

from webhook.server.http.message import UNUSUAL_HEADERS, Head


class KnownHeads:
    """Heads that were answered before, so that the same bytes are not parsed and checked again.

    Parsing and checking them costs a third of a review without TLS (`make fast-paths`). kube-apiserver sends the same
    few headers with each review; only Content-Length differs. The meaning of a head
    follows from its bytes alone, as long as they stand where a request may begin. Only heads that were answered and
    left the connection open are kept. The bounds keep what clients can fill with heads of their own at about 4 MiB.
    """

    MAX_HEADS: Final = 1024
    MAX_HEAD_BYTES: Final = 512
    """kube-apiserver's heads have about 250 bytes; one that carries a token is not kept."""
    MAX_FIELDS: Final = 16

    def __init__(self) -> None:
        self._heads: dict[bytes, Head] = {}

    def find(self, data: bytes) -> tuple[Head, bytes] | None:
        """Return head and body of `data`, if it is one whole request, and nothing more, with a known head."""
        start = self._find_start_of_body(data)
        head = self._heads.get(data[:start])
        if head is None or len(data) != start + head.length:
            return None
        return head, data[start:]

    def remember(self, data: bytes, head: Head) -> None:
        """Remember `head`, the last one that was read from `data`, which began where a request may begin.

        The sum shows that `data` was this request alone: with anything before, between or after it would be larger.
        """
        start = self._find_start_of_body(data)
        is_alone = start > 0 and len(data) == start + head.length
        if not is_alone or len(head.fields) > self.MAX_FIELDS or not head.fields.keys().isdisjoint(UNUSUAL_HEADERS):
            return
        if len(self._heads) >= self.MAX_HEADS:
            del self._heads[next(iter(self._heads))]
        self._heads[data[:start]] = head

    def _find_start_of_body(self, data: bytes) -> int:
        """Return where a head that is not too long has ended; 0 if none has."""
        end = data.find(b"\r\n\r\n", 0, self.MAX_HEAD_BYTES)
        return 0 if end < 0 else end + 4
