"""HTTP/1.1 messages: the head of a request, what it must not contain, and a response with its bytes."""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final, NamedTuple, Self

from msgspec import Struct

Headers = list[tuple[bytes, bytes]]
"""In the order of the wire; names in lower case."""

TEXT: Final = b"text/plain; charset=utf-8"
UNUSUAL_HEADERS: Final = frozenset({b"transfer-encoding", b"expect"})
"""Headers about how a body is transferred; kube-apiserver never sends them."""
HEAD_TOO_LARGE: Final = "the head of the request is too large"
VERSIONS: Final = frozenset({"1.1", "1.0"})

REFUSAL_KINDS: Final[Mapping[int, str]] = {
    400: "framing",
    403: "client",
    404: "path",
    405: "method",
    408: "slow",
    413: "body-size",
    415: "media-type",
    417: "expectation",
    431: "head-size",
    500: "bug",
}
"""Label values for refused requests, by the status of their response."""

_ABSOLUTE: Final = re.compile(rb"\A[A-Za-z][-+.A-Za-z0-9]*://[^/?#]*")
"""The part of an absolute-form target before its path (RFC 9112 3.2.2)."""
_UPGRADE_HEADERS: Final = frozenset({b"upgrade", b"connection", b"http2-settings"})
_CONTINUE: Final = b"100-continue"
_FIRST_LINES: Final = {
    status.value: b"HTTP/1.1 %d %b\r\ncontent-type: " % (status.value, status.phrase.encode()) for status in HTTPStatus
}


class Head(NamedTuple):
    """The part of a request before its body; `length` is its Content-Length, 0 if it has none."""

    method: bytes
    path: bytes
    query: bytes
    fields: Mapping[bytes, bytes]
    length: int

    @classmethod
    def of(cls, method: bytes, target: bytes, headers: Headers) -> Self:
        """Return the head; of equal names the last one counts. The parser has refused invalid lengths before."""
        path, _, query = _ABSOLUTE.sub(b"", target).partition(b"?")
        fields = dict(headers)
        return cls(method, path, query, fields, int(fields.get(b"content-length", 0)))


NO_HEAD: Final = Head(b"", b"", b"", {}, 0)


class HttpResponse(Struct, frozen=True, gc=False):
    """A response from its maker to the bytes on the wire; `headers` are further lines, each with its line break."""

    status: int
    body: bytes
    content_type: bytes = TEXT
    headers: bytes = b""

    def to(self, method: bytes) -> "HttpResponse":
        """Return the response to a request with this method: one to HEAD has no body."""
        return HttpResponse(self.status, b"", self.content_type, self.headers) if method == b"HEAD" else self


class RefusedError(Exception):
    """A request that is answered before all of it was read; its connection is closed."""

    def __init__(self, status: int, reason: str, headers: bytes = b"") -> None:
        super().__init__(status, reason)
        self.reason = reason
        self.response = HttpResponse(status, f"{reason}\n".encode(), headers=headers)


def check_head(head: Head, headers: Headers, version: str) -> None:
    """Raise RefusedError if a head that the parser took is invalid; `headers` are all of its headers."""
    fields = head.fields
    if version not in VERSIONS:
        raise RefusedError(400, "not an HTTP/1.1 request")
    hosts = 1 if len(fields) == len(headers) else sum(name == b"host" for name, _ in headers)
    if hosts > 1 or (b"host" not in fields and version == "1.1"):
        raise RefusedError(400, "a request needs one Host")
    if head.method == b"CONNECT":
        # RFC 9110 10.2.1: nothing is allowed.
        raise RefusedError(405, "CONNECT is not supported", b"allow:\r\n")
    if fields.keys().isdisjoint(UNUSUAL_HEADERS):
        return
    coding = fields.get(b"transfer-encoding")
    if coding is not None and (coding.strip().lower() != b"chunked" or version == "1.0"):
        raise RefusedError(400, "the only transfer coding is chunked")
    if fields.get(b"expect", _CONTINUE).lower() != _CONTINUE:
        raise RefusedError(417, "the only expectation is 100-continue")


def without_upgrade(method: bytes, target: bytes, headers: Headers, version: str) -> bytes:
    """Return a head as bytes, without its request for another protocol, which a server may ignore (RFC 9110 7.8)."""
    first = b"%b %b HTTP/%b" % (method, target, version.encode())
    others = (b"%b: %b" % header for header in headers if header[0] not in _UPGRADE_HEADERS)
    return b"\r\n".join([first, *others, b"", b""])


def to_bytes(response: HttpResponse, *, close: bool) -> bytes:
    """Return head and body as one piece: one write is one TLS record."""
    body = response.body
    return b"%b%b\r\ncontent-length: %d\r\n%b%b\r\n%b" % (
        _FIRST_LINES[response.status],
        response.content_type,
        len(body),
        response.headers,
        b"connection: close\r\n" if close else b"",
        body,
    )
