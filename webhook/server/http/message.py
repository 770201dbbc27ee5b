"""HTTP/1.1 by itself: what a head must not say, and an answer as bytes."""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final, NamedTuple, Self

Headers = list[tuple[bytes, bytes]]
"""In the order of the wire; names in lower case."""

Problem = tuple[int, str]
"""A status and one line of text."""

_ABSOLUTE: Final = re.compile(rb"\A[A-Za-z][-+.A-Za-z0-9]*://[^/?#]*")
"""What an absolute-form target has before its path (RFC 9112 3.2.2)."""
_CONTINUE: Final = b"100-continue"
UNUSUAL: Final = frozenset({b"transfer-encoding", b"expect"})
"""Headers that say how a body comes; kube-apiserver never sends them."""
_VERSIONS: Final = frozenset({"1.1", "1.0"})
_PHRASES: Final = {status.value: status.phrase.encode() for status in HTTPStatus}


class Head(NamedTuple):
    """What a request says before its body; `length` is its Content-Length, 0 where it has none."""

    method: bytes
    path: bytes
    query: bytes
    fields: Mapping[bytes, bytes]
    length: int

    @classmethod
    def of(cls, method: bytes, target: bytes, headers: Headers) -> Self:
        """The head; of equal names the last one counts. The parser has refused bad lengths before."""
        path, _, query = _ABSOLUTE.sub(b"", target).partition(b"?")
        fields = dict(headers)
        return cls(method, path, query, fields, int(fields.get(b"content-length", 0)))


NO_HEAD: Final = Head(b"", b"", b"", {}, 0)


class Answer(NamedTuple):
    """What goes back: `media` is the Content-Type, `allow` the methods of a 405."""

    status: int
    body: bytes
    media: bytes = b"text/plain; charset=utf-8"
    allow: bytes = b""


def head_size(target: bytes, headers: Headers) -> int:
    """Bytes of a head, as good as they were sent."""
    return len(target) + sum(len(name) + len(value) + 4 for name, value in headers)


def head_problem(head: Head, headers: Headers, version: str) -> Problem | None:
    """What is wrong with a head that the parser took; `headers` are all of its headers."""
    fields = head.fields
    if version not in _VERSIONS:
        return 400, "not an HTTP/1.1 request"
    hosts = 1 if len(fields) == len(headers) else sum(name == b"host" for name, _ in headers)
    if hosts > 1 or (b"host" not in fields and version == "1.1"):
        return 400, "a request needs one Host"
    return None if fields.keys().isdisjoint(UNUSUAL) else _unusual_problem(fields, version)


def message(answer: Answer, extra: bytes) -> bytes:
    """Head and body as one piece: one write is one TLS record."""
    status, body, media, allow = answer
    if allow:
        extra += b"allow: %b\r\n" % allow
    return b"HTTP/1.1 %d %b\r\ncontent-type: %b\r\ncontent-length: %d\r\n%b\r\n%b" % (
        status,
        _PHRASES[status],
        media,
        len(body),
        extra,
        body,
    )


def _unusual_problem(fields: Mapping[bytes, bytes], version: str) -> Problem | None:
    coding = fields.get(b"transfer-encoding")
    if coding is not None and (coding.strip().lower() != b"chunked" or version == "1.0"):
        return 400, "the only transfer coding is chunked"
    if fields.get(b"expect", _CONTINUE).lower() != _CONTINUE:
        return 417, "the only expectation is 100-continue"
    return None
