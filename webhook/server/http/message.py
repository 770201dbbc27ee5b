"""HTTP/1.1 messages: the head of a request, what it must not contain, and a response with its bytes."""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final, NamedTuple, Self
from urllib.parse import unquote_to_bytes

from msgspec import Struct

Headers = list[tuple[bytes, bytes]]
"""In the order of the wire; names in lower case."""

TEXT: Final = "text/plain; charset=utf-8"
TEXT_HEADER: Final = f"content-type: {TEXT}\r\n".encode()
UNUSUAL_HEADERS: Final = frozenset({b"transfer-encoding", b"expect"})
"""Headers about how a body is transferred; kube-apiserver never sends them."""
HEAD_TOO_LARGE: Final = "the head of the request is too large"
VERSIONS: Final = frozenset({"1.1", "1.0"})

REFUSAL_KINDS: Final[Mapping[int, str]] = {
    400: "framing",
    403: "client",
    405: "method",
    408: "slow",
    413: "body-size",
    417: "expectation",
    431: "head-size",
    500: "bug",
}
"""What is wrong with a request that HTTP or a guard refuses, by the status of the refusal."""

_ABSOLUTE: Final = re.compile(rb"\A[A-Za-z][-+.A-Za-z0-9]*://[^/?#]*")
"""The part of an absolute-form target before its path (RFC 9112 3.2.2)."""
_UPGRADE_HEADERS: Final = frozenset({b"upgrade", b"http2-settings"})
"""Connection stays: it may ask to close as well (RFC 9112 9.6), and without Upgrade it asks for no other protocol."""
_CONTINUE: Final = b"100-continue"
_FIRST_LINES: Final = {
    status.value: b"HTTP/1.1 %d %b\r\n" % (status.value, status.phrase.encode()) for status in HTTPStatus
}
_NOT_IN_ENVIRON: Final = frozenset({b"content-length", b"transfer-encoding", b"expect", b"connection"})
"""Headers about the transfer: an application gets a whole body, and its length."""


_NONE: Final[Mapping[str, Any]] = {}


class Head(NamedTuple):
    """The part of a request before its body; `length` is its Content-Length, 0 if it has none.

    `fields` has the last value of each name. `variables` are the environ of PEP 3333, but for what differs between
    requests with this head.
    """

    method: bytes
    path: bytes
    fields: Mapping[bytes, bytes]
    length: int
    variables: Mapping[str, Any]

    @classmethod
    def from_parts(
        cls, method: bytes, target: bytes, headers: Headers, version: str = "1.1", server: Mapping[str, Any] = _NONE
    ) -> Self:
        """Return the head. The parser has refused invalid lengths, and a second one, before.

        `server` are the variables that all requests to a port have in common.
        """
        path, _, query = _ABSOLUTE.sub(b"", target).partition(b"?")
        fields = dict(headers)
        variables = {
            **server,
            "REQUEST_METHOD": method.decode("latin-1"),
            "SCRIPT_NAME": "",
            "PATH_INFO": (unquote_to_bytes(path) if b"%" in path else path).decode("latin-1"),
            "QUERY_STRING": query.decode("latin-1"),
            "SERVER_PROTOCOL": f"HTTP/{version}",
            **_make_header_variables(headers),
        }
        return cls(method, path, fields, int(fields.get(b"content-length", 0)), variables)

    @property
    def has_expectation(self) -> bool:
        """Whether the sender awaits 100 Continue before its body; in HTTP/1.0 that is ignored (RFC 9110 10.1.1)."""
        return b"expect" in self.fields and self.variables["SERVER_PROTOCOL"] == "HTTP/1.1"


NO_HEAD: Final = Head(b"", b"", {}, 0, {})


def _make_header_variables(headers: Headers) -> dict[str, str]:
    """Return HTTP_* and CONTENT_TYPE. A name with `_` would be another one's variable, so it is left out."""
    variables: dict[str, str] = {}
    for name, value in headers:
        if name in _NOT_IN_ENVIRON or b"_" in name:
            continue
        text = value.decode("latin-1")
        if name == b"content-type":
            variables["CONTENT_TYPE"] = text
            continue
        key = f"HTTP_{name.decode('latin-1').upper().replace('-', '_')}"
        # RFC 9110 5.3, and RFC 9113 8.2.3 for cookies.
        separator = "; " if name == b"cookie" else ","
        variables[key] = f"{variables[key]}{separator}{text}" if key in variables else text
    return variables


class Request(NamedTuple):
    """A whole request; `began` is the monotonic time of its first byte, `client` the address of its sender."""

    head: Head
    body: bytes
    began: float
    client: tuple[str, int]


class HttpResponse(Struct, frozen=True, gc=False):
    """A whole response; `head` are its first line and headers, each with its line break, without its length.

    `has_length`: the head has the length, or needs none (a response to HEAD, 204, 304).
    """

    status: int
    body: bytes
    head: bytes
    has_length: bool = False

    @classmethod
    def from_text(cls, status: int, text: str, headers: bytes = b"") -> Self:
        """Return a line of text; `headers` are further lines."""
        return cls(status, text.encode(), _FIRST_LINES[status] + TEXT_HEADER + headers)


class RefusedError(Exception):
    """A request that is answered before all of it was read; its connection is closed."""

    def __init__(self, status: int, reason: str, headers: bytes = b"") -> None:
        super().__init__(status, reason)
        self.reason = reason
        self.response = HttpResponse.from_text(status, f"{reason}\n", headers)


def check_head(head: Head, headers: Headers, version: str) -> None:
    """Raise RefusedError if a head that the parser took is invalid; `headers` are all of its headers."""
    fields = head.fields
    if version not in VERSIONS:
        raise RefusedError(400, "not an HTTP/1.1 request")
    names = [name for name, _ in headers] if len(fields) < len(headers) else []
    if names.count(b"host") > 1 or (b"host" not in fields and version == "1.1"):
        raise RefusedError(400, "a request needs one Host")
    if names.count(b"content-type") > 1:
        raise RefusedError(400, "a request has at most one Content-Type")
    if head.method == b"CONNECT":
        # RFC 9110 10.2.1: nothing is allowed.
        raise RefusedError(405, "CONNECT is not supported", b"allow:\r\n")
    if fields.keys().isdisjoint(UNUSUAL_HEADERS):
        return
    # Several lines of a list mean the same as one with commas (RFC 9110 5.3).
    codings = _list_members(b"transfer-encoding", headers)
    if codings and (codings != [b"chunked"] or version == "1.0"):
        raise RefusedError(400, "the only transfer coding is chunked")
    if head.has_expectation and set(_list_members(b"expect", headers)) != {_CONTINUE}:
        raise RefusedError(417, "the only expectation is 100-continue")


def has_close(head: Head, headers: Headers) -> bool:
    """Return whether the connection ends with this request: `close` counts before `keep-alive` (RFC 9112 9.3)."""
    return b"connection" in head.fields and b"close" in _list_members(b"connection", headers)


def _list_members(name: bytes, headers: Headers) -> list[bytes]:
    """Return the members of a list in lower case, from all headers of this name; an empty one is a member too."""
    values = (value for header, value in headers if header == name)
    return [member.strip().lower() for value in values for member in value.split(b",")]


def strip_upgrade(method: bytes, target: bytes, headers: Headers, version: str) -> bytes:
    """Return a head as bytes, without its request for another protocol, which a server may ignore (RFC 9110 7.8)."""
    first = b"%b %b HTTP/%b" % (method, target, version.encode())
    others = (b"%b: %b" % header for header in headers if header[0] not in _UPGRADE_HEADERS)
    return b"\r\n".join([first, *others, b"", b""])


def to_bytes(response: HttpResponse, *, close: bool) -> bytes:
    """Return head and body as one piece: one write is one TLS record."""
    body = response.body
    return b"%b%b%b\r\n%b" % (
        response.head,
        b"" if response.has_length else b"content-length: %d\r\n" % len(body),
        b"connection: close\r\n" if close else b"",
        body,
    )
